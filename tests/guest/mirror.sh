# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# Source it.
#
#   mirror    prints the URI of the mirror that this system gets Debian itself from, whatever its
#             sources look like; nothing if it can't be told

mirror()
{
	local codename
	codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
	# shellcheck disable=SC2016
	apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT) $(CREATED_BY)' |
		awk -v c="$codename" '($2 == c || $2 == "stable") && $3 == "main" && $4 == "Packages" { print $1; exit }'
}

# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# Kernel modules of the guest.
#
#   load MODULE [KEY=VALUE]...   with what it needs; 0 if it is loaded or built in afterwards
#   unload MODULE                it alone

load()
{
	local module=$1 file
	shift
	[ -e "/lib/modules/$module.order" ] || return 1
	while read -r file; do
		file=${file%.ko}
		[ ! -d "/sys/module/${file//-/_}" ] || continue
		if [ "$file" = "$module" ]; then
			insmod "/lib/modules/$file.ko" "$@" || return 1
		else
			insmod "/lib/modules/$file.ko" || return 1
		fi
	done <"/lib/modules/$module.order"
}

unload()
{
	rmmod "$1"
}

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Makes a Debian 12 with systemd, udev and the libraries of zswapd, and prints where it is: a tar
# archive of its root.
# usage: debian.sh [--update]
#
# What was made once is kept in $ZSWAPD_TEST_CACHE (/var/cache/zswapd-test) and made again only with
# --update, or when PACKAGES have changed.  The packages come from the mirror that this system's apt
# uses.
#
# Status: 0, 1 an error, 77 no mirror could be reached, or mmdebstrap is missing.
set -euo pipefail
export LC_ALL=C
# shellcheck source=tests/lib/cleanup.sh
. "$(dirname "$0")/../lib/cleanup.sh"
# shellcheck source=tests/guest/mirror.sh
. "$(dirname "$0")/mirror.sh"

SUITE=bookworm
PACKAGES=systemd,systemd-sysv,udev,dbus,kmod,mount,procps,util-linux,usr-is-merged
PACKAGES+=,libblkid1,libfuse3-3,libinih1,libncursesw6,libnl-3-200,libseccomp2,libsystemd0,liburing2,libxxhash0,libzstd1
KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg

cache=${ZSWAPD_TEST_CACHE:-/var/cache/zswapd-test}
root=$cache/debian/$SUITE-$(cksum <<<"$PACKAGES" | cut -d ' ' -f 1).tar

# Whoever waits for the same finds it in the cache.
mkdir -p "$cache/debian"
exec 8>>"$cache/lock"
flock -w 900 8 || die "somebody has held $cache/lock for 15 minutes"

if [ "${1-}" != --update ] && [ -s "$root" ]; then
	echo "$root"
	exit
fi
command -v mmdebstrap >/dev/null || {
	note "mmdebstrap is not installed"
	exit 77
}
[ -f $KEYRING ] || die "$KEYRING is missing (Debian package debian-archive-keyring)"
uri=$(mirror)
[ -n "$uri" ] || die "apt's sources name no Debian mirror"
# What a killed run left goes.
rm -rf "$cache"/debian/new-*
work=$(mktemp -d "$cache/debian/new-XXXXXX")
cleanup_push rm -rf "$work"

note "making a Debian $SUITE"
timeout 600 mmdebstrap --quiet --mode=root --format=tar --variant=essential --include="$PACKAGES" \
	--keyring="$KEYRING" --aptopt='Acquire::Retries "2"' --aptopt='APT::Install-Recommends "false"' \
	--dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
	--dpkgopt='path-exclude=/usr/share/locale/*' \
	$SUITE "$work/root.tar" "$uri" </dev/null >"$work/log" 2>&1 || {
	tail -n 5 "$work/log" >&2
	if grep -qE 'Could not resolve|Failed to fetch|Unable to connect|Temporary failure' "$work/log"; then
		exit 77
	fi
	die "mmdebstrap has failed"
}
sync -f "$work/root.tar"
mv "$work/root.tar" "$root"
echo "$root"

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Gets a Debian kernel for the guest and prints where it is: a directory with boot/vmlinuz-RELEASE and
# lib/modules/RELEASE, modules.dep included.
# usage: kernel.sh [--update] [PATTERN]     prints the directory
#        kernel.sh --list                   prints which kernels there are: suite and release
#
# PATTERN is a shell pattern for the release without its flavour, such as '6.12.*' (the default) or
# '6.1.*'.  The newest kernel that matches is taken, from the first of SUITES that has one.
#
# What was got once is kept in $ZSWAPD_TEST_CACHE (/var/cache/zswapd-test) and asked for again only
# with --update.  The packages come from the mirror that this system's apt uses, in suites that the
# system itself does not use, so apt gets a state of its own; the archive's signatures are checked as
# always.  A kernel appears in the cache by one rename, when it is complete.
#
# Status: 0, 1 an error, 77 no mirror could be reached and the cache has nothing that fits.
set -euo pipefail
export LC_ALL=C
# shellcheck source=tests/lib/cleanup.sh
. "$(dirname "$0")/../lib/cleanup.sh"
# shellcheck source=tests/guest/mirror.sh
. "$(dirname "$0")/mirror.sh"

SUITES='bookworm-backports trixie trixie-backports bookworm sid'
KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg
# Nothing of these is in a guest.  They are nine tenths of a kernel's modules.
UNWANTED=(sound drivers/gpu drivers/media drivers/net drivers/staging drivers/infiniband
	drivers/iio drivers/usb drivers/scsi drivers/hwmon drivers/input drivers/bluetooth)

cache=${ZSWAPD_TEST_CACHE:-/var/cache/zswapd-test}
pattern='6.12.*'
list=
update=
while [ $# -gt 0 ]; do
	case $1 in
	--list) list=1 ;;
	--update) update=1 ;;
	-*) die "unknown option $1" ;;
	*) pattern=$1 ;;
	esac
	shift
done

# Releases of the kernels in the cache, oldest first.
cached()
{
	local dir
	for dir in "$cache"/kernel/*/; do
		[ -d "$dir" ] && basename "$dir"
	done | sort -V
}

# The newest release in standard input that matches.
newest()
{
	local release found=
	while read -r release; do
		# shellcheck disable=SC2053
		[[ ${release%-amd64} == $pattern ]] && found=$release
	done
	[ -n "$found" ] && echo "$found"
}

# apt's state of its own, for one suite.
suite_begin()
{
	local suite=$1
	state=$work/$suite
	mkdir -p "$state/lists/partial" "$state/cache/archives/partial" "$state/parts"
	printf 'Types: deb\nURIs: %s\nSuites: %s\nComponents: main\nSigned-By: %s\n' \
		"$uri" "$suite" "$KEYRING" >"$state/debian.sources"
	apt=(-o Dir::State="$state" -o Dir::State::lists="$state/lists" -o Dir::State::status=/dev/null
		-o Dir::Cache="$state/cache" -o Dir::Etc::sourcelist="$state/debian.sources"
		-o Dir::Etc::sourceparts="$state/parts" -o APT::Architecture=amd64
		-o APT::Architectures=amd64 -o Acquire::Retries=2 -o APT::Update::Error-Mode=any
		-o APT::Update::Post-Invoke-Success::= -o APT::Sandbox::User=root)
	timeout 300 apt-get "${apt[@]}" -q update </dev/null >"$state/log" 2>&1
}

# The releases that the suite has.  Meta packages have no number; other flavours are left out.
suite_releases()
{
	apt-cache "${apt[@]}" pkgnames linux-image- |
		sed -n 's/^linux-image-\([0-9][0-9.]*[^-]*\(-[0-9][0-9]*\)\?-amd64\)$/\1/p' | sort -V
}

# What the package and, if the kernel is split, its other packages hold.
suite_packages()
{
	echo "linux-image-$1"
	apt-cache "${apt[@]}" depends --important "linux-image-$1" | awk -v end="-$1" '
		$1 == "Depends:" && substr($2, length($2) - length(end) + 1) == end { print $2 }'
}

# Unpacks the packages of a release into $work/new and makes the index of its modules.
fetch()
{
	local release=$1 package deb dir excludes=()
	for dir in "${UNWANTED[@]}"; do
		excludes+=("--exclude=*/lib/modules/$release/kernel/$dir")
	done
	mkdir -p "$work/new" "$work/debs"
	while read -r package; do
		note "getting $package"
		(cd "$work/debs" && timeout 600 apt-get "${apt[@]}" -q download "$package") \
			</dev/null >"$work/log" 2>&1 || {
			tail -n 5 "$work/log" >&2
			die "$package could not be downloaded"
		}
	done < <(suite_packages "$release")
	for deb in "$work"/debs/*.deb; do
		dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$work/new" "${excludes[@]}"
	done
	# Newer packages have their modules below /usr.
	if [ -d "$work/new/usr/lib/modules" ]; then
		mkdir -p "$work/new/lib"
		mv "$work/new/usr/lib/modules" "$work/new/lib/"
	fi
	# The newest have the kernel there too.
	if [ ! -d "$work/new/boot" ] && [ -f "$work/new/lib/modules/$release/vmlinuz" ]; then
		mkdir "$work/new/boot"
		mv "$work/new/lib/modules/$release/vmlinuz" "$work/new/boot/vmlinuz-$release"
	fi
	rm -rf "$work/new/usr" "$work/new/lib/modules/$release"/{build,source}
	[ -f "$work/new/boot/vmlinuz-$release" ] || die "the package of $release has no kernel in it"
	depmod -b "$work/new" "$release" 2>"$work/log" || die "depmod: $(cat "$work/log")"
	[ -s "$work/new/lib/modules/$release/modules.dep" ] || die "$release has no modules"
	mkdir -p "$cache/kernel"
	sync -f "$work/new"
	mv "$work/new" "$cache/kernel/$release"
}

# Whoever waits for the same kernel finds it in the cache.
mkdir -p "$cache"
exec 8>>"$cache/lock"
flock -w 900 8 || die "somebody has held $cache/lock for 15 minutes"

if [ -z "$list$update" ] && release=$(cached | newest); then
	echo "$cache/kernel/$release"
	exit
fi
command -v depmod >/dev/null || die "depmod is missing (Debian package kmod)"
[ -f $KEYRING ] || die "$KEYRING is missing (Debian package debian-archive-keyring)"
uri=$(mirror)
[ -n "$uri" ] || die "apt's sources name no Debian mirror"
# On the cache's file system, so that one rename is enough; what a killed run left goes.
rm -rf "$cache"/new-*
work=$(mktemp -d "$cache/new-XXXXXX")
cleanup_push rm -rf "$work"

reached=
for suite in $SUITES; do
	suite_begin "$suite" || {
		note "suite $suite: $(grep -E '^(E|W|Err)' "$state/log" | head -n 1)"
		continue
	}
	reached=1
	if [ -n "$list" ]; then
		suite_releases | sed "s/^/$suite /"
	elif release=$(suite_releases | newest); then
		[ -d "$cache/kernel/$release" ] || fetch "$release"
		echo "$cache/kernel/$release"
		exit
	fi
done
[ -n "$reached" ] || {
	note "no suite of the mirror could be read, and no kernel $pattern is in $cache"
	exit 77
}
[ -n "$list" ] || die "the mirror has no kernel that matches $pattern"

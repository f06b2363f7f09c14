# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# The Debian packages that zswapd needs, in one place.  Source it.
#
#   packages_build, packages_test, packages_try   print a list, for building it, for test.sh and
#                                                 for try.sh
#   packages_install LIST...    installs what is missing of packages_build and the like; asks
#                               nobody, reads no standard input, and does not touch apt if nothing
#                               is missing

packages_build()
{
	printf '%s\n' gcc libc6-dev meson ninja-build pkg-config \
		libblkid-dev libcap-dev libfuse3-dev libinih-dev libncurses-dev libnl-3-dev libseccomp-dev \
		libsystemd-dev liburing-dev libxxhash-dev libzstd-dev scdoc
}

# Beside the tools themselves: what the corpus runs (sqlite3, perl, xz), what the store's tests
# format (e2fsprogs, btrfs-progs), and what the guests are made of (qemu, busybox, cpio, kmod,
# dmsetup, the archive's keys).
packages_test()
{
	printf '%s\n' btrfs-progs busybox-static clang clang-format cpio debian-archive-keyring dmsetup e2fsprogs \
		fio kmod libclang-rt-14-dev libcmocka-dev llvm-14 man-db mmdebstrap mount perl procps python3-minimal \
		qemu-system-x86 sqlite3 tmux util-linux xz-utils
}

packages_try()
{
	printf '%s\n' mount perl procps sqlite3 util-linux
}

packages_installed()
{
	dpkg-query -W -f '${db:Status-Status}\n' "$1" 2>/dev/null | grep -qx installed
}

packages_install()
{
	local list package missing=()
	for list in "$@"; do
		while read -r package; do
			packages_installed "$package" || missing+=("$package")
		done < <("$list")
	done
	[ ${#missing[@]} -gt 0 ] || return 0
	export DEBIAN_FRONTEND=noninteractive
	apt-get -q update </dev/null &&
		apt-get -q -y -o Dpkg::Use-Pty=0 --no-install-recommends install "${missing[@]}" </dev/null
}

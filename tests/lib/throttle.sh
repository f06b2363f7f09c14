# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# A disk that writes slowly.  Source zswapd.sh first.
#
#   throttle_new BYTES      makes a cgroup that writes no faster, bytes a second, to the disk of
#                           $TEST_DIR; its directory goes to $throttle.  Skips where that can't be.

throttle_new()
{
	local number dir
	number=$(findmnt -n -o MAJ:MIN --target "$TEST_DIR" | tr -d ' ')
	# A limit belongs to the whole disk.
	[ ! -e "/sys/dev/block/$number/partition" ] || number=$(cat "/sys/dev/block/$number/../dev")
	[ -e "/sys/dev/block/$number" ] || skip "$TEST_DIR lies on no block device of its own, which could be throttled"
	for dir in /sys/fs/cgroup/blkio /sys/fs/cgroup /sys/fs/cgroup/unified; do
		if [ -e "$dir/blkio.throttle.write_bps_device" ]; then
			throttle=$dir/$TEST_NAME
			mkdir "$throttle"
			cleanup_push rmdir "$throttle"
			echo "$number $1" >"$throttle/blkio.throttle.write_bps_device" 2>/dev/null && return
			skip "the disk $number cannot be throttled"
		fi
		if grep -qw io "$dir/cgroup.controllers" 2>/dev/null; then
			echo +io >"$dir/cgroup.subtree_control"
			throttle=$dir/$TEST_NAME
			mkdir "$throttle"
			cleanup_push rmdir "$throttle"
			echo "$number wbps=$1" 2>/dev/null >"$throttle/io.max" && return
			skip "the disk $number cannot be throttled"
		fi
	done
	skip "the kernel cannot throttle a disk for a cgroup here"
}

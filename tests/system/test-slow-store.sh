#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A store that is slower than the writes makes them wait, not fail.
set -euo pipefail
# shellcheck source=tests/lib/zswapd.sh
. "$(dirname "$0")/../lib/zswapd.sh"

test_begin findmnt
n=$TEST_NAME

# throttle_new BYTES_PER_SECOND: a cgroup that writes no faster to the disk of $TEST_DIR; its path
# goes to $throttle.
throttle_new()
{
	local number dir
	number=$(findmnt -n -o MAJ:MIN --target "$TEST_DIR" | tr -d ' ')
	# A limit belongs to the whole disk.
	[ ! -e "/sys/dev/block/$number/partition" ] || number=$(cat "/sys/dev/block/$number/../dev")
	[ -e "/sys/dev/block/$number" ] || skip "$TEST_DIR lies on no block device of its own, which could be throttled"
	for dir in /sys/fs/cgroup/blkio /sys/fs/cgroup /sys/fs/cgroup/unified; do
		if [ -e "$dir/blkio.throttle.write_bps_device" ]; then
			throttle=$dir/zswapd-$n
			mkdir "$throttle"
			cleanup_push rmdir "$throttle"
			echo "$number $1" >"$throttle/blkio.throttle.write_bps_device" 2>/dev/null && return
			skip "the disk $number cannot be throttled"
		fi
		if grep -qw io "$dir/cgroup.controllers" 2>/dev/null; then
			echo +io >"$dir/cgroup.subtree_control"
			throttle=$dir/zswapd-$n
			mkdir "$throttle"
			cleanup_push rmdir "$throttle"
			echo "$number wbps=$1" 2>/dev/null >"$throttle/io.max" && return
			skip "the disk $number cannot be throttled"
		fi
	done
	skip "the kernel cannot throttle a disk for a cgroup here"
}

throttle_new $((8 << 20))
zswapd_start "$n" device.size=96M swap.enable=no memory.limit=16M store.path="$TEST_DIR/store" store.size=96M
# The whole daemon, once the store has been made at full speed.
zswapd_pids "$n" | xargs -n 1 | while read -r pid; do
	echo "$pid" >"$throttle/cgroup.procs"
done

start=$SECONDS
result=$(timeout 120 "$SLOTS" write "$DEVICE" "$TEST_DIR/map" 0 20480 1 random 32) ||
	fail "a write failed: $result"
took=$((SECONDS - start))
[ "$result" = "written 20480 nospace 0 failed 0" ] || fail "$result"
[ "$(counter "$n" writes_stalled_total)" -gt 0 ] || fail "nothing had to wait, in $took s"
[ "$(counter "$n" writes_rejected_total)" -eq 0 ] || fail "writes were rejected"
# 80 MiB, of which 16 stay in memory, at 8 MiB/s.
[ "$took" -ge 4 ] || skip "the disk is not throttled here: $took s"

result=$(timeout 60 "$SLOTS" verify "$DEVICE" "$TEST_DIR/map" 0 20480 random) || fail "$result"
[ "$result" = "right 20480 wrong 0 ioerror 0" ] || fail "$result"
check_counters "$n"
zswapd_stop "$n"
test_end

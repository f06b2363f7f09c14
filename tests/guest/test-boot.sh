#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The guest has what the other guest tests count on.
# guest: --memory 256 --drive 64M --drive 32M --poll-queues 1 --limit 60
set -euo pipefail
. "$(dirname "$0")/lib.sh"

ok "up after $(cut -d ' ' -f 1 /proc/uptime) s, $(awk '$1 == "MemAvailable:" { print $2 }' /proc/meminfo) kB available"
[ "$(blockdev --getsize64 /dev/drive0)" -eq $((64 << 20)) ] || fail "the first drive has the wrong size"
[ "$(blockdev --getsize64 /dev/drive1)" -eq $((32 << 20)) ] || fail "the second drive has the wrong size"
[ "$(cat /sys/module/nvme/parameters/poll_queues)" -eq 1 ] || fail "no polled queue"
for file in /dev/fuse /dev/loop-control; do
	[ -c $file ] || fail "there is no $file"
done
need zswapd --version
for program in mkswap swapon swapoff blkid losetup; do
	need "$program" --version
done
if [[ $(uname -r) == 6.1.* ]]; then
	ok "Debian's 6.1 has no ublk"
else
	[ -c /dev/ublk-control ] || fail "there is no /dev/ublk-control"
	need unload ublk_drv
	[ ! -e /dev/ublk-control ] || fail "ublk_drv is still there"
	need load ublk_drv ublks_max=3
	[ "$(cat /sys/module/ublk_drv/parameters/ublks_max)" -eq 3 ] || fail "the module took no parameter"
fi
[ "$(cat /proc/sys/kernel/hung_task_timeout_secs)" -eq 30 ] || fail "hung tasks are not looked for"
test_end

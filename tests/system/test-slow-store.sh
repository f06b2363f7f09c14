#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A store that is slower than the writes makes them wait, not fail.
set -euo pipefail
# shellcheck source=tests/lib/zswapd.sh
. "$(dirname "$0")/../lib/zswapd.sh"
# shellcheck source=tests/lib/throttle.sh
. "$lib/throttle.sh"

test_begin findmnt
n=$TEST_NAME

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

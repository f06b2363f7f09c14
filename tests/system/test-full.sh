#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# No room: writes fail with ENOSPC, counted and logged at a bounded rate; all that was stored stays
# readable; room that becomes free is used again.  And under swap only the program is hit.
set -euo pipefail
# shellcheck source=tests/lib/zswapd.sh
. "$(dirname "$0")/../lib/zswapd.sh"

test_begin blkdiscard
test_swaps
n=$TEST_NAME
map=$TEST_DIR/map

# slots COMMAND...: its line of figures.
slots()
{
	bounded 60 "$SLOTS" "$1" "$DEVICE" "$map" "${@:2}" || fail "slots $*"
}

# fill_up OPTION...: a device of 96 MiB that holds far less.
fill_up()
{
	local result rejected lines
	rm -f "$map"
	zswapd_start "$n" device.size=96M swap.enable=no memory.limit=24M "$@"
	result=$(slots write 0 24576 1 random 32)
	read -r _ written _ nospace _ failed <<<"$result"
	[ "$failed" -eq 0 ] || fail "writes failed with something other than ENOSPC: $result"
	[ "$written" -ge 4096 ] || fail "only $written pages had room"
	[ "$nospace" -ge 4096 ] || fail "it was never full: $result"
	result=$(slots write 0 24576 2 random 1)
	read -r _ _ _ nospace _ failed <<<"$result"
	[ "$failed" -eq 0 ] || fail "single writes failed with something other than ENOSPC: $result"
	[ "$nospace" -ge 4096 ] || fail "overwriting in a full device found room: $result"
	rejected=$(counter "$n" writes_rejected_total)
	[ "$rejected" -ge 8192 ] || fail "only $rejected refused pages are counted"
	lines=$(grep -c 'no room' "$(zswapd_log "$n")" || true)
	[ "$lines" -ge 1 ] || fail "nothing was logged"
	[ "$lines" -le 30 ] || fail "$lines lines were logged"
	result=$(slots verify 0 24576 random)
	[ "$result" = "right 24576 wrong 0 ioerror 0" ] || fail "in the full device: $result"
	check_counters "$n"

	# Room again.
	bounded 30 blkdiscard --offset 0 --length $((48 << 20)) "$DEVICE"
	truncate -s 0 "$TEST_DIR/free"
	result=$(bounded 60 "$SLOTS" write "$DEVICE" "$TEST_DIR/free" 0 1024 3 random 32)
	[ "$result" = "written 1024 nospace 0 failed 0" ] || fail "after a discard: $result"
	result=$(bounded 60 "$SLOTS" verify "$DEVICE" "$TEST_DIR/free" 0 12288 random)
	[ "$result" = "right 12288 wrong 0 ioerror 0" ] || fail "after a discard: $result"
	result=$(slots verify 12288 12288 random)
	[ "$result" = "right 12288 wrong 0 ioerror 0" ] || fail "after a discard, the rest: $result"
	zswapd_stop "$n"
}

fill_up
fill_up store.path="$TEST_DIR/store" store.size=24M

# Swap: what is written fails, so the pages stay in memory and the group runs into its limit.  The
# program ends or is killed; it never sees a wrong byte, and the daemon and everybody else go on.
zswapd_start "$n" device.size=256M memory.limit=16M
cgroup_new full $((32 << 20))
cleanup_push zswapd_abort_dead "$n"
# Random pages: a corpus that does not compress.
head -c $((8 << 20)) /dev/urandom >"$TEST_DIR/random.pages"
status=0
bounded 90 "$PAGELOAD" --pages "$TEST_DIR/random.pages" --size 128M --mode seq --verify \
	--cgroup "$CGROUP" --timeout 60 >"$TEST_DIR/load.log" 2>&1 || status=$?
case $status in
0) ;;
4) grep -q 'killed by signal 9' "$TEST_DIR/load.log" || fail "pageload: $(cat "$TEST_DIR/load.log")" ;;
*) fail "pageload ended with status $status" ;;
esac
[ "$(counter "$n" writes_rejected_total)" -gt 0 ] || fail "nothing was refused"
[ "$(counter "$n" checksum_failures_total)" -eq 0 ] || fail "checksum failures"
cgroup_kill "$CGROUP"
wait_freed "$n"

# And it still serves.
cgroup_patience "$CGROUP"
bounded 60 "$PAGELOAD" --pages "$TEST_DIR/random.pages" --size 40M --mode seq --verify \
	--cgroup "$CGROUP" --timeout 50 >"$TEST_DIR/load.log" 2>&1 || fail "a smaller program afterwards"
zswapd_stop "$n"
test_end

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A program whose memory is swapped to zswapd finds every byte of it again.
# usage: test-swap.sh CASE     (see below)
#
# The program is pageload, with pages of real programs, in a memory cgroup of a fraction of what it
# needs.  Where there is a store, the front tier is so small that all passes through eviction,
# cleaning and reading back.
set -euo pipefail
# shellcheck source=tests/lib/zswapd.sh
. "$(dirname "$0")/../lib/zswapd.sh"

size=256M
store=384M
memory=24M
settings=()
touches=(--seconds 4)
case ${1-} in
level-fast) settings=(memory.level=-1 device.queues=1 read.overlap=on) ;;
level-default) settings=(memory.level=1 device.queues=2 read.overlap=on) ;;
level-dense) settings=(memory.level=3 device.queues=1 read.overlap=off) ;;
no-overlap) settings=(memory.level=1 device.queues=2 read.overlap=off) ;;
# The store has little more room than what is evicted, so it must be cleaned all the time.
tight-store)
	settings=(memory.level=1)
	store=96M
	touches=(--seconds 8)
	;;
memory-only)
	settings=(memory.level=1)
	memory=192M
	store=
	;;
*) fail "there is no case '${1-}'" ;;
esac

test_begin sqlite3 xz
test_swaps
[ -z "$store" ] || settings+=(store.path="$TEST_DIR/store" store.size="$store")

# Whoever runs several cases may keep the corpus in $ZSWAPD_TEST_CORPUS.
corpus=${ZSWAPD_TEST_CORPUS:-$TEST_DIR/corpus.pages}
"$lib/../corpus/make-corpus.sh" "$corpus" 16 >"$TEST_DIR/corpus.log" 2>&1 || fail "no corpus"

zswapd_start "$TEST_NAME" device.size=512M memory.limit=$memory "${settings[@]}"
is_swapping "$DEVICE" || fail "$DEVICE is not swap"
cgroup_new swap $((64 << 20))
cgroup_patience "$CGROUP"
cleanup_push zswapd_abort_dead "$TEST_NAME"

status=0
bounded 240 "$PAGELOAD" --pages "$corpus" --size $size --verify --same word --threads 2 \
	"${touches[@]}" --cgroup "$CGROUP" --timeout 200 --report json >"$TEST_DIR/load.json" \
	2>"$TEST_DIR/load.log" || status=$?
[ $status -eq 0 ] || fail "pageload ended with status $status"

n=$TEST_NAME
check_counters "$n"
[ "$(counter "$n" pages_written_total)" -gt 40000 ] || fail "hardly anything was swapped out"
[ "$(counter "$n" pages_read_total)" -gt 40000 ] || fail "hardly anything was swapped in"
[ "$(counter "$n" pages_read_resident_total)" -gt 1000 ] || fail "nothing was read from memory"
[ "$(counter "$n" pages_discarded_total)" -gt 0 ] || fail "no discard arrived"
[ "$(counter "$n" checksum_failures_total)" -eq 0 ] || fail "checksum failures"
[ "$(counter "$n" writes_rejected_total)" -eq 0 ] || fail "writes rejected"
[ "$(counter "$n" slots_lost)" -eq 0 ] || fail "slots lost"
overlapped=$(counter "$n" batches_overlapped_total)
if [ -n "$store" ]; then
	written=$(counter "$n" pages_written_back_total)
	[ "$written" -gt 10000 ] || fail "only $written pages were written back"
	[ "$(counter "$n" pages_read_stored_total)" -gt 5000 ] || fail "nothing was read from the store"
	# Elsewhere it depends on how often the program gets to touch its pages.
	[ "$1" != tight-store ] || [ "$(counter "$n" segments_cleaned_total)" -gt 0 ] ||
		fail "nothing was cleaned"
	[ $((written / $(counter "$n" store_write_requests_total))) -ge 64 ] ||
		fail "fewer than 64 pages in a store write"
else
	[ "$(counter "$n" pages_read_stored_total)" -eq 0 ] || fail "read from a store that is not there"
	[ "$(counter "$n" store_size_bytes)" -eq 0 ] || fail "there is a store"
fi
case ${settings[*]} in
*overlap=off*) [ "$overlapped" -eq 0 ] || fail "overlapped, though told not to" ;;
*overlap=on*) [ "$overlapped" -gt 0 ] || fail "never overlapped" ;;
esac

# The program has ended: all of its pages are free.
wait_freed "$n"
zswapd_stop "$n"
test_end

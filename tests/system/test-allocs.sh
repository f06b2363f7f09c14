#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The data threads of a daemon under swap allocate nothing, map nothing and take no page fault, once
# they serve; nor do those of a standby that takes over.
# usage: test-allocs.sh
set -euo pipefail
# shellcheck source=tests/lib/zswapd.sh
. "$(dirname "$0")/../lib/zswapd.sh"
# shellcheck source=tests/lib/quiet.sh
. "$lib/quiet.sh"

test_begin sqlite3 xz
test_swaps
n=$TEST_NAME
corpus=${ZSWAPD_TEST_CORPUS:-$TEST_DIR/corpus.pages}
"$lib/../corpus/make-corpus.sh" "$corpus" 16 >"$TEST_DIR/corpus.log" 2>&1 || fail "no corpus"

# load NAME SECONDS: 160 MiB in 64, verified.
load()
{
	bounded 100 "$PAGELOAD" --pages "$corpus" --size 160M --verify --same word --mode random,rw --threads 2 \
		--seconds "$2" --cgroup "$CGROUP" --timeout 90 >"$TEST_DIR/$1.log" 2>&1
}

zswapd_config "$n" device.size=256M memory.limit=24M store.path="$TEST_DIR/store" store.size=256M
quiet_launch "$n"
zswapd_ready "$n"
cgroup_new allocs $((64 << 20))
cgroup_patience "$CGROUP"
cleanup_push zswapd_abort_dead "$n"

load warm 1 || fail "the first load: $(tail -n 3 "$TEST_DIR/warm.log")"
worker=$(zswapd_pids "$n" worker)
quiet_note "$TEST_DIR/worker" "$worker"
load steady 3 || fail "the second load: $(tail -n 3 "$TEST_DIR/steady.log")"
quiet_same "under load" "$TEST_DIR/worker" "$worker"
[ "$(counter "$n" pages_read_stored_total)" -gt 1000 ] || fail "nothing came from the store"
[ "$(counter "$n" pages_written_total)" -gt 20000 ] || fail "hardly anything was written"

for ((i = 0; i < 3; i++)); do
	wait_standby "$n"
	standby=$STANDBY
	worker=$(zswapd_pids "$n" worker)
	quiet_note "$TEST_DIR/standby" "$standby"
	read -r allocs _ maps bytes _ < <(quiet_main "$standby")
	load takeover 2 &
	load=$!
	sleep 1
	kill -KILL "$worker"
	wait_for "has_ended $worker" 10 || fail "worker $worker does not end"
	bounded 20 dd if="$DEVICE" of=/dev/null iflag=direct bs=4096 count=1 status=none || fail "no takeover"
	read -r allocs_then _ maps_then bytes_then largest < <(quiet_main "$standby")
	echo "main thread, from the order to the first answer: $((allocs_then - allocs)) allocations," \
		"$((maps_then - maps)) maps, $((bytes_then - bytes)) bytes; the largest of all its life $largest"
	wait $load || fail "the load over a takeover: $(tail -n 3 "$TEST_DIR/takeover.log")"
	echo "data threads, since they stood by: $(quiet_since "$TEST_DIR/standby" "$standby")"
	[ "$(zswapd_pids "$n" worker)" = "$standby" ] || fail "another one than the standby has taken over"
	quiet_note "$TEST_DIR/worker" "$standby"
	awk '{ print $1, $2, $3, $4 }' "$TEST_DIR/standby" >"$TEST_DIR/standby.allocs"
	awk '{ print $1, $2, $3, $4 }' "$TEST_DIR/worker" | cmp -s - "$TEST_DIR/standby.allocs" ||
		fail "the new worker's data threads have allocated: $(cat "$TEST_DIR/worker")"
	[ $((bytes_then - bytes)) -le 524288 ] || fail "the main thread took $((bytes_then - bytes)) bytes to take over"
done
load after 1 || fail "the last load: $(tail -n 3 "$TEST_DIR/after.log")"
quiet_same "after takeovers" "$TEST_DIR/worker" "$standby"
check_counters "$n"
zswapd_stop "$n"
test_end

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Eight clients that ask for all statistics a thousand times a second each get right answers, and the
# program that swaps gets its pages.
# usage: test-askers.sh
#
# What it costs the data path is told as a number, not judged: on two CPUs the clients' own work is
# felt, whomever they ask.  So three turns alternate:
#
#	quiet    nobody asks
#	other    the clients ask another zswapd, which serves nothing
#	asked    the clients ask the zswapd that serves the swap
#
# `other` against `quiet` is what any eight busy programs would do; `asked` against `other` is what
# asking does to the data path.  What is judged has no time in it: every client gets answers, nearly
# none is dropped, all are right (askers.c says how that is known), and the thread that answers takes
# no more of a CPU than its share, however many ask.  All pages stay in memory, for a drive's slowest answers would hide
# what CPUs have to do with it.  ROUNDS (2) and SECONDS_EACH (3) come from the environment.
set -euo pipefail
# shellcheck source=tests/lib/zswapd.sh
. "$(dirname "$0")/../lib/zswapd.sh"

test_begin sqlite3 xz jq
test_swaps
: "${ASKERS:?}"

corpus=${ZSWAPD_TEST_CORPUS:-$TEST_DIR/corpus.pages}
"$lib/../corpus/make-corpus.sh" "$corpus" 16 >"$TEST_DIR/corpus.log" 2>&1 || fail "no corpus"

n=$TEST_NAME
other=$TEST_NAME-other
zswapd_start "$other" device.size=16M memory.limit=16M swap.enable=no
zswapd_start "$n" device.size=256M memory.limit=96M
is_swapping "$DEVICE" || fail "$DEVICE is not swap"
cgroup_new askers $((24 << 20))
cgroup_patience "$CGROUP"
cleanup_push zswapd_abort_dead "$n"

# stats_cpu NAME: what the thread that answers has run so far, in ms.
stats_cpu()
{
	local task
	for task in "/proc/$(zswapd_pids "$1" worker)/task"/*; do
		[ "$(cat "$task/comm")" = stats ] || continue
		awk -v hz="$(getconf CLK_TCK)" '{ printf "%d", ($14 + $15) * 1000 / hz }' "$task/stat"
		return
	done
	fail "$1 has no thread for its statistics"
}

# judge NAME CPU_MS ELAPSED_MS: what the clients got, and what it cost.
judge()
{
	local result=$TEST_DIR/askers.json
	jq -e '.asked > 0 and .asked == .answered + .dropped + .failed' "$result" >/dev/null ||
		fail "$1: the numbers do not add up: $(cat "$result")"
	jq -e '.least >= 10 and .dropped * 100 <= .asked' "$result" >/dev/null ||
		fail "$1: not all were answered: $(cat "$result")"
	# Its share is a fifth; what it has begun when that is over, it ends.
	[ $(($2 * 100)) -le $(($3 * 30)) ] || fail "$1: answering took $2 ms of CPU in $3 ms"
	[ "$2" -gt 0 ] || fail "$1: answering took no time at all"
	note "$1: $(cat "$result"), $(($2 * 100 / $3)) % of a CPU"
}

# turn NAME [DEVICE]: one run of the program, its figures as a line of $TEST_DIR/NAME.
turn()
{
	local name=$1 asked=${2-} askers='' status=0 cpu begin
	if [ -n "$asked" ]; then
		cpu=$(stats_cpu "$asked")
		begin=$(date +%s%3N)
		"$ASKERS" "$asked" 8 1000 $((SECONDS_EACH + 4)) >"$TEST_DIR/askers.json" &
		askers=$!
		cleanup_pid $askers
	fi
	bounded 90 "$PAGELOAD" --pages "$corpus" --size 96M --mode random --verify --same word \
		--seconds "$SECONDS_EACH" --cgroup "$CGROUP" --timeout 80 --report json \
		>"$TEST_DIR/load.json" 2>"$TEST_DIR/load.log" || status=$?
	[ $status -eq 0 ] || fail "$name: pageload ended with status $status"
	if [ -n "$askers" ]; then
		wait $askers || fail "$name: an answer was wrong: $(cat "$TEST_DIR/askers.json")"
		judge "$name" $(($(stats_cpu "$asked") - cpu)) $(($(date +%s%3N) - begin))
	fi
	jq -c '.phases.random | [.p50_us, .p99_us, .per_s]' "$TEST_DIR/load.json" \
		>>"$TEST_DIR/$name"
}

: "${ROUNDS:=2}" "${SECONDS_EACH:=3}"
for ((round = 0; round < ROUNDS; round++)); do
	turn quiet
	turn other "$other"
	turn asked "$n"
done

check_counters "$n"
[ "$(counter "$n" pages_read_total)" -gt 10000 ] || fail "hardly anything was swapped in"
[ "$(counter "$n" checksum_failures_total)" -eq 0 ] || fail "checksum failures"
for name in quiet other asked; do
	echo "$name: median of $ROUNDS: $(jq -sr 'def median: sort | .[length / 2 | floor];
		"p50 \(map(.[0]) | median) µs, p99 \(map(.[1]) | median) µs, \(map(.[2]) | median | round) touches/s"' \
		"$TEST_DIR/$name")"
done
zswapd_stop "$n"
zswapd_stop "$other"
test_end

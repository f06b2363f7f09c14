#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Workers that die while there is no room, or hardly any: what is stored stays right, writes go on as
# they did before, and room that becomes free is used.
# usage: test-full-takeover.sh CASE
#
#	memory, store	a device that is 95 % and 100 % full, without and with a store
#	reserve		a reserve of memory that is used up faster than the store takes pages
#	swap		programs that swap to a device that is full
set -euo pipefail
# shellcheck source=tests/lib/zswapd.sh
. "$(dirname "$0")/../lib/zswapd.sh"
# shellcheck source=tests/lib/throttle.sh
. "$lib/throttle.sh"

test_begin blkdiscard
n=$TEST_NAME
map=$TEST_DIR/map
NSLOTS=24576

# slots COMMAND FIRST COUNT ARG...: sets result, its line of figures.
slots()
{
	result=$(bounded 90 "$SLOTS" "$1" "$DEVICE" "$map" "${@:2}") || fail "slots $*: $result"
}

# written LINE, refused LINE
written()
{
	cut -d ' ' -f 2 <<<"$1"
}

refused()
{
	cut -d ' ' -f 4 <<<"$1"
}

all_right()
{
	slots verify "$1" "$2" random
	[ "$result" = "right $2 wrong 0 ioerror 0" ] || fail "$3: $result"
}

# The worker dies now; returns when its successor has answered a read.
murder()
{
	local worker
	worker=$(zswapd_pids "$n" worker)
	[ -n "$worker" ] || fail "there is no worker"
	kill -KILL "$worker"
	wait_for "has_ended $worker" 20 || fail "worker $worker does not end"
	bounded 30 dd if="$DEVICE" of=/dev/null iflag=direct bs=4096 count=1 status=none || fail "no takeover"
	takeovers=$((takeovers + 1))
	wait_counter "$n" takeovers_total -eq $takeovers 20
}

check_whole()
{
	local counter
	wait_counter "$n" requests_in_flight -eq 0 10
	for counter in checksum_failures_total slots_lost store_read_errors_total store_write_errors_total; do
		[ "$(counter "$n" $counter)" -eq 0 ] || fail "$counter is $(counter "$n" $counter)"
	done
}

# await_standby: also one that has been forked, but is not prepared, will do.
await_standby()
{
	wait_for "[ -n \"\$(zswapd_pids $n standby)\" ]" 10 || fail "no standby"
}

# fill FIRST COUNT ROUND: writes by twos, ENOSPC being an answer; sets stored.
fill()
{
	slots write "$1" "$2" "$3" random 2
	stored=$(written "$result")
	[ "$(cut -d ' ' -f 6 <<<"$result")" -eq 0 ] || fail "writes failed with something other than ENOSPC: $result"
}

# writes_over_takeover COUNT ROUND SECONDS WHAT: the worker dies after so long under writes.
writes_over_takeover()
{
	local load
	bounded 60 "$SLOTS" write "$DEVICE" "$map" 0 "$1" "$2" random 4 >"$TEST_DIR/writes.log" &
	load=$!
	sleep "$3"
	await_standby
	murder
	wait $load || fail "writes over a takeover: $(cat "$TEST_DIR/writes.log")"
	all_right 0 $NSLOTS "$4"
}

# full_device SETTING...
full_device()
{
	local holds half i
	rm -f "$map"
	takeovers=0
	zswapd_start "$n" device.size=$((NSLOTS / 256))M swap.enable=no "$@"
	# How much it holds.
	fill 0 $NSLOTS 1
	holds=$stored
	[ "$(refused "$result")" -ge 4096 ] || fail "it was never full: $result"
	[ "$holds" -ge 4096 ] || fail "only $holds pages had room"
	for ((i = 0; i < 2; i++)); do
		await_standby
		murder
		all_right 0 $NSLOTS "after takeover $takeovers of a full device"
		fill 0 2048 $((i + 2))
		[ "$(refused "$result")" -ge 1024 ] || fail "overwriting in a full device found room: $result"
	done
	writes_over_takeover 8192 4 0.3 "after writes to a full device over a takeover"
	echo "100 %: $holds pages, 3 takeovers"

	# 95 %.
	bounded 30 blkdiscard "$DEVICE"
	rm -f "$map"
	slots write 0 $((holds * 95 / 100)) 5 random 32
	[ "$(refused "$result")" -eq 0 ] || fail "less room than there was: $result, $holds before"
	for ((i = 0; i < 2; i++)); do
		await_standby
		murder
		all_right 0 $NSLOTS "after a takeover at 95 %"
		slots write $((i * 256)) 256 $((i + 6)) random 8
		[ "$(refused "$result")" -eq 0 ] || fail "at 95 %, after a takeover: $result"
	done
	writes_over_takeover 4096 8 0.1 "after writes at 95 % over a takeover"
	# Room again, of which the successor knows.
	half=$((holds / 2))
	bounded 30 blkdiscard --offset 0 --length $((half * 4096)) "$DEVICE"
	rm -f "$map.free"
	result=$(bounded 60 "$SLOTS" write "$DEVICE" "$map.free" 0 2048 9 random 32)
	[ "$result" = "written 2048 nospace 0 failed 0" ] || fail "after a discard: $result"
	result=$(bounded 60 "$SLOTS" verify "$DEVICE" "$map.free" 0 2048 random)
	[ "$result" = "right 2048 wrong 0 ioerror 0" ] || fail "after a discard: $result"
	all_right $half $((NSLOTS - half)) "after a discard, the rest"
	check_whole
	zswapd_stop "$n"
	echo "95 %: 3 takeovers"
}

case ${1-} in
memory) full_device memory.limit=48M ;;
store) full_device memory.limit=24M store.path="$TEST_DIR/store" store.size=32M ;;
reserve)
	# The store is so much slower than the writes that the reserve is always used up.
	takeovers=0
	throttle_new $((16 << 20))
	zswapd_start "$n" device.size=192M swap.enable=no memory.limit=16M memory.reserve=4M \
		store.path="$TEST_DIR/store" store.size=160M
	await_standby
	# At full speed until the store has been made; workers to come are their supervisor's children.
	for pid in $(zswapd_pids "$n"); do
		echo "$pid" >"$throttle/cgroup.procs"
	done
	for ((i = 1; i <= 3; i++)); do
		writers=()
		for ((j = 0; j < 3; j++)); do
			bounded 90 "$SLOTS" write "$DEVICE" "$map.$j" $((j * 16384)) 4096 $i random 32 >"$TEST_DIR/writes$j.log" &
			writers+=($!)
		done
		wait_counter "$n" writes_stalled_total -gt 0 20
		await_standby
		murder
		for ((j = 0; j < 3; j++)); do
			wait "${writers[j]}" || fail "writer $j: $(cat "$TEST_DIR/writes$j.log")"
			grep -qx 'written 4096 nospace 0 failed 0' "$TEST_DIR/writes$j.log" ||
				fail "writer $j: $(cat "$TEST_DIR/writes$j.log")"
		done
	done
	for ((j = 0; j < 3; j++)); do
		result=$(bounded 90 "$SLOTS" verify "$DEVICE" "$map.$j" $((j * 16384)) 4096 random) || fail "$result"
		[ "$result" = "right 4096 wrong 0 ioerror 0" ] || fail "what writer $j wrote: $result"
	done
	[ "$(counter "$n" writes_rejected_total)" -eq 0 ] || fail "writes were rejected, with room in the store"
	check_whole
	zswapd_stop "$n"
	echo "3 takeovers while the reserve was used up"
	;;
swap)
	# What is written fails, so the programs' group runs into its limit; they end or are killed, and see
	# no wrong byte.
	test_swaps
	takeovers=0
	zswapd_start "$n" device.size=256M memory.limit=16M
	cgroup_new full $((32 << 20))
	cleanup_push zswapd_abort_dead "$n"
	head -c $((8 << 20)) /dev/urandom >"$TEST_DIR/random.pages"
	for ((i = 0; i < 3; i++)); do
		bounded 90 "$PAGELOAD" --pages "$TEST_DIR/random.pages" --size 128M --mode seq --verify \
			--cgroup "$CGROUP" --timeout 60 >"$TEST_DIR/load.log" 2>&1 &
		load=$!
		wait_for "[ \"\$(counter $n writes_rejected_total)\" -gt 0 ] || has_ended $load" 30 || fail "it is never full"
		await_standby
		murder
		status=0
		wait $load || status=$?
		case $status in
		0) ;;
		4) grep -q 'killed by signal 9' "$TEST_DIR/load.log" || fail "pageload: $(cat "$TEST_DIR/load.log")" ;;
		*) fail "pageload ended with status $status: $(cat "$TEST_DIR/load.log")" ;;
		esac
		cgroup_kill "$CGROUP"
		wait_freed "$n"
	done
	cgroup_patience "$CGROUP"
	bounded 60 "$PAGELOAD" --pages "$TEST_DIR/random.pages" --size 40M --mode seq --verify \
		--cgroup "$CGROUP" --timeout 50 >"$TEST_DIR/load.log" 2>&1 || fail "a smaller program afterwards"
	check_whole
	zswapd_stop "$n"
	;;
*) fail "there is no case '${1-}'" ;;
esac
test_end

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Whichever of the daemon's processes is killed, whenever: no page is wrong or lost, and nobody gets an
# error.  What a kill costs is told as the longest access around it, and not judged.
# usage: test-kill.sh CASE [KILLS]
#
#	fio     under verified I/O: worker, worker and standby, the successor too, supervisor, all three
#	swap    the same under a program whose memory is swapped out
#	row     the worker again and again as soon as it is there: it is replaced ever more slowly, and
#	        the device is not given up
#	orphan  a worker without a supervisor: it serves and answers, is adopted, is replaced if it dies
#	        then, and swaps off without one
#
# KILLS (30) are processes killed; 500 of them take a quarter of an hour.
set -euo pipefail
# shellcheck source=tests/lib/zswapd.sh
. "$(dirname "$0")/../lib/zswapd.sh"
# shellcheck source=tests/lib/kills.sh
. "$lib/kills.sh"
case=${1-}
kills=${2:-30}

test_begin fio sqlite3 xz jq
: "${KILLER:?}" "${KEEPER:?}" "${GAPS:?}"
name=$TEST_NAME
log=$TEST_DIR/$name.log
settings=(device.size=256M memory.limit=32M memory.level=1 store.path="$TEST_DIR/store" store.size=384M)
# Mostly workers, since that is what happens.
kinds=(worker worker worker worker both again supervisor all)
# At most, on a machine that is busy.
seconds=$((kills * 3 + 10))

start_kept()
{
	zswapd_config "$name" "$@"
	zswapd_launch "$name" "$KEEPER" "$TEST_DIR/report"
	zswapd_ready "$name"
	device=$(realpath "$DEVICE")
}

killer()
{
	"$KILLER" --keeper "$PID" "$TEST_DIR/$name.conf" "$1" "$seconds" "$RANDOM" "${@:2}" >>"$TEST_DIR/kills" ||
		fail "$(tail -n 1 "$TEST_DIR/kills"): $(tail -n 5 "$log")"
}

# A program with 192 MiB of verified pages in a third of the memory it needs; sets $load.
start_program()
{
	local corpus=${ZSWAPD_TEST_CORPUS:-$TEST_DIR/corpus.pages}
	"$lib/../corpus/make-corpus.sh" "$corpus" 16 >"$TEST_DIR/corpus.log" 2>&1 || fail "no corpus"
	is_swapping "$device" || fail "$device is not swap"
	cgroup_new kill $((64 << 20))
	cgroup_patience "$CGROUP"
	cleanup_push zswapd_abort_dead "$name"
	"$PAGELOAD" --pages "$corpus" --size 192M --verify --same word --threads 2 --mode rw --write-share 50 \
		--seconds $((seconds + 60)) --cgroup "$CGROUP" --timeout $((seconds + 200)) --report json \
		--stalls "$TEST_DIR/stalls" --progress >"$TEST_DIR/load.json" 2>"$TEST_DIR/load.log" &
	load=$!
	cleanup_pid $load
	wait_for "grep -q 'phase rw' $TEST_DIR/load.log || has_ended $load" 120 || fail "the program does not get ready"
	[ "$(awk -v d="$device" '$1 == d { print $4 }' /proc/swaps)" -gt 80000 ] || fail "hardly anything is swapped"
}

# Ends it, and it must have found every byte.
end_program()
{
	local status=0
	! has_ended $load || fail "the program has ended: $(tail -n 3 "$TEST_DIR/load.log")"
	kill -USR1 $load
	wait $load || status=$?
	[ $status -eq 0 ] || fail "pageload ended with status $status: $(tail -n 3 "$TEST_DIR/load.log")"
	jq -r '.phases.rw | "\(.pages) touches, p50 \(.p50_us) µs, p99 \(.p99_us) µs, p99.9 \(.p999_us) µs"' \
		"$TEST_DIR/load.json"
}

check_whole()
{
	[ "$(realpath "/dev/zswap/$name")" = "$device" ] || fail "the device has changed"
	[ "$(counter "$name" checksum_failures_total)" -eq 0 ] || fail "checksum failures"
	[ "$(counter "$name" slots_lost)" -eq 0 ] || fail "slots lost"
	wait_counter "$name" requests_in_flight -eq 0 10
	! grep -q 'is given up\|are lost' "$log" || fail "$(grep 'is given up\|are lost' "$log")"
}

case $case in
fio)
	start_kept "${settings[@]}" swap.enable=no
	seconds=$((kills * 2 + 5))
	bounded $((seconds + 60)) fio --name=verified --filename="$device" --allow_file_create=0 --direct=1 \
		--ioengine=io_uring --verify=crc32c --verify_fatal=1 --verify_dump=0 --aux-path="$TEST_DIR" \
		--refill_buffers --buffer_compress_percentage=50 --buffer_compress_chunk=4k --size=96m --rw=randrw \
		--bsrange=4k-64k --blockalign=4k --iodepth=32 --verify_backlog=256 --time_based \
		--runtime=$((seconds + 5)) >"$TEST_DIR/fio.log" 2>&1 &
	fio=$!
	cleanup_pid $fio
	"$GAPS" "$device" $((seconds + 3)) 1 "$TEST_DIR/stalls" >"$TEST_DIR/gaps" &
	reader=$!
	cleanup_pid $reader
	cleanup_push zswapd_abort_dead "$name"
	killer "$kills" "${kinds[@]}"
	wait $reader || fail "reads failed: $(head -n 1 "$TEST_DIR/gaps")"
	status=0
	wait $fio || status=$?
	[ $status -eq 0 ] || fail "fio ended with status $status: $(cat "$TEST_DIR/fio.log")"
	grep -q 'err= 0' "$TEST_DIR/fio.log" || fail "fio: $(cat "$TEST_DIR/fio.log")"
	echo "$(kills_count "$TEST_DIR") processes killed under fio"
	;;
swap)
	test_swaps
	start_kept "${settings[@]}"
	start_program
	killer "$kills" "${kinds[@]}"
	end_program
	is_swapping "$DEVICE" || fail "$DEVICE is not swap any more"
	[ "$(grep -c "^$device " /proc/swaps)" -eq 1 ] || fail "$device is swap more than once"
	echo "$(kills_count "$TEST_DIR") processes killed under a program that swaps"
	;;
row)
	test_swaps
	start_kept "${settings[@]}"
	start_program
	killer 8 storm
	grep -q 'workers have died soon one after the other; the next one goes in' "$log" ||
		fail "nothing is said of so many deaths: $(tail -n 5 "$log")"
	# After one that has lived, there is no pause.
	killer 2 worker
	end_program
	echo "8 workers killed in a row"
	;;
orphan)
	test_swaps
	zswapd_start "$name" "${settings[@]}"
	device=$(realpath "$DEVICE")
	start_program
	worker=$(zswapd_pids "$name" worker)
	zswapd_kill "$name" supervisor
	wait_for "[ \"\$(zswapd_pids $name)\" = $worker ]" 20 ||
		fail "the worker must go on and the standby end: $worker of $(zswapd_pids "$name")"
	timeout 10 "$ZSWAPCTL" --device "$name" status >"$TEST_DIR/status" || fail "a worker alone does not answer"
	before=$(counter "$name" pages_read_total)
	wait_counter "$name" pages_read_total -gt $((before + 100)) 20
	echo "a worker alone goes on"

	for ((i = 0; i < 3; i++)); do
		zswapd_launch "$name"
		# Ended before the daemon is, which has nowhere to put its pages.
		cleanup_pid $load
		wait_for "grep -q 'worker $worker serves $name and is adopted' $log" 20 ||
			fail "it is not adopted: $(tail -n 5 "$log")"
		wait_for "[ -n \"\$(zswapd_pids $name standby)\" ]" 20 || fail "the new supervisor has no standby"
		[ "$(head -n 1 "/run/zswapd/$name.lock")" -eq "$PID" ] || fail "the lock names another supervisor"
		[ "$(zswapd_pids "$name" worker)" = "$worker" ] || fail "it is another worker"
		zswapd_kill "$name" worker
		wait_for "grep -q 'zswapd: ready: ' $log" 30 || fail "nobody took over: $(tail -n 5 "$log")"
		wait_for "[ -n \"\$(zswapd_pids $name standby)\" ]" 20 || fail "there is no other standby"
		worker=$(zswapd_pids "$name" worker)
		zswapd_kill "$name" supervisor
		wait_for "[ \"\$(zswapd_pids $name)\" = $worker ]" 20 || fail "left: $(zswapd_pids "$name")"
		wait "$PID" 2>/dev/null || true
	done
	echo "adopted, killed, and taken over three times"

	end_program
	check_whole
	wait_freed "$name"
	bounded 60 swapoff "$device" || fail "swapoff without a supervisor"
	kill "$worker"
	wait_for "has_ended $worker" 60 || fail "a worker alone does not end"
	grep -q 'zswapd: stopped$' "$log" || fail "a worker alone does not stop in order"
	ZSWAPD_PIDS[$name]=
	check_nothing_left "$name"
	echo "swapped off and ended alone"
	test_end
	exit 0
	;;
*) fail "there is no case '$case'" ;;
esac
kills_report "$TEST_DIR"
check_whole
[ "$case" = fio ] || wait_freed "$name"
zswapd_stop "$name"
test_end

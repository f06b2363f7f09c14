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
		--stalls "$TEST_DIR/stalls" >"$TEST_DIR/load.json" 2>"$TEST_DIR/load.log" &
	load=$!
	cleanup_pid $load
	wait_for "[ \"\$(awk -v d=$device '\$1 == d { print \$4 }' /proc/swaps)\" -gt 80000 ] || has_ended $load" 90 ||
		fail "hardly anything is swapped"
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

# Beside each kill the longest access that it can have to do with: one under way between the kill and
# 0.2 s after the daemon was whole.  Those below 1 ms are not noted.
report()
{
	awk '
		FNR == NR { start[n] = $1; end[n++] = $1 + $2; next }
		{
			longest = 1000
			for (; first < n && end[first] < $2 - 10000000; first++)
				;
			for (i = first; i < n && start[i] < $3 + 200000; i++)
				if (end[i] > $2 && end[i] - start[i] > longest)
					longest = end[i] - start[i]
			kind = $1 ~ /^(worker|heir)$/ ? "worker" : $1
			print kind, longest / 1000, ($3 - $2) / 1000
		}' <(sort -n "$TEST_DIR/stalls") "$TEST_DIR/kills" >"$TEST_DIR/costs"
	printf '%-12s %5s  %28s  %28s\n' killed times 'longest access, ms' 'until whole again, ms'
	printf '%-12s %5s  %8s %9s %9s  %8s %9s %9s\n' '' '' p50 p99 max p50 p99 max
	for kind in worker both again supervisor all storm; do
		grep -q "^$kind " "$TEST_DIR/costs" || continue
		printf '%-12s %5s ' $kind "$(grep -c "^$kind " "$TEST_DIR/costs")"
		for column in 2 3; do
			awk -v k=$kind -v c=$column '$1 == k { print $c }' "$TEST_DIR/costs" | sort -g | awk '
				{ v[NR] = $1 }
				function at(share) { return v[int(NR * share + 0.999999)] }
				END { printf " %8.1f %9.1f %9.1f ", at(0.5), at(0.99), v[NR] }'
		done
		echo
	done
}

# The processes that were killed, at least as many as asked for if there was the time.
killed()
{
	awk '$1 == "both" || $1 == "again" { n++ } $1 == "all" { n += 2 } { n++ } END { print n + 0 }' "$TEST_DIR/kills"
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
	echo "$(killed) processes killed under fio"
	;;
swap)
	test_swaps
	start_kept "${settings[@]}"
	start_program
	killer "$kills" "${kinds[@]}"
	end_program
	is_swapping "$DEVICE" || fail "$DEVICE is not swap any more"
	[ "$(grep -c "^$device " /proc/swaps)" -eq 1 ] || fail "$device is swap more than once"
	echo "$(killed) processes killed under a program that swaps"
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
	# Nobody but a supervisor takes its socket away.
	rm -f "/run/zswapd/$name.sock"
	ZSWAPD_PIDS[$name]=
	check_nothing_left "$name"
	echo "swapped off and ended alone"
	test_end
	exit 0
	;;
*) fail "there is no case '$case'" ;;
esac
report
check_whole
[ "$case" = fio ] || wait_freed "$name"
zswapd_stop "$name"
test_end

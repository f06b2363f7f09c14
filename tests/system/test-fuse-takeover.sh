#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A device over FUSE outlives who serves it: the worker, or the whole daemon whose descriptors somebody
# keeps, killed again and again under verified I/O and under a program that swaps; with another
# configuration; and when nobody can bring the device back.
# usage: test-fuse-takeover.sh CASE [KILLS]    fio, swap or heirs
set -euo pipefail
# shellcheck source=tests/lib/zswapd.sh
. "$(dirname "$0")/../lib/zswapd.sh"
kills=${2:-8}

test_begin fio sqlite3 xz
name=$TEST_NAME
report=$TEST_DIR/report
log=$TEST_DIR/$name.log
usual=(device.size=256M memory.limit=24M memory.level=1 store.path="$TEST_DIR/store" store.size=384M)

# keep OPTION... -- SETTING...: the daemon with those settings, under keeper with those options.
keep()
{
	local options=(--stay)
	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	shift
	: >"$report"
	zswapd_config "$name" "$@"
	zswapd_launch "$name" "$KEEPER" "${options[@]}" "$report"
	keeper_pid=$PID
	zswapd_ready "$name"
	device=$(realpath "$DEVICE")
	connection=${ZSWAPD_CONNECTIONS[$name]}
}

supervisor()
{
	head -n 1 "/run/zswapd/$name.lock"
}

readies()
{
	grep -c 'zswapd: ready: ' "$log"
}

# The worker dies; the one that stands by takes over, and does not stop for a signal of before.
replace_worker()
{
	local before
	before=$(readies)
	wait_for "pgrep -P $(supervisor) -x zswapd-standby >/dev/null" 30 || fail "nobody stands by"
	kill -TERM "$(pgrep -P "$(supervisor)" -x zswapd-standby)"
	kill -KILL "$(pgrep -P "$(supervisor)" -x zswapd-worker)"
	wait_for "[ \$(readies) -gt $before ]" 60 || fail "nobody took over: $(tail -n 5 "$log")"
}

# All of the daemon dies, and nobody starts another.
murder()
{
	local pid pids
	# One that can't take over may be just ending.
	pids=$(pgrep -P "$(supervisor)" | tr '\n' ' ' || true)
	: >"$report"
	# shellcheck disable=SC2086
	kill -KILL "$(supervisor)" $pids || true
	wait_for "grep -q '^ended' $report" 30 || fail "the daemon does not die"
	for pid in $pids; do
		wait_for "has_ended $pid" 30 || fail "a process of the daemon does not die"
	done
}

# All of it dies, and another one is started with what was kept.
replace_daemon()
{
	local before
	murder
	before=$(readies)
	kill -USR1 "$keeper_pid"
	wait_for "[ \$(readies) -gt $before ]" 60 || fail "nobody took over: $(tail -n 5 "$log")"
}

# The one and the other by turns.
replace()
{
	if [ $(($1 % 4)) -eq 3 ]; then
		replace_daemon
	else
		replace_worker
	fi
}

# heir SETTING...: the next daemon is started, with these settings.
heir()
{
	zswapd_config "$name" "$@"
	: >"$report"
	mark=$(stat -c %s "$log")
	kill -USR1 "$keeper_pid"
}

# said TEXT: by the last heir.
said()
{
	tail -c +$((mark + 1)) "$log" | grep -qF "$1"
}

heir_ready()
{
	wait_for "said 'zswapd: ready: '" 60 || fail "no daemon became ready: $(tail -n 5 "$log")"
}

# refused TEXT SETTING...: a successor with these settings tries, and says TEXT.
refused()
{
	local text=$1
	shift
	heir "$@"
	wait_for "said 'are left as they are, for another try'" 60 || fail "with $*: $(tail -n 3 "$log")"
	said "$text" || fail "with $* it is not said: $text"
	! said 'zswapd: ready: ' || fail "a daemon is ready with $*"
	[ -e "/sys/block/${device##*/}/loop/backing_file" ] || fail "$device is gone after $*"
	murder
}

check_whole()
{
	[ "$(realpath "/dev/zswap/$name")" = "$device" ] || fail "the device has changed"
	[ "$(counter "$name" checksum_failures_total)" -eq 0 ] || fail "checksum failures"
	[ "$(counter "$name" slots_lost)" -eq 0 ] || fail "slots lost"
	wait_counter "$name" requests_in_flight -eq 0 10
}

# In order, and nothing is left, not even the connection.  The keeper stays until it is told twice.
stop()
{
	: >"$report"
	kill "$keeper_pid"
	wait_for "grep -q '^ended' $report" 60 || fail "the daemon does not end"
	grep -q '^ended 0$' "$report" || fail "the daemon: $(cat "$report")"
	kill "$keeper_pid"
	wait_for "has_ended $keeper_pid" 10 || fail "keeper does not end"
	ZSWAPD_PIDS[$name]=
	check_nothing_left "$name"
	check_connection_gone
}

check_connection_gone()
{
	local dir=/sys/fs/fuse/connections mounted_here='' there=''
	is_mounted $dir || { mount -t fusectl none $dir && mounted_here=1; }
	wait_for "[ ! -e $dir/$connection ]" 5 || there=1
	[ -z "$mounted_here" ] || umount $dir
	[ -z "$there" ] || fail "connection $connection is left"
}

percentiles()
{
	sort -n | awk -v what="$1" '{ v[NR] = $1 } END {
		printf "%s: median %s ms, most %s ms of %d\n", what, v[int((NR + 1) / 2)], v[NR], NR }'
}

case ${1-} in
fio)
	keep -- "${usual[@]}" swap.enable=no
	seconds=$((kills * 2 + 3))
	bounded $((seconds + 60)) fio --name=verified --filename="$device" --allow_file_create=0 --direct=1 \
		--ioengine=io_uring --verify=crc32c --verify_fatal=1 --verify_dump=0 --aux-path="$TEST_DIR" \
		--refill_buffers --buffer_compress_percentage=50 --buffer_compress_chunk=4k --size=96m --rw=randrw \
		--bsrange=4k-64k --blockalign=4k --iodepth=40 --verify_backlog=256 --time_based --runtime=$seconds \
		>"$TEST_DIR/fio.log" 2>&1 &
	fio=$!
	cleanup_pid $fio
	"$GAPS" "$device" $((seconds - 1)) "$kills" >"$TEST_DIR/gaps" &
	reader=$!
	cleanup_pid $reader
	cleanup_push zswapd_abort_dead "$name"
	sleep 1
	for ((i = 0; i < kills; i++)); do
		! has_ended $fio || fail "fio has ended: $(cat "$TEST_DIR/fio.log")"
		replace $i
		# Those that die within a second are replaced ever more slowly.
		sleep 1.$((RANDOM % 5))
	done
	wait $reader || fail "reads failed: $(head -n 1 "$TEST_DIR/gaps")"
	status=0
	wait $fio || status=$?
	[ $status -eq 0 ] || fail "fio ended with status $status: $(cat "$TEST_DIR/fio.log")"
	grep -q 'err= 0' "$TEST_DIR/fio.log" || fail "fio: $(cat "$TEST_DIR/fio.log")"
	[ "$(counter "$name" takeovers_total)" -eq "$kills" ] || fail "$(counter "$name" takeovers_total) takeovers"
	check_whole
	tail -n +2 "$TEST_DIR/gaps" | percentiles "a reader's $kills longest waits"
	stop
	;;
swap)
	test_swaps
	corpus=${ZSWAPD_TEST_CORPUS:-$TEST_DIR/corpus.pages}
	"$lib/../corpus/make-corpus.sh" "$corpus" 16 >"$TEST_DIR/corpus.log" 2>&1 || fail "no corpus"
	keep -- "${usual[@]}"
	is_swapping "$DEVICE" || fail "$DEVICE is not swap"
	cgroup_new swap $((64 << 20))
	cgroup_patience "$CGROUP"
	cleanup_push zswapd_abort_dead "$name"
	bounded 200 "$PAGELOAD" --pages "$corpus" --size 192M --verify --same word --threads 2 --seconds $((kills * 3 / 2)) \
		--cgroup "$CGROUP" --timeout 160 --report json >"$TEST_DIR/load.json" 2>"$TEST_DIR/load.log" &
	load=$!
	wait_for "[ \"\$(awk -v d=$device '\$1 == d { print \$4 }' /proc/swaps)\" -gt 60000 ]" 60 ||
		fail "hardly anything is swapped"
	for ((i = 0; i < kills; i++)); do
		! has_ended $load || break
		replace $i
		sleep 1.$((RANDOM % 5))
	done
	[ $i -ge 5 ] || fail "the program ended after $i kills"
	status=0
	wait $load || status=$?
	[ $status -eq 0 ] || fail "pageload ended with status $status after $i kills: $(tail -n 3 "$TEST_DIR/load.log")"
	is_swapping "$DEVICE" || fail "$DEVICE is not swap any more"
	[ "$(grep -c "^$device " /proc/swaps)" -eq 1 ] || fail "$device is swap more than once"
	[ "$(counter "$name" takeovers_total)" -ge $i ] || fail "$(counter "$name" takeovers_total) takeovers, not $i"
	check_whole
	echo "$i kills under a program with 192 MiB of verified pages"
	wait_freed "$name"
	stop
	;;
heirs)
	usual+=(swap.enable=no)
	keep -- "${usual[@]}"
	# Twice what memory holds, so that half of it is in the store.
	bounded 60 "$SLOTS" write "$device" "$TEST_DIR/map" 0 12288 1 random 32 >"$TEST_DIR/slots.log"
	wait_counter "$name" slots_stored -gt 2000 30
	murder
	bounded 120 "$SLOTS" verify "$device" "$TEST_DIR/map" 100 1 random >"$TEST_DIR/late.log" 2>&1 &
	late=$!
	cleanup_pid $late
	cleanup_push zswapd_abort "$name"
	refused 'start with the former configuration' "${usual[@]}" device.size=128M
	refused 'start with the former configuration' "${usual[@]}" store.size=128M
	TRANSPORT=ublk refused "$device can't be taken over by the transport ublk" "${usual[@]}"
	losetup -d "$device"
	! has_ended $late || fail "a reader was not kept waiting: $(cat "$TEST_DIR/late.log")"
	# What may change: the limit, the level, the threads; and auto finds out whose device it is.
	TRANSPORT=auto heir "${usual[@]}" memory.limit=32M memory.level=3 device.queues=2
	heir_ready
	wait $late || fail "who waited for a successor got: $(cat "$TEST_DIR/late.log")"
	bounded 60 "$SLOTS" verify "$device" "$TEST_DIR/map" 0 12288 random >"$TEST_DIR/slots.log" ||
		fail "after all: $(cat "$TEST_DIR/slots.log")"
	check_whole
	echo "other configurations"

	# Nobody can bring it back: who waits gets an error, and a new device is made.
	murder
	bounded 60 "$SLOTS" verify "$device" "$TEST_DIR/map" 100 1 random >"$TEST_DIR/late.log" 2>&1 &
	late=$!
	cleanup_pid $late
	sleep 0.3
	zswapd_abort "$name"
	wait_for "has_ended $late" 30 || fail "who waited for the pages waits still"
	grep -q 'ioerror 1' "$TEST_DIR/late.log" || fail "who waited got: $(cat "$TEST_DIR/late.log")"
	heir "${usual[@]}"
	heir_ready
	said 'its connection was ended' || fail "it does not say that the connection has gone"
	zswapd_ready "$name"
	wait_for "[ ! -e /sys/block/${device##*/}/loop/backing_file ] || [ $device = $(realpath "$DEVICE") ]" 5 ||
		fail "$device is left"
	device=$(realpath "$DEVICE")
	connection=${ZSWAPD_CONNECTIONS[$name]}
	bounded 60 "$SLOTS" verify "$device" "$TEST_DIR/none" 0 64 random >"$TEST_DIR/slots.log" ||
		fail "a new device has old pages: $(cat "$TEST_DIR/slots.log")"
	stop
	echo "a connection that was ended"

	# Part of it was lost.
	keep --lose zswapd-fuse-init -- "${usual[@]}"
	bounded 60 "$SLOTS" write "$device" "$TEST_DIR/map" 0 64 2 random 32 >"$TEST_DIR/slots.log"
	murder
	bounded 60 "$SLOTS" verify "$device" "$TEST_DIR/map" 0 1 random >"$TEST_DIR/late.log" 2>&1 &
	late=$!
	cleanup_pid $late
	sleep 0.3
	heir "${usual[@]}"
	heir_ready
	said 'zswapd-fuse-init was not kept' || fail "it does not say what is missing"
	wait_for "has_ended $late" 30 || fail "who waited for the pages waits still"
	grep -q 'ioerror 1' "$TEST_DIR/late.log" || fail "who waited for the pages got: $(cat "$TEST_DIR/late.log")"
	old=$device
	zswapd_ready "$name"
	device=$(realpath "$DEVICE")
	connection=${ZSWAPD_CONNECTIONS[$name]}
	wait_for "[ ! -e /sys/block/${old##*/}/loop/backing_file ]" 5 || [ "$old" = "$device" ] || fail "$old is left"
	stop
	echo "part of what was left"
	;;
*) fail "there is no case '${1-}'" ;;
esac
test_end

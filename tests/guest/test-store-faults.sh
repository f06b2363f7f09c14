#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A store that fails under real swap.  Whatever it does, a program sees its own bytes or ends with
# SIGBUS, never others; the state is told; and the daemon serves on.
# usage: test-store-faults.sh [SECONDS] CASE...
#
#   places    some places can be neither written nor read (dm-error)
#   writes    writes fail for a second of three; what is written stays right (dm-flakey)
#   bytes     reads bring other bytes, then the right ones again (dm-flakey)
#   slow      each request takes 10 ms and more (dm-delay)
#   stall     nothing is answered for SECONDS (20), with a program in the middle of it
#   stop      the daemon is told to end while nothing is answered
#   removed   the NVMe drive is taken away while it is in use
#
# guest: --drive 256M --drive 256M --memory 512 --program dmsetup
set -euo pipefail
. "$(dirname "$0")/lib.sh"
export TRANSPORT=ublk
NAME=faults
STALL=20
if [[ $1 =~ ^[0-9]+$ ]]; then
	STALL=$1
	shift
fi
OK=1 DEGRADED=2 STALLED=3 LOST=4 # counter store_state
PLACE=2048                      # sectors
drive=$(realpath /dev/drive0)
sectors=$(blockdev --getsz "$drive")
# Pages that do not compress: the store is needed soon.
head -c $((8 << 20)) /dev/urandom >/tmp/random.pages
for module in dm-mod dm-flakey dm-delay; do
	load $module || skip "this kernel has no $module"
done

# table: what the store does from now on, given in standard input.
table()
{
	dmsetup suspend --noflush --nolockfs store
	dmsetup reload store
	dmsetup resume --noudevsync store
}

healthy()
{
	echo "0 $sectors linear $drive 0"
}

# begin PATH [SECTION.KEY=VALUE]...: a daemon, and who follows its events.
begin()
{
	zswapd_start $NAME device.size=256M memory.limit=32M store.path="$1" "${@:2}"
	"$ZSWAPCTL" --device $NAME events --json >/results/events-$case &
	events=$!
	cleanup_pid $events
}

begin_dm()
{
	healthy | dmsetup create --noudevsync store
	dmsetup mknodes
	begin /dev/mapper/store "$@"
}

end()
{
	[ "$(counter $NAME slots_lost)" -eq 0 ] || fail "slots are lost"
	zswapd_stop $NAME
	kill $events
	cp "$(zswapd_log $NAME)" "/results/$case.zswapd"
	[ "$store" != dm ] || dmsetup remove --noudevsync store
}

# load_begin MIB GROUP_MIB [OPTION]...: a program of so much memory in a group of less.
load_begin()
{
	cgroup_new load $(($2 << 20))
	"$PAGELOAD" --pages /tmp/random.pages --size "$1M" --verify --cgroup "$CGROUP" --timeout $((100 + STALL)) \
		"${@:3}" >/results/load.json 2>/results/load.log &
	load=$!
	cleanup_pid $load
}

# load_end STATUS...: it must end with one of them.  3: it got SIGBUS; 4: the group's OOM killer.
load_end()
{
	local status=0
	wait $load || status=$?
	cgroup_remove "$CGROUP"
	[[ " $* " == *" $status "* ]] || fail "$case: pageload ended with status $status: $(cat /results/load.log)"
	[ $status -ne 4 ] || grep -q 'killed by signal 9' /results/load.log || fail "pageload: $(cat /results/load.log)"
	echo "$case: the program ended with status $status"
}

wait_stored()
{
	wait_counter $NAME slots_stored -gt "$1" 60
}

wait_state()
{
	wait_counter $NAME store_state -eq "$1" "$2"
}

# told WORD: an event said that the store is in this state.
told()
{
	wait_for "grep -q '\"event\": \"store_state\".*\"store_state\": \"$1\"' /results/events-$case" 5 ||
		fail "$case: no event said that the store is $1: $(cat /results/events-$case)"
}

shown()
{
	"$ZSWAPCTL" --device $NAME status >/results/status || fail "$case: no status"
	grep -q "^store .*; $1\$" /results/status || fail "$case: not shown as $1: $(cat /results/status)"
}

# A program that needs no more than memory has room for, whatever has become of the store.
serves_on()
{
	load_begin 40 30 --mode seq
	load_end 0
}

case_places()
{
	local bad="$((9 * PLACE)) $((8 * PLACE)) error"
	begin_dm
	load_begin 96 40 --seconds 3
	wait_stored 4000
	printf '%s\n' "0 $((9 * PLACE)) linear $drive 0" "$bad" \
		"$((17 * PLACE)) $((sectors - 17 * PLACE)) linear $drive $((17 * PLACE))" | table
	load_end 0 3
	[ "$(counter $NAME store_read_errors_total)" -gt 0 ] || fail "no read failed"
	[ "$(counter $NAME store_state)" -eq $DEGRADED ] || fail "state $(counter $NAME store_state)"
	told degraded
	# Everything is written anew, and no bad place is used.
	load_begin 96 40 --seconds 3
	load_end 0
	[ "$(counter $NAME store_retired_bytes)" -gt 0 ] || fail "no place was retired"
	[ "$(counter $NAME store_retired_bytes)" -le $((8 << 20)) ] || fail "good places were retired"
	[ "$(counter $NAME checksum_failures_total)" -eq 0 ] || fail "checksum failures"
	shown degraded
	grep '^store' /results/status
	end
	ok "bad places: $(grep -c 'is not used any more' /results/places.zswapd) retired, everything else right"
}

case_writes()
{
	begin_dm
	load_begin 96 40 --seconds 4
	wait_stored 2000
	echo "0 $sectors flakey $drive 0 2 1 1 error_writes" | table
	load_end 0 4
	[ "$(counter $NAME store_write_errors_total)" -gt 0 ] || fail "no write failed"
	[ "$(counter $NAME store_read_errors_total)" -eq 0 ] || fail "reads failed"
	[ "$(counter $NAME checksum_failures_total)" -eq 0 ] || fail "checksum failures"
	told degraded
	healthy | table
	serves_on
	end
	ok "failed writes: what was written stayed right"
}

case_bytes()
{
	begin_dm
	load_begin 96 40 --seconds 3
	wait_stored 4000
	echo "0 $sectors flakey $drive 0 0 1 5 corrupt_bio_byte 300 r 85 0" | table
	load_end 0 3
	[ "$(counter $NAME checksum_failures_total)" -gt 0 ] || fail "no checksum failed"
	[ "$(counter $NAME store_read_errors_total)" -eq 0 ] || fail "reads failed"
	healthy | table
	load_begin 96 40 --seconds 1
	load_end 0
	end
	ok "other bytes: errors and never other pages"
}

case_slow()
{
	begin_dm
	echo "0 $sectors delay $drive 0 10" | table
	load_begin 64 40 --mode random --seconds 2
	load_end 0
	[ "$(counter $NAME pages_read_stored_total)" -gt 0 ] || fail "nothing was read from the store"
	[ "$(counter $NAME store_state)" -eq $OK ] || fail "state $(counter $NAME store_state)"
	check_counters $NAME
	healthy | table
	end
	ok "a slow store is a slow store"
}

# in_time SECONDS COMMAND...
in_time()
{
	timeout "$@" >/results/out 2>&1 || fail "during a stall, within ${*:1:1} s: ${*:2}: $(cat /results/out)"
}

case_stall()
{
	local began
	begin_dm
	load_begin 96 40 --seconds 6
	wait_stored 4000
	dmsetup suspend --noflush --nolockfs store
	began=$SECONDS
	wait_state $STALLED 15
	told stalled
	shown stalled
	in_time 5 "$ZSWAPCTL" --device $NAME stats --prometheus
	grep -q "^zswapd_store_state{device=\"$NAME\"} 3\$" /results/out || fail "the metric says something else"
	in_time 5 "$ZSWAPCTL" --device $NAME set memory.limit 40M
	in_time 5 "$ZSWAPCTL" --device $NAME set --no-wait memory.limit 24M
	in_time 5 "$ZSWAPCTL" --device $NAME check --no-wait
	sleep 1
	timeout 5 "$ZSWAPCTL" --device $NAME job >/results/out || true
	grep -q '^check \[' /results/out || fail "the check is not under way: $(cat /results/out)"
	in_time 5 "$ZSWAPCTL" --device $NAME job --cancel
	wait_for "grep -q 'check: Operation canceled' $(zswapd_log $NAME)" 10 || fail "the check was not cancelled"
	while [ $((SECONDS - began)) -lt "$STALL" ]; do
		[ "$(counter $NAME store_state)" -eq $STALLED ] || fail "state $(counter $NAME store_state)"
		sleep 1
	done
	! has_ended $load || fail "the program has ended: $(cat /results/load.log)"
	dmsetup resume --noudevsync store
	wait_state $OK 10
	told ok
	load_end 0
	check_counters $NAME
	[ "$(counter $NAME writes_rejected_total)" -eq 0 ] || fail "writes were rejected"
	end
	ok "$STALL s without an answer, then all is right"
}

case_stop()
{
	local began pid
	begin_dm swap.enable=no
	"$SLOTS" write "$DEVICE" /tmp/map 0 16384 1 random 32 >/results/slots
	wait_counter $NAME requests_in_flight -eq 0 10
	dmsetup suspend --noflush --nolockfs store
	"$SLOTS" verify "$DEVICE" /tmp/map 0 16384 random >/results/slots 2>&1 &
	cleanup_pid $!
	wait_state $STALLED 20
	# The mover has something out as well.
	in_time 5 "$ZSWAPCTL" --device $NAME set --no-wait memory.limit 16M
	sleep 1
	pid=${ZSWAPD_PIDS[$NAME]}
	began=$SECONDS
	kill "$pid"
	wait_for "grep -q 'requests wait for the store and are left behind' $(zswapd_log $NAME)" 20 ||
		fail "no request was left behind in $((SECONDS - began)) s"
	wait_for "grep -q 'of the mover are not answered and are left behind' $(zswapd_log $NAME)" 20 ||
		fail "the mover left nothing behind in $((SECONDS - began)) s"
	wait_for "grep -q 'zswapd: stopped$' $(zswapd_log $NAME)" 20 || fail "not stopped in $((SECONDS - began)) s"
	echo "stop: said in $((SECONDS - began)) s; $(has_ended "$pid" && echo gone || echo kept by the kernel)"
	dmsetup resume --noudevsync store
	wait_for "has_ended $pid" 20 || fail "the process stays when the store has answered"
	ZSWAPD_PIDS[$NAME]=
	kill $events
	cp "$(zswapd_log $NAME)" "/results/$case.zswapd"
	wait_for "dmsetup remove --noudevsync store" 10
	ok "told to end in a stall, it ends"
}

case_removed()
{
	local other
	other=$(realpath /dev/drive1)
	begin "$other"
	# Only reads follow: a program that must be swapped out and cannot be waits for the OOM killer.
	load_begin 96 40 --mode random --seconds 40 --progress
	wait_for "grep -qs 'phase random' /results/load.log" 60 || fail "filling takes too long"
	echo 1 >"/sys/block/${other#/dev/}/device/device/remove"
	wait_state $LOST 40
	told lost
	shown lost
	load_end 0 3 4
	serves_on
	[ "$(counter $NAME checksum_failures_total)" -eq 0 ] || fail "checksum failures"
	"$ZSWAPCTL" --device $NAME doctor --quiet >/results/doctor || true
	grep -q 'it is lost' /results/doctor || fail "doctor: $(cat /results/doctor)"
	! timeout 5 "$ZSWAPCTL" --device $NAME writeback >/results/out 2>&1 || fail "a writeback to a lost store"
	grep -q 'the store is lost' /results/out || fail "writeback: $(cat /results/out)"
	end
	ok "without its drive it goes on in memory"
}

expect_kernel 'I/O error|Read-error on swap-device|Write-error on swap-device|Memory cgroup out of memory|oom-kill:'
[ "$STALL" -lt 30 ] || expect_kernel 'blocked for more than'
for case in "$@"; do
	store=dm
	[ "$case" != removed ] || store=drive
	"case_$case"
	echo "$case: at $SECONDS s"
done
test_end

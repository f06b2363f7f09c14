#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# What can stand in the way of a ublk device's beginning and end, from a missing module to a driver
# that does not answer.  Each time the daemon says what it is and is done within 30 s.
# usage: test-ublk-life.sh [PART]...
# guest: --memory 384 --drive 192M,iops=2 --limit 400 --no-load ublk_drv --built tests/guest/meddler --program dd
set -euo pipefail
. "$(dirname "$0")/lib.sh"
usual=(device.size=256M memory.limit=32M swap.enable=no)

# said NAME TEXT: its log has it.
said()
{
	grep -qF "$2" "$(zswapd_log "$1")" || fail "the log of $1 does not say: $2"
}

# begin TRANSPORT NAME SETTING...
begin()
{
	local transport=$1
	shift
	TRANSPORT=$transport zswapd_config "$@" "${usual[@]}"
	began=$SECONDS
	zswapd_launch "$1"
}

# took SECONDS WHAT: since `began`; less than SECONDS.
took()
{
	echo "   $2: $((SECONDS - began)) s"
	[ $((SECONDS - began)) -lt "$1" ] || fail "$2 took $((SECONDS - began)) s"
}

# ready NAME TRANSPORT
ready()
{
	zswapd_ready "$1"
	grep -q "zswapd: ready: .* by $2, " "$(zswapd_log "$1")" || fail "$1 does not go by $2"
	took 30 "$1 by $2"
}

# ends NAME: with status 1, without having been ready.
ends()
{
	local status=0
	wait_for "has_ended ${ZSWAPD_PIDS[$1]}" 40 || fail "$1 neither starts nor ends"
	wait "${ZSWAPD_PIDS[$1]}" || status=$?
	ZSWAPD_PIDS[$1]=
	! grep -q 'zswapd: ready: ' "$(zswapd_log "$1")" || fail "$1 became ready, though it can't"
	[ $status -eq 1 ] || fail "$1 ended with status $status, not 1"
	took 30 "$1 gives up"
	[ ! -L "/dev/zswap/$1" ] || fail "$1 left its link"
}

devices()
{
	local device
	for device in /dev/ublk[bc]*; do
		[ ! -e "$device" ] || echo "${device#/dev/}"
	done
}

none_left()
{
	# shellcheck disable=SC2016
	wait_for '[ -z "$(devices)" ]' 5 || fail "there are still: $(devices | xargs)"
}

# answers NAME: its device can be written and read.
answers()
{
	bounded 30 /usr/bin/dd if=/dev/urandom of="/dev/zswap/$1" bs=64k count=4 oflag=direct conv=notrunc status=none ||
		fail "$1 can't be written"
	bounded 30 /usr/bin/dd if="/dev/zswap/$1" of=/dev/null bs=64k count=4 iflag=direct status=none || fail "$1 can't be read"
}

# --- the module is missing ------------------------------------------------------------------------

part_missing()
{
	[ ! -e /dev/ublk-control ] || fail "ublk_drv is loaded already"
	begin auto missing
	ready missing fuse
	said missing 'transport: ublk can'\''t be used: /dev/ublk-control can'\''t be opened (is the module ublk_drv loaded?)'
	zswapd_stop missing
	begin ublk missing
	ends missing
	said missing '<3>zswapd: [device] transport: ublk can'\''t be used: /dev/ublk-control'
	said missing 'transport: there is none that works here'
	ok "no module"
}

# --- as many devices as the module allows ---------------------------------------------------------

# Newer drivers, 6.12's among them, count unprivileged devices only, of which root can't make any; those
# before count all.
part_full()
{
	echo 0 >/sys/module/ublk_drv/parameters/ublks_max
	begin ublk full
	wait_for "grep -q 'zswapd: ready: ' $(zswapd_log full) || has_ended $PID" 30 || fail "neither ready nor ended"
	if has_ended "$PID"; then
		ends full
		said full 'as many ublk devices as the module'\''s parameter ublks_max allows'
		ok "ublks_max"
	else
		ready full ublk
		zswapd_stop full
		ok "ublks_max does not count the devices of root here"
	fi
	echo 64 >/sys/module/ublk_drv/parameters/ublks_max
}

# --- a number that is taken -----------------------------------------------------------------------

part_numbers()
{
	begin ublk one
	ready one ublk
	begin ublk two
	ready two ublk
	[ "$(realpath /dev/zswap/one)" = /dev/ublkb0 ] || fail "the first device is $(realpath /dev/zswap/one)"
	[ "$(realpath /dev/zswap/two)" = /dev/ublkb1 ] || fail "the second device is $(realpath /dev/zswap/two)"
	answers one
	answers two
	TRANSPORT=ublk zswapd_config again "${usual[@]}"
	sed -i 's/^name = .*/name = one/' "$TEST_DIR/again.conf"
	zswapd_launch again
	wait_for "has_ended $PID" 30 || fail "a second daemon of one name goes on"
	ZSWAPD_PIDS[again]=
	said again 'name: one is served by another zswapd'
	zswapd_stop one
	answers two
	begin ublk one
	ready one ublk
	[ "$(realpath /dev/zswap/one)" = /dev/ublkb0 ] || fail "number 0 was not free again"
	answers two
	zswapd_stop two
	answers one
	zswapd_stop one
	none_left
	ok "two daemons"
}

# --- somebody opens /dev/ublkcN first -------------------------------------------------------------

# begin_held TRANSPORT SECONDS: a daemon whose /dev/ublkc0 somebody else opened first.  Now and then the
# daemon is faster.
begin_held()
{
	local try
	for ((try = 0; try < 10; try++)); do
		: >/tmp/held
		meddler hold /dev/ublkc0 "$2" >/tmp/held 2>&1 &
		holder=$!
		cleanup_pid $holder
		begin "$1" held
		wait_for "[ -s /tmp/held ] || has_ended $holder" 20 || fail "no /dev/ublkc0 appears"
		[ ! -s /tmp/held ] || return 0
		zswapd_ready held
		zswapd_stop held
		none_left
	done
	fail "the daemon is always faster"
}

part_held()
{
	begin_held ublk 3
	ready held ublk
	[ $((SECONDS - began)) -ge 2 ] || fail "it did not wait for whoever held the device"
	wait $holder
	answers held
	zswapd_stop held
	none_left
	begin_held ublk 0
	ends held
	said held 'cannot open /dev/ublkc0: Device or resource busy; another process holds it (udev, or an ublk server)'
	kill $holder
	none_left
	begin_held auto 0
	ready held fuse
	said held 'cannot open /dev/ublkc0: Device or resource busy'
	said held 'transport: ublk does not work here (Device or resource busy); going on with fuse'
	answers held
	kill $holder
	none_left
	zswapd_stop held
	ok "/dev/ublkcN held by another process"
}

# --- the driver does not answer -------------------------------------------------------------------

part_stuck()
{
	expect_kernel 'task (iou-wrk-|meddler|dd)[^ ]*.* blocked for more than'
	begin ublk before
	ready before ublk
	meddler wedge >/tmp/wedged 2>/tmp/meddler.log &
	wedger=$!
	cleanup_pid $wedger
	wait_for 'grep -q wedged /tmp/wedged' 30 || fail "meddler: $(cat /tmp/wedged /tmp/meddler.log)"
	sleep 1
	begin ublk hung
	ends hung
	said hung 'ublk: ADD_DEV for device -1 is given up: it was not answered in time'
	begin auto hung
	ready hung fuse
	said hung 'ADD_DEV for device -1 is given up'
	said hung 'going on with fuse'
	answers hung
	# One that runs is served on, and can end.
	answers before
	began=$SECONDS
	kill "${ZSWAPD_PIDS[before]}"
	wait_for "has_ended ${ZSWAPD_PIDS[before]}" 40 || fail "a daemon with a device does not end"
	took 30 "the end of a daemon with a device"
	ZSWAPD_PIDS[before]=
	said before 'is given up: it was not answered in time'
	said before 'zswapd: stopped'
	[ ! -e /dev/zswap/before ] || fail "its link is left"
	kill $wedger
	wait $wedger || fail "the driver is still stuck: $(cat /tmp/meddler.log)"
	# What was asked for in vain is not done behind everybody's back.  A removal may be.
	wait_for '! devices | grep -qv "^ublkc0$"' 10 || fail "there are: $(devices | xargs)"
	answers hung
	zswapd_stop hung
	begin ublk after
	ready after ublk
	answers after
	zswapd_stop after
	# What could not be removed then is removed by the next of its name.
	begin ublk before
	ready before ublk
	zswapd_stop before
	none_left
	ok "a driver that does not answer"
}

# --- the device is open when its daemon stops -----------------------------------------------------

part_open()
{
	expect_kernel '(I/O error|error).*ublkb|EXT4-fs|ublkb[0-9]+.*I/O error'
	begin ublk open
	ready open ublk
	device=$(realpath /dev/zswap/open)
	number=${device#/dev/ublkb}
	bounded 60 mke2fs -b 4096 "$device" >/tmp/mke2fs 2>&1 || fail "mke2fs: $(cat /tmp/mke2fs)"
	mount -t ext4 "$device" /mnt
	dd if=/dev/urandom of=/mnt/file bs=64k count=16 status=none
	while dd if="$device" of=/dev/null bs=64k iflag=direct status=none; do :; done 2>/tmp/reader &
	reader=$!
	exec 7<"$device"
	began=$SECONDS
	kill "${ZSWAPD_PIDS[open]}"
	wait_for "has_ended ${ZSWAPD_PIDS[open]}" 40 || fail "it does not end while its device is open"
	took 30 "the end with an open device"
	status=0
	wait "${ZSWAPD_PIDS[open]}" || status=$?
	ZSWAPD_PIDS[open]=
	[ $status -eq 0 ] || fail "it ended with status $status"
	said open "ublk: $device is still open somewhere"
	[ ! -e "$device" ] || fail "$device is left"
	wait_for "has_ended $reader" 10 || fail "a reader hangs"
	# Others are not kept from anything.
	begin ublk next
	ready next ublk
	[ "$(realpath /dev/zswap/next)" != "$device" ] || fail "$device is used twice"
	answers next
	zswapd_stop next
	exec 7<&-
	umount /mnt
	wait_for "[ ! -e /dev/ublkc$number ]" 10 || fail "the number is not free: $(devices | xargs)"
	# The kernel gives the number back with its last reference, a moment later.
	for ((tries = 0; tries < 10; tries++)); do
		begin ublk next
		ready next ublk
		got=$(realpath /dev/zswap/next)
		zswapd_stop next
		[ "$got" != "$device" ] || break
		sleep 1
	done
	[ "$got" = "$device" ] || fail "the number is not free: $got"
	ok "a device that is open"
}

# --- the store does not answer ----------------------------------------------------------------------------

# The kernel's end of the device waits for what is in flight, and that is a quarter of a minute's work.
part_slow()
{
	local i readers=()
	expect_kernel '(I/O error|error).*ublkb|task .* blocked for more than'
	TRANSPORT=ublk zswapd_config slow device.size=64M memory.limit=16M swap.enable=no store.path=/dev/drive0
	began=$SECONDS
	zswapd_launch slow
	zswapd_ready slow
	bounded 120 slots write "$DEVICE" /tmp/map 0 5120 1 random 32 >/tmp/slots || fail "writing: $(cat /tmp/slots)"
	wait_counter slow slots_stored -gt 1000 60
	for ((i = 0; i < 45; i++)); do
		while /usr/bin/dd if="$DEVICE" of=/dev/null bs=4k count=1 skip=$((RANDOM % 1024)) iflag=direct \
			status=none; do :; done 2>/dev/null &
		readers+=($!)
	done
	wait_counter slow requests_in_flight -gt 25 30
	began=$SECONDS
	kill "$PID"
	wait_for "has_ended $PID" 40 || fail "it does not end: $(cat /proc/"$(zswapd_pids slow worker)"/task/*/wchan)"
	took 30 "the end with requests that the store does not answer"
	ZSWAPD_PIDS[slow]=
	for i in "${readers[@]}"; do
		wait_for "has_ended $i" 10 || fail "a reader hangs"
	done
	none_left
	echo "   $(grep -c 'given up' "$(zswapd_log slow)") commands given up, $(grep -c 'left behind' "$(zswapd_log slow)") queues with requests left behind"
	ok "a store that does not answer"
}

# --- the daemon was killed ------------------------------------------------------------------------

part_killed()
{
	begin ublk killed
	ready killed ublk
	device=$(realpath /dev/zswap/killed)
	while dd if="$device" of=/dev/null bs=64k iflag=direct status=none; do :; done 2>/tmp/reader &
	reader=$!
	sleep 0.5
	zswapd_killed killed
	sleep 1
	! has_ended $reader || fail "a reader got an error, though a successor may come: $(cat /tmp/reader)"
	begin ublk killed
	ready killed ublk
	said killed "ublk: $device was left behind by a daemon that died"
	wait_for "has_ended $reader" 10 || fail "the reader of the former device hangs"
	answers killed
	zswapd_stop killed
	none_left
	# Its process number may be somebody else's by now.
	begin ublk killed
	ready killed ublk
	former=$(zswapd_pids killed worker)
	zswapd_killed killed
	for ((tries = 0; tries < 50; tries++)); do
		echo $((former - 1)) >/proc/sys/kernel/ns_last_pid
		sleep 60 &
		[ $! -ne "$former" ] || break
		kill $!
	done
	[ "$(cat /proc/"$former"/comm)" = sleep ] || fail "the process number could not be used again"
	begin ublk killed
	ready killed ublk
	said killed 'was left behind by a daemon that died'
	kill "$former"
	zswapd_stop killed
	none_left
	ok "a daemon that was killed"
}

# Killed at any moment of its start: it is gone, and the next one can start.
part_early()
{
	local i delay
	expect_kernel '(I/O error|error).*ublkb'
	for ((i = 0; i < 16; i++)); do
		begin ublk early
		# From the device's appearance on, mostly, which is when the kernel reads from it.
		if ((i % 4)); then
			while [ ! -e /dev/ublkb0 ] && [ ! -e /dev/ublkb1 ] && [ -d "/proc/$PID" ]; do :; done
			delay=$((RANDOM % 40))
		else
			delay=$((RANDOM % 400))
		fi
		((delay == 0)) || sleep "$(printf '0.%03d' $delay)"
		zswapd_killed early
		ZSWAPD_PIDS[early]=
	done
	begin ublk early
	ready early ublk
	answers early
	zswapd_stop early
	none_left
	ok "killed while it starts"
}

[ $# -gt 0 ] || set -- missing full numbers held stuck open slow killed early
for part in "$@"; do
	[ "$part" = missing ] || need load ublk_drv
	"part_$part"
done
test_end

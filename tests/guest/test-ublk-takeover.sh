#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A daemon that died, and those who come after it: under verified I/O without swap; with another
# configuration, which is refused and costs nothing; when the device has gone meanwhile; and with only
# half of what it left.
# usage: test-ublk-takeover.sh KILLS
# guest: --memory 512 --drive 384M --drive 96M --limit 300 --built tests/crash/keeper --program fio
# guest: --program dd
set -euo pipefail
. "$(dirname "$0")/lib.sh"
kills=$1
config=$TEST_DIR/heir.conf
log=$TEST_DIR/heir.log
report=$TEST_DIR/report
export TRANSPORT=ublk
# Whoever waits for a successor does so for longer than it takes to be called stuck.
expect_kernel 'task (dd|fio|slots)[^ ]*.* blocked for more than'
expect_kernel 'ublkb[0-9]+.*(I/O )?error|error.*ublkb'

# keep OPTION...: the daemon of $config, by somebody who keeps what it deposits.
keep()
{
	keeper "$@" "$report" "$ZSWAPD" --config "$config" 2>"$log" &
	keeper=$!
	cleanup_pid $keeper
	n=0
	wait_ready
	device=$(realpath /dev/zswap/heir)
}

wait_ready()
{
	wait_for "grep -qs '^ready $n ' $report || has_ended $keeper" 60 || true
	grep -q "^ready $n " "$report" || fail "no daemon became ready: $(tail -n 5 "$log")"
}

# All die, and another daemon is started with what was deposited.
succeed()
{
	n=$((n + 1))
	kill -USR1 $keeper
	wait_ready
}

# All die, and nobody starts another daemon.
murder()
{
	: >"$report"
	wait_for "daemon_killed $config && grep -q '^ended' $report" 30 || fail "the daemon does not die"
}

# refused TEXT SETTING...: a successor with other settings says TEXT, does nothing, and is not given up.
refused()
{
	local text=$1
	shift
	zswapd_config heir "$@"
	: >"$report"
	: >"$log"
	kill -USR1 $keeper
	wait_for "grep -qF 'are left as they are, for another try' $log || [ -s $report ]" 30 || fail "no end with $*"
	grep -qF 'are left as they are, for another try' "$log" || fail "with $*: $(tail -n 3 "$log")"
	! grep -qE '^(ended|ready)' "$report" || fail "with $*: $(cat "$report")"
	grep -qF "$text" "$log" || fail "with $* it is not said: $text"
	[ -e "$device" ] || fail "$device is gone after $*"
}

end_keeper()
{
	local status=0
	: >"$report"
	kill -TERM $keeper
	wait_for "has_ended $keeper || grep -q '^ended' $report" 60 || fail "the daemon does not end"
	kill -TERM $keeper 2>/dev/null || true
	wait $keeper || status=$?
	[ $status -eq 0 ] || fail "the daemon ended with status $status: $(tail -n 3 "$log")"
	! grep -q '^ended [1-9]' "$report" || fail "the daemon: $(cat "$report")"
	wait_for '! compgen -G "/dev/ublk[bc]*" >/dev/null' 5 || fail "left: $(compgen -G '/dev/ublk[bc]*')"
}

# --- verified I/O -----------------------------------------------------------------------------------

usual=(device.size=128M memory.limit=24M memory.level=1 store.path=/dev/drive1 swap.enable=no)
zswapd_config heir "${usual[@]}"
keep
fio --name=verified --filename="$device" --allow_file_create=0 --direct=1 --ioengine=io_uring --thread \
	--verify=crc32c --verify_fatal=1 --verify_dump=0 --aux-path=/tmp --refill_buffers \
	--buffer_compress_percentage=50 --buffer_compress_chunk=4k --size=48m --rw=randrw --bsrange=4k-64k \
	--blockalign=4k --iodepth=40 --verify_backlog=256 --time_based --runtime=$((kills * 2 + 2)) \
	>/tmp/fio.out 2>&1 &
fio=$!
cleanup_pid $fio
sleep 1
for ((i = 0; i < kills; i++)); do
	! has_ended $fio || break
	succeed
	sleep 0.$((RANDOM % 7))
done
echo "$i kills under fio"
[ $i -gt $((kills / 2)) ] || fail "fio ended after $i kills: $(cat /tmp/fio.out)"
status=0
wait $fio || status=$?
[ $status -eq 0 ] || fail "fio ended with status $status: $(cat /tmp/fio.out)"
grep -q 'err= 0' /tmp/fio.out || fail "fio: $(cat /tmp/fio.out)"
[ "$(realpath /dev/zswap/heir)" = "$device" ] || fail "the device has changed"
[ "$(counter heir takeovers_total)" -eq $i ] || fail "$(counter heir takeovers_total) takeovers, not $i"
[ "$(counter heir pages_read_stored_total)" -gt 0 ] || echo "nothing came from the store"
wait_counter heir requests_in_flight -eq 0 10
[ "$(counter heir checksum_failures_total)" -eq 0 ] || fail "checksum failures"
[ "$(counter heir slots_lost)" -eq 0 ] || fail "slots lost"
end_keeper
ok "verified I/O"

# --- another configuration --------------------------------------------------------------------------

mke2fs -b 4096 /dev/drive0 >/tmp/mke2fs 2>&1 || fail "mke2fs: $(cat /tmp/mke2fs)"
mount -t ext4 /dev/drive0 /mnt
dd if=/dev/zero of=/dev/drive1 bs=4k count=1 conv=fsync status=none
basic=(memory.limit=16M memory.level=1 swap.enable=no)
usual=(device.size=128M store.path=/mnt/store store.size=64M "${basic[@]}")
zswapd_config heir "${usual[@]}"
keep --stay
# Twice what memory holds, so that half of it is in the store.
slots write "$device" /tmp/map 0 8192 1 random 32 >/tmp/slots || fail "writing: $(cat /tmp/slots)"
wait_counter heir slots_stored -gt 2000 30
murder
: >/tmp/late
slots verify "$device" /tmp/map 100 1 random >/tmp/late 2>&1 &
late=$!
cleanup_pid $late
refused 'start with the former configuration' device.size=256M store.path=/mnt/store store.size=64M "${basic[@]}"
refused 'start with the former configuration' device.size=128M store.path=/mnt/store store.size=32M "${basic[@]}"
refused 'start with the former configuration' device.size=128M store.path=/mnt/store store.size=96M "${basic[@]}"
refused 'start with the former configuration' device.size=128M "${basic[@]}"
[ "$(stat -c %s /mnt/store)" -eq $((64 << 20)) ] || fail "the store has $(stat -c %s /mnt/store) bytes now"
TRANSPORT=fuse refused "$device can't be taken over by the transport fuse" "${usual[@]}"
! has_ended $late || fail "a reader was not kept waiting: $(cat /tmp/late)"
zswapd_config heir "${usual[@]}"
: >"$report"
: >"$log"
n=1
kill -USR1 $keeper
wait_ready
wait $late || fail "who waited for a successor got: $(cat /tmp/late)"
slots verify "$device" /tmp/map 0 8192 random >/tmp/slots || fail "after all: $(cat /tmp/slots)"
grep -q '^right 8192 wrong 0 ioerror 0' /tmp/slots || fail "after all: $(cat /tmp/slots)"
[ "$(counter heir pages_read_stored_total)" -gt 2000 ] || fail "nothing came from the store"
[ "$(counter heir slots_lost)" -eq 0 ] || fail "slots lost"
# What may change at a takeover: the limit, the level and how many queues are wished for.
zswapd_config heir "${usual[@]}" memory.limit=24M memory.level=3 device.queues=1
succeed
slots verify "$device" /tmp/map 0 8192 random >/tmp/slots || fail "with another limit: $(cat /tmp/slots)"
# The store is the one that holds the pages, wherever another may be configured.
for store in /mnt/other /dev/drive1; do
	zswapd_config heir device.size=128M store.path=$store store.size=64M "${basic[@]}"
	: >"$log"
	succeed
	grep -q "store $store is not the one that holds the pages" "$log" || fail "it does not say which store it uses"
	slots verify "$device" /tmp/map 0 8192 random >/tmp/slots || fail "with another store: $(cat /tmp/slots)"
done
[ ! -e /mnt/other ] || fail "a store was made that nobody uses"
head -c 4096 /dev/drive1 | cmp -n 4096 - /dev/zero || fail "a foreign store was written to"
zswapd_config heir "${usual[@]}"
ok "other configurations"

# --- the device has gone -------------------------------------------------------------------------------

murder
# A plain one of that name takes the dead device away.  The store is still held for the pages.
zswapd_config plain device.size=128M "${basic[@]}"
sed -i 's/^name = .*/name = heir/' "$TEST_DIR/plain.conf"
"$ZSWAPD" --config "$TEST_DIR/plain.conf" 2>"$TEST_DIR/plain.log" &
plain=$!
cleanup_pid $plain
wait_for "grep -q 'zswapd: ready' $TEST_DIR/plain.log || has_ended $plain" 60 || true
grep -q 'was left behind by a daemon that died' "$TEST_DIR/plain.log" || fail "the dead device stays"
kill $plain
wait $plain || fail "the plain daemon did not stop in order"
: >"$log"
n=$((n + 1))
kill -USR1 $keeper
wait_for "grep -q '^ready' $report" 60 || fail "no daemon became ready: $(tail -n 5 "$log")"
grep -q 'belongs to no device that is there' "$log" || fail "it does not say that the device is gone"
# Nothing of the former pages.
slots verify "$device" /tmp/none 0 64 random >/tmp/slots || fail "a new device has old pages: $(cat /tmp/slots)"
end_keeper
ok "a device that has gone"

# --- half of it -------------------------------------------------------------------------------------------

keep --stay --lose zswapd-front
slots write "$device" /tmp/map 0 64 2 random 32 >/tmp/slots
murder
slots verify "$device" /tmp/map 0 1 random >/tmp/late 2>&1 &
late=$!
cleanup_pid $late
sleep 0.5
: >"$log"
kill -USR1 $keeper
wait_for "grep -q '^ready' $report" 60 || fail "no daemon became ready: $(tail -n 5 "$log")"
grep -q 'it is given up' "$log" || fail "half a state is not given up"
grep -q 'was left behind by a daemon that died' "$log" || fail "the dead device stays"
wait_for "has_ended $late" 30 || fail "who waited for the pages waits still"
grep -q 'ioerror 1' /tmp/late || fail "who waited for the pages got: $(cat /tmp/late)"
device=$(realpath /dev/zswap/heir)
slots verify "$device" /tmp/none 0 64 random >/tmp/slots || fail "a new device has old pages: $(cat /tmp/slots)"
end_keeper
ok "half of what was left"
test_end

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Reads of single pages are polled for on a drive with polled queues, without its interrupts; on a
# drive without any, zswapd says so and goes on.
# usage: test-poll.sh TRANSPORT
# guest: --drive 512M --drive 512M,iops=150 --poll-queues 1 --corpus 16 --program fio --program jq --limit 300
#
# The three modes take turns on one daemon, changed by SIGHUP, so that the table at the end compares
# like with like.  Times of an emulated machine mean nothing by themselves.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
export TRANSPORT=$1
ROUNDS=3
READS=500
STORED_PAGES=8192 # of 16384; the front tier has room for no more than 4096
NAME=poll
TABLE=/results/table
drive=$(basename "$(realpath /dev/drive0)")

fio_run()
{
	local status=0
	bounded 60 fio --name=job --filename="$DEVICE" --allow_file_create=0 --direct=1 --ioengine=io_uring \
		--verify=crc32c --verify_interval=4k --verify_fatal=1 --verify_dump=0 --aux-path=/tmp \
		--eta=never --output-format=json --output=/tmp/fio.json "$@" 2>/tmp/fio.log || status=$?
	[ $status -eq 0 ] || {
		cat /tmp/fio.log /tmp/fio.json >&2
		fail "fio ended with status $status: $*"
	}
}

fill()
{
	fio_run --rw=write --bs=128k --iodepth=4 --do_verify=0 --refill_buffers
	[ "$(counter $NAME slots_stored)" -ge $STORED_PAGES ] ||
		fail "only $(counter $NAME slots_stored) pages are in the store"
}

# set_mode MODE: changes store.poll while all is in use.
set_mode()
{
	local before
	before=$(grep -c 'reload: done' "$(zswapd_log $NAME)" || true)
	sed -i "s/^poll = .*/poll = $1/" "$TEST_DIR/$NAME.conf"
	kill -HUP "$PID"
	wait_for "[ \$(grep -c 'reload: done' $(zswapd_log $NAME)) -gt $before ]" 10 || fail "poll = $1 was not taken"
}

drive_interrupts()
{
	awk -v queue="${drive%n*}q[1-9]" '$0 ~ queue { for (i = 2; $i ~ /^[0-9]+$/; i++) n += $i } END { print n + 0 }' /proc/interrupts
}

# CPU time of the data threads in microseconds.
data_cpu()
{
	local task
	for task in /proc/"$(zswapd_pids $NAME worker)"/task/*; do
		! grep -q '^zswapd-data' "$task/comm" || cat "$task/schedstat"
	done | awk '{ ns += $1 } END { print int(ns / 1000) }'
}

# Reads are looked for by io_uring_enter(), once each; hist has how often each thread has called it.
calls=/sys/kernel/tracing/events/syscalls/sys_enter_io_uring_enter
echo hist:keys=common_pid >$calls/trigger || skip "the kernel can't count system calls"

data_calls()
{
	local task
	for task in /proc/"$(zswapd_pids $NAME worker)"/task/*; do
		! grep -q '^zswapd-data' "$task/comm" ||
			sed -n "s/^{ common_pid: *${task##*/} } hitcount: *//p" $calls/hist
	done | awk '{ n += $1 } END { print n + 0 }'
}

# How often the data threads have gone to sleep.
data_sleeps()
{
	local task
	for task in /proc/"$(zswapd_pids $NAME worker)"/task/*; do
		! grep -q '^zswapd-data' "$task/comm" || sed -n 's/^voluntary_ctxt_switches://p' "$task/status"
	done | awk '{ n += $1 } END { print n + 0 }'
}

# figures FILE: what is counted, on one line; the statistics go to FILE.
figures()
{
	timeout 10 "$ZSWAPCTL" --device $NAME stats --json >"$1"
	{
		jq -r '[.store_reads_polled_total,
			.pages_read_stored_total, .store_read_requests_total, .checksum_failures_total] | @tsv' "$1"
		drive_interrupts
		data_calls
		data_sleeps
		data_cpu
	} | tr '\n' ' '
}

# Median of the time that the store's reads took between the two statistics, in microseconds.
store_median()
{
	jq -n --slurpfile b "$1" --slurpfile a "$2" '
		def buckets: .[0].histograms.store_read_latency.buckets;
		($b | buckets | map({key: "\(.[0])", value: .[2]}) | from_entries) as $before |
		($a | buckets | map([.[0], .[1], .[2] - ($before["\(.[0])"] // 0)])) as $h |
		($h | map(.[2]) | add / 2) as $half |
		reduce $h[] as [$lower, $upper, $n] ({seen: 0, median: null};
			if .median == null and .seen + $n >= $half
			then .median = $lower + ($upper - $lower) * ($half - .seen) / $n else . end |
			.seen += $n) |
		.median / 1000 | round'
}

# measure LABEL FIO-OPTION...: reads stored pages at random, verified; sets POLLED, STORED, REQUESTS,
# INTERRUPTS, CALLS, SLEEPS and CPU to what that took, and adds a line to the table.
measure()
{
	local label=$1 before after
	shift
	before=$(figures /tmp/before.json)
	fio_run --size=$((STORED_PAGES * 4))k --rw=randread --norandommap --randrepeat=0 --number_ios=$READS \
		--runtime=40 "$@"
	after=$(figures /tmp/after.json)
	read -r POLLED STORED REQUESTS DAMAGED INTERRUPTS CALLS SLEEPS CPU < <(awk -v b="$before" -v a="$after" 'BEGIN {
		n = split(b, before, " "); split(a, after, " ")
		for (i = 1; i <= n; i++) printf "%d ", after[i] - before[i]
		print "" }')
	[ "$DAMAGED" -eq 0 ] || fail "$label: $DAMAGED checksum failures"
	[ "$STORED" -ge $READS ] || fail "$label: only $STORED pages were read from the store"
	jq -r --arg mode "$label" --arg n "$POLLED $STORED $REQUESTS $INTERRUPTS $CALLS $SLEEPS $CPU $(store_median /tmp/before.json /tmp/after.json)" '.jobs[0].read |
		"\($mode) \(.total_ios) \(.clat_ns.mean / 1000 | round) \(.clat_ns.percentile["50.000000"] / 1000 | round) \(
			.clat_ns.percentile["99.000000"] / 1000 | round) \($n)"' /tmp/fio.json >>$TABLE
}

# sum MODE COLUMN: over the rounds
sum()
{
	awk -v m="$1" -v c="$2" '$1 == m { n += $c } END { print n }' $TABLE
}

# percent COLUMN: of the slow drive's spin, the sum that its hybrid has there
percent()
{
	echo $(($(sum slow-hybrid "$1") * 100 / $(sum slow-spin "$1")))
}

# spread MODE COLUMN: the greatest of its rounds in percent of the least
spread()
{
	awk -v m="$1" -v c="$2" '$1 == m {
		if (!n++ || $c < least) least = $c
		if ($c > most) most = $c
	} END { print int(100 * most / least) }' $TABLE
}

# --- with a polled queue ---------------------------------------------------------------------------

[ "$(cat "/sys/block/$drive/queue/io_poll")" -eq 1 ] || fail "$drive can't be polled"
settings=(device.size=64M swap.enable=no memory.limit=16M memory.level=-1)
zswapd_start $NAME "${settings[@]}" store.path=/dev/drive0 store.poll=off
grep -q 'store /dev/drive0: reads can be polled' "$(zswapd_log $NAME)" || fail "that it can poll was not found"
fill

for ((round = 0; round < ROUNDS; round++)); do
	for mode in off spin hybrid; do
		set_mode $mode
		measure $mode --bs=4k --iodepth=1
		case $mode in
		off)
			[ "$POLLED" -eq 0 ] || fail "$POLLED reads were polled while it was off"
			[ "$INTERRUPTS" -ge $((STORED / 2)) ] || fail "$STORED reads with $INTERRUPTS interrupts"
			;;
		*)
			[ "$POLLED" -ge $((STORED * 9 / 10)) ] || fail "$mode: $POLLED of $STORED reads were polled"
			[ "$INTERRUPTS" -le $((STORED / 10)) ] || fail "$mode: $INTERRUPTS interrupts for $STORED reads"
			;;
		esac
	done
done
ok "single pages are polled for, without interrupts, and the mode changes at run time"

for mode in spin hybrid; do
	set_mode $mode
	measure $mode-16k --bs=16k --iodepth=1
	[ "$POLLED" -eq 0 ] || fail "$POLLED reads of several pages were polled"
done
ok "reads of several pages are not"
check_counters $NAME
zswapd_stop $NAME

# --- a slower drive, on which there is something to save ------------------------------------------

NAME=slow
zswapd_start $NAME "${settings[@]}" store.path=/dev/drive1 store.poll=hybrid
fill
READS=60
for ((round = 0; round < 4; round++)); do
	for mode in spin hybrid; do
		set_mode $mode
		measure slow-$mode --bs=4k --iodepth=1
	done
done

{
	echo "mode reads mean_us p50_us p99_us polled stored requests interrupts calls sleeps cpu_us store_us"
	cat $TABLE
} | awk '{ printf "%-11s", $1; for (i = 2; i <= NF; i++) printf " %10s", $i; print "" }'
# A sleep before most reads is what hybrid saves CPU time by.  A machine that has no time for the guest
# wakes sleepers so late that it leaves them out; then spin doesn't look as often in each round either.
more=$(($(sum slow-hybrid 11) - $(sum slow-spin 11)))
saved="hybrid takes $(percent 10) % of spin's calls, $(percent 12) % of its CPU time; it sleeps $more times more"
saved+=" in $((4 * READS)) reads"
if [ "$(spread slow-spin 10)" -lt 150 ]; then
	[ $more -ge $((4 * READS / 2)) ] || fail "$saved"
	[ "$(percent 10)" -lt 85 ] || fail "$saved"
	ok "$saved"
else
	note "not judged, since the machine is busy: $saved"
fi
check_counters $NAME
zswapd_stop $NAME

# --- real swap, while the mode changes -------------------------------------------------------------

NAME=swap
zswapd_start $NAME device.size=512M memory.limit=16M memory.level=-1 store.path=/dev/drive0 store.poll=spin
cgroup_new poll $((32 << 20))
# Half of it does not compress, so that little fills the front tier.
{
	head -c $((4 << 20)) /files/corpus.pages
	head -c $((4 << 20)) /dev/urandom
} >/tmp/mixed.pages
"$PAGELOAD" --pages /tmp/mixed.pages --size 80M --verify --same word --threads 2 --seconds 3 \
	--cgroup "$CGROUP" --timeout 100 &
load=$!
cleanup_pid $load
while ! has_ended $load; do
	for mode in hybrid off spin; do
		sleep 1
		set_mode $mode
	done
done
status=0
wait $load || status=$?
[ $status -eq 0 ] || fail "pageload ended with status $status"
check_counters $NAME
[ "$(counter $NAME store_reads_polled_total)" -gt 100 ] || fail "hardly anything was polled"
[ "$(counter $NAME checksum_failures_total)" -eq 0 ] || fail "checksum failures"
ok "$(counter $NAME store_reads_polled_total) reads polled under swap, of $(counter $NAME store_read_requests_total)"
zswapd_stop $NAME

# --- without a polled queue ------------------------------------------------------------------------

NAME=plain
need unload nvme
need load nvme poll_queues=0
wait_for "[ -b /dev/$drive ]" 10 || fail "$drive did not come back"
[ "$(cat "/sys/block/$drive/queue/io_poll")" -eq 0 ] || fail "$drive can still be polled"
zswapd_start $NAME "${settings[@]}" store.path=/dev/drive0 store.poll=spin
grep -q 'poll: reads of /dev/drive0 .*queue/io_poll is 0.*nvme.poll_queues.*poll = off' "$(zswapd_log $NAME)" ||
	fail "nothing was said of a drive that can't be polled"
fill
measure none --bs=4k --iodepth=1
[ "$POLLED" -eq 0 ] || fail "$POLLED reads were polled without a queue for it"
sed -i 's/^poll = .*/poll = hybrid/' "$TEST_DIR/$NAME.conf"
kill -HUP "$PID"
wait_for "grep -q \"store.poll: .*can't be polled\" $(zswapd_log $NAME)" 10 ||
	fail "it was not said that polling can't be switched on"
zswapd_stop $NAME
ok "a drive without polled queues is found out"
test_end

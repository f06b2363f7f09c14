#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The ublk device as a block device: its limits, its queues and their threads, and that reads, writes,
# discards and flushes of all sizes do what they say.
# usage: test-ublk-io.sh CPUS
#
# CPUS names the machine's (--cpus of run.sh).  What does not depend on them is only done with two.
# guest: --memory 512 --drive 256M --limit 240 --program fio --program blkdiscard --program fallocate
# guest: --program blockdev --program dd
set -euo pipefail
. "$(dirname "$0")/lib.sh"
cpus=$1
gib=$((1 << 18)) # in pages
map=/tmp/map
[ "$(nproc)" -eq "$cpus" ] || fail "there are $(nproc) CPUs, must be $cpus"
# By path: busybox's timeout would run its own.
blkdiscard=/usr/bin/blkdiscard fallocate=/usr/bin/fallocate dd=/usr/bin/dd

# --- what the kernel makes of it, with a thread for each queue on its CPUs ----------------------------

# is ATTRIBUTE VALUE
is()
{
	local value
	value=$(cat "/sys/block/$disk/$1") || fail "there is no $1"
	[ "$value" = "$2" ] || fail "$1 is '$value', must be '$2'"
}

# The CPUs in a list such as "0-2,5" or "0, 1", one a line.
list_cpus()
{
	tr -d ' \n' <<<"$1" | tr ',' '\n' | while IFS=- read -r first last || [ -n "$first" ]; do
		seq "$first" "${last:-$first}"
	done
}

# start QUEUES GIB: with [device] queues, 0 for one a CPU.
start()
{
	local queues=$1 expected share threads=0 task name wanted actual mq
	TRANSPORT=ublk zswapd_start io device.size="$2G" device.queues="$queues" swap.enable=no memory.limit=32M \
		memory.level=1 store.path=/dev/drive0
	device=$(realpath "$DEVICE")
	disk=${device#/dev/}
	[[ $device == /dev/ublkb* ]] || fail "$device is no ublk device"

	is size $(($2 * gib * 8))
	is ro 0
	is queue/logical_block_size 4096
	is queue/physical_block_size 4096
	is queue/minimum_io_size 4096
	is queue/optimal_io_size 4096
	is queue/rotational 0
	is queue/write_cache "write through"
	is queue/fua 0
	is queue/discard_granularity 4096
	is discard_alignment 0
	is queue/max_sectors_kb 128
	is queue/max_hw_sectors_kb 128
	is queue/nr_requests 31 # one tag stays unused
	is queue/read_ahead_kb 0
	grep -q '\[none\]\|^none$' "/sys/block/$disk/queue/scheduler" ||
		fail "scheduler is '$(cat "/sys/block/$disk/queue/scheduler")'"
	is queue/discard_max_bytes $((64 << 20))
	is queue/write_zeroes_max_bytes $((64 << 20))

	expected=$((queues && queues < cpus ? queues : cpus))
	# Each has buffers, which a small machine needs for other things.
	share=$(awk '$1 == "MemTotal:" { print int($2 / 131072) }' /proc/meminfo)
	((queues || expected <= share)) || expected=$share
	mq=("/sys/block/$disk/mq/"*)
	[ ${#mq[@]} -eq "$expected" ] || fail "there are ${#mq[@]} queues, must be $expected"
	for task in /proc/"$(zswapd_pids io worker)"/task/*; do
		name=$(cat "$task/comm")
		[[ $name == zswapd-data[0-9]* ]] || continue
		threads=$((threads + 1))
		wanted=$(list_cpus "$(cat "/sys/block/$disk/mq/${name#zswapd-data}/cpu_list")")
		actual=$(list_cpus "$(awk '$1 == "Cpus_allowed_list:" { print $2 }' "$task/status")")
		[ "$wanted" = "$actual" ] ||
			fail "$name may run on ${actual//$'\n'/ }, its queue is that of ${wanted//$'\n'/ }"
	done
	[ $threads -eq "$expected" ] || fail "$threads data threads, must be $expected"
	ok "limits, and $threads queues on $cpus CPUs"
}

start 1 1
zswapd_stop io
start 8 1
zswapd_stop io
start 0 64

# --- reads and writes --------------------------------------------------------------------------------

# run JOB OPTION...
run()
{
	local status=0
	bounded 120 fio --filename="$device" --allow_file_create=0 --direct=1 --ioengine=io_uring --verify=crc32c \
		--verify_fatal=1 --verify_dump=0 --aux-path=/tmp --thread --refill_buffers \
		--buffer_compress_percentage=50 --buffer_compress_chunk=4k "$@" >/tmp/fio.out 2>/tmp/fio.log || status=$?
	[ $status -eq 0 ] || {
		cat /tmp/fio.out /tmp/fio.log >&2
		fail "fio ended with status $status: $*"
	}
}

written=$(counter io pages_written_total)
# More in flight than a queue has tags, and requests that the kernel has to cut.
run --name=deep --numjobs=2 --size=8m --offset_increment=8m --rw=randwrite --bs=4k --iodepth=64
run --name=large --size=16m --offset=16m --rw=randwrite --bsrange=4k-1m --blockalign=4k --iodepth=16
[ $(($(counter io pages_written_total) - written)) -eq 8192 ] || fail "not every page arrived once"
# Neighbours are discarded and written meanwhile, and some writes are flushed.
run --name=mixed --size=8m --rw=randrw --bsrange=4k-64k --blockalign=4k --iodepth=16 --fsync=16 \
	--verify_backlog=128 \
	--name=trims --verify=0 --ioengine=psync --offset=8m --size=8m --rw=randtrim --bs=16k
check_counters io
[ "$(counter io pages_read_stored_total)" -eq 0 ] || echo "some pages were read from the store"
$blkdiscard "$device"
[ "$(counter io slots_used)" -eq 0 ] || fail "$(counter io slots_used) slots are used after all was discarded"
ok "reads and writes"
end()
{
	local counter
	check_counters io
	for counter in checksum_failures_total writes_rejected_total slots_lost; do
		[ "$(counter io $counter)" -eq 0 ] || fail "$counter is $(counter io $counter)"
	done
	zswapd_stop io
	[ ! -e "$device" ] || fail "$device is left"
	[ ! -e "${device/ublkb/ublkc}" ] || fail "${device/ublkb/ublkc} is left"
	test_end
	exit 0
}
[ "$cpus" -eq 2 ] || end

# --- discards and zeroes, page by page and by the gigabyte ----------------------------------------------

# put PAGE COUNT: written with what `slots` can check.
put()
{
	slots write "$device" $map "$1" "$2" 1 mix 64 >/tmp/slots.out || fail "writing: $(cat /tmp/slots.out)"
}

# check PAGE COUNT
check()
{
	slots verify "$device" $map "$1" "$2" mix list >/tmp/slots.out || fail "pages $1 to $(($1 + $2)): $(cat /tmp/slots.out)"
	grep -q "^right $2 wrong 0 ioerror 0" /tmp/slots.out || fail "pages $1 to $(($1 + $2)): $(cat /tmp/slots.out)"
}

# What `slots` is to find zeroes in: a page, or those below $used that lie in the range.
forget()
{
	local page first=-1 next=-1
	# Runs of pages, each at one go; the last one is no page.
	for page in "${used[@]}" -1; do
		if ((page >= 0 && (page < $1 || page >= $1 + $2))); then
			continue
		fi
		if ((page != next)); then
			((first < 0)) || dd if=/dev/zero of=$map bs=1 seek="$first" count=$((next - first)) conv=notrunc \
				status=none
			first=$page
		fi
		next=$((page + 1))
	done
}

# drops EXPECTED PAGE COUNT COMMAND...: COMMAND makes so many used pages zeroes, the others stay.
drops()
{
	local expected=$1 first=$2 count=$3 before slots_before
	shift 3
	before=$(counter io pages_discarded_total)
	slots_before=$(counter io slots_used)
	need bounded 60 "$@"
	[ $(($(counter io pages_discarded_total) - before)) -eq "$expected" ] ||
		fail "$(($(counter io pages_discarded_total) - before)) pages were discarded, must be $expected: $*"
	[ $((slots_before - $(counter io slots_used))) -eq "$expected" ] || fail "slots_used does not follow: $*"
	forget "$first" "$count"
}

bytes()
{
	echo $(($1 * 4096))
}

used=()
for ((page = 0; page < 512; page++)); do used+=("$page"); done
put 0 512
drops 1 0 1 $blkdiscard --offset 0 --length 4096 "$device"
drops 1 77 1 $blkdiscard --offset "$(bytes 77)" --length 4096 "$device"
drops 0 77 1 $blkdiscard --offset "$(bytes 77)" --length 4096 "$device"
drops 1 78 1 $blkdiscard --zeroout --offset "$(bytes 78)" --length 4096 "$device"
drops 1 80 1 $fallocate --zero-range --offset "$(bytes 80)" --length 4096 "$device"
drops 1 82 1 $fallocate --punch-hole --offset "$(bytes 82)" --length 4096 "$device"
drops 100 130 100 $blkdiscard --offset "$(bytes 130)" --length "$(bytes 100)" "$device"
drops 100 300 100 $blkdiscard --zeroout --offset "$(bytes 300)" --length "$(bytes 100)" "$device"
check 0 512
ok "discards of pages"

# A few pages at each side of every border that a 32-bit length or offset may have, and at the end.
used=()
last=$((64 * gib - 4))
for at in 1 2 4 8 12 16 32; do
	put $((at * gib - 4)) 8
	for ((page = at * gib - 4; page < at * gib + 4; page++)); do used+=("$page"); done
done
put $last 4
for ((page = last; page < last + 4; page++)); do used+=("$page"); done
all()
{
	for at in 1 2 4 8 12 16 32; do
		check $((at * gib - 4)) 8
	done
	check $last 4
}
all
# 3 GiB from 1 GiB on: the upper four at 1, all at 2, the lower four at 4.
drops 16 $((1 * gib)) $((3 * gib)) $blkdiscard --offset "$(bytes $((1 * gib)))" --length "$(bytes $((3 * gib)))" "$device"
all
# 5 GiB less two pages, more than a request can be.
drops 11 $((8 * gib + 1)) $((5 * gib - 2)) $blkdiscard --zeroout --offset "$(bytes $((8 * gib + 1)))" \
	--length "$(bytes $((5 * gib - 2)))" "$device"
all
drops 1 $((last + 3)) 1 $blkdiscard --offset "$(bytes $((last + 3)))" --length 4096 "$device"
all
# 2 GiB to the byte, from a border on.
drops 4 $((16 * gib)) $((2 * gib)) $blkdiscard --offset "$(bytes $((16 * gib)))" --length "$(bytes $((2 * gib)))" "$device"
all
left=$(counter io slots_used)
drops "$left" 0 $((64 * gib)) $blkdiscard "$device"
all
[ "$(counter io slots_used)" -eq 0 ] || fail "slots are used after all was discarded"
ok "discards of gigabytes"

# --- flushes, and what the block layer refuses ------------------------------------------------------------

used=(5 6)
put 5 2
need bounded 30 /usr/bin/blockdev --flushbufs "$device"
need bounded 30 $dd if=/dev/urandom of="$device" bs=1M count=2 seek=8 conv=fsync status=none
read_before=$(counter io pages_read_total)
need bounded 30 $dd if="$device" of=/tmp/read bs=2M count=1 skip=4 iflag=direct status=none
[ $(($(counter io pages_read_total) - read_before)) -eq 512 ] || fail "not every page was read once"
# Again through the page cache.
bounded 30 $dd if="$device" bs=1M count=2 skip=8 status=none | cmp - /tmp/read || fail "two reads of the same differ"
for command in "$dd if=$device of=/dev/null bs=512 count=1 iflag=direct" \
	"$dd if=/dev/zero of=$device bs=512 count=1 seek=40 oflag=direct conv=notrunc" \
	"$blkdiscard --offset 512 --length 4096 $device" \
	"$blkdiscard --zeroout --offset 20480 --length 512 $device"; do
	# shellcheck disable=SC2086
	! bounded 30 $command 2>/tmp/refused || fail "must be refused: $command"
	grep -q 'Invalid argument\|is not aligned' /tmp/refused || fail "$command: $(cat /tmp/refused)"
done
# A part of a page, by way of the page cache: the rest stays.
dd if="$device" of=/tmp/page bs=4k skip=6 count=1 iflag=direct status=none
printf 'middle' | dd of=/tmp/page bs=1 seek=2048 conv=notrunc status=none
printf 'middle' | dd of="$device" bs=1 seek=$((6 * 4096 + 2048)) conv=notrunc,fsync status=none
dd if="$device" bs=4k skip=6 count=1 iflag=direct status=none | cmp - /tmp/page || fail "a part of a page"
check 5 1
[ "$(bounded 30 $dd if="$device" bs=4k skip=$((64 * gib)) iflag=direct status=none 2>/dev/null | wc -c)" -eq 0 ] ||
	fail "there is something behind the end"
ok "flushes, parts of pages, unaligned requests"

end

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# fio reads back what it wrote, in requests of all sizes, with trims between, from memory and, when
# everything has been pushed out, from the store.
set -euo pipefail
# shellcheck source=tests/lib/zswapd.sh
. "$(dirname "$0")/../lib/zswapd.sh"

test_begin fio blkdiscard
zswapd_start "$TEST_NAME" device.size=320M swap.enable=no memory.limit=24M memory.level=1 \
	store.path="$TEST_DIR/store" store.size=384M

# run JOB OPTION...: one job file, on its own part of the device.
run()
{
	local status=0
	bounded 150 fio --filename="$DEVICE" --allow_file_create=0 --direct=1 \
		--ioengine=io_uring --bs_unaligned=0 --verify=crc32c --verify_fatal=1 --randrepeat=1 \
		--verify_dump=0 --aux-path="$TEST_DIR" "$@" >"$TEST_DIR/fio.out" 2>"$TEST_DIR/fio.log" || status=$?
	[ $status -eq 0 ] || {
		cat "$TEST_DIR/fio.out" >&2
		fail "fio ended with status $status: $*"
	}
}

# Random sizes, several jobs on parts of their own, half of each page compresses.
common=(--name=mixed --numjobs=4 --size=60m --offset_increment=60m --bsrange=4k-128k --blockalign=4k
	--iodepth=16 --buffer_compress_percentage=50
	--buffer_compress_chunk=4k --refill_buffers)
run "${common[@]}" --rw=randwrite
written=$(counter "$TEST_NAME" pages_written_total)
[ "$written" -ge 61440 ] || fail "only $written pages written"
check_counters "$TEST_NAME"

# Reads and writes mixed over what is there; writes that are verified while others go on.
run --name=rw --numjobs=4 --size=60m --offset_increment=60m --bsrange=4k-128k --blockalign=4k \
	--iodepth=16 --rw=randrw --rwmixread=60 --verify_backlog=256 --time_based --runtime=6

# Trims beside verified writes.  What is trimmed reads as zeroes; fio itself does not check that.
run --name=fill --offset=240m --size=60m --bs=128k --iodepth=4 --rw=write --do_verify=0 --refill_buffers
run --name=verified --size=120m --bsrange=4k-64k --blockalign=4k --iodepth=8 --rw=randwrite \
	--buffer_compress_percentage=60 --refill_buffers \
	--name=trims --ioengine=psync --verify=0 --offset=240m --size=60m --bs=16k --rw=randtrim
[ "$(counter "$TEST_NAME" pages_discarded_total)" -eq 15360 ] || fail "not all trims arrived"
bounded 60 "$SLOTS" verify "$DEVICE" "$TEST_DIR/map" 61440 15360 mix list ||
	fail "trimmed pages do not read as zeroes"

# Written again, pushed out by other pages, and verified without writing.
run "${common[@]}" --rw=randwrite --do_verify=0
before=$(counter "$TEST_NAME" pages_read_stored_total)
read_before=$(counter "$TEST_NAME" pages_read_total)
run --name=push --offset=240m --size=80m --bs=128k --iodepth=4 --rw=write --do_verify=0 --refill_buffers \
	--buffer_compress_percentage=50 --buffer_compress_chunk=4k
run "${common[@]}" --rw=randwrite --verify_only
stored=$(($(counter "$TEST_NAME" pages_read_stored_total) - before))
read=$(counter "$TEST_NAME" pages_read_total)
[ "$stored" -gt 20000 ] || fail "only $stored pages of $((read - read_before)) read were in the store"
check_counters "$TEST_NAME"
[ "$(counter "$TEST_NAME" checksum_failures_total)" -eq 0 ] || fail "checksum failures"
[ "$(counter "$TEST_NAME" writes_rejected_total)" -eq 0 ] || fail "writes rejected"

zswapd_stop "$TEST_NAME"
test_end

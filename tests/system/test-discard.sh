#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Memory comes back: by discard, by write-zeroes, and when a program frees what was swapped.
set -euo pipefail
# shellcheck source=tests/lib/zswapd.sh
. "$(dirname "$0")/../lib/zswapd.sh"

test_begin blkdiscard xz sqlite3
test_swaps
n=$TEST_NAME
map=$TEST_DIR/map

# Bytes that the front tier's memfd really holds.
memfd_bytes()
{
	local fd worker
	worker=$(zswapd_pids "$n" worker)
	for fd in /proc/"$worker"/fd/*; do
		case $(readlink "$fd") in
		/memfd:*front*) stat -L -c '%i %b %B' "$fd" ;;
		esac
	done | sort -u | awk '{ sum += $2 * $3 } END { printf "%d\n", sum }'
}

used()
{
	counter "$n" memory_used_bytes
}

zswapd_start "$n" device.size=128M swap.enable=no memory.limit=96M

# 64 MiB that do not compress.
bounded 60 "$SLOTS" write "$DEVICE" "$map" 0 16384 1 random 32 >/dev/null || fail "writing"
full=$(used)
[ "$full" -ge $((64 << 20)) ] || fail "64 MiB take $full bytes"
[ "$(memfd_bytes)" -ge $((64 << 20)) ] || fail "the memfd holds $(memfd_bytes) bytes"

# The last three quarters, half by discard and half by write-zeroes.  All at once, far more than
# any single request of the transport carries.
bounded 60 blkdiscard --offset $((16 << 20)) --length $((24 << 20)) "$DEVICE"
bounded 60 blkdiscard --zeroout --offset $((40 << 20)) --length $((24 << 20)) "$DEVICE"
[ "$(counter "$n" pages_discarded_total)" -eq 12288 ] || fail "not every page was discarded"
[ "$(counter "$n" slots_used)" -eq 4096 ] || fail "$(counter "$n" slots_used) slots are used, not 4096"
wait_counter "$n" memory_used_bytes -lt $((32 << 20)) 20
# shellcheck disable=SC2016
wait_for '[ "$(memfd_bytes)" -lt $((32 << 20)) ]' 5 || fail "the memfd still holds $(memfd_bytes) bytes"

# Zeroes where it was, the rest as written.
bounded 60 "$SLOTS" verify "$DEVICE" "$TEST_DIR/no-map" 4096 12288 random >"$TEST_DIR/out" ||
	fail "discarded pages: $(cat "$TEST_DIR/out")"
bounded 60 "$SLOTS" verify "$DEVICE" "$map" 0 4096 random >"$TEST_DIR/out" ||
	fail "pages that were not discarded: $(cat "$TEST_DIR/out")"
grep -q 'wrong 0 ioerror 0' "$TEST_DIR/out" || fail "$(cat "$TEST_DIR/out")"
bounded 60 blkdiscard "$DEVICE"
wait_counter "$n" slots_used -eq 0 5
check_counters "$n"
zswapd_stop "$n"

# program_frees DISCARD: a program is swapped out, frees its memory by ending.
program_frees()
{
	zswapd_start "$n" device.size=256M memory.limit=128M swap.discard="$1"
	if [ -z "$CGROUP" ]; then
		cgroup_new discard $((32 << 20))
		cgroup_patience "$CGROUP"
	fi
	cleanup_push zswapd_abort_dead "$n"
	bounded 100 "$PAGELOAD" --pages "$corpus" --size 128M --mode seq --verify --cgroup "$CGROUP" \
		--timeout 90 >"$TEST_DIR/load.log" 2>&1 || fail "pageload"
	[ "$(counter "$n" pages_written_total)" -gt 20000 ] || fail "hardly anything was swapped out"
}

corpus=${ZSWAPD_TEST_CORPUS:-$TEST_DIR/corpus.pages}
"$lib/../corpus/make-corpus.sh" "$corpus" 16 >"$TEST_DIR/corpus.log" 2>&1 || fail "no corpus"
program_frees pages
wait_freed "$n"
[ "$(counter "$n" pages_discarded_total)" -gt 10000 ] || fail "few discards arrived"
wait_counter "$n" memory_used_bytes -lt $((32 << 20)) 20
zswapd_stop "$n"

# Told not to, the kernel says nothing of what it frees.
program_frees off
[ "$(counter "$n" slots_used)" -gt 15000 ] || fail "slots became free without discard"
[ "$(counter "$n" pages_discarded_total)" -eq 0 ] || fail "discards arrived that are switched off"
zswapd_stop "$n"
test_end

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The whole machine is short of memory: a program needs twice what there is, no cgroup protects
# anybody, and all swap is zswapd's.  It finishes with every byte right, and the daemon never waits
# for its own swap.  What it sets in the kernel for that is set back in the end.
# usage: test-swap.sh TRANSPORT MIB [SWAPPINESS]
#
# MIB names the machine's memory (--memory of run.sh); the kernel keeps a part of it for itself.
# guest: --drive 2G --corpus 16
set -euo pipefail
. "$(dirname "$0")/lib.sh"
export TRANSPORT=$1
ram=$2
[ $# -lt 3 ] || echo "$3" >/proc/sys/vm/swappiness

boost=/proc/sys/vm/watermark_boost_factor
former=$(cat $boost)
[ "$former" -ne 0 ] || fail "$boost is 0 at the start"

zswapd_start swap device.size=$((ram * 5))M memory.limit=$((ram / 8))M store.path=/dev/drive0
grep -q "^$(realpath "$DEVICE") " /proc/swaps || fail "$DEVICE is not swap"
# With a few MiB of reclaimable pages left, multi-generation LRU calls the OOM killer while swap is
# nearly empty and nothing is under way to it; that is between the kernel and the machine's size.
if [ "$ram" -le 128 ] && [ -e /sys/kernel/mm/lru_gen/enabled ]; then
	echo 0 >/sys/kernel/mm/lru_gen/enabled
fi

watch_begin zswapd zswapd-worker zswapd-standby
[ "$(cat $boost)" -eq 0 ] || fail "$boost is not 0 while zswapd serves"

status=0
bounded 450 "$PAGELOAD" --pages /files/corpus.pages --corpus-limit $((ram / 32))M --size $((ram * 2))M \
	--verify --same word --threads 2 --mode random,rw --seconds 5 --timeout 440 --progress || status=$?
[ $status -eq 0 ] || fail "pageload ended with status $status"
ok "$((ram * 2)) MiB of verified pages in $ram MiB of memory"

check_counters swap
[ "$(counter swap pages_written_total)" -gt $((ram * 200)) ] || fail "hardly anything was swapped out"
[ "$(counter swap pages_read_total)" -gt $((ram * 200)) ] || fail "hardly anything was swapped in"
[ "$(counter swap pages_read_stored_total)" -gt 1000 ] || fail "nothing was read from the store"
for counter in checksum_failures_total writes_rejected_total slots_lost; do
	[ "$(counter swap $counter)" -eq 0 ] || fail "$counter is $(counter swap $counter)"
done
"$ZSWAPCTL" --device swap status
# Swap discards whole clusters of 512 pages, and what is left of other programs lies here and there.
wait_counter swap slots_used -lt $((ram * 512 / 10)) 20
watch_end
zswapd_stop swap
[ "$(cat $boost)" -eq "$former" ] || fail "$boost is $(cat $boost) in the end, was $former"
ok "stopped"
test_end

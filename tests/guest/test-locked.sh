#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# What must hold for every process of a daemon at any time: all of its memory is locked, none of it in
# swap, every thread of it, those of io_uring included, is marked as an I/O flusher, and the OOM killer
# passes it by; after the start, after takeovers, after an adoption.  Its data threads allocate nothing
# and take no page fault.
# usage: test-locked.sh TRANSPORT
# guest: --memory 384 --drive 512M --corpus 16 --limit 200
# guest: --built tests/lib/liballocwatch.so --built tests/lib/allocs-show
set -euo pipefail
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/lib/quiet.sh
. /zswapd/tests/lib/quiet.sh
export TRANSPORT=$1 ALLOCWATCH=/usr/bin/liballocwatch.so ALLOCS_SHOW=/usr/bin/allocs-show ALLOCS_FILE=/run/allocs
# include/linux/sched.h: PF_MEMALLOC_NOIO and PF_LOCAL_THROTTLE, which PR_SET_IO_FLUSHER sets.
WANTED=$((0x00080000 | 0x00100000))

# kib FILE NAME
kib()
{
	awk -v n="$2:" '$1 == n { print $2; found = 1 } END { exit !found }' "$1" || fail "$1 has no $2"
}

# VmLck counts addresses, holes of the front tier included, which nobody can swap out.  That all there
# is of a process is locked shows in its smaps: Locked is the part of Pss in locked mappings.
check_process()
{
	local what=$1 pid=$2 task flags name lck rss swap pss locked threads=0
	lck=$(kib /proc/$pid/status VmLck) rss=$(kib /proc/$pid/status VmRSS) swap=$(kib /proc/$pid/status VmSwap)
	pss=$(kib /proc/$pid/smaps_rollup Pss) locked=$(kib /proc/$pid/smaps_rollup Locked)
	for task in /proc/$pid/task/*; do
		read -r name <"$task/comm"
		flags=$(sed 's/.*) //' "$task/stat" | awk '{ print $7 }')
		[ $((flags & WANTED)) -eq $WANTED ] || fail "$what: thread $name of $pid is no I/O flusher: $flags"
		threads=$((threads + 1))
	done
	printf '%-10s %5d: %2d threads, kB: VmRSS %d VmLck %d VmSwap %d Pss %d Locked %d\n' \
		"$what" "$pid" $threads "$rss" "$lck" "$swap" "$pss" "$locked"
	[ "$swap" -eq 0 ] || fail "$what: $swap kB are in swap"
	[ "$(cat /proc/$pid/oom_score_adj)" -eq -1000 ] || fail "$what: the OOM killer may take it"
	# The kernel's own pages in it (vdso) are never locked, nor swapped out.
	[ $((lck + 64)) -ge "$rss" ] || fail "$what: $lck kB are locked, $rss are there"
	# What a ring shares with the kernel can't be swapped out, nor locked.
	[ $((pss - locked)) -le 1024 ] || fail "$what: $((pss - locked)) kB are not locked"
}

check_all()
{
	local what pids
	wait_standby locked
	echo "$1:"
	for what in supervisor worker standby; do
		pids=$(zswapd_pids locked $what)
		[[ $pids =~ ^[0-9]+$ ]] || fail "$1: pids of the $what: '$pids'"
		check_process $what "$pids"
	done
}

load()
{
	bounded 100 "$PAGELOAD" --pages /files/corpus.pages --size 64M --verify --same word --mode random,rw \
		--threads 2 --seconds 2 --cgroup "$CGROUP" --timeout 90 >"/results/load-$1.log" 2>&1 ||
		fail "the load $1: $(tail -n 3 "/results/load-$1.log")"
}

zswapd_config locked device.size=256M memory.limit=24M store.path=/dev/drive0
quiet_launch locked
zswapd_ready locked
cgroup_new load $((32 << 20))
check_all "after the start"
load first
worker=$(zswapd_pids locked worker)
quiet_note /results/worker "$worker"
load second
quiet_same "under load" /results/worker "$worker"
check_all "under swap"
ok "data threads of the first worker: nothing allocated, no faults"

for ((i = 1; i <= 2; i++)); do
	wait_standby locked
	quiet_note /results/standby "$STANDBY"
	(load "takeover$i") &
	load=$!
	sleep 1
	worker=$(zswapd_pids locked worker)
	kill -KILL "$worker"
	wait $load || fail "the load over takeover $i"
	[ "$(zswapd_pids locked worker)" = "$STANDBY" ] || fail "the standby $STANDBY has not taken over"
	echo "data threads, since they stood by: $(quiet_since /results/standby "$STANDBY")"
	awk '{ print $1, $2, $3, $4 }' /results/standby >/results/standby.allocs
	case $TRANSPORT in
	# Each maps its requests' descriptors, once.
	ublk) awk '{ print $1, $2, $3, $4 + 1 }' /results/standby >/results/standby.allocs ;;
	esac
	quiet_note /results/worker "$STANDBY"
	awk '{ print $1, $2, $3, $4 }' /results/worker | cmp -s - /results/standby.allocs ||
		fail "data threads that took over have allocated: $(cat /results/standby /results/worker)"
	check_all "after takeover $i"
done

kill -KILL "$PID"
wait "$PID" 2>/dev/null || true
quiet_launch locked
wait_for "grep -q 'is adopted' $(zswapd_log locked)" 20 || fail "the worker is not adopted"
check_all "after an adoption"
load adopted
check_all "after an adoption, under swap"
kill "$PID"
wait_for "has_ended $PID" 60 || fail "it does not end"
ok "$TRANSPORT: locked, marked and exempt, all of it"
test_end

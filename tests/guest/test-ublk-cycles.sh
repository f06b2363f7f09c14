#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Started and stopped again and again: most times idle, some with a program that reads the device
# meanwhile, some with swap, some killed, so that the next one has to clear a dead device away.  Nothing
# is left, neither in the kernel.
# usage: test-ublk-cycles.sh COUNT
# guest: --memory 384 --program dd
set -euo pipefail
. "$(dirname "$0")/lib.sh"
count=$1
warm_up=20 # cycles after which the kernel has what it keeps
# Whoever reads when the device goes gets an error.
expect_kernel 'error.*ublkb0'
device=/dev/ublkb0
for swap in no yes; do
	TRANSPORT=ublk zswapd_config cycle device.size=64M memory.limit=64M swap.enable=$swap
	mv "$TEST_DIR/cycle.conf" "$TEST_DIR/$swap.conf"
done

# One that is ready, without a process or a pause more than it takes.
start()
{
	local line
	exec {said}< <(exec "$ZSWAPD" --config "$TEST_DIR/$1.conf" 2>&1)
	PID=$!
	while read -r -t 60 line <&"$said"; do
		case $line in
		*'zswapd: ready: '*) return 0 ;;
		*) echo "$line" >>"$TEST_DIR/last.log" ;;
		esac
	done
	fail "cycle $n: the daemon did not become ready"
}

# ended STATUS
ended()
{
	local status=0 line
	while read -r -t 60 line <&"$said"; do
		echo "$line" >>"$TEST_DIR/last.log"
	done
	exec {said}<&-
	wait "$PID" || status=$?
	[ $status -eq "$1" ] || fail "cycle $n: the daemon ended with status $status, must be $1"
}

# The kernel's memory in kB, once what can be given back has been; tasks that are no workers.
measure()
{
	local comm tasks=0
	sync
	for comm in 1 2 3; do
		echo 3 >/proc/sys/vm/drop_caches
		sleep 0.3
	done
	while read -r comm; do
		[[ $comm == kworker* ]] || tasks=$((tasks + 1))
	done < <(cat /proc/[0-9]*/comm 2>/dev/null)
	# To see who has grown, should it be too much.
	cp /proc/slabinfo "$TEST_DIR/slabinfo.$n"
	awk -v tasks=$tasks '{ v[$1] = $2 } END {
		print v["Slab:"] - v["SReclaimable:"], v["SReclaimable:"], v["Percpu:"], v["VmallocUsed:"], tasks
	}' /proc/meminfo
}

reader=
killed=0
began=$SECONDS
for ((n = 1; n <= count; n++)); do
	: >"$TEST_DIR/last.log"
	kind=plain
	case $((n % 10)) in
	3 | 8) kind=reading ;;
	6) kind=killed ;;
	9) kind=swap ;;
	esac
	if [ $kind = swap ]; then start yes; else start no; fi
	[ -b $device ] || fail "cycle $n: $device is not there"
	if [ $kind = reading ]; then
		while /usr/bin/dd if=$device of=/dev/null bs=128k iflag=direct status=none; do :; done 2>/dev/null &
		reader=$!
		# Until it is at it.
		while read -r _ _ _ _ _ _ _ _ busy _ <"/sys/block/${device#/dev/}/stat" && [ "$busy" -eq 0 ] &&
			[ -d "/proc/$reader" ]; do :; done
	fi
	if [ $kind = killed ]; then
		daemon_killed "$TEST_DIR/no.conf" || true
		ended 137
		killed=$((killed + 1))
	else
		kill "$PID"
		ended 0
		[ ! -e $device ] || fail "cycle $n: $device is left"
		[ ! -e /dev/ublkc0 ] || [ $kind = reading ] || fail "cycle $n: /dev/ublkc0 is left"
		[ ! -L /dev/zswap/cycle ] || fail "cycle $n: the link is left"
	fi
	if [ -n "$reader" ]; then
		wait $reader 2>/dev/null || true
		reader=
		wait_for '[ ! -e /dev/ublkc0 ]' 5 || fail "cycle $n: /dev/ublkc0 is left"
	fi
	[ "$n" -ne $warm_up ] || before=$(measure)
done
echo "$count cycles, $killed of them killed: $((SECONDS - began)) s"
[ $((count % 10)) -ne 6 ] || fail "the last one must not be a killed one"

after=$(measure)
echo "unreclaimable slab, reclaimable slab, percpu, vmalloc in kB, tasks: $before; after $count cycles: $after"
read -r slab reclaimable percpu vmalloc tasks <<<"$after"
read -r slab_before reclaimable_before percpu_before vmalloc_before tasks_before <<<"$before"
# A device that stays takes more than 10 kB.
[ $((slab - slab_before)) -lt 800 ] || fail "the kernel's memory grows"
[ $((reclaimable - reclaimable_before)) -lt 800 ] || fail "the kernel's caches grow"
[ $((percpu - percpu_before)) -lt 200 ] || fail "the kernel's percpu memory grows"
[ $((vmalloc - vmalloc_before)) -lt 500 ] || fail "the kernel's mappings grow"
[ "$tasks" -le $((tasks_before + 1)) ] || fail "tasks are left: $(cat /proc/[0-9]*/comm | sort | uniq -c | xargs)"
[ ! -e /dev/zswap ] || fail "/dev/zswap is left"
left=(/run/zswapd/*)
[ "${left[*]}" = /run/zswapd/cycle.lock ] || fail "left: ${left[*]}"
# With a device of any kind left, it would be in use.
need unload ublk_drv
ok "nothing is left"
test_end

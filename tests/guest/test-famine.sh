#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The whole machine is out of memory, swap is full, the OOM killer acts again and again, and meanwhile
# the daemon's processes are killed: the daemon is never the OOM killer's victim, it takes over, the
# machine goes on answering, and every page of who survives is right.
# usage: test-famine.sh TRANSPORT MIB CASE [OPTION]...      OPTION of famine, which see
#
#	worker	the worker is killed, a standby takes over
#	both	worker and standby, together and one after the other, which is not promised to go well: the
#		worker that is forked then needs memory, and nobody can swap out for it
#	bomb	a fork bomb, during which the worker is killed
#
# MIB names the machine's memory (--memory of run.sh).
# guest: --drive 1G --built tests/guest/famine
set -euo pipefail
. "$(dirname "$0")/lib.sh"
export TRANSPORT=$1
ram=$2
case $3 in
worker) options=(--rounds 1 --seconds 12 --kill worker --kills 5) ;;
both) options=(--rounds 2 --seconds 8 --kill both,worker,both,standby,worker --kills 12) ;;
bomb) options=(--rounds 1 --seconds 8 --bomb 1500 --kill worker --kills 3) ;;
*) fail "there is no case $3" ;;
esac
shift 3

# Who starts the daemon and asks it must outlive the others, too.
echo -1000 >/proc/self/oom_score_adj
expect_kernel 'Out of memory|oom-kill:|oom_reaper|page allocation failure'

zswapd_start famine device.size=${ram}M memory.limit=$((ram / 8))M store.path=/dev/drive0
is_swapping "$DEVICE" || fail "$DEVICE is not swap"
if [ "$ram" -le 128 ] && [ -e /sys/kernel/mm/lru_gen/enabled ]; then
	echo 0 >/sys/kernel/mm/lru_gen/enabled
fi

watch_begin zswapd zswapd-worker zswapd-standby
status=0
bounded 400 famine "${options[@]}" --patience 90000 "$@" "$(realpath "$DEVICE")" || status=$?
[ $status -eq 0 ] || fail "famine ended with status $status"
kill $TASKWATCH
wait $TASKWATCH || status=$?
cat /results/taskwatch >/results/watched
grep -E '[A-Z]{2}$|FLAGS|^longest' /results/watched || true
[ $status -eq 0 ] || fail "a process of the daemon was stuck, swapped out or not protected: see watched"
! dmesg | grep -E 'Killed process [0-9]+ \(zswapd' || fail "the OOM killer took a process of the daemon"
[ "$(head -n 1 /run/zswapd/famine.lock)" = "$PID" ] || fail "the supervisor is another one"
for counter in checksum_failures_total slots_lost; do
	[ "$(counter famine $counter)" -eq 0 ] || fail "$counter is $(counter famine $counter)"
done
echo "takeovers $(counter famine takeovers_total), written $(counter famine pages_written_total)," \
	"read $(counter famine pages_read_total), rejected $(counter famine writes_rejected_total)"
zswapd_stop famine
ok "out of memory with $TRANSPORT in $ram MiB: ${options[*]}"
test_end

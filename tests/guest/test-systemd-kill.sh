#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# zswapd under systemd while services have more pages than the machine has memory: a stop that is
# refused, a restart, an upgrade, and every process of the daemon killed.  Nothing is lost.
# usage: test-systemd-kill.sh RAM KILLS     in MiB, as in --memory; of each kind
# guest: --drive 1G --built tests/guest/holder
set -euo pipefail
. "$(dirname "$0")/lib-systemd.sh"
ram=$1
kills=$2

main_pid()
{
	unit_show zswapd MainPID
}

worker_pid()
{
	timeout 60 "$ZSWAPCTL" status 2>/dev/null | sed -n 's/^daemon .* pid \([0-9]*\),.*/\1/p'
}

# 0: it does not answer.
takeovers()
{
	timeout 60 "$ZSWAPCTL" stats --json 2>/dev/null |
		awk -F'[":, ]+' '$2 == "takeovers_total" { n = $3 } END { print n + 0 }'
}

# The unit is up, its supervisor is not process OLD, and the swap is the one that it was.
up_again()
{
	wait_for "[ \"\$(main_pid)\" != $1 ] && [ \"\$(unit_show zswapd ActiveState)\" = active ]" 60 ||
		stuck "zswapd is $(unit_show zswapd ActiveState)"
	wait_for '[ -n "$(worker_pid)" ]' 60 || stuck "zswapd does not answer"
	[ "$(realpath /dev/zswap/zswap0)" = "$DEVICE" ] || fail "the device has changed"
	[ "$(grep -c "^$DEVICE " /proc/swaps)" -eq 1 ] || fail "$DEVICE is not swap any more"
}

# still_right TEXT: nothing was lost, all that is churned included.
still_right()
{
	[ "$(counter zswap0 slots_lost)" -eq 0 ] || fail "$1: slots lost"
	[ "$(counter zswap0 checksum_failures_total)" -eq 0 ] || fail "$1: checksum failures"
	[ "$(unit_show holder-churn ActiveState)" = active ] || fail "$1: $(dmesg | grep holder)"
	ok "$1"
}

stop_refused()
{
	local worker supervisor
	worker=$(worker_pid)
	supervisor=$(main_pid)
	timeout 60 systemctl stop zswapd || true
	[ "$(unit_show zswapd Result)" = timeout ] || fail "the stop's result is $(unit_show zswapd Result)"
	[ "$(unit_show zswapd ActiveState)" = failed ] || fail "after the stop zswapd is $(unit_show zswapd ActiveState)"
	journal_has 'stop: refused: .* are swapped out and only .* would hold them'
	grep -q "^$DEVICE " /proc/swaps || fail "swap is off after a stop that was refused"
	[ "$(worker_pid)" = "$worker" ] || fail "the worker has gone with its supervisor"
	need timeout 60 systemctl start zswapd
	up_again "$supervisor"
	[ "$(worker_pid)" = "$worker" ] || fail "the worker was not adopted"
	journal_has "worker $worker serves zswap0 and is adopted"
	still_right "a stop was refused, and the next start adopted the worker"
}

restarted()
{
	local worker supervisor
	worker=$(worker_pid)
	supervisor=$(main_pid)
	timeout 60 systemctl restart zswapd || fail "systemctl restart"
	up_again "$supervisor"
	[ "$(worker_pid)" = "$worker" ] || fail "a restart without room has cost the worker"
	still_right "a restart adopted the worker"
}

upgraded()
{
	local worker supervisor before
	worker=$(worker_pid)
	supervisor=$(main_pid)
	before=$(takeovers)
	need timeout 60 "$ZSWAPCTL" upgrade
	wait_for "[ \"\$(takeovers)\" -gt $before ]" 40 || stuck "the upgraded daemon has not taken over"
	[ "$(main_pid)" = "$supervisor" ] || fail "the upgrade has changed the unit's process"
	[ "$(worker_pid)" != "$worker" ] || fail "the upgrade has not changed the worker"
	still_right "an upgrade in the service's sandbox"
}

supervisor_killed()
{
	local worker supervisor
	worker=$(worker_pid)
	supervisor=$(main_pid)
	need systemctl kill -s KILL --kill-who=main zswapd
	up_again "$supervisor"
	[ "$(worker_pid)" = "$worker" ] || fail "the worker was not adopted"
}

worker_killed()
{
	local before supervisor
	before=$(takeovers)
	supervisor=$(main_pid)
	need kill -KILL "$(worker_pid)"
	wait_for "[ \"\$(takeovers)\" -gt $before ]" 60 || stuck "nobody took over from the worker"
	[ "$(main_pid)" = "$supervisor" ] || fail "the supervisor has died with the worker"
}

all_killed()
{
	local before supervisor
	before=$(takeovers)
	supervisor=$(main_pid)
	need systemctl kill -s KILL --kill-who=all zswapd
	up_again "$supervisor"
	[ "$(takeovers)" -gt "$before" ] || fail "the pages were not taken over"
}

again()
{
	local i
	for ((i = 0; i < kills; i++)); do
		"$1"
		sleep 0.$((RANDOM % 9))
	done
	still_right "$1, $kills times"
}

configure $((ram / 6)) "${DRIVE}0"
# So long a refused stop takes.
mkdir -p /etc/systemd/system/zswapd.service.d
printf '[Service]\nTimeoutStopSec=4s\n' >/etc/systemd/system/zswapd.service.d/test.conf
need systemctl daemon-reload
need timeout 60 systemctl start zswapd
DEVICE=$(realpath /dev/zswap/zswap0)
hold still $((ram * 7 / 8))
hold churn $((ram / 4)) --churn
echo "$(swapped_mib) MiB of $ram MiB of RAM swapped"

stop_refused
restarted
upgraded
again supervisor_killed
again worker_killed
again all_killed

need timeout 100 systemctl stop holder-churn
held_right churn stopped
need timeout 100 systemctl stop holder-still
held_right still stopped
need timeout 60 systemctl stop zswapd
unit_is zswapd Result success
[ "$(wc -l </proc/swaps)" -eq 1 ] || fail "swap is on after the stop"
[ ! -e "$DEVICE" ] || fail "$DEVICE is left"
ok "all pages are right"
test_end

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# What docs/SECURITY.md promises, on a daemon that serves: which rights its processes and threads
# still have, a successor's too; what of it others can see and touch; that pages which were freed
# can't be read any more.
set -euo pipefail
# shellcheck source=tests/lib/zswapd.sh
. "$(dirname "$0")/../lib/zswapd.sh"

test_begin setpriv perl cmp
n=$TEST_NAME
store=$TEST_DIR/store
mask=$((1 << 21 | 1 << 14 | 1 << 24)) # CAP_SYS_ADMIN, CAP_IPC_LOCK, CAP_SYS_RESOURCE
before=$(awk '$1 == "Seccomp:" { print $2 }' /proc/self/status)

zswapd_config "$n" device.size=128M swap.enable=no memory.limit=32M store.path="$store" store.size=64M \
	security.seccomp=on
# Whatever root's umask is.
umask 0000
zswapd_launch "$n"
umask 0022
zswapd_ready "$n"

# field PID KEY
field()
{
	awk -v key="$2:" '$1 == key { print $2 }' "/proc/$1/status"
}

# Every thread of every process, but for the one that is only just being forked.
check_rights()
{
	local pid task key value
	for pid in $(zswapd_pids "$n"); do
		for task in "/proc/$pid/task"/*; do
			task=$pid/task/${task##*/}
			[ "$(field "$task" NoNewPrivs)" = 1 ] || fail "$(cat "/proc/$task/comm"): no_new_privs is not set"
			[ "$(field "$task" Seccomp)" = 2 ] || fail "$(cat "/proc/$task/comm"): has no filter"
			for key in CapInh CapPrm CapEff CapBnd CapAmb; do
				value=$((16#$(field "$task" $key)))
				[ $((value & ~mask)) -eq 0 ] || fail "$(cat "/proc/$task/comm"): $key is $(field "$task" $key)"
			done
			[ $((16#$(field "$task" CapEff) & 1 << 21)) -ne 0 ] || fail "$task: CAP_SYS_ADMIN is gone"
		done
	done
}

# The worker has its own on top of what it inherits.
filters()
{
	field "$(zswapd_pids "$n" "$1")" Seccomp_filters
}

has_all()
{
	[ "$(zswapd_pids "$n" | wc -w)" -eq 3 ] && [ "$(field "$(zswapd_pids "$n" worker)" Seccomp)" = 2 ]
}

wait_for has_all 30 || fail "there is no standby: $(zswapd_pids "$n")"
check_rights
note "filters: supervisor $(filters supervisor), worker $(filters worker), standby $(filters standby)"

# The file that is served is mounted nowhere, neither here nor in a namespace of theirs.
for pid in self $(zswapd_pids "$n"); do
	! grep -q 'fuse.zswapd' "/proc/$pid/mountinfo" || fail "the served file is mounted for $pid"
done
[ ! -e "/run/zswapd/$n.mount" ] || fail "there is a mount point"

# mode FILE MODE: it is root's, and no wider.
mode()
{
	[ "$(stat -c '%u %a' "$1")" = "0 $2" ] || fail "$1: owner and mode are $(stat -c '%u %a' "$1")"
}
mode /run/zswapd 755
mode "/run/zswapd/$n.sock" 600
mode "/run/zswapd/$n.lock" 600
mode "/run/zswapd/$n.port" 644
mode "$store" 600
mode /dev/zswap 755
[ "$(stat -L -c %a "$DEVICE")" = 660 ] || [ "$(stat -L -c %a "$DEVICE")" = 600 ] || fail "others can open $DEVICE"

install -m 0755 "$ZSWAPCTL" "$TEST_DIR/zswapctl"
chmod 0755 "$TEST_DIR"
as_nobody()
{
	setpriv --reuid 65534 --regid 65534 --clear-groups timeout 20 "$@"
}

# refused COMMAND...: nobody is not allowed to.
refused()
{
	! as_nobody "$@" >"$TEST_DIR/said" 2>&1 || fail "nobody can: $*"
}
refused "$TEST_DIR/zswapctl" --device "$n" set memory.level 3
grep -q 'takes uid 0' "$TEST_DIR/said" || fail "refused for another reason: $(cat "$TEST_DIR/said")"
refused "$TEST_DIR/zswapctl" --device "$n" reload
refused "$TEST_DIR/zswapctl" --device "$n" writeback
as_nobody "$TEST_DIR/zswapctl" --device "$n" status >/dev/null || fail "nobody can't ask"
refused head -c 4096 "$store"
refused head -c 4096 "$DEVICE"
refused perl -MSocket -e 'socket(my $s, AF_UNIX, SOCK_SEQPACKET, 0) or exit 0;
	exit !connect($s, sockaddr_un($ARGV[0]))' "/run/zswapd/$n.sock"
for pid in $(zswapd_pids "$n"); do
	refused ls "/proc/$pid/fd"
	refused head -c 1 "/proc/$pid/maps"
done

# freed OFFSET_MIB: reads as zeroes, all 4 MiB of it.
freed()
{
	bounded 30 dd if="$DEVICE" of="$TEST_DIR/read" bs=1M skip="$1" count=4 iflag=direct status=none
	cmp -s -n $((4 << 20)) "$TEST_DIR/read" /dev/zero || fail "what was freed at $1 MiB can be read"
}

# A secret in memory and in the store, discarded, with others' pages all around it.
perl -e 'for (my $i = 0; $i < 1024; $i++) { my $p = ""; $p .= pack("N", rand(2**32)) for 1 .. 512; print "SECRET:", substr($p x 2, 0, 4089) }' >"$TEST_DIR/secret"
for at in 0 16 32 48 64; do
	bounded 30 dd if="$TEST_DIR/secret" of="$DEVICE" bs=1M seek=$at oflag=direct status=none
done
bounded 60 "$ZSWAPCTL" --device "$n" writeback >/dev/null
bounded 30 dd if="$TEST_DIR/secret" of="$DEVICE" bs=1M seek=80 oflag=direct status=none
for at in 0 32 64 80; do
	bounded 30 blkdiscard -o $((at << 20)) -l $((4 << 20)) "$DEVICE"
done
for at in 0 32 64 80 96; do
	freed $at
done
bounded 30 dd if="$DEVICE" of="$TEST_DIR/read" bs=1M skip=48 count=4 iflag=direct status=none
cmp -s "$TEST_DIR/read" "$TEST_DIR/secret" || fail "what was not freed is gone"
bounded 60 "$ZSWAPCTL" --device "$n" check >/dev/null || fail "the check finds something"

# A successor has no more, and its pages are there; nor has another supervisor.
worker=$(zswapd_pids "$n" worker)
zswapd_kill "$n" worker
other()
{
	has_all && [ "$(zswapd_pids "$n" worker)" != "$worker" ]
}
wait_for other 30 || fail "nobody took over"
wait_for "timeout 20 $ZSWAPCTL --device $n status >/dev/null" 30 || fail "the successor does not answer"
sleep 0.5
check_rights
freed 0
bounded 30 dd if="$DEVICE" of="$TEST_DIR/read" bs=1M skip=48 count=4 iflag=direct status=none
cmp -s "$TEST_DIR/read" "$TEST_DIR/secret" || fail "a page was lost"
note "filters: supervisor $(filters supervisor), worker $(filters worker), standby $(filters standby)"

# A configuration that others can write to is not read again.
chmod 0646 "$TEST_DIR/$n.conf"
! timeout 20 "$ZSWAPCTL" --device "$n" reload >"$TEST_DIR/said" 2>&1 || fail "it read a file that others can write to"
grep -q 'others can write to it' "$TEST_DIR/said" || fail "refused for another reason: $(cat "$TEST_DIR/said")"
chmod 0644 "$TEST_DIR/$n.conf"
zswapd_stop "$n"
mode "$store" 600

# Without the filters, for who debugs.
zswapd_start "$n" device.size=16M swap.enable=no memory.limit=32M security.seccomp=off
for pid in $(zswapd_pids "$n"); do
	[ "$(field "$pid" Seccomp)" = "$before" ] || fail "there is a filter although it is off"
	[ "$(field "$pid" NoNewPrivs)" = 1 ] || fail "no_new_privs is not set"
done
zswapd_stop "$n"
test_end

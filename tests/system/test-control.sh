#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# zswapctl changes a daemon whose swap is in use, and the program that is swapped finds every byte
# again: every option that can change is set and read back, the limit goes down and up again, and
# jobs run beside it all.
# usage: test-control.sh [DIRECTORY]    (where to keep what was shown)
set -euo pipefail
# shellcheck source=tests/lib/zswapd.sh
. "$(dirname "$0")/../lib/zswapd.sh"

shown=${1-}
test_begin sqlite3 xz setpriv
test_swaps
n=$TEST_NAME

corpus=${ZSWAPD_TEST_CORPUS:-$TEST_DIR/corpus.pages}
"$lib/../corpus/make-corpus.sh" "$corpus" 16 >"$TEST_DIR/corpus.log" 2>&1 || fail "no corpus"

# ctl STATUS ARGUMENT...: zswapctl must end so; its output is in $TEST_DIR/said.
ctl()
{
	local want=$1 status=0
	shift
	timeout 60 "$ZSWAPCTL" --device "$n" "$@" >"$TEST_DIR/said" 2>&1 || status=$?
	[ $status -eq "$want" ] || fail "zswapctl $*: status $status, not $want: $(cat "$TEST_DIR/said")"
}

said()
{
	grep -q -- "$1" "$TEST_DIR/said" || fail "no '$1' in: $(cat "$TEST_DIR/said")"
}

# set KEY VALUE [SHOWN]: and it is so, as root sees it and as others do.
set_option()
{
	ctl 0 set "$1" "$2"
	said "^$1: "
	ctl 0 get "$1"
	[ "$(cat "$TEST_DIR/said")" = "${3:-$2}" ] || fail "$1 is $(cat "$TEST_DIR/said"), not ${3:-$2}"
}

zswapd_start "$n" device.size=512M memory.limit=96M store.path="$TEST_DIR/store" store.size=384M
is_swapping "$DEVICE" || fail "$DEVICE is not swap"
"$ZSWAPCTL" --device "$n" events >"$TEST_DIR/events" 2>&1 9>&- &
cleanup_pid $!

cgroup_new control $((64 << 20))
cgroup_patience "$CGROUP"
cleanup_push zswapd_abort_dead "$n"
"$PAGELOAD" --pages "$corpus" --size 256M --verify --same word --mode rw --seconds 25 \
	--cgroup "$CGROUP" --timeout 200 --report json >"$TEST_DIR/load.json" 2>"$TEST_DIR/load.log" 9>&- &
load=$!
cleanup_pid $load
wait_counter "$n" slots_used -gt 40000 60

under_load()
{
	! has_ended $load || fail "the load ended too soon: $(cat "$TEST_DIR/load.log")"
}

# Down, with what was above it written back when the command ends, and up again, where it is used.
for round in 1 2; do
	limit=$((24 << 20))
	ctl 0 set memory.limit 24M
	said '^memory.limit: .* -> 25165824 '
	[ $round -eq 2 ] || said '^shrink: [0-9.]* MiB of memory have become free$'
	[ -z "$shown" ] || cp "$TEST_DIR/said" "$shown/lowered-$round.txt"
	used=$(counter "$n" memory_used_bytes)
	[ "$used" -le $limit ] || fail "$used bytes are used, the limit is $limit"
	[ "$(counter "$n" memory_limit_bytes)" -eq $limit ] || fail "the limit is not $limit"
	under_load
	ctl 0 set memory.limit 64M
	[ "$(counter "$n" memory_limit_bytes)" -eq $((64 << 20)) ] || fail "the limit is not 64M"
	wait_counter "$n" memory_used_bytes -gt $((28 << 20)) 30
	under_load
done
ctl 5 set memory.limit 1M
said 'memory.limit'

# All that can change while it runs, and nothing that is not tried here.
set_option memory.limit 48M 50331648
set_option memory.reserve 6M 6291456
# 0 is what zswapd chooses; what that comes to is shown.
ctl 0 set memory.reserve 0
ctl 0 get memory.reserve
reserve=$(cat "$TEST_DIR/said")
if [ "$reserve" -lt $((1 << 20)) ] || [ $((reserve % (1 << 20))) -ne 0 ]; then
	fail "a reserve of $reserve bytes is in force"
fi
ctl 0 get
said "^memory.reserve *0, in force $reserve "
ctl 0 set memory.limit 50000000
ctl 0 get memory.limit
said "^$((47 << 20))\$"
set_option memory.limit 48M 50331648
set_option memory.level 3
set_option memory.level -3
set_option read.overlap off no
set_option read.overlap on yes
ctl 5 set store.poll spin
said "can't be polled"
set_option store.poll off
live=$("$ZSWAPCTL" --device "$n" get --json | sed -n 's/^  "\([a-z.]*\)": .*"live": true.*/\1/p' | sort | tr '\n' ' ')
[ "$live" = "memory.level memory.limit memory.reserve read.overlap store.poll " ] ||
	fail "options that change at run time and are not tested: $live"
ctl 5 set device.size 1G
said 'restart'
under_load

# Jobs beside it.
ctl 0 writeback 8M
said 'MiB of memory have become free'
ctl 0 compact
ctl 0 check
said 'pages verified, none damaged$'
under_load

# What is read back is what the files say.
ctl 0 reload
said '^memory.limit: 50331648 .* -> 100663296 '
ctl 0 get memory.limit
said '^100663296$'
ctl 0 reload
said '^nothing has changed$'
under_load

timeout 20 "$ZSWAPCTL" --device "$n" doctor >"$TEST_DIR/doctor" 2>&1 || true
grep -q '^\[ ok \] swap .*priority 32767' "$TEST_DIR/doctor" || fail "doctor does not see the swap: $(cat "$TEST_DIR/doctor")"
if [ -n "$shown" ]; then
	cp "$TEST_DIR/doctor" "$shown/doctor.txt"
	"$ZSWAPCTL" --device "$n" status >"$shown/status.txt"
	"$ZSWAPCTL" --device "$n" stats >"$shown/stats.txt"
fi

wait_for "has_ended $load" 120 || fail "the load does not end"
status=0
wait $load || status=$?
[ $status -eq 0 ] || fail "pageload ended with status $status: $(cat "$TEST_DIR/load.log")"
check_counters "$n"
[ "$(counter "$n" pages_read_stored_total)" -gt 1000 ] || fail "hardly anything came from the store"

for word in 'config_changed .*memory.limit: ' 'config_changed .*memory.level: 3 -> -3' 'job_finished .*check' limit_reached; do
	wait_for "grep -q '$word' $TEST_DIR/events" 10 || fail "no event '$word': $(cat "$TEST_DIR/events")"
done
[ -z "$shown" ] || cp "$TEST_DIR/events" "$shown/events.txt"

zswapd_stop "$n"
test_end

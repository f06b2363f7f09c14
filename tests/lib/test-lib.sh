#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The clean-up library undoes what was made: in reverse order, after a failure, with time limits.
# usage: test-lib.sh     (the cgroup part needs root and is skipped without)
# shellcheck disable=SC1091,SC2016,SC2015,SC2031
set -euo pipefail
export CLEANUP_TERM_SECONDS=1
lib=$(cd "$(dirname "$0")" && pwd)
export lib
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export dir

fail()
{
	echo "test-lib: $*" >&2
	exit 1
}

# run SCRIPT: a script that uses the library, on its own; sets status.
run()
{
	status=0
	bash -c "set -eu; . \"\$lib/cleanup.sh\"; . \"\$lib/cgroup.sh\"; $1" test 2>"$dir/err" || status=$?
}

run 'cleanup_push write_file "$dir/last" 1; cleanup_push eval "[ ! -e \$dir/last ] && : >\$dir/first"'
[ "$status" -eq 0 ] || fail "clean exit: $status"
[ -e "$dir/first" ] && [ -e "$dir/last" ] || fail "not in reverse order"

# The script fails, a step fails: the other steps run all the same and the status stays.
rm -f "$dir/last"
run 'cleanup_push write_file "$dir/last" 1; cleanup_push false; exit 7'
[ "$status" -eq 7 ] && [ -e "$dir/last" ] || fail "after exit 7: $status"
grep -q 'clean-up failed: false' "$dir/err" || fail "failing step not said"
run 'cleanup_push false'
[ "$status" -eq 1 ] || fail "failed clean-up counts as success"

# A process that ignores TERM, and one that is stopped.
run 'bash -c "trap : TERM; while :; do sleep 1; done" & echo $! >$dir/pid1; cleanup_pid $!
	sleep 100 & kill -STOP $!; echo $! >$dir/pid2; cleanup_pid $!'
[ "$status" -eq 0 ] || fail "processes: $status"
! kill -0 "$(cat "$dir/pid1")" 2>/dev/null || fail "process that ignores TERM lives"
! kill -0 "$(cat "$dir/pid2")" 2>/dev/null || fail "stopped process lives"

# One that has ended already, in a script that fails.
run 'true & cleanup_pid $!; wait; exit 3'
[ "$status" -eq 3 ] || fail "ended process: $status"
! grep -q 'clean-up failed' "$dir/err" || fail "clean-up of an ended process failed"

# Signals reach the clean-up.
rm -f "$dir/last"
run 'cleanup_push write_file "$dir/last" 1; kill -TERM $$; sleep 5'
[ "$status" -eq 143 ] && [ -e "$dir/last" ] || fail "after TERM: $status"

# Files are restored; waits are bounded.
echo before >"$dir/param"
run 'cleanup_sysfs "$dir/param"; echo after >"$dir/param"'
[ "$(cat "$dir/param")" = before ] || fail "parameter not restored"
start=$SECONDS
run 'wait_for false 1 || exit 9'
[ "$status" -eq 9 ] && [ $((SECONDS - start)) -le 3 ] || fail "wait_for: $status"
run 'wait_for true 0'
[ "$status" -eq 0 ] || fail "wait_for true"

# The lock: one at a time, with a bound, and gone with the script.
export SWAP_LOCK_FILE=$dir/lock
{ run '. "$lib/swap-lock.sh"; swap_lock; sleep 100 9>&- & echo $! >"$dir/pid1"; kill -KILL $$'; } 2>/dev/null
run '. "$lib/swap-lock.sh"; swap_lock 0; bash -c ". \"\$lib/cleanup.sh\"; . \"\$lib/swap-lock.sh\"; swap_lock 1" second 9>&- && exit 9
	exit 8'
kill "$(cat "$dir/pid1")"
[ "$status" -eq 8 ] || fail "swap_lock: $status: $(cat "$dir/err")"
grep -q 'second: test ([0-9]*) has held .*lock for 1 s' "$dir/err" || fail "holder of the lock not said"

if [ "$(id -u)" -ne 0 ] || ! (. "$lib/cleanup.sh" && trap - EXIT && . "$lib/cgroup.sh" && cgroup_root) >/dev/null; then
	echo "test-lib: no root or no memory cgroup, that part is skipped"
	exit 0
fi
run 'cgroup_new lib 64000000; echo "$CGROUP" >"$dir/cgroup"
	cgroup_run "$CGROUP" sleep 100 & wait_for "grep -q . $CGROUP/cgroup.procs" 5
	cgroup_run "$CGROUP" true; [ "$(cgroup_memory "$CGROUP")" -ge 0 ]; [ "$(cgroup_swapped "$CGROUP")" -eq 0 ]'
[ "$status" -eq 0 ] || fail "cgroup: $status: $(cat "$dir/err")"
[ ! -e "$(cat "$dir/cgroup")" ] || fail "cgroup left behind"
# The limit is a limit: without swap, twice of it must be killed.
if [ "$(wc -l </proc/swaps)" -gt 1 ]; then
	echo "test-lib: there is swap, the limit is not tried"
	exit 0
fi
run 'cgroup_new lib 64000000; cgroup_run "$CGROUP" perl -e "my \$x = q(x) x 128000000; print length \$x" >$dir/out'
[ "$status" -ne 0 ] || fail "128 MB in a cgroup of 64 MB"
# With patience it waits first, within the limit, and is killed when waiting has not helped.
if [ -e /sys/fs/cgroup/memory/memory.oom_control ]; then
	run 'cgroup_new lib 64000000; cgroup_patience "$CGROUP"
		cgroup_run "$CGROUP" perl -e "my \$x = q(x) x 128000000; print length \$x" >$dir/out & pid=$!
		wait_for "[ \$(cgroup_stalls $CGROUP) -gt 0 ]" 10 || exit 8
		! has_ended $pid || exit 9
		cgroup_memory "$CGROUP" >"$dir/charged"
		wait_for "has_ended $pid" 20 || exit 10
		! wait $pid || exit 11'
	[ "$status" -eq 0 ] || fail "patience: $status: $(cat "$dir/err")"
	[ "$(cat "$dir/charged")" -le 66000000 ] || fail "patience lifts the limit: $(cat "$dir/charged")"
fi

# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# A system test's daemon: configured, started, asked, and gone in the end whatever happens.
# Source it alone; it brings cleanup.sh, processes.sh, cgroup.sh and swap-lock.sh.
#
#   test_begin [PROGRAM]...     what every test begins with: root, FUSE, loop and the programs or a
#                               skip; $TEST_DIR
#   test_swaps                  follows in a test that swaps on: the machine's lock, kernel zswap off
#   test_end                    the last line of a test that passed
#   skip REASON                 ends the test as skipped
#   fail TEXT                   ends it as failed; the daemons' logs are shown
#
#   zswapd_config NAME SECTION.KEY=VALUE...   writes $TEST_DIR/NAME.conf, for transport $TRANSPORT (fuse)
#   zswapd_launch NAME [COMMAND...]   starts it, by COMMAND if given (which must become it), and
#                                     sets PID; returns at once
#   zswapd_ready NAME           waits until it has said so, fails if it does not, sets DEVICE
#   zswapd_start NAME SECTION.KEY=VALUE...    the three together
#   zswapd_stop NAME            TERM, and it must leave in order and leave nothing
#   zswapd_pids NAME [WHAT]...  pids of its supervisor, worker, standby, or of those that are named
#   zswapd_kill NAME [WHAT]...  SIGKILL to them, as processes.sh has it
#   zswapd_killed NAME          kills all of them and waits until they are gone
#   zswapd_log NAME             its log's path
#   bounded SECONDS COMMAND...  runs it for so long at most; a signal to the test is not kept waiting
#   counter NAME COUNTER        one figure of `zswapctl stats`
#   check_counters NAME         what must hold between them while nothing is in flight
#   wait_freed NAME             until no more slots are used than swap has pages there
#   wait_counter NAME COUNTER OP NUMBER SECONDS    OP as in test(1)
#
# From the environment: ZSWAPD, ZSWAPCTL, PAGELOAD, SLOTS (the binaries), ZSWAPD_TEST_DIR (where
# stores may lie, /var/tmp).  Device names begin with $TEST_NAME, the script's name with its pid.

# A runner gives a test half a second to end and then kills its process group: too little for
# swapoff.  So the test moves into a session of its own, is told when its starter has died, and
# cleans up in its own time.
if [ -z "${ZSWAPD_TEST_SESSION-}" ]; then
	export ZSWAPD_TEST_SESSION=1
	setpriv --pdeathsig TERM setsid "$0" "$@" &
	session=$!
	trap 'kill -TERM $session' TERM INT HUP
	until wait $session; status=$?; ! kill -0 $session 2>/dev/null; do
		:
	done
	exit $status
fi

lib=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/lib/cleanup.sh
. "$lib/cleanup.sh"
# shellcheck source=tests/lib/processes.sh
. "$lib/processes.sh"
# shellcheck source=tests/lib/cgroup.sh
. "$lib/cgroup.sh"
# shellcheck source=tests/lib/swap-lock.sh
. "$lib/swap-lock.sh"

# shellcheck disable=SC2034
TEST_NAME=$(basename "$0" .sh)-$$
TEST_DIR=
TEST_QUIET=
DEVICE=
PID=
declare -A ZSWAPD_PIDS ZSWAPD_LOOPS ZSWAPD_CONNECTIONS

skip()
{
	echo "skipped: $*"
	TEST_QUIET=1
	exit 77
}

fail()
{
	local name
	note "FAILED: $*"
	for name in "${!ZSWAPD_PIDS[@]}"; do
		[ -n "${ZSWAPD_PIDS[$name]}" ] || continue
		note "--- $name: $(timeout 5 "$ZSWAPCTL" --device "$name" stats --json 2>&1 |
			awk -F'[":, ]+' '$3 != 0 { printf "%s %s, ", $2, $3 }')"
	done
	note "--- /proc/swaps: $(tail -n +2 /proc/swaps | tr '\t\n' ' ;')"
	exit 1
}

test_end()
{
	TEST_QUIET=1
}

bounded()
{
	timeout -k 10 "$@" &
	wait $!
}

show_logs()
{
	local log
	[ -z "$TEST_QUIET" ] || return 0
	for log in "$TEST_DIR"/*.log; do
		[ -e "$log" ] || continue
		note "--- ${log##*/}, its end"
		tail -n 40 "$log" >&2
	done
}

test_begin()
{
	local program
	[ "$(id -u)" -eq 0 ] || skip "needs root"
	for program in losetup mkswap swapon swapoff perl "$@"; do
		command -v "$program" >/dev/null || skip "$program is not installed"
	done
	if [ ! -e /dev/fuse ] || [ ! -e /dev/loop-control ]; then
		skip "the kernel has no FUSE or no loop devices here"
	fi
	: "${ZSWAPD:?}" "${ZSWAPCTL:?}"
	TEST_DIR=$(mktemp -d -p "${ZSWAPD_TEST_DIR:-/var/tmp}" zswapd-test-XXXXXX)
	cleanup_push rm -rf "$TEST_DIR"
	cleanup_push show_logs
}

test_swaps()
{
	swap_lock 900
	if [ -e /sys/module/zswap/parameters/enabled ]; then
		cleanup_sysfs /sys/module/zswap/parameters/enabled
		echo N >/sys/module/zswap/parameters/enabled
	fi
}

zswapd_log()
{
	echo "$TEST_DIR/$1.log"
}

zswapd_config()
{
	local name=$1 setting key
	shift
	{
		printf '[device]\nname = %s\ntransport = %s\n[swap]\npriority = 32767\n' \
			"$name" "${TRANSPORT:-fuse}"
		for setting in "$@"; do
			key=${setting%%=*}
			printf '[%s]\n%s = %s\n' "${key%%.*}" "${key#*.}" "${setting#*=}"
		done
	} >"$TEST_DIR/$name.conf"
}

zswapd_launch()
{
	local name=$1
	shift
	: >"$TEST_DIR/$name.log"
	"$@" "$ZSWAPD" --config "$TEST_DIR/$name.conf" 2>"$TEST_DIR/$name.log" 9>&- &
	PID=$!
	ZSWAPD_PIDS[$name]=$PID
	ZSWAPD_LOOPS[$name]=
	ZSWAPD_CONNECTIONS[$name]=
	cleanup_push zswapd_undo "$name"
}

zswapd_ready()
{
	local name=$1
	wait_for "grep -q 'zswapd: ready: ' $TEST_DIR/$name.log || has_ended ${ZSWAPD_PIDS[$name]}" 60 || true
	grep -q 'zswapd: ready: ' "$TEST_DIR/$name.log" || fail "zswapd $name did not become ready"
	DEVICE=/dev/zswap/$name
	ZSWAPD_LOOPS[$name]=$(realpath "$DEVICE")
	[[ ${ZSWAPD_LOOPS[$name]} == /dev/loop* ]] || return 0
	# The file's file system has no mount any more; its number is the connection's too.
	ZSWAPD_CONNECTIONS[$name]=$(losetup -n -O BACK-MAJ:MIN "${ZSWAPD_LOOPS[$name]}" | sed 's/.*://; s/ //g')
}

zswapd_start()
{
	zswapd_config "$@"
	zswapd_launch "$1"
	zswapd_ready "$1"
}

zswapd_pids()
{
	local name=$1
	shift
	daemon_pids "$TEST_DIR/$name.conf" "$@"
}

zswapd_kill()
{
	local name=$1
	shift
	daemon_kill "$TEST_DIR/$name.conf" "$@"
}

zswapd_killed()
{
	wait_for "daemon_killed $TEST_DIR/$1.conf" 30 || fail "$1 can't be killed: $(zswapd_pids "$1")"
	wait "${ZSWAPD_PIDS[$1]}" 2>/dev/null || true
}

# Lets go whoever waits for a daemon that does not answer any more.
zswapd_abort()
{
	local dir=/sys/fs/fuse/connections mounted_here='' number=${ZSWAPD_CONNECTIONS[$1]}
	[ -n "$number" ] || return 0
	if ! is_mounted $dir; then
		mount -t fusectl none $dir || return 1
		mounted_here=1
	fi
	[ ! -e "$dir/$number/abort" ] || echo 1 >"$dir/$number/abort"
	[ -z "$mounted_here" ] || umount $dir
}

# Before programs are ended that may hang in its swap: register it after them.
zswapd_abort_dead()
{
	[ -n "${ZSWAPD_PIDS[$1]}" ] || return 0
	timeout 10 "$ZSWAPCTL" --device "$1" status >/dev/null || zswapd_abort "$1"
}

zswapd_undo()
{
	local name=$1 pid=${ZSWAPD_PIDS[$1]} loop=${ZSWAPD_LOOPS[$1]}
	[ -n "$pid" ] || return 0
	# PID may be somebody who starts it again.
	if ! CLEANUP_TERM_SECONDS=60 undo_pid "$pid" ||
		! CLEANUP_TERM_SECONDS=60 undo_daemon "$TEST_DIR/$name.conf"; then
		zswapd_abort "$name"
		undo_pid "$pid"
		undo_daemon "$TEST_DIR/$name.conf"
	fi
	zswapd_abort "$name"
	if [ -n "$loop" ] && [ "$(cat "/sys/block/${loop##*/}/loop/backing_file" 2>/dev/null)" = /device ]; then
		undo_swap "$loop"
		undo_loop "$loop"
	fi
	rm -f "/dev/zswap/$name" "/run/zswapd/$name".{lock,port,sock}
	rmdir /dev/zswap 2>/dev/null || true
}

# Nothing of NAME is left but the lock's file, which stays on purpose.
check_nothing_left()
{
	local name=$1 loop=${ZSWAPD_LOOPS[$1]}
	[ ! -L "/dev/zswap/$name" ] || fail "$name: its link is left"
	! grep -qF "/run/zswapd/$name" /proc/mounts || fail "$name: its mount is left"
	[ ! -e "/run/zswapd/$name.mount" ] || fail "$name: its mount point is left"
	[ ! -e "/run/zswapd/$name.port" ] || fail "$name: its port file is left"
	[ ! -e "/run/zswapd/$name.sock" ] || fail "$name: its socket is left"
	[ -z "$(zswapd_pids "$name")" ] || fail "$name: processes are left: $(zswapd_pids "$name")"
	[ ! -e "/sys/block/${loop##*/}/loop/backing_file" ] || fail "$name: $loop is still attached"
	! grep -q "^$loop " /proc/swaps || fail "$name: $loop is still swap"
	flock -n "/run/zswapd/$name.lock" true || fail "$name: its lock is held"
	rm -f "/run/zswapd/$name.lock"
}

zswapd_stop()
{
	local name=$1 pid=${ZSWAPD_PIDS[$1]} status=0
	kill "$pid"
	wait_for "has_ended $pid" 120 || fail "$name does not end"
	wait "$pid" || status=$?
	[ $status -eq 0 ] || fail "$name ended with status $status"
	grep -q 'zswapd: stopped$' "$TEST_DIR/$name.log" || fail "$name did not stop in order"
	ZSWAPD_PIDS[$name]=
	check_nothing_left "$name"
}

counter()
{
	timeout 10 "$ZSWAPCTL" --device "$1" stats --json |
		awk -F'[":, ]+' -v n="$2" '$2 == n { print $3; found = 1 } END { exit !found }' ||
		fail "no counter $2 of $1"
}

wait_counter()
{
	wait_for "[ \"\$(counter $1 $2)\" $3 $4 ]" "$5" ||
		fail "$1: $2 is $(counter "$1" "$2"), must be $3 $4"
}

# Pages that are used in NAME's device and not in the kernel's swap on it.  Others may swap to it too.
unfreed()
{
	local used
	used=$(awk -v d="${ZSWAPD_LOOPS[$1]}" '$1 == d { print $4 / 4 }' /proc/swaps)
	echo $(($(counter "$1" slots_used) - used))
}

# The kernel discards whole clusters of 512 pages; each CPU keeps some that are begun.
wait_freed()
{
	wait_for "[ \"\$(unfreed $1)\" -lt $((1600 + 512 * $(nproc))) ]" 20 ||
		fail "$1: $(unfreed "$1") pages are used that swap has freed"
}

check_counters()
{
	local wrong
	# Discards go on for a moment after a program has ended.
	wait_counter "$1" requests_in_flight -eq 0 10
	wrong=$(timeout 10 "$ZSWAPCTL" --device "$1" stats --json | awk -F'[":, ]+' '
		function must(ok, text) { if (!ok) print text }
		NF > 2 { v[$2] = $3 }
		END {
			kinds = v["slots_same_filled"] + v["slots_resident"] + v["slots_stored"] + v["slots_lost"]
			must(v["slots_used"] <= v["slots_total"], "more slots used than there are")
			must(v["slots_used"] == kinds, "slots used are not the sum of their kinds")
			must(v["slots_used"] <= v["pages_written_total"], "more slots used than written")
			must(v["memory_used_bytes"] <= v["memory_limit_bytes"], "memory above its limit")
			must(v["resident_compressed_bytes"] <= v["memory_used_bytes"], "more resident than memory")
			must(v["store_used_bytes"] <= v["store_size_bytes"], "store above its size")
			must(v["stored_compressed_bytes"] <= v["store_used_bytes"], "more stored than store used")
			kinds = v["pages_read_resident_total"] + v["pages_read_stored_total"]
			kinds += v["pages_read_same_filled_total"] + v["pages_read_empty_total"]
			must(v["pages_read_total"] >= kinds, "pages read by kind are more than pages read")
			must(v["store_read_errors_total"] == 0, "store read errors")
			must(v["store_write_errors_total"] == 0, "store write errors")
		}')
	[ -z "$wrong" ] || fail "$1: counters: $wrong"
}

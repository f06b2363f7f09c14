# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# What a guest script begins with:  . "$(dirname "$0")/lib.sh"
#
# It has all of tests/lib/zswapd.sh (which see: zswapd_start, zswapd_stop, counter, wait_for, fail, ...)
# with $TEST_DIR in /results, so that logs and configurations outlive the guest; of modules.sh; and
#
#   ok TEXT                     says what has been shown
#   need OP...                  fails, naming it, unless the command succeeds
#   watch_begin NAME...         watches the processes of these names (see taskwatch.c)
#   watch_end                   fails if one of them was stuck, swapped out or not protected
#   expect_kernel REGEX         kernel messages that are no failure from here on
#   kept_begin NAME             starts zswapd NAME by keeper, over ublk; sets keeper and device, which
#                               is swapped to.  The report is $TEST_DIR/NAME.report
#   kept_unharmed NAME          after kills: it is the same device, still swap, and no page is lost
#   kept_end                    ends keeper, and the daemon leaves in order, with its device
#   /dev/drive0, /dev/drive1, ...   the NVMe drives, in the order of run.sh's options
#   $TRANSPORT                  fuse (the default) or ublk, for zswapd_start
#
# Nothing has to be undone: the machine is switched off when the script ends.

export ZSWAPD_TEST_SESSION=1
# shellcheck source=tests/guest/modules.sh
. /zswapd/tests/guest/modules.sh
# shellcheck source=tests/lib/zswapd.sh
. /zswapd/tests/lib/zswapd.sh

TEST_DIR=/results
cleanup_push show_logs

ok()
{
	echo "ok: $*"
}

need()
{
	"$@" || fail "must succeed: $*"
}

expect_kernel()
{
	echo "$1" >>/results/.expect
}

watch_begin()
{
	taskwatch "$@" >/results/taskwatch &
	TASKWATCH=$!
}

watch_end()
{
	local status=0
	kill $TASKWATCH
	wait $TASKWATCH || status=$?
	cat /results/taskwatch
	[ $status -eq 0 ] || fail "a task was stuck, swapped out or not protected"
}

kept_begin()
{
	keeper "$TEST_DIR/$1.report" "$ZSWAPD" --config "$TEST_DIR/$1.conf" 2>"$TEST_DIR/$1.log" &
	keeper=$!
	wait_for "grep -qs '^ready 0 ' $TEST_DIR/$1.report" 60 || fail "the daemon did not become ready"
	device=$(realpath "/dev/zswap/$1")
	[[ $device == /dev/ublkb* ]] || fail "$device is no ublk device"
	grep -q "^$device " /proc/swaps || fail "$device is not swap"
}

kept_unharmed()
{
	[ "$(realpath "/dev/zswap/$1")" = "$device" ] || fail "the device has changed"
	[ "$(grep -c "^$device " /proc/swaps)" -eq 1 ] || fail "$device is not swap any more"
	[ "$(counter "$1" checksum_failures_total)" -eq 0 ] || fail "checksum failures"
	[ "$(counter "$1" slots_lost)" -eq 0 ] || fail "slots lost"
}

kept_end()
{
	local status=0
	kill -TERM $keeper
	wait $keeper || status=$?
	[ $status -eq 0 ] || fail "the daemon ended with status $status"
	[ ! -e "$device" ] || fail "$device is left"
	[ ! -e "${device/ublkb/ublkc}" ] || fail "${device/ublkb/ublkc} is left"
}

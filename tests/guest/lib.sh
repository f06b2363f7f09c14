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

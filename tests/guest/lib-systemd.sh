# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# What a script for a guest with systemd (run.sh --systemd) begins with, instead of lib.sh.
#
#   $GUEST_BOOT                 1 at the first boot
#   ok, need, expect_kernel     as in lib.sh; fail, counter, wait_for and others as there
#   next_boot VERB              ends the script; `systemctl VERB` (reboot, poweroff), and the next boot
#                               runs it again
#   last_shutdown               the seconds that took, by the guest's clock, until the kernel's last word
#   unit_is UNIT KEY VALUE      waits for a property of `systemctl show`, for 20 s
#   unit_show UNIT KEY          one property
#   started_at, ready_at UNIT   in ms of the monotonic clock
#   mark TEXT                   a line in the kernel's log; since_mark TEXT prints what came after it
#   journal_has REGEX, journal_lacks REGEX    of this boot

# shellcheck source=tests/guest/lib.sh
. /zswapd/tests/guest/lib.sh

show_journal()
{
	[ -z "$TEST_QUIET" ] || return 0
	journalctl -b -o short-monotonic --no-pager >"/results/journal-$GUEST_BOOT" 2>&1
	systemctl status --no-pager --full zswapd >"/results/status-$GUEST_BOOT" 2>&1
	echo "--- the journal's end"
	tail -n 60 "/results/journal-$GUEST_BOOT"
}
cleanup_push show_journal

mark()
{
	echo "zswapd-test: $1" >/dev/kmsg
}

since_mark()
{
	awk -v m="zswapd-test: $1" 'index($0, m) { found = 1 } found' /share/console.log
}

next_boot()
{
	: >/results/.again
	mark "shutdown $GUEST_BOOT"
	sync
	TEST_QUIET=1
	timeout 20 systemctl --no-block "$1" || fail "systemctl $1"
	exit 0
}

kernel_time()
{
	sed -n "s/^\[ *\([0-9.]*\)\].*$1.*/\1/p" | tail -n 1
}

last_shutdown()
{
	local text from until
	text=$(since_mark "shutdown $((GUEST_BOOT - 1))")
	from=$(kernel_time "zswapd-test: shutdown $((GUEST_BOOT - 1))" <<<"$text")
	until=$(sed '/Linux version/,$d' <<<"$text" | kernel_time 'reboot: ')
	[ -n "$from" ] && [ -n "$until" ] || fail "the console does not tell when the last boot ended"
	awk -v a="$from" -v b="$until" 'BEGIN { printf "%d\n", b - a + 1 }'
}

unit_show()
{
	timeout 20 systemctl show -P "$2" "$1"
}

unit_is()
{
	wait_for "[ \"\$(unit_show '$1' '$2')\" = '$3' ]" 20 ||
		fail "$1: $2 is '$(unit_show "$1" "$2")', must be '$3'"
}

started_at()
{
	echo $(($(unit_show "$1" InactiveExitTimestampMonotonic) / 1000))
}

ready_at()
{
	echo $(($(unit_show "$1" ActiveEnterTimestampMonotonic) / 1000))
}

journal_has()
{
	# Not -q: journalctl would be told that nobody reads.
	wait_for "journalctl -b --no-pager -o cat | grep -E '$1' >/dev/null" 20 || fail "the journal does not say: $1"
}

journal_lacks()
{
	local found
	found=$(journalctl -b --no-pager -o cat | grep -E "$1" || true)
	[ -z "$found" ] || fail "the journal says: $found"
}

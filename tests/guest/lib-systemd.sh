# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# What a script for a guest with systemd (run.sh --systemd) begins with, instead of lib.sh.
#
#   $GUEST_BOOT                 1 at the first boot
#   ok, need, expect_kernel     as in lib.sh; fail, counter, wait_for and others as there
#   next_boot VERB              ends the script; the machine shuts down (reboot, poweroff), and the next
#                               boot runs it again
#   last_shutdown               the seconds that took, by the guest's clock, until the kernel's last word
#   unit_is UNIT KEY VALUE      waits for a property of `systemctl show`, for 20 s
#   unit_show UNIT KEY          one property
#   started_at, ready_at UNIT   in ms of the monotonic clock
#   configure MIB STORE         zswapd.conf with that memory limit; ${DRIVE}0, ${DRIVE}1 are the drives
#   hold NAME MIB [--churn]     starts holder-NAME.service with that many verified pages (holder.c)
#   held_right NAME WHY         it has said in this boot that all are right; WHY: asked, stopped
#   swapped_mib                 what is swapped out
#   slowness                    how many times longer work takes now than on a quiet machine; at least 1
#   mark TEXT                   a line in the kernel's log; since_mark TEXT prints what came after it
#   journal_has REGEX, journal_lacks REGEX    of this boot

# shellcheck source=tests/guest/lib.sh
. /zswapd/tests/guest/lib.sh

DRIVE=/dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_drive
# What processes say by way of the kernel's log is no complaint of the kernel.
expect_kernel '^.[ .0-9]*. [^ ]*[[][0-9]+[]]: '

# As in zswapd.sh, with more patience: here all that asks may have to be swapped in first.
counter()
{
	timeout 60 "$ZSWAPCTL" --device "$1" stats --json |
		awk -F'[":, ]+' -v n="$2" '$2 == n { print $3; found = 1 } END { exit !found }' ||
		fail "no counter $2 of $1"
}

# The emulated machine shares the CPUs with what else runs on the real one, and its clock does not
# know.  QUIET_MS: of this loop, on two CPUs that do nothing else.
QUIET_MS=450
slowness()
{
	local began=$EPOCHREALTIME i
	for ((i = 0; i < 30000; i++)); do :; done
	awk -v a="$began" -v b="$EPOCHREALTIME" -v q=$QUIET_MS '
		BEGIN { s = (b - a) * 1000 / q; printf "%.1f\n", (s > 1 ? s : 1) }'
}

# within LIMIT VALUE [SLOWNESS]
within()
{
	awk -v l="$1" -v v="$2" -v s="${3:-$(slowness)}" 'BEGIN { exit !(v <= l * s) }'
}

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
	slowness >/results/slowness
	mark "shutdown $GUEST_BOOT"
	sync
	TEST_QUIET=1
	# `systemctl reboot` would ask logind, which is not there.
	timeout 20 systemctl --no-block --job-mode=replace-irreversibly start "$1.target" || fail "systemctl start $1.target"
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

# configure LIMIT_MIB STORE
configure()
{
	TRANSPORT=auto zswapd_config zswap0 device.size=1200M memory.limit="$1"M memory.level=-1 store.path="$2"
	mkdir -p /etc/zswapd
	mv "$TEST_DIR/zswap0.conf" /etc/zswapd/zswapd.conf
}

# Asks the kernel who waits for what before it fails.
stuck()
{
	echo w >/proc/sysrq-trigger
	echo t >/proc/sysrq-trigger
	fail "$*"
}

# hold NAME MIB [--churn]: a service with that many verified pages.
hold()
{
	timeout 160 systemd-run --quiet --unit="holder-$1" -p Type=notify -p TimeoutStartSec=150 -p TimeoutStopSec=200 \
		/usr/bin/holder "$@" || stuck "holder $1 does not start"
}

# Of this boot: what holder NAME has said, WHY being asked or stopped.
held_right()
{
	local name=$1 why=$2
	wait_for "dmesg | grep 'holder $name: .*($why)' >/dev/null" 120 || fail "holder $name has said nothing ($why)"
	dmesg | grep "holder $name: .* pages right, 0 wrong ($why)" >/dev/null ||
		fail "$(dmesg | grep "holder $name:")"
}

swapped_mib()
{
	awk 'NR > 1 { n += $4 } END { printf "%d\n", n / 1024 }' /proc/swaps
}

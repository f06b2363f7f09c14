#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# zswapd as a service of systemd, over three boots: started by hand, stopped, stopped by a reboot and by
# switching off while the machine's services have twice its memory, started at boot with and without
# its store.
# usage: test-systemd.sh RAM     in MiB, as in --memory
# guest: --drive 1G --drive 512M,iops=900 --built tests/guest/holder
set -euo pipefail
. "$(dirname "$0")/lib-systemd.sh"
ram=$1

# --- what is installed ------------------------------------------------------------------------------

the_unit()
{
	local text score
	[ "$(systemctl is-enabled zswapd || true)" = disabled ] || fail "installing zswapd enables it"
	[ "$(wc -l </proc/swaps)" -eq 1 ] || fail "there is swap that nobody asked for"
	text=$(systemd-analyze --man=no verify zswapd.service 2>&1) || fail "systemd-analyze verify: $text"
	[ -z "$text" ] || fail "systemd-analyze verify: $text"
	text=$(systemd-analyze security --no-pager zswapd.service)
	score=$(sed -n 's/.*Overall exposure level for zswapd.service: \([0-9.]*\).*/\1/p' <<<"$text")
	awk -v s="$score" 'BEGIN { exit !(s != "" && s <= 4.0) }' || fail "exposure level $score: $text"
	ok "unit is clean, exposure level $score"
}

started()
{
	configure $((ram / 6)) ${DRIVE}0
	need timeout 60 systemctl start zswapd
	[ "$(unit_show zswapd ActiveState)" = active ] || fail "zswapd is $(unit_show zswapd ActiveState)"
	DEVICE=$(realpath /dev/zswap/zswap0)
	grep -q "^$DEVICE " /proc/swaps || fail "no swap when the start is over"
	"$ZSWAPCTL" status >/results/status
	grep -q '^health *good' /results/status || fail "$(cat /results/status)"
	[ "$(counter zswap0 store_size_bytes)" -gt 0 ] || fail "there is no store"
	[ "$(cat /proc/sys/vm/watermark_boost_factor)" -eq 0 ] || fail "the sandbox keeps a setting from being made"
	[ "$(cat /sys/block/"${DEVICE#/dev/}"/queue/read_ahead_kb)" -eq 0 ] || fail "the sandbox keeps the queue from being set"
	[ "$(cat /sys/fs/cgroup/zswapd.service/memory.swap.max)" = 0 ] || fail "the daemon may be swapped"
	[ "$(cat /sys/fs/cgroup/init.scope/memory.swap.max)" = 0 ] || fail "systemd itself may be swapped"
	# Anybody may ask.
	setpriv --reuid 65534 --regid 65534 --clear-groups "$ZSWAPCTL" status >/dev/null || fail "nobody can't ask for the status"
	journal_lacks '(^zswapd: .*(refused|cannot|denied)|can.t be)'
	ok "started"
}

# systemd knows the swap under the device's names, and can end it.
swap_units()
{
	local unit=dev-${DEVICE#/dev/}.swap
	unit_is "$unit" ActiveState active
	unit_is dev-zswap-zswap0.device ActiveState active
	unit_is dev-zswap-zswap0.swap ActiveState active
	[[ " $(unit_show "$unit" After) " == *" zswapd.service "* ]] || fail "$unit does not stop before zswapd"
	need timeout 30 systemctl stop dev-zswap-zswap0.swap
	[ "$(wc -l </proc/swaps)" -eq 1 ] || fail "stopping the swap unit did not swap off"
	[ "$(unit_show zswapd ActiveState)" = active ] || fail "the daemon has gone with the swap unit"
	need swapon -d -p 100 /dev/zswap/zswap0
	unit_is "$unit" ActiveState active
	need timeout 30 systemctl reload zswapd
	journal_has 'zswapd: configuration: .*zswapd.conf'
	ok "swap units"
}

# --- stopping ---------------------------------------------------------------------------------------

# With most pages in a slow store it takes long enough to be told about.
stopped()
{
	need timeout 60 systemctl stop zswapd
	configure 16 ${DRIVE}1
	need timeout 60 systemctl start zswapd
	hold slow $((ram * 7 / 16))
	hold other $((ram * 7 / 16))
	echo "$(swapped_mib) MiB swapped, $(counter zswap0 slots_stored) pages stored"
	need systemctl kill -s KILL holder-other
	need timeout 300 systemctl stop zswapd
	unit_is zswapd Result success
	[ "$(wc -l </proc/swaps)" -eq 1 ] || fail "swap is on after the stop"
	journal_has 'swapoff .*: [0-9]* MiB to go'
	need systemctl kill -s USR1 holder-slow
	held_right slow asked
	need timeout 150 systemctl stop holder-slow
	ok "stopped, with progress"
}

# --- shutting down -----------------------------------------------------------------------------------

# What is swapped out then is at least half of twice the RAM.
fill_machine()
{
	hold one $((ram * 3 / 4))
	hold two $((ram * 3 / 4))
	echo "$(swapped_mib) MiB of $ram MiB of RAM swapped"
	[ "$(swapped_mib)" -ge "$ram" ] || fail "only $(swapped_mib) MiB are swapped"
}

shutdown_was_right()
{
	local text name seconds
	text=$(since_mark "shutdown $((GUEST_BOOT - 1))" | sed '/Linux version/,$d')
	for name in one two; do
		grep -q "holder $name: .* pages right, 0 wrong (stopped)" <<<"$text" || fail "holder $name: $(grep "holder $name" <<<"$text")"
	done
	! grep -E 'zswapd.service: (Killing|Failed|Main process exited.*(signal|killed))|zswapd.*timed out|ordering cycle|Sending SIGKILL to PID [0-9]* \(zswapd' <<<"$text" ||
		fail "the shutdown was not in order"
	! grep -E 'swap: (Failed|Swap process exited)' <<<"$text" || fail "a swap unit failed"
	grep -qE 'zswapd: stopped' <<<"$text" || fail "zswapd did not stop in order"
	seconds=$(last_shutdown)
	within 60 "$seconds" "$(cat /results/slowness)" || fail "the shutdown took $seconds s"
	ok "shut down in $seconds s, slowness $(cat /results/slowness)"
}

# --- booting ----------------------------------------------------------------------------------------

booted()
{
	[ "$(unit_show zswapd ActiveState)" = active ] || fail "zswapd is $(unit_show zswapd ActiveState) after the boot"
	grep -q "^$(realpath /dev/zswap/zswap0) " /proc/swaps || fail "no swap after the boot"
	[ "$(ready_at zswapd)" -le "$(ready_at swap.target)" ] || fail "swap.target was reached before zswapd was ready"
	[ "$(ready_at swap.target)" -le "$(ready_at sysinit.target)" ] || fail "sysinit.target does not wait for swap"
	dmesg >/results/dmesg-$GUEST_BOOT
	! grep -E 'ordering cycle|zswapd.*Failed with result' /results/dmesg-$GUEST_BOOT || fail "the boot was not in order"
}

start_ms()
{
	echo $(($(ready_at zswapd) - $(started_at zswapd)))
}

case $GUEST_BOOT in
1)
	the_unit
	started
	swap_units
	stopped
	configure $((ram / 6)) ${DRIVE}0
	need systemctl enable zswapd
	need timeout 60 systemctl start zswapd
	fill_machine
	next_boot reboot
	;;
2)
	shutdown_was_right
	booted
	# On a machine that is too busy the kernel finds the drive later than anybody would wait.
	if [ "$(counter zswap0 store_size_bytes)" -eq 0 ]; then
		awk -v s="$(slowness)" 'BEGIN { exit !(s > 2) }' || fail "the boot did not wait for the store"
		echo "the drive was found too late"
	fi
	start_ms >/results/start-ms
	ok "booted"
	fill_machine
	configure $((ram / 6)) ${DRIVE}_none
	next_boot poweroff
	;;
3)
	shutdown_was_right
	booted
	# The rest of a start takes as long as the machine that emulates this one is busy.
	took=$(start_ms)
	within 5000 $((took - $(cat /results/start-ms))) ||
		fail "without its store the start took $took ms, with it $(cat /results/start-ms)"
	"$ZSWAPCTL" status >/results/status
	grep -q 'store not there at the start' /results/status || fail "$(cat /results/status)"
	dmesg | grep 'zswapd: store ${DRIVE}_none is not there' >/dev/null || fail "no warning"
	ok "booted without the store: the start took $took ms, with it $(cat /results/start-ms)"
	;;
esac
test_end

# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# One test or benchmark at a time may swap on this machine.  Source cleanup.sh first.
#
#   swap_lock [SECONDS]    takes the machine's lock; dies after SECONDS (900) of waiting
#
# Swap devices, kernel zswap's switch and the figures in /proc are the machine's: two swap tests
# that ran together would see each other's pages, and two benchmarks each other's load.
#
# The lock is descriptor 9 and lasts until all who inherited it have ended.  A daemon is started
# with 9>&-, so that one left behind does not keep everybody else out.

SWAP_LOCK_FILE=${SWAP_LOCK_FILE:-/run/lock/zswapd-swap-tests.lock}

swap_lock()
{
	local start=$SECONDS
	mkdir -p "${SWAP_LOCK_FILE%/*}"
	# Append: opening must not wipe out the holder's name.
	exec 9>>"$SWAP_LOCK_FILE"
	flock -w "${1:-900}" 9 ||
		die "$(cat "$SWAP_LOCK_FILE") has held $SWAP_LOCK_FILE for ${1:-900} s"
	[ $((SECONDS - start)) -lt 5 ] || note "waited $((SECONDS - start)) s for the swap lock"
	echo "${0##*/} ($$)" >"$SWAP_LOCK_FILE"
}

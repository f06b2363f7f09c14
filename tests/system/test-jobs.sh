#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# zswapctl writeback, compact and check on a device with content: what they say is what the counters
# and the pages show, damage is found and named by the exit code, and whoever follows events hears
# of each, root or not.
set -euo pipefail
# shellcheck source=tests/lib/zswapd.sh
. "$(dirname "$0")/../lib/zswapd.sh"

test_begin sync setpriv perl
n=$TEST_NAME
store=$TEST_DIR/store
map=$TEST_DIR/map
zswapd_start "$n" device.size=128M swap.enable=no memory.limit=64M store.path="$store" store.size=96M

slots()
{
	bounded 60 "$SLOTS" "$1" "$DEVICE" "$map" "${@:2}"
}

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

# Both ways of following: the group, and a subscription.
"$ZSWAPCTL" --device "$n" events --json >"$TEST_DIR/events-root" 2>&1 9>&- &
cleanup_pid $!
install -m 0755 "$ZSWAPCTL" "$TEST_DIR/zswapctl"
chmod 0755 "$TEST_DIR"
setpriv --reuid 65534 --regid 65534 --clear-groups "$TEST_DIR/zswapctl" --device "$n" events \
	>"$TEST_DIR/events-nobody" 2>&1 9>&- &
cleanup_pid $!

# Before there is anything.
ctl 0 job
said '^no job so far$'
ctl 0 check
said '^check: 0 pages verified, none damaged$'
ctl 0 compact
said '^compact: 0 B of memory and store have become free$'

slots write 0 16384 1 mix 32 | grep -qx 'written 16384 nospace 0 failed 0' || fail "writing"
ctl 0 check
said "^check: $(($(counter "$n" slots_used) - $(counter "$n" slots_same_filled))) pages verified, none damaged$"

# Some, then all: what has left memory is in the store, and reads as before.
stored=$(counter "$n" slots_stored)
resident=$(counter "$n" resident_compressed_bytes)
used=$(counter "$n" memory_used_bytes)
ctl 0 writeback 4M
said '^writeback: [4-9].[0-9] MiB of memory have become free$'
[ "$(counter "$n" slots_stored)" -gt $((stored + 2000)) ] || fail "writeback 4M: hardly anything is stored"
[ "$(counter "$n" resident_compressed_bytes)" -le $((resident - 3 * 1048576)) ] || fail "writeback 4M: it is still there"
[ "$(counter "$n" slots_resident)" -gt 1000 ] || fail "writeback 4M wrote all"
ctl 0 writeback
[ "$(counter "$n" slots_resident)" -lt 3000 ] || fail "writeback left $(counter "$n" slots_resident) pages"
# Some frames are kept free, but not all of them.
[ "$(counter "$n" memory_used_bytes)" -le $((used - 4 * 1048576)) ] || fail "writeback: memory is not given back"
[ "$(slots verify 0 16384 mix)" = "right 16384 wrong 0 ioerror 0" ] || fail "wrong pages after writeback"

# Three of four pages are written anew, as something smaller: their old places are dead.
for ((i = 0; i < 16384; i += 64)); do
	slots write $i 48 2 mix 48 >/dev/null || fail "writing at $i"
done
ctl 0 writeback
cleaned=$(counter "$n" segments_cleaned_total)
places=$(counter "$n" store_used_bytes)
ctl 0 compact
said '^compact: [1-9][0-9]*.[0-9] MiB of memory and store have become free$'
[ "$(counter "$n" segments_cleaned_total)" -gt "$cleaned" ] || fail "compact cleaned nothing"
[ "$(counter "$n" store_used_bytes)" -lt "$places" ] || fail "compact has freed no place of the store"
ctl 0 check
said 'none damaged$'
[ "$(slots verify 0 16384 mix)" = "right 16384 wrong 0 ioerror 0" ] || fail "wrong pages after compact"

# A job that is begun and left; another is refused meanwhile, or it was over sooner than that.
ctl 0 check --no-wait
said '^check: begun$'
ctl 0 job --wait
said 'none damaged$'

# Damage: a byte in places that hold much.
ctl 0 writeback
perl -e '
	open my $f, "+<:raw", shift or die;
	for my $place (0 .. 30) {
		my $at = ($place + 1) * 1048576 + 200000 + $place * 8191;
		sysseek $f, $at, 0; sysread $f, my $byte, 1;
		sysseek $f, $at, 0; syswrite $f, chr(ord($byte) ^ 16) or die;
	}' "$store"
sync "$store"
ctl 7 check
said '^check: [0-9]* pages verified, [1-9][0-9]* damaged$'
damaged=$(sed 's/.*verified, \([0-9]*\) damaged/\1/' "$TEST_DIR/said")
slots verify 0 16384 mix >"$TEST_DIR/verify" || true
read -r _ _ _ wrong _ ioerror < <(tail -1 "$TEST_DIR/verify")
[ "$wrong" -eq 0 ] || fail "$wrong wrong pages after the damage"
[ "$damaged" -eq "$ioerror" ] || fail "check found $damaged damaged pages, reading them finds $ioerror"
timeout 20 "$ZSWAPCTL" --device "$n" doctor >"$TEST_DIR/said" 2>&1 || [ $? -eq 7 ] || fail "doctor"
said '^\[FIND\] pages .* failed their checksum'

# What may not be changed by others is refused to them.
! setpriv --reuid 65534 --regid 65534 --clear-groups "$TEST_DIR/zswapctl" --device "$n" check 2>"$TEST_DIR/said" ||
	fail "anybody can start a check"
said 'takes uid 0'

for follower in root nobody; do
	for word in check writeback compact checksum_failure; do
		wait_for "grep -q $word $TEST_DIR/events-$follower" 10 ||
			fail "$follower heard nothing of $word: $(cat "$TEST_DIR/events-$follower")"
	done
done
python3 -c 'import json, sys; [json.loads(l) for l in sys.stdin]' <"$TEST_DIR/events-root" || fail "events are no JSON"

zswapd_stop "$n"
wait_for "grep -q 'has ended' $TEST_DIR/events-nobody" 15 || fail "events did not end with the daemon"
test_end

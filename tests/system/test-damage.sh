#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Bytes that change in the store behind the daemon's back are I/O errors for their pages, counted
# and logged, and never wrong data; all other pages are right, also after cleaning has met them.
set -euo pipefail
# shellcheck source=tests/lib/zswapd.sh
. "$(dirname "$0")/../lib/zswapd.sh"

test_begin sync
n=$TEST_NAME
store=$TEST_DIR/store
map=$TEST_DIR/map
zswapd_start "$n" device.size=64M swap.enable=no memory.limit=16M store.path="$store" store.size=72M

slots()
{
	bounded 60 "$SLOTS" "$1" "$DEVICE" "$map" "${@:2}"
}

# 48 MiB that do not compress: at least 32 MiB of them are in the store, in places that are full.
slots write 0 12288 1 random 32 | grep -qx 'written 12288 nospace 0 failed 0' || fail "writing"
wait_counter "$n" slots_stored -gt 8000 10
[ "$(slots verify 0 12288 random)" = "right 12288 wrong 0 ioerror 0" ] || fail "before the damage"

# One byte in each of 24 places; what is free, or slack between objects, harms nobody.
perl -e '
	open my $f, "+<:raw", shift or die;
	for my $place (4 .. 27) {
		my $at = ($place + 2) * 1048576 + 300000 + $place * 8191;
		sysseek $f, $at, 0; sysread $f, my $byte, 1;
		sysseek $f, $at, 0; syswrite $f, chr(ord($byte) ^ 16) or die;
	}' "$store"
sync "$store"
slots verify 0 12288 random list >"$TEST_DIR/after" || fail "wrong data after the damage: $(tail -1 "$TEST_DIR/after")"
read -r _ right _ wrong _ ioerror < <(tail -1 "$TEST_DIR/after")
[ "$wrong" -eq 0 ] || fail "$wrong wrong pages"
[ "$ioerror" -ge 12 ] || fail "only $ioerror pages answered with an error, of 24 bytes changed"
[ "$ioerror" -le 24 ] || fail "$ioerror pages answered with an error, for 24 bytes changed"
[ $((right + ioerror)) -eq 12288 ] || fail "$right right and $ioerror errors are not all pages"
failures=$(counter "$n" checksum_failures_total)
[ "$failures" -ge "$ioerror" ] || fail "$failures failures counted, $ioerror errors seen"
lines=$(grep -c '<3>' "$(zswapd_log "$n")" || true)
[ "$lines" -ge 1 ] || fail "nothing was logged"
[ "$lines" -le 12 ] || fail "$lines lines logged"

# Every other group of pages is written anew, so that the places get sparse and are cleaned.
for ((i = 0; i < 12288; i += 64)); do
	slots write $i 32 2 random 32 >/dev/null || fail "writing at $i"
done
for ((i = 0; i < 12288; i += 512)); do
	slots write $i 32 3 random 16 >/dev/null || fail "writing at $i"
done
[ "$(counter "$n" segments_cleaned_total)" -gt 0 ] || fail "nothing was cleaned"
slots verify 0 12288 random list >"$TEST_DIR/cleaned" ||
	fail "wrong data after cleaning: $(tail -1 "$TEST_DIR/cleaned")"

# What was damaged and not written since is damaged still, and nothing else is.
for round in after cleaned; do
	awk '$1 == "slot" && ($2 % 64) >= 32 { print $2 }' "$TEST_DIR/$round" >"$TEST_DIR/$round.slots"
done
cmp "$TEST_DIR/after.slots" "$TEST_DIR/cleaned.slots" || fail "cleaning changed what is damaged"
! grep '^slot' "$TEST_DIR/cleaned" | awk '($2 % 64) < 32' | grep -q . || fail "a page written anew is damaged"
[ -s "$TEST_DIR/cleaned.slots" ] || fail "no damage was left to clean around"

# A write or a discard heals.
while read -r slot; do
	slots write "$slot" 1 4 random 1 >/dev/null
done <"$TEST_DIR/cleaned.slots"
[ "$(slots verify 0 12288 random)" = "right 12288 wrong 0 ioerror 0" ] || fail "a write does not heal"
[ "$(counter "$n" slots_lost)" -eq 0 ] || fail "slots lost after healing"

zswapd_stop "$n"
test_end

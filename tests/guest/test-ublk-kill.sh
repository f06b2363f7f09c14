#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Over ublk, under a program that swaps, each of the daemon's processes is killed at random: every byte
# is right in the end.
# usage: test-ublk-kill.sh KILLS [SECONDS]     at most so many seconds, 10 for each kill
# guest: --memory 512 --drive 1G --corpus 16 --limit 400 --built tests/crash/keeper
# guest: --built tests/system/killer
set -euo pipefail
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/lib/kills.sh
. /zswapd/tests/lib/kills.sh
kills=$1
seconds=${2:-$((kills * 10))}
size=208
# Whoever reads meanwhile waits for as long as the kernel takes to see that a server has died.
expect_kernel 'task pageload[^ ]*.* blocked for more than'
TRANSPORT=ublk zswapd_config kill device.size=512M memory.limit=48M store.path=/dev/drive0

kept_begin kill

# The group is short of memory, the machine is not: what starts a daemon must be able to.
cgroup_new load $((104 << 20))
"$PAGELOAD" --cgroup "$CGROUP" --pages /files/corpus.pages --corpus-limit 16M --size ${size}M --verify \
	--same word --threads 2 --mode rw --write-share 50 --seconds $((seconds + 60)) \
	--timeout $((seconds + 400)) --stalls "$TEST_DIR/stalls" --progress >"$TEST_DIR/load.json" 2>"$TEST_DIR/load.log" &
load=$!
wait_for "grep -q 'phase rw' $TEST_DIR/load.log || has_ended $load" 120 || fail "the program does not get ready"
[ "$(awk -v d="$device" '$1 == d { print $4 }' /proc/swaps)" -gt 60000 ] || fail "hardly anything is swapped"
killer --keeper $keeper "$TEST_DIR/kill.conf" "$kills" "$seconds" $RANDOM worker worker worker worker both again \
	supervisor all >"$TEST_DIR/kills" || fail "$(tail -n 1 "$TEST_DIR/kills"): $(tail -n 5 "$TEST_DIR/kill.log")"
! has_ended $load || fail "pageload has ended: $(cat "$TEST_DIR/load.log")"
kill -USR1 $load
status=0
wait $load || status=$?
cat "$TEST_DIR/load.log"
[ $status -eq 0 ] || fail "pageload ended with status $status"
kept_unharmed kill
killed=$(kills_count "$TEST_DIR")
ok "$killed processes killed under a program with $size MiB of verified pages"
kills_report "$TEST_DIR"
[ "$killed" -ge $((kills / 2)) ] || fail "only $killed processes were killed in $seconds s"

kept_end
test_end

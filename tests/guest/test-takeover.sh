#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The daemon is killed again and again while a program swaps; what starts it again has kept its
# memfds, and every byte is right in the end.
# usage: test-takeover.sh KILLS
# guest: --memory 512 --drive 1G --corpus 16 --limit 300 --built tests/crash/keeper
set -euo pipefail
. "$(dirname "$0")/lib.sh"
kills=$1
size=240
TRANSPORT=ublk zswapd_config swap device.size=1G memory.limit=64M store.path=/dev/drive0

kept_begin swap

# The group is short of memory, the machine is not: what starts the next daemon must be able to.
cgroup_new load $((112 << 20))
cgroup_run "$CGROUP" "$PAGELOAD" --pages /files/corpus.pages --corpus-limit 16M --size ${size}M --verify \
	--same word --threads 2 --seconds $kills --timeout 280 >/results/load.json 2>/results/load.log &
load=$!
wait_for "[ \"\$(awk -v d=$device '\$1 == d { print \$4 }' /proc/swaps)\" -gt 60000 ]" 60 ||
	fail "hardly anything is swapped"
for ((n = 1; n <= kills; n++)); do
	sleep 0.$((RANDOM % 9))
	kill -USR1 $keeper
	wait_for "grep -q '^ready $n ' /results/swap.report" 60 || fail "the daemon did not take over for the ${n}th time"
	! has_ended $load || break
done
[ "$n" -gt "$kills" ] || echo "the program ended after $n kills"
status=0
wait $load || status=$?
cat /results/load.log
[ $status -eq 0 ] || fail "pageload ended with status $status"
kept_unharmed swap
[ "$(counter swap takeovers_total)" -ge 1 ] || fail "no takeover was counted"
ok "$((n - 1)) kills under a program with $size MiB of verified pages"
awk '$1 == "ready" && $2 > 0 { print $3 }' /results/swap.report | sort -n |
	awk '{ v[NR] = $1 } END { printf "ms from kill to ready: median %s, most %s\n", v[int((NR + 1) / 2)], v[NR] }'

kept_end
test_end

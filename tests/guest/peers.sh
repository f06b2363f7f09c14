#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The guest's part of tests/bench/guest-peers.sh, which see: measures the peers, and leaves peers.json,
# table.md and zswapd's counters of each round in /results.
# usage: peers.sh SIZE CGROUP BUDGET SECONDS ROUNDS PEERS [SECTION.KEY=VALUE]...     (sizes in bytes)
# guest: --program jq
set -euo pipefail
# shellcheck source=tests/guest/modules.sh
. /zswapd/tests/guest/modules.sh
# shellcheck source=tests/lib/cleanup.sh
. /zswapd/tests/lib/cleanup.sh
# shellcheck source=tests/lib/processes.sh
. /zswapd/tests/lib/processes.sh
# shellcheck source=tests/lib/cgroup.sh
. /zswapd/tests/lib/cgroup.sh

# shellcheck disable=SC2034
{
	size_bytes=$1 limit_bytes=$2 wanted_bytes=$3 seconds=$4 rounds=$5 peers=$6
	shift 6
	settings=("$@")
	pages=/files/corpus.pages pageload=$PAGELOAD
	zswapd_binary=$ZSWAPD zswapctl=$ZSWAPCTL
	drive=$(realpath /dev/drive0)
	disk=/sys/block/${drive##*/}/stat
	work=/results
	# To ask zswapd takes a process or two, and time away from who is measured.
	sample_seconds=4
	# Takes as long as all the rest; each touch looks at a word of its page anyway.
	verify=
}
load zram
load zstd || note "the kernel has no zstd for zswap"
# shellcheck source=tests/lib/peers.sh
. /zswapd/tests/lib/peers.sh

# One of zswap's whole per cents of RAM, for all.
budget_bytes=$wanted_bytes
budget_bytes=$(zswap_pool_bytes "$(zswap_percent)")
# With multi-generation LRU, 6.12 kills a program in a small cgroup while its pages are on their way to
# a device that takes its time: reclaim that finds nothing right now does not wait for it.
[ ! -e /sys/kernel/mm/lru_gen/enabled ] || echo n >/sys/kernel/mm/lru_gen/enabled
# Nobody is to be taken for hung because all is slow here.
echo 0 >/proc/sys/kernel/hung_task_timeout_secs

list=()
for peer in ${peers//,/ }; do
	! peers_possible "$peer" || list+=("$peer")
done
peers_run "$rounds" "${list[@]}"

peers_json size "$size_bytes" cgroup "$limit_bytes" budget "$budget_bytes" >/results/peers.json
{
	awk -v s="$size_bytes" -v c="$limit_bytes" -v b="$budget_bytes" -v r="$rounds" -v k="$(uname -r)" 'BEGIN {
		printf "%d MB of corpus pages, cgroup %d MB, budget %d MB, one thread, medians of %d rounds, ", s / 1e6, c / 1e6, b / 1e6, r
		printf "kernel %s, emulated\n", k }'
	echo
	peers_table /results/peers.json "${list[@]}"
	echo
	echo "Divided by kernel zswap:"
	echo
	peers_ratios /results/peers.json "${list[@]}"
} >/results/table.md

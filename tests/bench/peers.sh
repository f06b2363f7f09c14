#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Compares zswapd with what the kernel has: one workload, one budget of memory, one run.
#
# Figures of a virtual machine move by a factor of two between quiet and busy minutes, so peers take
# turns: each round runs all of them, each time beginning with another one, and medians are shown.
# Only peers of one run may be compared.
#
# The workload is pageload in a memory cgroup: fill, read in order, touch at random, rewrite at
# random, verify every byte.  Same-filled pages stay what they are (--same keep), since real ones
# are nearly all zero, which current kernels keep to themselves with any swap device.
#
# RAM is the largest amount seen that holds swapped pages: zswap's pool, zram's memory, zswapd's
# front tier with its index.  Disk figures are of the whole device that the swap file lies on, so
# nothing else may write to it; zswapd's are its own counters.
#
# Since 6.17 the kernel's pageout() only activates a dirty page that is in the swap cache but not yet
# anonymous.  Swap readahead from zswap makes just such pages, so a small cgroup fills up with memory
# that can't be reclaimed.  Therefore zswap is measured with readahead as the machine has it and
# without (zswap-cluster0).  Programs wait for a while where a failed reclaim would kill them (cgroup_patience);
# how often is shown as stalls, and a peer whose program was killed all the same is shown as that.
#
# A swap device that somebody else turns on meanwhile takes part of the pages: such a measurement is
# thrown away and repeated.
#
# Everything is put back: zswap's parameters, zram0, swap, cgroups, files.
set -euo pipefail
export LC_ALL=C

here=$(cd "$(dirname "$0")" && pwd)
. "$here/../lib/cleanup.sh"
. "$here/../lib/cgroup.sh"
. "$here/../lib/swap-lock.sh"

usage()
{
	cat <<'TEXT'
usage: peers.sh [OPTION]...            (root)
  --pages FILE      the corpus (tests/corpus/corpus.pages, made when missing)
  --build DIR       where pageload and corpus-capture are built (build)
  --size SIZE       memory of the workload (2500M); sizes take K, M, G, binary
  --cgroup SIZE     memory limit (200M)
  --budget SIZE     memory that may hold swapped pages (246M)
  --rounds N        (3)
  --seconds S       of each of the phases random and rw (10)
  --peers LIST      (plain,zswap,zswap-shrinker,zswap-cluster0,zram,zswapd) which; those not
                    possible are said
  --zswapd DIR      build directory with zswapd and zswapctl
  --set SECTION.KEY=VALUE   for zswapd's configuration; may be repeated
  --workdir DIR     where the swap file and the store lie ($TMPDIR or /var/tmp)
  --json FILE       the result as JSON
TEXT
}

pages=$here/../corpus/corpus.pages
build=$here/../../build
size=2500M
limit=200M
budget=246M
rounds=3
seconds=10
peers=plain,zswap,zswap-shrinker,zswap-cluster0,zram,zswapd
zswapd=
settings=()
workdir=${TMPDIR:-/var/tmp}
json=
while [ $# -gt 0 ]; do
	[ "$1" != --help ] || {
		usage
		exit 0
	}
	[ $# -ge 2 ] || {
		usage >&2
		exit 2
	}
	case $1 in
	--pages) pages=$2 ;;
	--build) build=$2 ;;
	--size) size=$2 ;;
	--cgroup) limit=$2 ;;
	--budget) budget=$2 ;;
	--rounds) rounds=$2 ;;
	--seconds) seconds=$2 ;;
	--peers) peers=$2 ;;
	--zswapd) zswapd=$2 ;;
	--set) settings+=("$2") ;;
	--workdir) workdir=$2 ;;
	--json) json=$2 ;;
	*)
		usage >&2
		exit 2
		;;
	esac
	shift 2
done

bytes()
{
	numfmt --from=iec "$1" || die "'$1' is not a size such as 200M"
}

size_bytes=$(bytes "$size")
limit_bytes=$(bytes "$limit")
budget_bytes=$(bytes "$budget")
pageload=$build/tests/system/pageload
zswap=/sys/module/zswap/parameters
zram=/sys/block/zram0

# --- what must be there --------------------------------------------------------------------------

[ "$(id -u)" -eq 0 ] || die "needs root for swapon"
[ -x "$pageload" ] || die "no pageload in $build: build it, or name the directory with --build"
for tool in jq mkswap swapon losetup numfmt; do
	command -v $tool >/dev/null || die "$tool is not installed"
done
swap_lock
[ "$(wc -l </proc/swaps)" -eq 1 ] || die "something else is swap already: swapoff it first"
[ -f "$pages" ] || CORPUS_CAPTURE=$build/tests/corpus/corpus-capture "$here/../corpus/make-corpus.sh" "$pages" >&2
free=$(df --output=avail -B1 "$workdir" | tail -1)
[ "$free" -gt $((size_bytes * 3)) ] || die "$workdir has less than three times $size free"

work=$(mktemp -d -p "$workdir" zswapd-peers-XXXXXX)
cleanup_push rm -rf "$work"
results=$work/results
: >"$results"
swapfile=$work/swapfile

# The statistics of the device that the work directory lies on; empty if it has none of its own.
disk_number=$(stat -c '%Hd:%Ld' "$work")
disk=/sys/dev/block/$disk_number/stat
[ -e "$disk" ] || disk=

# --- peers ---------------------------------------------------------------------------------------
# start_PEER sets up swap and registers what undoes it; ram_PEER prints the bytes that hold swapped
# pages now.  Both may set `peer_note`.  Each peer is undone before the next one starts.

swap_file_on()
{
	swapon -p 100 "$swapfile"
	cleanup_swap "$swapfile"
}

start_plain()
{
	swap_file_on
}

ram_plain()
{
	echo 0
}

# The pool's limit is a whole per cent of RAM, so the budget is met only roughly.
start_zswap()
{
	local ram percent compressor parameter
	ram=$(awk '$1 == "MemTotal:" { printf "%.0f", $2 * 1024 }' /proc/meminfo)
	percent=$(((budget_bytes * 100 + ram / 2) / ram))
	[ "$percent" -ge 1 ] || percent=1
	for parameter in compressor max_pool_percent shrinker_enabled enabled; do
		[ ! -e "$zswap/$parameter" ] || cleanup_sysfs "$zswap/$parameter"
	done
	for compressor in zstd lzo-rle; do
		! echo $compressor 2>/dev/null >$zswap/compressor || break
	done
	echo "$percent" >$zswap/max_pool_percent
	[ ! -e $zswap/shrinker_enabled ] || echo "${1:-N}" >$zswap/shrinker_enabled
	echo Y >$zswap/enabled
	peer_note="$(cat $zswap/compressor), pool $((ram * percent / 100000000)) MB"
	swap_file_on
}

ram_zswap()
{
	awk '$1 == "Zswap:" { printf "%.0f\n", $2 * 1024 }' /proc/meminfo
}

start_zswap-shrinker()
{
	start_zswap Y
	peer_note="$peer_note, shrinker"
}

ram_zswap-shrinker()
{
	ram_zswap
}

start_zswap-cluster0()
{
	cleanup_sysfs /proc/sys/vm/page-cluster
	echo 0 >/proc/sys/vm/page-cluster
	start_zswap
	peer_note="$peer_note, page-cluster 0"
}

ram_zswap-cluster0()
{
	ram_zswap
}

undo_zram()
{
	echo 1 >$zram/reset
	echo "$1" >$zram/comp_algorithm
}

start_zram()
{
	local before algorithm
	before=$(sed 's/.*\[\(.*\)\].*/\1/' $zram/comp_algorithm)
	cleanup_push undo_zram "$before"
	for algorithm in zstd lz4 lzo-rle; do
		! echo $algorithm 2>/dev/null >$zram/comp_algorithm || break
	done
	peer_note="$(sed 's/.*\[\(.*\)\].*/\1/' $zram/comp_algorithm), everything in RAM"
	echo $((size_bytes * 13 / 10)) >$zram/disksize
	mkswap /dev/zram0 >/dev/null
	swapon -p 100 /dev/zram0
	cleanup_swap /dev/zram0
}

ram_zram()
{
	awk '{ print $3 }' $zram/mm_stat
}

zswapd_config()
{
	local setting key
	# A key given twice takes its last value, so --set comes last.
	cat <<CONF
[device]
name = peers
size = $((size_bytes * 13 / 10 / 4096 * 4096))
[swap]
enable = yes
[memory]
limit = $budget_bytes
[store]
path = $work/store
size = $((size_bytes * 13 / 10))
CONF
	for setting in ${settings[@]+"${settings[@]}"}; do
		key=${setting%%=*}
		printf '[%s]\n%s = %s\n' "${key%%.*}" "${key#*.}" "${setting#*=}"
	done
}

# FUSE mounts that were not there before zswapd: if it hangs, aborting them frees its users.
fuse_mounts()
{
	awk '/ - fuse/ { print $5 }' /proc/self/mountinfo | sort
}

undo_zswapd()
{
	local dir
	CLEANUP_TERM_SECONDS=120 undo_pid "$1" && return 0
	while read -r dir; do
		fuse_abort "$dir"
		undo_mount "$dir"
	done < <(comm -13 "$work/mounts" <(fuse_mounts))
	undo_pid "$1"
}

start_zswapd()
{
	fuse_mounts >"$work/mounts"
	zswapd_config >"$work/zswapd.conf"
	"$zswapd_binary" --config "$work/zswapd.conf" 2>"$work/zswapd.log" 9>&- &
	local pid=$!
	cleanup_push rm -f "$work/store"
	cleanup_push undo_zswapd $pid
	wait_for "is_swapping /dev/zswap/peers || has_ended $pid" 60 || true
	is_swapping /dev/zswap/peers || {
		cat "$work/zswapd.log" >&2
		die "zswapd did not come up as swap"
	}
	peer_note="${settings[*]-}"
}

zswapd_stats()
{
	timeout 5 "$zswapctl" stats --json
}

ram_zswapd()
{
	zswapd_stats | jq '.memory_used_bytes + .memory_metadata_bytes'
}

# --- one measurement -----------------------------------------------------------------------------

sample_ram()
{
	local peer=$1 max=0 now
	while :; do
		# A header and ours.
		[ "$(wc -l </proc/swaps)" -le 2 ] || : >"$work/disturbed"
		now=$("ram_$peer") || now=0
		if [ "${now:-0}" -gt "$max" ]; then
			max=$now
			echo "$max" >"$work/ram"
		fi
		sleep 0.5
	done
}

# disk_counters PEER: requests, bytes and pages written to the disk so far.
disk_counters()
{
	if [ "$1" = zswapd ]; then
		zswapd_stats | jq -r '[.store_write_requests_total, .store_write_bytes_total,
			.pages_written_back_total] | map(tostring) | join(" ")'
	elif [ "$1" = zram ] || [ -z "$disk" ]; then
		echo 0 0 0
	else
		awk '{ printf "%.0f %.0f %.0f\n", $5, $7 * 512, $7 / 8 }' "$disk"
	fi
}

# Runs in a subshell in the background: each peer is undone by its own clean-up, `set -e` holds in
# it, and a signal to the script is acted on at once.
measure()
{
	local peer=$1 round=$2 peer_note='' before after status=0 sampler
	CLEANUP_STEPS=()
	trap cleanup_on_exit EXIT
	trap 'exit 143' TERM
	echo 0 >"$work/ram"
	rm -f "$work/disturbed"
	sync
	"start_$peer"
	cgroup_new peers "$limit_bytes"
	cgroup_patience "$CGROUP"
	sample_ram "$peer" &
	sampler=$!
	cleanup_pid $sampler
	before=$(disk_counters "$peer")
	"$pageload" --pages "$pages" --size "$size" --seed "$round" --seconds "$seconds" --same keep \
		--verify --cgroup "$CGROUP" --timeout 1200 --report json >"$work/load.json" &
	cleanup_pid $!
	wait $! || status=$?
	after=$(disk_counters "$peer")
	[ ! -e "$work/disturbed" ] || return 75
	# Status 4 is a program that was killed; the phases that it finished before still count.  A
	# kernel peer may fail in that way, but wrong bytes or an early end of zswapd's are no result.
	if [ $status -ne 4 ] || [ "$peer" = zswapd ]; then
		[ $status -eq 0 ] || die "$peer: pageload ended with status $status"
		[ "$(jq .phases.rw.major_faults "$work/load.json")" -gt 0 ] ||
			die "$peer: nothing was swapped"
	fi
	jq -c --arg peer "$peer" --arg note "$peer_note" --argjson round "$round" \
		--argjson ram "$(cat "$work/ram")" --argjson stalls "$(cgroup_stalls "$CGROUP")" --arg before "$before" --arg after "$after" '
		($before | split(" ") | map(tonumber)) as $b | ($after | split(" ") | map(tonumber)) as $a |
		($a[0] - $b[0]) as $requests |
		.phases |= map_values(if .pages == 0 then {} else . end) |
		{peer: $peer, note: $note, round: $round, killed: (.status == 4),
		 random_per_s: .phases.random.per_s, rw_per_s: .phases.rw.per_s,
		 seq_mb_per_s: .phases.seq.mb_per_s, fill_mb_per_s: .phases.fill.mb_per_s,
		 random_p50_us: .phases.random.p50_us, random_p99_us: .phases.random.p99_us,
		 random_p999_us: .phases.random.p999_us, ram_bytes: $ram, stalls: $stalls,
		 disk_write_requests: $requests, disk_write_bytes: ($a[1] - $b[1]),
		 pages_per_write: (if $requests > 0 then ($a[2] - $b[2]) / $requests else null end)}' \
		"$work/load.json" >>"$results"
}

# --- the run -------------------------------------------------------------------------------------

# possible PEER: or says why not.
possible()
{
	case $1 in
	plain) ;;
	zswap | zswap-shrinker | zswap-cluster0)
		[ -e $zswap/enabled ] || {
			note "$1 left out: the kernel has no zswap"
			return 1
		}
		[ "$1" != zswap-shrinker ] || [ -e $zswap/shrinker_enabled ] || {
			note "$1 left out: this zswap has no shrinker"
			return 1
		}
		;;
	zram)
		[ -e $zram ] || {
			note "zram left out: there is no zram0"
			return 1
		}
		[ "$(cat $zram/disksize)" -eq 0 ] || {
			note "zram left out: zram0 is in use"
			return 1
		}
		;;
	zswapd)
		[ -n "$zswapd" ] || {
			note "zswapd left out: no --zswapd DIR"
			return 1
		}
		zswapd_binary=$(find "$zswapd" -type f -name zswapd -perm -u+x | head -1)
		zswapctl=$(find "$zswapd" -type f -name zswapctl -perm -u+x | head -1)
		if [ -z "$zswapd_binary" ] || [ -z "$zswapctl" ]; then
			die "no zswapd and zswapctl in $zswapd"
		fi
		;;
	*) die "there is no peer $1" ;;
	esac
}

list=()
for peer in ${peers//,/ }; do
	! possible "$peer" || list+=("$peer")
done
[ ${#list[@]} -gt 0 ] || die "no peer is left"

# Kernel zswap sits in front of any swap, so it is off unless it is the peer.
if [ -e $zswap/enabled ]; then
	cleanup_sysfs $zswap/enabled
	echo N >$zswap/enabled
fi
fallocate -l $((size_bytes * 13 / 10)) "$swapfile" || die "no room for the swap file"
chmod 600 "$swapfile"
mkswap "$swapfile" >/dev/null

# What a measurement has to undo can take long: it ends zswapd, whose swapoff reads all pages.
CLEANUP_TERM_SECONDS=180
common_steps=("${CLEANUP_STEPS[@]}")
for ((round = 1; round <= rounds; round++)); do
	for ((i = 0; i < ${#list[@]}; i++)); do
		peer=${list[(i + round - 1) % ${#list[@]}]}
		note "round $round of $rounds: $peer"
		for try in 1 2 3 4 last; do
			status=0
			measure "$peer" "$round" &
			CLEANUP_STEPS=("${common_steps[@]}")
			cleanup_pid $!
			wait $! || status=$?
			[ $status -ne 0 ] || break
			if [ $status -ne 75 ] || [ $try = last ]; then
				die "$peer failed"
			fi
			note "another swap device was turned on meanwhile; once more"
		done
		tail -1 "$results" | jq -r 'def shown: if . == null then "-" else round end;
			"  random \(.random_per_s | shown)/s, rw \(.rw_per_s | shown)/s, seq \(.seq_mb_per_s | shown) MB/s\(if .killed then ", killed" else "" end)"' >&2
	done
done

jq -s --arg size "$size" --arg limit "$limit" --arg budget "$budget" --arg kernel "$(uname -r)" \
	--argjson cpus "$(nproc)" --argjson cluster "$(cat /proc/sys/vm/page-cluster)" '
	def median: map(select(. != null)) | sort |
		if length == 0 then null
		elif length % 2 == 1 then .[(length - 1) / 2]
		else (.[length / 2 - 1] + .[length / 2]) / 2 end;
	. as $rounds | ($rounds | map(.peer) | unique) as $peers |
	{size: $size, cgroup: $limit, budget: $budget, kernel: $kernel, cpus: $cpus,
	 page_cluster: $cluster, rounds: $rounds,
	 medians: ($peers | map(. as $p | [$rounds[] | select(.peer == $p)] as $of |
		{key: $p, value: (reduce ($of[0] | keys_unsorted[] | select(IN("peer", "note", "round", "killed") | not)) as $k
			({note: $of[0].note, killed: ($of | map(select(.killed)) | length), rounds: ($of | length)};
			.[$k] = ([$of[][$k]] | median)))}) | from_entries)}' \
	"$results" >"$work/result.json"
[ -z "$json" ] || cp "$work/result.json" "$json"

echo "$size of corpus pages, cgroup $limit, budget $budget, one thread, medians of $rounds rounds, kernel $(uname -r)"
echo
echo "| | random touch /s | read+write /s | sequential MB/s | RAM for swapped pages MB | pages per disk write | written MB |"
echo "| --- | --- | --- | --- | --- | --- | --- |"
for peer in "${list[@]}"; do
	jq -r --arg p "$peer" 'def shown: if . == null then "-" else round end;
		.medians[$p] | (if .killed > 0 then ["killed in \(.killed) of \(.rounds)"] else [] end +
			if (.stalls // 0) > 0 then ["\(.stalls) stalls"] else [] end) as $trouble |
		([.note | select(. != "")] + $trouble | join("; ")) as $note |
		"| \($p)\(if $note != "" then " (\($note))" else "" end) | \(.random_per_s | shown) | \(.rw_per_s | shown) | \(.seq_mb_per_s | shown) | \(if .ram_bytes == null then "-" else .ram_bytes / 1e6 | round end) | \(if .pages_per_write then .pages_per_write * 10 | round / 10 else "-" end) | \(if .disk_write_bytes == null then "-" else .disk_write_bytes / 1e6 | round end) |"' \
		"$work/result.json"
done

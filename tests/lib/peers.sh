# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# Peers of a comparison of swap: how each is set up, measured, undone, and what is made of the figures.
# Source cleanup.sh, processes.sh and cgroup.sh first.
#
# The script that sources this sets
#
#   pages, pageload                 the corpus, and the program that works on it
#   size_bytes, limit_bytes, budget_bytes     of the workload, its cgroup, what may hold swapped pages
#   seconds                         of each of the phases random and rw
#   verify                          --verify, or empty: no comparison of every byte at the end
#   work                            a directory for logs and results; $results is made in it
#   drive, or swapfile and store    the drive that every peer but zram has for itself, or the files
#   disk                            the drive's statistics; empty: none
#   settings                        for zswapd: SECTION.KEY=VALUE...
#   zswapd_binary, zswapctl
#   sample_seconds                  between two looks at the memory in use
#
# and calls
#
#   peers_possible PEER             false, with a word why, if the machine has not what it takes
#   peers_run ROUNDS PEER...        rounds in which the peers take turns, each round beginning with another
#   peers_json [KEY VALUE]...       the result: rounds, medians, ratios to kernel zswap; KEYs are added
#   peers_table FILE PEER...        the medians in that JSON as a table in Markdown
#   peers_ratios FILE PEER...       each peer's medians divided by kernel zswap's
#
# shellcheck disable=SC2154

results=$work/results
: >"$results"
zswap=/sys/module/zswap/parameters
zram=/sys/block/zram0

# --- peers ---------------------------------------------------------------------------------------
# start_PEER sets up swap and registers what undoes it; ram_PEER prints the bytes that hold swapped
# pages now.  Both may set `peer_note`.  Each peer is undone before the next one starts.

# What the last peer has left on the drive is no swap area and no store to the next one.
erase_drive()
{
	dd if=/dev/zero of="$drive" bs=1M count=4 conv=fsync status=none
}

swap_on()
{
	local area=${drive:-$swapfile}
	if [ -n "$drive" ]; then
		erase_drive
		# As large as the others' devices: the kernel gives up the slots of pages that come back once
		# swap is half full.
		mkswap "$drive" $((size_bytes * 13 / 10 / 1024)) >/dev/null
	fi
	swapon -p 100 "$area"
	cleanup_swap "$area"
}

start_plain()
{
	swap_on
}

ram_plain()
{
	echo 0
}

# What a pool of PERCENT of RAM may hold, in bytes.
zswap_pool_bytes()
{
	awk -v p="$1" '$1 == "MemTotal:" { printf "%.0f\n", $2 * 1024 / 100 * p }' /proc/meminfo
}

# The pool's limit is a whole per cent of RAM, so the budget is met only roughly.
zswap_percent()
{
	local one
	one=$(zswap_pool_bytes 1)
	echo $(((budget_bytes + one / 2) / one > 0 ? (budget_bytes + one / 2) / one : 1))
}

start_zswap()
{
	local percent compressor parameter
	percent=$(zswap_percent)
	for parameter in compressor max_pool_percent shrinker_enabled enabled; do
		[ ! -e "$zswap/$parameter" ] || cleanup_sysfs "$zswap/$parameter"
	done
	for compressor in zstd lzo-rle; do
		! echo $compressor 2>/dev/null >$zswap/compressor || break
	done
	echo "$percent" >$zswap/max_pool_percent
	[ ! -e $zswap/shrinker_enabled ] || echo "${1:-N}" >$zswap/shrinker_enabled
	echo Y >$zswap/enabled
	peer_note="$(cat $zswap/compressor), pool $(($(zswap_pool_bytes "$percent") / 1000000)) MB"
	swap_on
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

# peer_config TRANSPORT
peer_config()
{
	local setting key
	# A key given twice takes its last value, so settings come last.
	cat <<CONF
[device]
name = peers
transport = $1
size = $((size_bytes * 13 / 10 / 4096 * 4096))
[swap]
enable = yes
[memory]
limit = $budget_bytes
[store]
path = ${drive:-$store}
CONF
	[ -n "$drive" ] || echo "size = $((size_bytes * 13 / 10))"
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
	CLEANUP_TERM_SECONDS=120 undo_daemon "$work/zswapd.conf" && return 0
	while read -r dir; do
		fuse_abort "$dir"
		undo_mount "$dir"
	done < <(comm -13 "$work/mounts" <(fuse_mounts))
	undo_daemon "$work/zswapd.conf"
}

start_zswapd()
{
	local pid
	fuse_mounts >"$work/mounts"
	[ -z "$drive" ] || erase_drive
	peer_config "${1:-auto}" >"$work/zswapd.conf"
	"$zswapd_binary" --config "$work/zswapd.conf" 2>"$work/zswapd.log" 9>&- &
	pid=$!
	[ -n "$drive" ] || cleanup_push rm -f "$store"
	cleanup_push undo_zswapd
	wait_for "is_swapping /dev/zswap/peers || has_ended $pid" 60 || true
	is_swapping /dev/zswap/peers || {
		cat "$work/zswapd.log" >&2
		die "zswapd did not come up as swap"
	}
	peer_note="${settings[*]-}"
}

zswapd_stats()
{
	timeout 20 "$zswapctl" --device peers stats --json
}

ram_zswapd()
{
	zswapd_stats | jq '.memory_used_bytes + .memory_metadata_bytes'
}

start_zswapd-ublk()
{
	start_zswapd ublk
}

ram_zswapd-ublk()
{
	ram_zswapd
}

start_zswapd-fuse()
{
	start_zswapd fuse
}

ram_zswapd-fuse()
{
	ram_zswapd
}

# All memory of zswapd's processes, what they share counted once: with code, stacks, buffers.
zswapd_processes()
{
	local pid
	for pid in $(daemon_pids "$work/zswapd.conf"); do
		cat "/proc/$pid/smaps_rollup"
	done | awk '$1 == "Pss:" { n += $2 } END { printf "%.0f\n", n * 1024 }'
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
		sleep "$sample_seconds"
	done
}

# disk_counters PEER: requests, bytes and pages written to the disk so far.  zswapd's pages are
# compressed, so it alone knows how many they are; where others may write to the disk, its requests and
# bytes are its own counters too.
disk_counters()
{
	local counters='[.store_write_requests_total, .store_write_bytes_total, .pages_written_back_total]'
	case $1 in
	zswapd*)
		if [ -n "$drive" ]; then
			echo "$(awk '{ printf "%.0f %.0f", $5, $7 * 512 }' "$disk") $(zswapd_stats |
				jq .pages_written_back_total)"
		else
			zswapd_stats | jq -r "$counters | map(tostring) | join(\" \")"
		fi
		;;
	*)
		if [ "$1" = zram ] || [ -z "$disk" ]; then
			echo 0 0 0
		else
			awk '{ printf "%.0f %.0f %.0f\n", $5, $7 * 512, $7 / 8 }' "$disk"
		fi
		;;
	esac
}

# CPU time of the whole machine in hundredths of a second, and its context switches.
machine_counters()
{
	awk '$1 == "cpu" { busy = $2 + $3 + $4 + $7 + $8 } $1 == "ctxt" { print busy, $2 }' /proc/stat
}

# Runs in a subshell in the background: each peer is undone by its own clean-up, `set -e` holds in
# it, and a signal to the script is acted on at once.
measure()
{
	local peer=$1 round=$2 peer_note='' before after status=0 sampler processes=0
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
	before="$(disk_counters "$peer") $(machine_counters)"
	"$pageload" --pages "$pages" --size "$size_bytes" --seed "$round" --seconds "$seconds" --same keep \
		${verify:+--verify} --cgroup "$CGROUP" --timeout 1200 --report json >"$work/load.json" &
	cleanup_pid $!
	wait $! || status=$?
	after="$(disk_counters "$peer") $(machine_counters)"
	[ ! -e "$work/disturbed" ] || return 75
	# Status 4 is a program that was killed; the phases that it finished before still count.  A
	# kernel peer may fail in that way, but wrong bytes or an early end of zswapd's are no result.
	if [ $status -ne 4 ] || [[ $peer == zswapd* ]]; then
		[ $status -eq 0 ] || die "$peer: pageload ended with status $status"
		[ "$(jq .phases.rw.major_faults "$work/load.json")" -gt 0 ] ||
			die "$peer: nothing was swapped"
	fi
	if [[ $peer == zswapd* ]]; then
		zswapd_stats >"$work/$peer-$round.json"
		processes=$(zswapd_processes)
	fi
	jq -c --arg peer "$peer" --arg note "$peer_note" --argjson round "$round" \
		--argjson ram "$(cat "$work/ram")" --argjson processes "$processes" \
		--argjson stalls "$(cgroup_stalls "$CGROUP")" --arg before "$before" --arg after "$after" '
		($before | split(" ") | map(tonumber)) as $b | ($after | split(" ") | map(tonumber)) as $a |
		($a[0] - $b[0]) as $requests |
		.phases |= map_values(if .pages == 0 then {} else . end) |
		{peer: $peer, note: $note, round: $round, killed: (.status == 4),
		 random_per_s: .phases.random.per_s, rw_per_s: .phases.rw.per_s,
		 seq_mb_per_s: .phases.seq.mb_per_s, fill_mb_per_s: .phases.fill.mb_per_s,
		 random_p50_us: .phases.random.p50_us, random_p99_us: .phases.random.p99_us,
		 random_p999_us: .phases.random.p999_us,
		 major_faults: ([.phases[].major_faults // 0] | add), ram_bytes: $ram,
		 process_bytes: (if $processes > 0 then $processes else null end), stalls: $stalls,
		 cpu_seconds: (($a[3] - $b[3]) / 100), context_switches: ($a[4] - $b[4]),
		 disk_write_requests: $requests, disk_write_bytes: ($a[1] - $b[1]),
		 pages_per_write: (if $requests > 0 then ($a[2] - $b[2]) / $requests else null end)}' \
		"$work/load.json" >>"$results"
}

# --- the run -------------------------------------------------------------------------------------

peers_possible()
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
	zswapd | zswapd-ublk | zswapd-fuse)
		[ -n "$zswapd_binary" ] || {
			note "$1 left out: no --zswapd DIR"
			return 1
		}
		[ "$1" != zswapd-ublk ] || [ -e /dev/ublk-control ] || {
			note "$1 left out: the kernel has no ublk"
			return 1
		}
		;;
	*) die "there is no peer $1" ;;
	esac
}

peers_run()
{
	local rounds=$1 round i peer try status list common_steps
	shift
	list=("$@")
	# Kernel zswap sits in front of any swap, so it is off unless it is the peer.
	if [ -e $zswap/enabled ]; then
		cleanup_sysfs $zswap/enabled
		echo N >$zswap/enabled
	fi
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
			tail -n 1 "$results" | jq -r 'def shown: if . == null then "-" else round end;
				"  random \(.random_per_s | shown)/s, rw \(.rw_per_s | shown)/s, seq \(.seq_mb_per_s | shown) MB/s\(if .killed then ", killed" else "" end)"' >&2
		done
	done
}

peers_json()
{
	local facts=()
	while [ $# -gt 0 ]; do
		facts+=(--arg "$1" "$2")
		shift 2
	done
	jq -s "${facts[@]}" --arg kernel "$(uname -r)" --argjson cpus "$(nproc)" \
		--argjson page_cluster "$(cat /proc/sys/vm/page-cluster)" \
		--argjson swappiness "$(cat /proc/sys/vm/swappiness)" '
		def median: map(select(. != null)) | sort |
			if length == 0 then null
			elif length % 2 == 1 then .[(length - 1) / 2]
			else (.[length / 2 - 1] + .[length / 2]) / 2 end;
		def figures: keys_unsorted[] | select(IN("peer", "note", "round", "killed") | not);
		. as $rounds | ($rounds | map(.peer) | unique) as $peers |
		($peers | map(. as $p | [$rounds[] | select(.peer == $p)] as $of |
			{key: $p, value: (reduce ($of[0] | figures) as $k
				({note: $of[0].note, killed: ($of | map(select(.killed)) | length), rounds: ($of | length)};
				.[$k] = ([$of[][$k]] | median)))}) | from_entries) as $medians |
		$ARGS.named + {rounds: $rounds, medians: $medians} |
		if $medians.zswap == null then . else
			.ratios_to_zswap = ($medians | map_values(to_entries | map(
				select((.value | type) == "number" and (.key | IN("rounds", "killed", "stalls") | not)) |
				.key as $k | ($medians.zswap[$k] // 0) as $of | select($of > 0) |
				{key, value: (.value / $of)}) | from_entries))
		end' "$results"
}

TABLE_HEAD='| | random touch /s | read+write /s | sequential MB/s | touch p50 µs | p99 µs | RAM for swapped pages MB | pages per disk write | written MB |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |'

peers_table()
{
	local file=$1 peer
	shift
	echo "$TABLE_HEAD"
	for peer in "$@"; do
		jq -r --arg p "$peer" 'def shown: if . == null then "-" else round end;
			.medians[$p] | (if .killed > 0 then ["killed in \(.killed) of \(.rounds)"] else [] end +
				if (.stalls // 0) > 0 then ["\(.stalls) stalls"] else [] end) as $trouble |
			([.note | select(. != "")] + $trouble | join("; ")) as $note |
			"| \($p)\(if $note != "" then " (\($note))" else "" end) | \(.random_per_s | shown) | \(.rw_per_s | shown) | \(.seq_mb_per_s | shown) | \(.random_p50_us | shown) | \(.random_p99_us | shown) | \(if .ram_bytes == null then "-" else .ram_bytes / 1e6 | round end) | \(if .pages_per_write then .pages_per_write * 10 | round / 10 else "-" end) | \(if .disk_write_bytes == null then "-" else .disk_write_bytes / 1e6 | round end) |"' \
			"$file"
	done
}

peers_ratios()
{
	local file=$1 peer
	shift
	echo "$TABLE_HEAD"
	for peer in "$@"; do
		jq -r --arg p "$peer" 'def shown: if . == null then "-" else . * 100 | round / 100 end;
			.ratios_to_zswap[$p] | [.random_per_s, .rw_per_s, .seq_mb_per_s, .random_p50_us,
				.random_p99_us, .ram_bytes, .pages_per_write, .disk_write_bytes] |
			"| \($p) | \(map(shown | tostring) | join(" | ")) |"' "$file"
	done
}

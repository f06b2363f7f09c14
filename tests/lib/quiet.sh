# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# Whether the data threads of a daemon allocate or fault.  Source zswapd.sh first.
#
#   quiet_launch NAME           zswapd_launch, with every allocation counted (allocwatch.c)
#   quiet_note FILE PID         writes to FILE what the data threads of process PID have done so far:
#                               a line each, THREAD ALLOCS FREES MAPS MINFLT MAJFLT
#   quiet_same TEXT FILE PID    fails, naming TEXT, if they have done anything since
#   quiet_since FILE PID        prints what they have done since, all added up
#   quiet_main PID              ALLOCS FREES MAPS BYTES LARGEST of its main thread so far
#   wait_standby NAME           until it has a standby that has threads; sets STANDBY
#
# From the environment: ALLOCWATCH, ALLOCS_SHOW; ALLOCS_FILE, which can be mapped by several ($TEST_DIR/allocs).

quiet_launch()
{
	# Never made shorter: those of before may have it mapped.
	: >>"${ALLOCS_FILE:-$TEST_DIR/allocs}"
	zswapd_launch "$1" env LD_PRELOAD="$ALLOCWATCH" ZSWAPD_ALLOCWATCH="${ALLOCS_FILE:-$TEST_DIR/allocs}"
}

# allocs_of PID TID: the latest thread of that number.
allocs_of()
{
	"$ALLOCS_SHOW" "${ALLOCS_FILE:-$TEST_DIR/allocs}" |
		awk -v p="$1" -v t="$2" '$1 == p && $2 == t { l = $0 } END { if (l == "") exit 1; print l }' ||
		fail "nothing is known of thread $2 of $1"
}

quiet_note()
{
	local task name tid _ allocs frees maps
	for task in /proc/"$2"/task/*; do
		{ read -r name <"$task/comm"; } 2>/dev/null || continue
		[[ $name == zswapd-data* ]] || continue
		tid=${task##*/}
		read -r _ _ allocs frees maps _ < <(allocs_of "$2" "$tid")
		# shellcheck disable=SC2046
		echo "$name/$tid $allocs $frees $maps $(sed 's/.*) //' "$task/stat" | awk '{ print $8, $10 }')"
	done >"$1"
	[ -s "$1" ] || fail "process $2 has no data threads"
}

quiet_same()
{
	quiet_note "$2.now" "$3"
	cmp -s "$2" "$2.now" ||
		fail "$1: data threads (THREAD ALLOCS FREES MAPS MINFLT MAJFLT) from $(tr '\n' ';' <"$2") to $(tr '\n' ';' <"$2.now")"
}

quiet_since()
{
	quiet_note "$1.now" "$2"
	cat "$1" "$1.now" | awk -v n="$(wc -l <"$1")" '
		{ for (i = 2; i <= 6; i++) v[i] += NR > n ? $i : -$i }
		END { printf "allocations %d, frees %d, maps %d, faults %d, major %d\n", v[2], v[3], v[4], v[5], v[6] }'
}

quiet_main()
{
	allocs_of "$1" "$1" | cut -d ' ' -f 3-
}

has_threads()
{
	cat /proc/"$1"/task/*/comm 2>/dev/null | grep -q '^zswapd-data'
}

wait_standby()
{
	wait_for "STANDBY=\$(zswapd_pids $1 standby); [ -n \"\$STANDBY\" ] && has_threads \"\$STANDBY\"" 30 ||
		fail "$1 has no standby"
	# What follows takes no time on a machine that does nothing else: it follows the worker.
	sleep 1
}

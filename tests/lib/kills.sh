# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# What kills cost, from the lists that killer and those who waited have left in DIR: DIR/kills
# (tests/system/killer.c) and DIR/stalls (tests/system/stalls.h).  Source it alone.
#
#   kills_report DIR    a table by what was killed: the longest access around each kill, and the time
#                       until the daemon was whole again
#   kills_count DIR     how many processes were killed

# Beside each kill the longest access that it can have to do with: one under way between the kill and
# 0.2 s after the daemon was whole.  Those below 2 ms are not in the list.
kills_report()
{
	local kind column
	sort -n "$1/stalls" >"$1/stalls.sorted"
	awk '
		FNR == NR { start[n] = $1; end[n++] = $1 + $2; next }
		{
			longest = 2000
			for (; first < n && end[first] < $2 - 10000000; first++)
				;
			for (i = first; i < n && start[i] < $3 + 200000; i++)
				if (end[i] > $2 && end[i] - start[i] > longest)
					longest = end[i] - start[i]
			print ($1 == "heir" ? "worker" : $1), longest / 1000, ($3 - $2) / 1000
		}' "$1/stalls.sorted" "$1/kills" >"$1/costs"
	printf '%-12s %5s  %28s  %28s\n' killed times 'longest access, ms' 'until whole again, ms'
	printf '%-12s %5s  %8s %9s %9s  %8s %9s %9s\n' '' '' p50 p99 max p50 p99 max
	for kind in worker both again supervisor all storm; do
		grep -q "^$kind " "$1/costs" || continue
		printf '%-12s %5s ' $kind "$(grep -c "^$kind " "$1/costs")"
		for column in 2 3; do
			awk -v k=$kind -v c=$column '$1 == k { print $c }' "$1/costs" | sort -g | awk '
				{ v[NR] = $1 }
				function at(share) { return v[int(NR * share + 0.999999)] }
				END { printf " %8.1f %9.1f %9.1f ", at(0.5), at(0.99), v[NR] }'
		done
		echo
	done
}

kills_count()
{
	awk '{ n += $1 == "both" || $1 == "again" ? 2 : $1 == "all" ? 3 : $1 == "storm" ? 8 : 1 } END { print n + 0 }' \
		"$1/kills"
}

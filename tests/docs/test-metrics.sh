#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The dashboard and the alerts ask for metrics that there are, and the script for the textfile
# collector writes whole files or none.
set -euo pipefail
export LC_ALL=C
: "${SOURCE_ROOT:?}"
# shellcheck source=tests/lib/cleanup.sh
. "$(dirname "$0")/../lib/cleanup.sh"
docs=$SOURCE_ROOT/docs
work=$(mktemp -d)
cleanup_push rm -rf "$work"

# --- names ---

sed -n 's/^	X(\([a-z_]*\), .*/zswapd_\1/p' "$SOURCE_ROOT/common/counters.h" >"$work/metrics"
[ "$(wc -l <"$work/metrics")" -ge 36 ] || die "only these counters were found: $(cat "$work/metrics")"
sed -n 's/^	X(\([a-z_]*\), *\([A-Z]*\), .*/\1 \2/p' "$SOURCE_ROOT/common/histograms.h" |
	while read -r name unit; do
		[ "$unit" != NANOSECONDS ] || name+=_seconds
		printf "zswapd_${name}_%s\n" bucket sum count
	done >>"$work/metrics"
echo zswapd_up >>"$work/metrics" # the script's
for file in "$docs/grafana/zswapd.json" "$docs/prometheus/zswapd.rules.yml"; do
	case $file in
	*.json) python3 -m json.tool "$file" >/dev/null || die "$file is no JSON" ;;
	esac
	used=$(grep -E '"?(expr|query)"?:' "$file" | grep -oE 'zswapd_[a-z_]+' | sort -u)
	[ -n "$used" ] || die "$file uses no metric"
	for name in $used; do
		grep -qx "$name" "$work/metrics" || die "$file uses $name, which does not exist"
	done
done

# --- the script ---

# Does for device NAME what $work/NAME says: an exit status, and prints a line or half of one.
mkdir "$work/bin" "$work/run" "$work/out"
cat >"$work/bin/zswapctl" <<'END'
#!/bin/sh
[ "$1 $3 $4" = "--device stats --prometheus" ] || exit 99
printf 'zswapd_slots_used{device="%s"} 1\n' "$2"
exit "$(cat "$ZSWAPD_RUN_DIR/../status-$2")"
END
chmod +x "$work/bin/zswapctl"

# collect STATUS: runs the script, which must end with it.
collect()
{
	local status=0
	PATH=$work/bin:$PATH ZSWAPD_RUN_DIR=$work/run "$docs/prometheus/zswapd-textfile" "$work/out" || status=$?
	[ $status -eq "$1" ] || die "zswapd-textfile: status $status, not $1"
}

files()
{
	(cd "$work/out" && find . -type f | sort | xargs)
}

collect 0
[ -z "$(files)" ] || die "no device, but: $(files)"
: >"$work/run/a.port"
: >"$work/run/b.port"
: >"$work/out/other.prom"
echo 0 >"$work/status-a"
echo 4 >"$work/status-b"
collect 0
[ "$(files)" = "./other.prom ./zswapd-a.prom ./zswapd-b.prom" ] || die "two devices, but: $(files)"
[ "$(grep -v '^#' "$work/out/zswapd-b.prom" | xargs)" = 'zswapd_slots_used{device=b} 1 zswapd_up{device=b} 1' ] ||
	die "$(cat "$work/out/zswapd-b.prom")"
# One does not answer: that is told, and what it said before is old.
echo 2 >"$work/status-a"
collect 1
[ "$(files)" = "./other.prom ./zswapd-a.prom ./zswapd-b.prom" ] || die "a does not answer, but: $(files)"
[ "$(grep -v '^#' "$work/out/zswapd-a.prom")" = 'zswapd_up{device="a"} 0' ] || die "$(cat "$work/out/zswapd-a.prom")"
grep -q 'expr: zswapd_up == 0' "$docs/prometheus/zswapd.rules.yml" || die "no alert for a daemon that died"
grep -A9 ZswapdStoreNearlyFull "$docs/prometheus/zswapd.rules.yml" | grep 'expr:' | grep -q used_bytes &&
	die "a store that is full of what is dead raises an alert"
rm "$work/run/b.port" "$work/run/a.port"
collect 0
[ "$(files)" = "./other.prom" ] || die "no device any more, but: $(files)"

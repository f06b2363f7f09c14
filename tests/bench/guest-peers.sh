#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Compares zswapd on ublk and on FUSE with what the kernel has, in a virtual machine: a Debian kernel
# with ublk and zstd, and an NVMe drive that each peer has for itself.  One workload, one budget of
# memory, one run; the peers take turns as in peers.sh, which see.
#
# The processor is emulated, and its clock is the wall's: absolute figures mean nothing, and to wake
# another CPU takes as long as this machine takes to run its thread.  Ratios within the run can be used
# if nothing else runs.  With --icount they hold on a busy machine too, but the two CPUs take turns, so
# that what peers do in parallel counts in full.
#
# The budget is what a whole per cent of the guest's RAM is, since kernel zswap knows no other
# limit.  About 18 MiB of zswapd's are segments that are open or kept free, so with budgets much
# below the default that is what is measured.
#
# The guest is started with cgroup.memory=nokmem: otherwise zswap's pool, and no other peer's memory,
# counts as the workload's own and the cgroup holds fewer of its pages.
#
# zram has no second tier: it keeps everything in RAM, as much as that takes.  Hits in the workload's own
# memory are among the touches that the percentiles are of.
set -euo pipefail
export LC_ALL=C
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/lib/cleanup.sh
. "$here/../lib/cleanup.sh"

usage()
{
	cat <<'TEXT'
usage: guest-peers.sh [OPTION]...
  --build DIR       with zswapd ($ZSWAPD_BUILD, build)
  --memory MIB      the guest's (512)
  --size SIZE       memory of the workload (250M); sizes take K, M, G, binary
  --cgroup SIZE     memory limit (40M)
  --budget SIZE     memory that may hold swapped pages (48M)
  --corpus MIB      pages of real programs, made new unless $ZSWAPD_TEST_CORPUS names them (32)
  --rounds N        (3)
  --seconds S       of each of the phases random and rw (5)
  --peers LIST      (plain,zswap,zram,zswapd-ublk,zswapd-fuse)
  --set SECTION.KEY=VALUE   for zswapd's configuration; may be repeated
  --throttle SPEC   slows the drive down, e.g. iops=9000,bps=160000000: an emulated processor is
                    several times slower than a real one, an emulated drive is not, and what
                    trades work for transfers looks bad (not throttled)
  --limit SECONDS   for the whole run (150 for each measurement)
  --icount          time is what instructions take, see run.sh
  --output DIR      where logs, peers.json and table.md go ($TMPDIR or /var/tmp, a new directory)
  --json FILE       the result as JSON
TEXT
}

build=${ZSWAPD_BUILD:-$here/../../build}
memory=512 size=250M cgroup=40M budget=48M corpus=32 rounds=3 seconds=5
peers=plain,zswap,zram,zswapd-ublk,zswapd-fuse
settings=() throttle='' limit='' output='' json='' options=()
while [ $# -gt 0 ]; do
	[ "$1" != --help ] || {
		usage
		exit 0
	}
	if [ "$1" = --icount ]; then
		options+=(--icount)
		shift
		continue
	fi
	[ $# -ge 2 ] || {
		usage >&2
		exit 2
	}
	case $1 in
	--build) build=$2 ;;
	--memory) memory=$2 ;;
	--size) size=$2 ;;
	--cgroup) cgroup=$2 ;;
	--budget) budget=$2 ;;
	--corpus) corpus=$2 ;;
	--rounds) rounds=$2 ;;
	--seconds) seconds=$2 ;;
	--peers) peers=$2 ;;
	--set) settings+=("$2") ;;
	--throttle) throttle=$2 ;;
	--limit) limit=$2 ;;
	--output) output=$2 ;;
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

size=$(bytes "$size") cgroup=$(bytes "$cgroup") budget=$(bytes "$budget")
measurements=$(tr ',' '\n' <<<"$peers" | wc -l)
[ -n "$limit" ] || limit=$((60 + measurements * rounds * 150))
[ -n "$output" ] || output=$(mktemp -d "${TMPDIR:-/var/tmp}/zswapd-guest-peers-XXXXXX")

"$here/../guest/run.sh" --build "$build" --memory "$memory" --limit "$limit" --output "$output" \
	--drive "$((size * 2))${throttle:+,$throttle}" --corpus "$corpus" --append cgroup.memory=nokmem \
	${options[@]+"${options[@]}"} \
	"$here/../guest/peers.sh" "$size" "$cgroup" "$budget" "$seconds" "$rounds" "$peers" \
	${settings[@]+"${settings[@]}"} >&2
[ -z "$json" ] || cp "$output/results/peers.json" "$json"
note "counters, logs and every round are in $output"
cat "$output/results/table.md"

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
# shellcheck source=tests/lib/cleanup.sh
. "$here/../lib/cleanup.sh"
# shellcheck source=tests/lib/processes.sh
. "$here/../lib/processes.sh"
# shellcheck source=tests/lib/cgroup.sh
. "$here/../lib/cgroup.sh"
# shellcheck source=tests/lib/swap-lock.sh
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
  --peers LIST      (plain,zswap,zswap-shrinker,zswap-cluster0,zram,zswapd) which, also
                    zswapd-ublk and zswapd-fuse; those not possible are said
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
# shellcheck disable=SC2034
swapfile=$work/swapfile store=$work/store drive='' sample_seconds=0.5 verify=--verify
# The statistics of the device that the work directory lies on; empty if it has none of its own.
disk=/sys/dev/block/$(stat -c '%Hd:%Ld' "$work")/stat
[ -e "$disk" ] || disk=
zswapd_binary='' zswapctl=''
if [ -n "$zswapd" ]; then
	zswapd_binary=$(find "$zswapd" -type f -name zswapd -perm -u+x | head -1)
	zswapctl=$(find "$zswapd" -type f -name zswapctl -perm -u+x | head -1)
	if [ -z "$zswapd_binary" ] || [ -z "$zswapctl" ]; then
		die "no zswapd and zswapctl in $zswapd"
	fi
fi
# shellcheck source=tests/lib/peers.sh
. "$here/../lib/peers.sh"

list=()
for peer in ${peers//,/ }; do
	! peers_possible "$peer" || list+=("$peer")
done
[ ${#list[@]} -gt 0 ] || die "no peer is left"

fallocate -l $((size_bytes * 13 / 10)) "$swapfile" || die "no room for the swap file"
chmod 600 "$swapfile"
mkswap "$swapfile" >/dev/null

peers_run "$rounds" "${list[@]}"
peers_json size "$size" cgroup "$limit" budget "$budget" >"$work/result.json"
[ -z "$json" ] || cp "$work/result.json" "$json"

echo "$size of corpus pages, cgroup $limit, budget $budget, one thread, medians of $rounds rounds, kernel $(uname -r)"
echo
peers_table "$work/result.json" "${list[@]}"

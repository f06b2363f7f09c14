#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Shows zswapd at work on this machine: installs what it needs, builds it, starts it with a 64 MiB front
# tier and a store file, and runs sqlite3 on an in-memory database with a third of the memory that it
# needs.  The rest is swapped to zswapd.  The answers are compared with those of an unlimited run.
# Everything is taken away again at the end, also after a failure or Ctrl-C.

set -u
top=$(cd "$(dirname "$0")" && pwd)
cd "$top" || exit 1
# shellcheck source=tests/lib/cleanup.sh
. tests/lib/cleanup.sh
# shellcheck source=tests/lib/processes.sh
. tests/lib/processes.sh
# shellcheck source=tests/lib/cgroup.sh
. tests/lib/cgroup.sh
# shellcheck source=tests/lib/packages.sh
. tests/lib/packages.sh
# shellcheck source=tests/lib/swap-lock.sh
. tests/lib/swap-lock.sh

name=try$$
[ "$(id -u)" = 0 ] || die "must be run as root (sudo ./try.sh): it swaps on a device"

step()
{
	echo "== $*"
}

step "installing packages"
packages_install packages_build packages_try || die "packages could not be installed"

work=$(mktemp -d "${TMPDIR:-/var/tmp}/zswapd-try-XXXXXX") || exit 1
cleanup_push rm -rf "$work"

step "building"
meson setup "$work/build" -Dtests=false >"$work/log" 2>&1 && ninja -C "$work/build" >>"$work/log" 2>&1 || {
	cat "$work/log"
	die "the build failed"
}

counter()
{
	awk -v n="$1" '$1 == n { print $2; found = 1 } END { exit !found }' "$work/stats" || echo 0
}

# Runs the workload in the cgroup $CGROUP; the seconds it took go to $took.
workload()
{
	local start=$EPOCHREALTIME
	timeout 180 bash -c 'echo $$ >"$0/cgroup.procs" && exec sqlite3 :memory:' "$CGROUP" \
		<tests/try/inventory.sql >"$1" || die "sqlite3 failed or took longer than 180 s"
	took=$(awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", b - a }')
}

peak()
{
	cat "$CGROUP/memory.peak" 2>/dev/null || cat "$CGROUP/memory.max_usage_in_bytes"
}

step "running sqlite3 without a limit"
cgroup_new try-free $((64 << 30))
workload "$work/want"
needed=$(peak)
free_took=$took
limit=$((needed / 3))

step "starting zswapd: front tier 64 MiB, store 512 MiB"
cat >"$work/zswapd.conf" <<EOF
[device]
name = $name
size = 1G

[memory]
limit = 64M

[store]
path = $work/store
size = 512M
EOF
swap_lock
cleanup_push eval '[ ! -d /run/zswapd ] || rmdir --ignore-fail-on-non-empty /run/zswapd'
cleanup_file "/run/zswapd/$name.lock" "/run/zswapd/$name.sock"
"$work/build/daemon/main/zswapd" --config "$work/zswapd.conf" 2>"$work/zswapd.log" 9>&- &
daemon=$!
# shellcheck disable=SC2034
CLEANUP_TERM_SECONDS=60
cleanup_push undo_daemon "$work/zswapd.conf"
wait_for "grep -q 'ready:' '$work/zswapd.log' || has_ended $daemon" 60
if ! grep -q 'ready:' "$work/zswapd.log"; then
	cat "$work/zswapd.log"
	die "zswapd did not start"
fi
sed 's/^<[0-9]>//; s/^/   /' "$work/zswapd.log"

transport=$("$work/build/ctl/zswapctl" --device "$name" status | awk '$1 == "transport" { print $2 }')

step "running sqlite3 with a third of the memory it needs ($((limit >> 20)) of $((needed >> 20)) MiB)"
cgroup_new try-limited $limit
cgroup_patience "$CGROUP"
in=$(swap_in_total) out=$(swap_out_total)
(
	while sleep 0.2; do
		"$work/build/ctl/zswapctl" --device "$name" stats >"$work/stats.new" 2>/dev/null &&
			mv "$work/stats.new" "$work/stats"
	done
) &
cleanup_pid $!
workload "$work/have"
kill $! 2>/dev/null
in=$(($(swap_in_total) - in)) out=$(($(swap_out_total) - out))
"$work/build/ctl/zswapctl" --device "$name" stats >"$work/final" || die "zswapd does not answer"
cmp -s "$work/want" "$work/have" || {
	diff "$work/want" "$work/have"
	die "FAILED: the answers differ"
}

# Gauges from while it ran, totals from the end.
resident=$(counter slots_resident) stored=$(counter slots_stored)
bytes=$(($(counter resident_compressed_bytes) + $(counter stored_compressed_bytes)))
cp "$work/final" "$work/stats"
writes=$(counter store_write_requests_total) back=$(counter pages_written_back_total)

step "stopping zswapd (swaps off first)"
kill "$daemon"
wait_for "has_ended $daemon" 60 || die "zswapd did not stop within a minute"
wait "$daemon" || die "zswapd ended with an error: $(tail -n 3 "$work/zswapd.log")"

awk -v in_="$in" -v out="$out" -v r="$resident" -v s="$stored" -v b="$bytes" -v w="$writes" -v back="$back" \
	-v reads="$(counter store_read_requests_total)" -v wb="$(counter store_write_bytes_total)" \
	-v transport="$transport" -v free="$free_took" -v took="$took" -v limit="$limit" -v needed="$needed" 'BEGIN {
	printf "\n  transport           %s\n", transport
	printf "  answers             the same as without a limit\n"
	printf "  memory              %d of the %d MiB it needs\n", limit / 1048576, needed / 1048576
	printf "  pages swapped       %d out, %d in\n", out, in_
	printf "  compression         %s\n", b ? sprintf("%.2f : 1", (r + s) * 4096 / b) : "-"
	printf "  pages held          %d in memory, %d in the store (at the last look)\n", r, s
	printf "  store               %d read and %d write requests, %.1f MiB written\n", reads, w, wb / 1048576
	printf "  pages per write     %s\n", w ? sprintf("%.0f", back / w) : "-"
	printf "  time                %.1f s, without a limit %.1f s\n\n", took, free
}'
step "done; everything is removed again"

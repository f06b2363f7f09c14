#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# pageload finds a byte that changed behind its back, and says when a page is lost.
# usage: test-pageload.sh PAGELOAD
set -eu
pageload=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

fail()
{
	echo "test-pageload: $*" >&2
	cat "$dir/err" >&2
	exit 1
}

head -c $((512 * 4096)) /usr/bin/perl >"$dir/corpus"

# start OPTION...: runs it in the background until its touching phase has begun.
start()
{
	: >"$dir/err"
	"$pageload" --pages "$dir/corpus" --size 64M --seconds 2 --progress "$@" \
		>"$dir/out" 2>"$dir/err" &
	parent=$!
	for _ in $(seq 200); do
		grep -qE 'phase (random|rw)' "$dir/err" && break
		# --timeout may strike before that.
		[ -e /proc/$parent/task/$parent/children ] || return 0
		sleep 0.05
	done
	child=$(tr -d " " 2>/dev/null </proc/$parent/task/$parent/children) || child=
}

# flip OFFSET: changes a byte of the data, which is the child's only private mapping of 64 MiB.
flip()
{
	perl -e '
		my ($pid, $at) = @ARGV;
		open my $maps, "<", "/proc/$pid/maps" or die;
		my ($start) = map { hex $_->[0] } grep { hex($_->[1]) - hex($_->[0]) == 64 << 20 }
			map { [/^(\w+)-(\w+) rw-p/] } grep { /^\w+-\w+ rw-p/ } <$maps>;
		open my $mem, "+<:raw", "/proc/$pid/mem" or die;
		sysseek $mem, $start + $at, 0; sysread $mem, my $byte, 1;
		sysseek $mem, $start + $at, 0; syswrite $mem, chr(ord($byte) ^ 4) or die;
	' "$child" "$1"
}

# exited STATUS
exited()
{
	status=0
	wait $parent || status=$?
	[ $status -eq "$1" ] || fail "exit status $status, expected $1"
}

start --mode random --verify
exited 0

start --mode random --verify
flip $((1234 * 4096 + 77))
exited 1
grep -q '1 wrong pages; .* page 1234, generation 0: byte 77 ' "$dir/err" || fail "byte not named"

start --mode random
kill -BUS "$child"
exited 3
grep -q SIGBUS "$dir/err" || fail "SIGBUS not reported"

start --mode rw --timeout 1
exited 4

status=0
"$pageload" --pages "$dir/corpus" --size 64M --mode nothing 2>"$dir/err" || status=$?
[ $status -eq 2 ] || fail "usage"

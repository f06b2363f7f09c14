#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# corpus-capture takes what a program has built, and nothing of the environment.
# usage: test-capture.sh CORPUS-CAPTURE
set -eu
capture=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

fail()
{
	echo "test-capture: $*" >&2
	exit 1
}

# 16 MiB of one string, whose second half only the program knows.
cat >"$dir/prog.pl" <<'PERL'
$| = 1;
my $mark = "needle" . (6 * 7) . "x";
my $text = $mark x (16 * 1048576 / length $mark);
print "built\n";
<STDIN>;
PERL

# A program that holds no marker of ours: its environment must be empty.
CORPUS_SECRET=in-the-environment
export CORPUS_SECRET
"$capture" --out "$dir/a.pages" --marker built --file "$dir/prog.pl" -- /usr/bin/perl prog.pl
[ $(($(stat -c %s "$dir/a.pages") % 4096)) -eq 0 ] || fail "not whole pages"
[ "$(stat -c %s "$dir/a.pages")" -ge 16777216 ] || fail "too few pages"
[ "$(grep -ao needle42x "$dir/a.pages" | wc -l)" -gt 1800000 ] || fail "string not found"
! grep -aq in-the-environment "$dir/a.pages" || fail "environment captured"
! grep -aqF "$dir" "$dir/a.pages" || fail "working directory captured"

# At most as many as wanted; --fed instead of a marker; appended, not replaced.
head -c 3000000 /usr/bin/perl >"$dir/input"
before=$(stat -c %s "$dir/a.pages")
"$capture" --out "$dir/a.pages" --fed --stdin "$dir/input" --pages 256 -- /usr/bin/sort
[ $(($(stat -c %s "$dir/a.pages") - before)) -eq 1048576 ] || fail "--pages 256 is not 1 MiB"
"$capture" --stat "$dir/a.pages" | grep -q 'zstd 1  *ratio [1-9]' || fail "no ratio"

# What goes wrong is an error: it ends too early, it never prints the marker, half a page.
! "$capture" --out "$dir/b.pages" --marker built -- /bin/true 2>/dev/null || fail "/bin/true"
! "$capture" --out "$dir/b.pages" --marker built --timeout 1 -- /bin/sleep 60 2>/dev/null ||
	fail "timeout"
[ ! -e "$dir/b.pages" ] || fail "output of a failed capture"
head -c 5000 /usr/bin/perl >"$dir/half.pages"
! "$capture" --stat "$dir/half.pages" 2>/dev/null || fail "half a page accepted"

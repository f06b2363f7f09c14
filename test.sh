#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Everything that is tested, on a Debian 12 with this repository alone.  As root, since most of it
# makes devices, mounts and swap.
# usage: test.sh
#
# Installs the packages, checks the format of the sources, builds with gcc and clang where every
# warning is an error, and runs
#
#	all suites                       with gcc
#	unit, model, race, crash, fault  with AddressSanitizer and UBSan, and with ThreadSanitizer
#	the fuzzers                      on their seeds, and searching for a short time
#
# At the end it names what failed and what was skipped and why, and prints `N passed, N failed, N
# skipped`.  The status is 1 if anything failed or if less was run than is registered.  Builds lie
# in a directory of their own under $TMPDIR (/var/tmp) and are removed again.
set -uo pipefail
export LC_ALL=C
top=$(cd "$(dirname "$0")" && pwd)
cd "$top" || exit 1
# shellcheck source=tests/lib/cleanup.sh
. tests/lib/cleanup.sh
# shellcheck source=tests/lib/packages.sh
. tests/lib/packages.sh

FUZZ_SECONDS=20
SANITIZED_SUITES=(unit model race crash fault)
# Fewer tests than these and something was lost from the build files.
TESTS_MIN=140

[ $# -eq 0 ] || {
	sed -n '3,17s/^# \?//p' "$0"
	exit 2
}
[ "$(id -u)" -eq 0 ] || die "must be run as root (sudo ./test.sh)"

exec </dev/null
began=$SECONDS
JOB=

step()
{
	printf '== %d:%02d %s\n' $(((SECONDS - began) / 60)) $(((SECONDS - began) % 60)) "$*"
}

# In the background and waited for, so that a signal to this script is acted on at once.  In a
# process group of its own, of which all goes when the script is interrupted.
run()
{
	local status=0
	setsid "$@" &
	JOB=$!
	wait $JOB || status=$?
	JOB=
	return $status
}

# System tests that are interrupted clean up by themselves, and hold the lock meanwhile.
undo_job()
{
	[ -n "$JOB" ] || return 0
	kill -TERM -- "-$JOB" 2>/dev/null
	wait_for "has_ended $JOB" 20 || kill -KILL -- "-$JOB" 2>/dev/null
	flock -w 90 /run/lock/zswapd-swap-tests.lock true
}

# Each line: result, test, reason.  Written by all parts, counted at the end.
record()
{
	printf '%s\t%s\t%s\n' "$1" "$2" "${3-}" >>"$results"
}

# check NAME COMMAND...: one test of its own, its output shown if it fails.
check()
{
	local name=$1
	shift
	if run "$@" >"$work/check.log" 2>&1; then
		record passed "$name"
	else
		record failed "$name" "$(grep -v '^$' "$work/check.log" | tail -n 1)"
		tail -n 40 "$work/check.log"
		return 1
	fi
}

# build NAME CC OPTION...: "$work/NAME", without warnings.
build()
{
	local name=$1 cc=$2
	shift 2
	step "building: $name"
	check "build $name" env CC="$cc" meson setup "$work/$name" -Dwerror=true "$@" &&
		check "compile $name" ninja -C "$work/$name"
}

# suites NAME SUITE...: runs them and takes the results from meson's log.
suites()
{
	local name=$1 suite args=()
	shift
	step "testing: $name ($*)"
	for suite in "$@"; do
		args+=(--suite "$suite")
	done
	rm -f "$work/$name/meson-logs/testlog.json"
	run meson test -C "$work/$name" --no-rebuild --print-errorlogs "${args[@]}"
	python3 - "$work/$name" "$name" "$results" "$@" <<'PY'
import collections, json, os, subprocess, sys
build, name, results, suites = sys.argv[1], sys.argv[2], sys.argv[3], set(sys.argv[4:])

def short(suite):
    return suite.split(':', 1)[-1]

tests = json.loads(subprocess.check_output(['meson', 'introspect', '--tests', build]))
expected = collections.Counter(t['name'] for t in tests
                               if suites & {short(s) for s in t['suite']})
log = os.path.join(build, 'meson-logs', 'testlog.json')
lines = open(log, errors='replace') if os.path.exists(log) else []
got = collections.Counter()
with open(results, 'a') as out:
    def record(result, test, reason):
        out.write('%s\t%s: %s\t%s\n' % (result, name, test, reason.replace('\t', ' ')))
    for t in map(json.loads, lines):
        test = t['name'].split(' / ')[-1].strip()
        got[test] += 1
        text = [l for l in (t.get('stdout', '') + '\n' + t.get('stderr', '')).splitlines() if l.strip()]
        if t['result'] in ('OK', 'EXPECTEDFAIL'):
            record('passed', test, '')
        elif t['result'] == 'SKIP':
            said = [l for l in text if l.startswith('skipped: ')]
            record('skipped', test, (said or text or ['no reason given'])[-1].removeprefix('skipped: '))
        else:
            said = [l for l in text if 'FAILED' in l or 'rror' in l]
            record('failed', test, '%s, status %s: %s' % (t['result'], t['returncode'], (said or text or [''])[0]))
    for test, n in (expected - got).items():
        record('failed', test, 'did not run')
    if not expected:
        record('failed', ' '.join(sorted(suites)), 'no tests are registered')
PY
}

fuzz()
{
	local fuzzer seeds
	for fuzzer in "$work"/fuzz/tests/fuzz/fuzz_*; do
		[ -f "$fuzzer" ] || continue
		seeds=tests/fuzz/seeds/$(basename "$fuzzer" | sed 's/fuzz_//')
		step "fuzzing: ${fuzzer##*/}, $FUZZ_SECONDS s"
		mkdir -p "$work/found"
		check "fuzz: ${fuzzer##*/} for $FUZZ_SECONDS s" "$fuzzer" -max_total_time=$FUZZ_SECONDS \
			-timeout=20 -rss_limit_mb=2048 -close_fd_mask=2 -artifact_prefix="$work/found/" \
			"$work/found" "$seeds"
	done
}

# The last line is for programs; what comes before it, for people.
summary()
{
	local passed failed skipped total
	passed=$(grep -c '^passed' "$results")
	failed=$(grep -c '^failed' "$results")
	skipped=$(grep -c '^skipped' "$results")
	total=$((passed + failed + skipped))
	if [ "$total" -lt $TESTS_MIN ]; then
		record failed "the number of tests" "$total ran, at least $TESTS_MIN are expected"
		failed=$((failed + 1))
	fi
	step "done"
	[ "$skipped" -eq 0 ] || {
		echo "skipped:"
		awk -F'\t' '$1 == "skipped" { print "  " $2 " (" $3 ")" }' "$results"
	}
	[ "$failed" -eq 0 ] || {
		echo "failed:"
		awk -F'\t' '$1 == "failed" { print "  " $2 ": " $3 }' "$results"
	}
	echo "$passed passed, $failed failed, $skipped skipped"
	[ "$failed" -eq 0 ]
}

step "installing packages"
packages_install packages_build packages_test >/dev/null || die "packages could not be installed"

work=$(mktemp -d "${TMPDIR:-/var/tmp}/zswapd-test-XXXXXX") || exit 1
cleanup_push rm -rf "$work"
cleanup_push undo_job
results=$work/results
: >"$results"
# Pages of real programs, made once for all that want them.
export ZSWAPD_TEST_CORPUS=$work/corpus.pages

step "checking the format"
find common ctl daemon fuse tests -name '*.[ch]' -print0 >"$work/sources"
check "clang-format" xargs -0 -a "$work/sources" clang-format --dry-run -Werror

build gcc gcc && suites gcc unit model race crash points fault system guest
build clang clang
build asan gcc -Db_sanitize=address,undefined && suites asan "${SANITIZED_SUITES[@]}"
build tsan gcc -Db_sanitize=thread && suites tsan "${SANITIZED_SUITES[@]}"
build fuzz clang -Dfuzz=true && suites fuzz fuzz && fuzz
summary

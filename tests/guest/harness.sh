#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# run.sh reports each way in which a guest can fail as what it is, and keeps what tells why.
# usage: harness.sh CASE     (see below)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/lib/cleanup.sh
. "$here/../lib/cleanup.sh"

work=$(mktemp -d "${ZSWAPD_TEST_DIR:-/var/tmp}/zswapd-test-XXXXXX")
cleanup_push rm -rf "$work"

# guest WANTED [OPTION]...: runs the script in standard input, which must end with status WANTED.
guest()
{
	local wanted=$1 status=0
	shift
	{
		# shellcheck disable=SC2016
		printf '#!/bin/bash\n. "$(dirname "$0")/lib.sh"\necho before >/results/before\n'
		cat
	} >"$work/script.sh"
	"$here/run.sh" --memory 192 --output "$work/out" "$@" "$work/script.sh" >"$work/log" 2>&1 || status=$?
	if [ $status -eq 77 ]; then
		cat "$work/log"
		exit 77
	fi
	[ $status -eq "$wanted" ] || {
		cat "$work/log"
		die "status $status, must be $wanted"
	}
	[ "$(cat "$work/out/results/before")" = before ] || die "what the guest had written is lost"
}

said()
{
	grep -qF "$1" "$work/log" || {
		cat "$work/log"
		die "not said: $1"
	}
}

case ${1-} in
fails)
	guest 3 <<<'cd /nowhere; exit 3'
	said 'script ended with status 3'
	said '/nowhere: No such file'
	[ -s "$work/out/console.log" ] || die "there is no console log"
	;;
hangs)
	guest 124 --limit 25 <<<'echo waiting; sleep 1000'
	said 'script ran into its limit of 25 s'
	grep -q 'sysrq: Show Blocked State' "$work/out/console.log" || die "nobody asked who waits"
	grep -qx waiting "$work/out/output" || die "the output is lost"
	;;
panics)
	guest 125 <<<'echo c >/proc/sysrq-trigger'
	said 'the guest panicked'
	;;
vanishes)
	guest 125 <<<'poweroff -f'
	said 'ended without a result'
	;;
complains)
	guest 123 <<<'echo "WARNING: something is odd" >/dev/kmsg'
	said 'the kernel complained'
	said 'something is odd'
	;;
expected)
	guest 0 <<<'expect_kernel "thing is [o]dd"; echo "WARNING: something is odd" >/dev/kmsg'
	;;
*) die "there is no case '${1-}'" ;;
esac

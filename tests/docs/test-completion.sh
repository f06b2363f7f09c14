#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# What bash offers for zswapctl and zswapd at each place of the line.
# usage: test-completion.sh ZSWAPCTL-COMPLETION ZSWAPD-COMPLETION
set -euo pipefail
export LC_ALL=C
: "${ZSWAPD:?}" "${ZSWAPCTL:?}"
# shellcheck source=tests/lib/cleanup.sh
. "$(dirname "$0")/../lib/cleanup.sh"
work=$(mktemp -d)
cleanup_push rm -rf "$work"
export ZSWAPD_RUN_DIR=$work
: >"$work/zswap0.port"
: >"$work/other.port"
: >"$work/other.lock"

# shellcheck disable=SC1090
for script in "$@"; do
	. "$script"
done
complete -p zswapctl zswapd >"$work/registered"
grep -q -- '-F _zswapctl zswapctl' "$work/registered" || die "zswapctl has no completion"
grep -q -- '-F _zswapd zswapd' "$work/registered" || die "zswapd has no completion"

# offers WANT FUNCTION WORD...: the last word is the one that is begun; want is sorted.
offers()
{
	local want=$1 function=$2 got
	shift 2
	COMP_WORDS=("$@")
	COMP_CWORD=$(($# - 1))
	COMPREPLY=()
	$function || true
	got=$(printf '%s\n' ${COMPREPLY[@]+"${COMPREPLY[@]}"} | sort | xargs)
	[ "$got" = "$want" ] || die "${*}: offers '$got', not '$want'"
}

commands=$("$ZSWAPCTL" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z][a-z-]*\) .*/\1/p' | sort | xargs)
[ -n "$commands" ] || die "zswapctl --help lists no commands"
offers "$commands" _zswapctl "$ZSWAPCTL" ''
offers "stats status" _zswapctl "$ZSWAPCTL" stat
offers "$commands" _zswapctl "$ZSWAPCTL" --device zswap0 ''
offers "$commands" _zswapctl "$ZSWAPCTL" --device = zswap0 ''
offers "--device --help --version" _zswapctl "$ZSWAPCTL" --
offers "other zswap0" _zswapctl "$ZSWAPCTL" --device ''
offers "other zswap0" _zswapctl "$ZSWAPCTL" -d ''
offers "other zswap0" _zswapctl "$ZSWAPCTL" --device =
offers "zswap0" _zswapctl "$ZSWAPCTL" --device = z
offers "zswap0" _zswapctl "$ZSWAPCTL" status --device zs
offers "--json" _zswapctl "$ZSWAPCTL" stats --j
offers "--device --help --json --prometheus" _zswapctl "$ZSWAPCTL" stats --
offers "" _zswapctl "$ZSWAPCTL" status ''
offers "" _zswapctl "$work/not-there" ''

keys=$("$ZSWAPD" --print-config --config /dev/null 2>/dev/null |
	awk '/^\[/ { section = substr($1, 2, length($1) - 2) } /^[a-z]/ { print section "." $1 }' | sort | xargs)
live=$("$ZSWAPD" --print-config --config /dev/null 2>/dev/null |
	awk '/^\[/ { section = substr($1, 2, length($1) - 2) } /can change at run time/ { live = 1 }
		/^[a-z]/ { if (live) print section "." $1; live = 0 }' | sort | xargs)
offers "$keys" _zswapctl "$ZSWAPCTL" get ''
offers "$live" _zswapctl "$ZSWAPCTL" set ''
offers "memory.level memory.limit" _zswapctl "$ZSWAPCTL" get memory.l
offers "no yes" _zswapctl "$ZSWAPCTL" set read.overlap ''
offers "hybrid off spin" _zswapctl "$ZSWAPCTL" -d zswap0 set store.poll ''
offers "" _zswapctl "$ZSWAPCTL" set memory.limit ''
offers "" _zswapctl "$ZSWAPCTL" get memory.limit ''

cd "$work"
: >one.conf
offers "--check-config --config" _zswapd "$ZSWAPD" --c
offers "--check-config --config --debug --help --print-config --takeover-version --version" _zswapd "$ZSWAPD" --
offers "one.conf" _zswapd "$ZSWAPD" --config on
offers "one.conf" _zswapd "$ZSWAPD" -c on
offers "one.conf" _zswapd "$ZSWAPD" --config = on

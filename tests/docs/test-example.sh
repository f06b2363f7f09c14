#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The example configuration changes nothing as it is, and nothing but the names of who set it when
# every line counts; so do the examples in the README.
# usage: test-example.sh EXAMPLE
set -euo pipefail
export LC_ALL=C
: "${SOURCE_ROOT:?}" "${ZSWAPD:?}"
# shellcheck source=tests/lib/cleanup.sh
. "$(dirname "$0")/../lib/cleanup.sh"
work=$(mktemp -d)
cleanup_push rm -rf "$work"

values()
{
	"$ZSWAPD" --print-config --config "$1" 2>"$work/said" | grep -v '^#'
	! grep -E '^<[0-4]>' "$work/said" >&2
}

values /dev/null >"$work/defaults"
values "$1" >"$work/as-it-is" || die "the example is wrong"
cmp "$work/defaults" "$work/as-it-is" || die "the example sets something"
sed 's/^#\([a-z]\)/\1/' "$1" >"$work/all"
[ "$(grep -c '^[a-z]' "$work/all")" -eq "$(grep -c '^[a-z]' "$work/defaults")" ] || die "the example lacks options"
values "$work/all" >"$work/all-values" || die "the example's values are wrong"
cmp "$work/defaults" "$work/all-values" || die "the example has other defaults"

# shellcheck disable=SC2016
awk '/^```ini$/ { inside = 1; next } /^```$/ { inside = 0 } inside' "$SOURCE_ROOT/README.md" >"$work/readme"
[ -s "$work/readme" ] || die "the README has no example"
values "$work/readme" >/dev/null || die "the README's example is wrong"

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# docs/NETLINK.md names every number of common/nlproto.h, with the right name.
# usage: test-doc.sh NLPROTO.H NETLINK.MD
set -euo pipefail
header=$1
doc=$2
status=0

fail()
{
	echo "$doc: $*" >&2
	status=1
}

# row NUMBER NAME: a line of a table.
row()
{
	grep -q "^| $1 | \`$2\` |" "$doc" || fail "there is no row for $2, number $1"
	rows=$((rows + 1))
}

rows=0
while read -r name number; do
	case $name in
	*_UNSPEC | *_MAX) ;;
	CMD_* | A_* | C_* | H_* | O_* | J_*) row "$number" "${name#*_}" ;;
	L_*) grep -q "type $number (\`${name#L_}\`)" "$doc" || fail "$name is not type $number" ;;
	esac
done < <(sed -n 's/^\tNLPROTO_\([A-Z_]*\) = \([0-9]*\),.*/\1 \2/p' "$header")
[ $rows -ge 60 ] || fail "only $rows names were found in $header"

# The tables of events, states, health bits, jobs: X(NAME, number, ...).
events=$(sed -n '/define NLPROTO_EVENTS/,/^\(\/\*\|$\)/s/^\tX(\([A-Z_]*\), *\([0-9]*\),.*/\2 \1/p' "$header")
while read -r number name; do
	row "$number" "$name"
done <<<"$events"
[ "$(wc -l <<<"$events")" -ge 8 ] || fail "the events were not found in $header"
while IFS='|' read -r number text; do
	tr -d '\`' <"$doc" | grep "^| $number | $text" >/dev/null || fail "state or health bit $number, '$text', is missing"
done < <(sed -n '/define NLPROTO_STATES/,/define NLPROTO_JOB_KINDS/s/^\tX([A-Z_]*, *\([0-9]*\), *"\([^":]*\).*/\1|\2/p' "$header")
while read -r number word; do
	grep -q "[ |]$number ${word}[,:|. ]" "$doc" || fail "job kind or state $number, $word, is missing"
done < <(sed -n '/define NLPROTO_JOB_KINDS/,/define NLPROTO_EVENTS/s/^\tX([A-Z_]*, *\([0-9]*\), *"\([a-z]*\)".*/\1 \2/p' "$header")

number()
{
	sed -n "s/^#define NLPROTO_$1[ \t]*\(0x[0-9a-f]*\|[0-9]*\).*/\1/p" "$header"
}
grep -q "at most $(number REQUEST_MAX) bytes" "$doc" || fail "the longest request is another"
grep -q "at most $(number PART_MAX)\." "$doc" || fail "the longest message is another"
grep -q "protocol version of the sender: $(number VERSION) " "$doc" || fail "the version is another"
grep -q "multicast group $(number GROUP)," "$doc" || fail "the group is another"
grep -q "at most $(number SUBSCRIBE_SECONDS_MAX), .* $(number SUBSCRIBE_SECONDS) if left out" "$doc" ||
	fail "the time of a subscription is another"
exit $status

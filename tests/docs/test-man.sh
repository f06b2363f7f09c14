#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The manual says what the programs do: every option of the configuration, every counter and
# histogram, every command and every flag is in it, and no command or flag that is not there.
# usage: test-man.sh ZSWAPCTL.1 ZSWAPD.CONF.5 ZSWAPD.8
set -euo pipefail
export LC_ALL=C.UTF-8
: "${SOURCE_ROOT:?}" "${ZSWAPD:?}" "${ZSWAPCTL:?}"
failed=0

wrong()
{
	echo "test-man: $*" >&2
	failed=1
}

if ! command -v man >/dev/null || ! man --version >/dev/null 2>&1; then
	echo "skipped: man is not installed"
	exit 77
fi

# As a reader sees it, without hyphens at the end of lines.
text_of()
{
	MANWIDTH=132 MANROFFOPT='' man -P cat --no-hyphenation --no-justification -l "$1"
}

for page in "$@"; do
	said=$(man --warnings -P cat -l "$page" 2>&1 >/dev/null) || wrong "$page: man fails"
	[ -z "$said" ] || wrong "$page: $said"
	if command -v mandoc >/dev/null; then
		mandoc -T lint -W error "$page" || wrong "$page: mandoc finds errors"
	fi
done
ctl=$(text_of "$1")
conf=$(text_of "$2")
daemon=$(text_of "$3")

# has PAGE TEXT REGEX: the regex stands in the text, a word of its own.
has()
{
	grep -qE -- "(^|[^[:alnum:]_.-])$3($|[^[:alnum:]_-])" <<<"$2" || wrong "$1 does not have '$3'"
}

# --- options: from the table, and as the daemon prints them ---

options=$(sed -n 's/^	X(\([a-z]*\), *\([a-z]*\), .*/\1 \2/p' "$SOURCE_ROOT/daemon/config/options.h")
[ "$(wc -l <<<"$options")" -ge 12 ] || wrong "only these options were found: $options"
printed=$("$ZSWAPD" --print-config --config /dev/null 2>/dev/null |
	awk '/^\[/ { section = substr($1, 2, length($1) - 2) } /^[a-z]/ { print section, $1 }')
[ "$(sort <<<"$printed")" = "$(sort <<<"$options")" ] || wrong "options.h and --print-config differ: $options, $printed"
while read -r section key; do
	awk -v section="Section [$section]" -v key="^ +$key =$" '
		index($0, "Section [") { inside = index($0, section) }
		inside && $0 ~ key { found = 1 }
		END { exit !found }' <<<"$conf" || wrong "zswapd.conf(5) does not have [$section] $key"
done <<<"$options"

# --- counters and histograms ---

for table in counters histograms; do
	names=$(sed -n 's/^	X(\([a-z_]*\), .*/\1/p' "$SOURCE_ROOT/common/$table.h")
	[ "$(wc -l <<<"$names")" -ge 5 ] || wrong "only these were found in $table.h: $names"
	for name in $names; do
		grep -qE "^ +$name \\((counter|gauge|histogram)" <<<"$ctl" || wrong "zswapctl(1) does not have $name"
	done
done

# --- commands and flags ---

flags()
{
	grep -oE -- '--[a-z][a-z-]*' <<<"$1" | sort -u
}

help=$("$ZSWAPCTL" --help)
commands=$(sed -n '/^Commands:/,/^$/s/^  \([a-z][a-z-]*\) .*/\1/p' <<<"$help")
[ "$(wc -l <<<"$commands")" -ge 3 ] || wrong "only these commands were found: $commands"
all_flags=$(flags "$help")
section=$(sed -n '/^COMMANDS/,/^[A-Z]/p' <<<"$ctl")
for command in $commands; do
	grep -qE "^ {7}$command( |$)" <<<"$section" || wrong "zswapctl(1) does not have the command $command"
	all_flags+=$'\n'$(flags "$("$ZSWAPCTL" "$command" --help)")
done
while read -r flag; do
	has 'zswapctl(1)' "$ctl" "$flag"
done < <(sort -u <<<"$all_flags")
# The other way round.  In the source, a command is bold at the start of a paragraph.
while read -r command; do
	grep -qx "$command" <<<"$commands" || wrong "zswapctl(1) has a command '$command', zswapctl has not"
done < <(awk '
	/^\.SH/ { inside = /COMMANDS/ }
	inside && last ~ /^\.(P|RE)$/ && match($0, /^\\fB[a-z][a-z-]*\\fR/) { print substr($0, 4, RLENGTH - 6) }
	{ last = $0 }' "$1")
for flag in $(flags "$ctl"); do
	grep -qx -- "$flag" <<<"$all_flags" || wrong "zswapctl(1) has $flag, zswapctl has not"
done
while read -r code; do
	grep -qE "^ {7}$code$" <<<"$ctl" || wrong "zswapctl(1) does not have the exit status $code"
done < <(sed -n '/^Exit codes:/,/^$/s/^  \([0-9]*\)  .*/\1/p' <<<"$help")

daemon_flags=$(flags "$("$ZSWAPD" --help)")
for flag in $daemon_flags; do
	has 'zswapd(8)' "$daemon" "$flag"
done
for flag in $(flags "$daemon"); do
	grep -qx -- "$flag" <<<"$daemon_flags" || wrong "zswapd(8) has $flag, zswapd has not"
done

# --- the rule of the files, where the code has it ---

for directory in $(sed -n '/^static const char \*const directories/,/;/p' "$SOURCE_ROOT/daemon/config/files.c" |
	grep -oE '"/[^"]*"' | tr -d '"'); do
	grep -qF "$directory/zswapd.conf.d/*.conf" <<<"$conf" || wrong "zswapd.conf(5) does not have $directory"
done
exit $failed

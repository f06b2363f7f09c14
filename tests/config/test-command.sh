#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# zswapd's command line, as far as it goes without serving: what it reads, prints and refuses.
# usage: test-command.sh ZSWAPD
set -euo pipefail
# shellcheck source=tests/lib/cleanup.sh
. "$(dirname "$0")/../lib/cleanup.sh"
export LC_ALL=C
zswapd=$1
work=$(mktemp -d "${TMPDIR:-/tmp}/zswapd-command-XXXXXX")
cleanup_push rm -rf "$work"
export ZSWAPD_ROOT=$work

# runs STATUS ARGUMENT...: output to $work/out and $work/err.
runs()
{
	local want=$1 status=0
	shift
	timeout 20 "$zswapd" "$@" >"$work/out" 2>"$work/err" || status=$?
	[ $status -eq "$want" ] || die "zswapd $*: status $status, not $want: $(cat "$work/err")"
}

# says FILE REGEX
says()
{
	grep -qE -- "$2" "$work/$1" || die "'$2' is not in $1: $(cat "$work/$1")"
}

mkdir -p "$work"/{etc,usr/lib}/zswapd/zswapd.conf.d
printf '[memory]\nlimit = 64M\n' >"$work/etc/zswapd/zswapd.conf"
printf '[device]\nsize = 1G\n[store]\npath = /x\n' >"$work/usr/lib/zswapd/zswapd.conf.d/50-a.conf"

runs 0 --check-config
[ "$(cat "$work/out")" = "the configuration is right" ] || die "--check-config: $(cat "$work/out")"
says err '/etc/zswapd/zswapd.conf:2: \[memory\] limit = 67108864 \(64.0 MiB, '

runs 0 --print-config
says out '^# Set by .*/usr/lib/zswapd/zswapd.conf.d/50-a.conf:2\.$'
says out '^size = 1073741824$'
says out '^# Set by default\.$'
cp "$work/out" "$work/printed"
# It is a configuration file, and gives the same again.
runs 0 --print-config --config "$work/printed"
diff <(grep -v '^#' "$work/printed") <(grep -v '^#' "$work/out") || die "what is printed reads back otherwise"

ln -s /dev/null "$work/etc/zswapd/zswapd.conf.d/50-a.conf"
runs 0 --print-config
says out '^path = none$'
rm "$work/etc/zswapd/zswapd.conf.d/50-a.conf"

# A key that is not known is a warning, everything else that is wrong is status 2.
printf '[memory]\nsize = 3\n' >"$work/etc/zswapd/zswapd.conf.d/60.conf"
runs 0 --check-config
says err '60.conf:2: \[memory\] size: unknown key'
for value in '16G # foo' '16G ; foo' '16G#foo' '-1' '16' '1.5G' '64MB' '99999999999999999999' '95%' ''; do
	printf '[memory]\nlimit = %s\n' "$value" >"$work/etc/zswapd/zswapd.conf.d/60.conf"
	runs 2 --check-config
	says err '60.conf:2: \[memory\] limit: .*; '
	[ ! -s "$work/out" ] || die "limit = $value: prints something"
	runs 2 --print-config
	runs 2
done
rm "$work/etc/zswapd/zswapd.conf.d/60.conf"
runs 2 --check-config --config "$work/not-there"
says err 'not-there: cannot be opened'
ZSWAPD_ROOT=relative runs 2 --check-config
says err "ZSWAPD_ROOT: 'relative' is no absolute path"

runs 0 --help
says out '^usage: zswapd '
runs 0 --version
says out '^zswapd [0-9]+\.[0-9]+\.[0-9]+$'
runs 2 --no-such-option
runs 2 argument
says err "unexpected argument 'argument'"

# Output that is lost is a failure.
status=0
"$zswapd" --print-config >/dev/full 2>/dev/null || status=$?
[ $status -eq 1 ] || die "--print-config to a full disk: status $status"

# Who runs a program with more rights than his own must not choose its configuration.
if [ "$(id -u)" -eq 0 ] && id nobody >/dev/null 2>&1; then
	chmod 755 "$work"
	install -m 4755 "$zswapd" "$work/zswapd-setuid"
	status=0
	setpriv --reuid=nobody --clear-groups "$work/zswapd-setuid" --check-config >"$work/out" 2>"$work/err" || status=$?
	# On a file system that ignores setuid there is nothing to refuse.
	if [ $status -ne 0 ] || ! findmnt -no OPTIONS -T "$work" | grep -q nosuid; then
		[ $status -eq 2 ] || die "ZSWAPD_ROOT and setuid: status $status"
		says err 'ZSWAPD_ROOT is set for a program with the rights of another; unset it'
	fi
fi

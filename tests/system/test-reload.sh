#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# SIGHUP on a device in use: what can change does, in both directions and without a page harmed;
# what can't is named; a wrong file changes nothing; the service manager hears of it.
set -euo pipefail
# shellcheck source=tests/lib/zswapd.sh
. "$(dirname "$0")/../lib/zswapd.sh"

# shellcheck disable=SC2119
test_begin
n=$TEST_NAME
log=$(zswapd_log "$n")
conf=$TEST_DIR/$n.conf
usual=(swap.enable=no device.size=256M store.path="$TEST_DIR/store" store.size=256M)

# says REGEX: it is in the log since the last reload.
says()
{
	tail -n +"$from" "$log" | grep -qE "$1" || fail "the log does not say: $1"
}

# reload REGEX: SIGHUP, and the log's last word on it.
reload()
{
	from=$(($(wc -l <"$log") + 1))
	kill -HUP "${ZSWAPD_PIDS[$n]}"
	wait_for "tail -n +$from $log | grep -qE 'reload: (done|not all)'" 20 || fail "no reload"
	says "$1"
}

cat >"$TEST_DIR/notified.pl" <<'PERL'
use Socket;
socket my $s, AF_UNIX, SOCK_DGRAM, 0 or die; bind $s, sockaddr_un($ARGV[0]) or die;
$| = 1;
while (defined recv $s, my $text, 4096, 0) {
	$text =~ tr/\n/ /;
	print "$text\n";
}
PERL
perl "$TEST_DIR/notified.pl" "$TEST_DIR/notify" >"$TEST_DIR/notified" 9>&- &
cleanup_pid $!
wait_for "[ -S $TEST_DIR/notify ]" 5 || fail "no notify socket"

zswapd_config "$n" "${usual[@]}" memory.limit=96M memory.level=1
zswapd_launch "$n" env NOTIFY_SOCKET="$TEST_DIR/notify"
zswapd_ready "$n"

# --- nothing, something, and what takes a restart -------------------------------------------------

reload 'reload: done'
: >"$TEST_DIR/notified"
zswapd_config "$n" "${usual[@]}" memory.limit=48M memory.level=5 swap.priority=7 device.colour=blue
reload 'reload: done'
says 'memory.limit: 100663296 \(96.0 MiB.*\) -> 50331648 \(48.0 MiB'
says "memory.level: 1 -> 5 \\(.*$n.conf:"
says 'swap.priority: needs a restart to become 7 \(.*\); stays 32767$'
says '\[device\] colour: unknown key, ignored'
wait_counter "$n" memory_limit_bytes -eq 50331648 10
wait_for "[ \$(wc -l <$TEST_DIR/notified) -ge 2 ]" 5 || fail "notified: $(cat "$TEST_DIR/notified")"
grep -qE '^RELOADING=1 MONOTONIC_USEC=[0-9]+$' <(sed -n 1p "$TEST_DIR/notified") || fail "notified: $(cat "$TEST_DIR/notified")"
grep -qE '^READY=1 STATUS=Serving swap$' <(sed -n 2p "$TEST_DIR/notified") || fail "notified: $(cat "$TEST_DIR/notified")"
# The clock that the service manager compares it with, in microseconds.
usec=$(sed -n '1s/.*USEC=\([0-9]*\).*/\1/p' "$TEST_DIR/notified")
now=$(perl -MTime::HiRes=clock_gettime,CLOCK_MONOTONIC -e 'printf "%.0f", clock_gettime(CLOCK_MONOTONIC) * 1e6')
if [ $((now - usec)) -gt 60000000 ] || [ "$usec" -gt "$now" ]; then
	fail "MONOTONIC_USEC=$usec, now $now"
fi

# --- wrong files ----------------------------------------------------------------------------------

zswapd_config "$n" "${usual[@]}" memory.limit=64M memory.level='3 # three'
reload 'reload: not all of it could be applied'
says "$n.conf:[0-9]+: \\[memory\\] level: '# three' follows the value"
[ "$(counter "$n" memory_limit_bytes)" -eq 50331648 ] || fail "half of a wrong file was applied"
rm "$conf"
reload 'reload: not all of it could be applied'
says "$n.conf: cannot be opened: No such file"
zswapd_config "$n" "${usual[@]}" memory.limit=64M memory.level=3
reload 'reload: done'
says 'memory.level: 5 -> 3 '

# --- while pages go in and out --------------------------------------------------------------------

head -c 100663296 /dev/urandom | base64 -w0 | head -c 134217728 >"$TEST_DIR/pages"
(
	i=0
	while [ ! -e "$TEST_DIR/stop" ]; do
		limits=(96M 32M 64M 200M 40M) levels=(1 -3 3 6 -7) overlap=(on off)
		zswapd_config "$n.next" "${usual[@]}" memory.limit="${limits[i % 5]}" memory.level="${levels[i % 5]}" \
			read.overlap="${overlap[i % 2]}"
		sed "s/^name = .*/name = $n/" "$TEST_DIR/$n.next.conf" >"$TEST_DIR/new"
		mv "$TEST_DIR/new" "$conf"
		kill -HUP "${ZSWAPD_PIDS[$n]}"
		sleep 0.1
		i=$((i + 1))
	done
) 9>&- &
cleanup_pid $!
reloader=$!
for round in 1 2; do
	bounded 120 dd if="$TEST_DIR/pages" of="$DEVICE" bs=128K oflag=direct status=none || fail "writing, round $round"
	bounded 120 cmp -n 134217728 "$TEST_DIR/pages" <(dd if="$DEVICE" bs=128K iflag=direct status=none) ||
		fail "pages were harmed, round $round"
done
: >"$TEST_DIR/stop"
wait $reloader
zswapd_config "$n" "${usual[@]}" memory.limit=32M
reload 'reload: done'
[ "$(grep -c 'memory.limit: .* -> ' "$log")" -ge 10 ] || fail "the limit hardly moved"
wait_counter "$n" memory_used_bytes -le $((32 << 20)) 60
check_counters "$n"
bounded 120 cmp -n 134217728 "$TEST_DIR/pages" <(dd if="$DEVICE" bs=128K iflag=direct status=none) ||
	fail "pages were harmed by lowering the limit"

# --- the dashboard asks for what this daemon tells ------------------------------------------------

timeout 10 "$ZSWAPCTL" --device "$n" stats --prometheus >"$TEST_DIR/metrics" || fail "zswapctl stats --prometheus"
docs=$(dirname "$0")/../../docs
while read -r metric; do
	grep -q "^$metric{device=\"$n\"" "$TEST_DIR/metrics" || fail "no metric $metric"
done < <(grep -hE '"?expr"?:' "$docs/grafana/zswapd.json" "$docs/prometheus/zswapd.rules.yml" |
	grep -oE 'zswapd_[a-z_]+' | grep -vx zswapd_up | sort -u) # which the script for the collector adds
zswapd_stop "$n"
test_end

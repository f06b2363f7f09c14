#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A daemon goes on with another program in place of its own: one that may not, one that can't, one that
# ends at once, one in whose absence the worker dies, and one that does.  The pages are there after each;
# who follows the events hears of it.
set -euo pipefail
# shellcheck source=tests/lib/zswapd.sh
. "$(dirname "$0")/../lib/zswapd.sh"

test_begin setpriv
name=$TEST_NAME
data=$TEST_DIR/data
built=$ZSWAPD
layout=$("$built" --takeover-version | sed 's/.* //')
# Called by a link, as an installed program may be: the link is what counts.
mkdir "$TEST_DIR/bin"
ZSWAPD=$TEST_DIR/bin/zswapd

# install FILE: it is the program from now on.
install_program()
{
	installed=$((${installed:-0} + 1))
	cp "$1" "$TEST_DIR/bin/program-$installed"
	chmod 755 "$TEST_DIR/bin/program-$installed"
	ln -sfn "program-$installed" "$ZSWAPD.new"
	mv -T "$ZSWAPD.new" "$ZSWAPD"
}

# install_script VERSION LAYOUT CHECK RUN: one that says that it is VERSION, and does CHECK when asked
# about the configuration, RUN when it is executed.
install_script()
{
	cat >"$TEST_DIR/script" <<-END
		#!/bin/sh
		case "\$*" in
		*--takeover-version*) echo "zswapd $1 state $2" ;;
		*--check-config*) $3 ;;
		*) $4 ;;
		esac
	END
	install_program "$TEST_DIR/script"
}

control()
{
	timeout 60 "$ZSWAPCTL" --device "$name" "$@"
}

supervisor()
{
	control status | sed -n 's/^processes *supervisor \([0-9]*\),.*/\1/p'
}

worker()
{
	control status | sed -n 's/^daemon .* pid \([0-9]*\),.*/\1/p'
}

prepared()
{
	control status | grep -q ', standby [0-9]* prepared'
}

check_data()
{
	dd if="$DEVICE" iflag=direct bs=128k count=32 status=none | cmp - "$data" || fail "other data after: $*"
}

# refused WORD: an upgrade, which changes nothing.
refused()
{
	local status=0 before
	before=$(worker)
	control upgrade >"$TEST_DIR/out" 2>&1 || status=$?
	[ $status -eq 5 ] || fail "status $status, not refused: $(cat "$TEST_DIR/out")"
	grep -q "refused: .*$1" "$TEST_DIR/out" || fail "no word of '$1': $(cat "$TEST_DIR/out")"
	[ "$(worker)" = "$before" ] || fail "another worker after a refusal"
}

start_again()
{
	"$ZSWAPD" --config "$TEST_DIR/$name.conf" 2>>"$(zswapd_log "$name")" 9>&- &
	ZSWAPD_PIDS[$name]=$!
	wait_for prepared 30 || fail "nobody has adopted the worker: $(control status)"
}

install_program "$built"
zswapd_start "$name" device.size=256M swap.enable=no memory.limit=16M store.path="$TEST_DIR/store" store.size=128M
head -c 4M /dev/urandom >"$data"
dd if="$data" of="$DEVICE" oflag=direct bs=128k status=none
wait_for prepared 30 || fail "no standby: $(control status)"

# Anybody may follow, and hears what becomes of it.
cp "$ZSWAPCTL" "$TEST_DIR/zswapctl"
chmod 755 "$TEST_DIR" "$TEST_DIR/zswapctl"
timeout 120 setpriv --reuid 65534 --clear-groups "$TEST_DIR/zswapctl" --device "$name" events --json >"$TEST_DIR/events" &
cleanup_pid $!

# --- programs that may not ---
install_script 0.0.1 "$layout" true true
refused 'older than what runs'
install_script 99.0.0 $((layout + 1)) true true
refused 'layout'
printf '#!/bin/sh\necho "usage: something"; exit 2\n' >"$TEST_DIR/script"
install_program "$TEST_DIR/script"
refused 'does not say that it can take over'
rm "$ZSWAPD"
refused 'is it installed'
install_program "$built"
cp "$TEST_DIR/$name.conf" "$TEST_DIR/conf.right"
printf '[memory]\nlimit = purple\n' >>"$TEST_DIR/$name.conf"
refused 'purple'
cp "$TEST_DIR/conf.right" "$TEST_DIR/$name.conf"
check_data "refusals"

# --- one that is gone before it is executed: the supervisor goes on ---
before=$(supervisor)
install_script 99.0.0 "$layout" "rm -f $ZSWAPD" true
control upgrade --no-wait
wait_for "grep -q \"can't be executed\" $(zswapd_log "$name")" 10 || fail "it could be executed"
[ "$(supervisor)" = "$before" ] || fail "the supervisor is not what it was"

# --- one that is what is wanted ---
install_program "$built"
old=$(worker)
control upgrade >"$TEST_DIR/out" || fail "upgrade: status $?"
new=$(worker)
grep -q ": worker $new took over from $old after " "$TEST_DIR/out" || fail "it says: $(cat "$TEST_DIR/out")"
[ "$(supervisor)" = "$before" ] || fail "the supervisor is another process"
check_data "an upgrade"
wait_for "grep -q 'worker $new took over from worker $old' $TEST_DIR/events" 20 ||
	fail "no event of the takeover: $(cat "$TEST_DIR/events")"
wait_for prepared 30 || fail "no standby after an upgrade"
[ -z "$(pgrep -P "$before" -r Z)" ] || fail "zombies: $(ps -o pid,stat,comm --ppid "$before")"

# --- one in whose absence the worker dies ---
install_script 99.0.0 "$layout" true "sleep 2; exec $built \"\$@\""
old=$(worker)
control upgrade >"$TEST_DIR/out" 2>&1 &
upgrade=$!
cleanup_pid $upgrade
wait_for "[ -z \"\$(supervisor)\" ]" 10 || fail "the supervisor has not gone"
kill -KILL "$old"
wait $upgrade || fail "upgrade: status $?: $(cat "$TEST_DIR/out")"
check_data "a death while another program came"
wait_for prepared 30 || fail "no standby after that"

# --- one that ends at once: the worker goes on, and is adopted ---
kill -TERM "$(supervisor)" # it was executed by the script, under its own path
wait "${ZSWAPD_PIDS[$name]}" || fail "it did not stop in order"
install_program "$built"
zswapd_launch "$name"
zswapd_ready "$name"
dd if="$data" of="$DEVICE" oflag=direct bs=128k status=none
wait_for prepared 30 || fail "no standby: $(control status)"
install_script 99.0.0 "$layout" true "exit 1"
old=$(worker) status=0
control upgrade >"$TEST_DIR/out" 2>&1 || status=$?
[ $status -eq 5 ] || fail "status $status: $(cat "$TEST_DIR/out")"
grep -q "has failed; worker $old, .* goes on without a supervisor" "$TEST_DIR/out" || fail "it says: $(cat "$TEST_DIR/out")"
wait "${ZSWAPD_PIDS[$name]}" || true
refused 'there is no supervisor'
check_data "a program that failed"
install_program "$built"
start_again
[ "$(worker)" = "$old" ] || fail "another worker after an adoption"
kill -KILL "$old"
wait_for "control status | grep -q 'workers died: 1$' && prepared" 30 || fail "nobody took over: $(control status)"
# How it ended is told to its parent alone, who is gone.
control status --verbose | grep -q "^last crash .*worker $old has ended; counters" || fail "no report: $(control status --verbose)"
check_data "a death"
zswapd_stop "$name"
test_end

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# zswapctl top on a terminal, which is tmux, with a running daemon and pages going in and out: what
# it shows at several sizes, without colour, without UTF-8, for every user; that it follows the
# terminal's size and a daemon that ends and comes back; and that it leaves the terminal as it was.
# usage: test-top.sh [DIRECTORY]    (where to keep the screens)
set -euo pipefail
# shellcheck source=tests/lib/zswapd.sh
. "$(dirname "$0")/../lib/zswapd.sh"

screens=${1-}
n=$TEST_NAME
export LC_ALL=C.UTF-8

test_begin tmux fio setpriv
settings=(swap.enable=no device.size=256M memory.limit=32M store.path="$TEST_DIR/store" store.size=128M)
zswapd_start "$n" "${settings[@]}"

terminal()
{
	tmux -u -S "$TEST_DIR/tmux" -f /dev/null "$@"
}

end_terminal()
{
	terminal kill-server 2>/dev/null || true
}

screen()
{
	terminal capture-pane -p -t term "$@"
}

# shows WORD SECONDS: until the screen has it.
shows()
{
	wait_for "screen | grep -qF -- $(printf %q "$1")" "$2" || {
		screen >&2
		fail "'$1' is not on the screen"
	}
}

# A shell on a terminal of WIDTHxHEIGHT.
open_terminal()
{
	terminal new-session -d -s term -x "${1%x*}" -y "${1#*x}" "env PS1='ready> ' bash --norc --noprofile"
	# Else the next one may come while the server is just leaving.
	terminal set -s exit-empty off
	terminal set -g status off
	terminal resize-window -t term -x "${1%x*}" -y "${1#*x}"
	shows 'ready>' 10
}

close_terminal()
{
	terminal kill-session -t term
}

type_line()
{
	terminal send-keys -t term -l "$1"
	terminal send-keys -t term Enter
}

# top [ENVIRONMENT]: starts it and waits for its picture.
top()
{
	type_line "env $* $ZSWAPCTL --device $n top --interval 0.5"
	shows 'q quit' 10
}

# The terminal is the shell's again, in the mode it was in.
check_restored()
{
	wait_for "[ \"\$(terminal display -p -t term '#{pane_current_command} #{alternate_on}')\" = 'bash 0' ]" 10 ||
		fail "it does not end"
	type_line 'echo "ended with $?"'
	shows "ended with $1" 10
	[ "$(terminal display -p -t term '#{alternate_on} #{cursor_flag} #{keypad_flag} #{insert_flag}')" = "0 1 0 0" ] ||
		fail "the terminal's mode is not put back"
	# Without echo this line would not show.
	type_line "clear; echo \"mode \$(stty -a | grep -o -- '-\\?echo\\b') \$(stty -a | grep -o -- '-\\?icanon')\""
	shows 'mode echo icanon' 10
}

keep()
{
	[ -z "$screens" ] || screen >"$screens/top-$1.txt"
}

# Every row begins with its own name and nothing else.
check_labels()
{
	local labels want='zswapd test,memory,store,device,swap-in,swap-out,discard,store read,store write,'
	want+='reads from,last,read,write,store read,store write,decompress,compress,health,q quit,'
	labels=$(screen | cut -c 2-12 | sed 's/ *$//; /^$/d; s/^last .*/last/; s/^q quit.*/q quit/' | tr '\n' ,)
	[ "$labels" = "$want" ] || {
		screen >&2
		fail "wrong rows at $1: $labels"
	}
}

cleanup_push end_terminal
fio --name=t --filename="$DEVICE" --direct=1 --rw=randrw --bs=4k --size=96M --iodepth=4 --ioengine=libaio \
	--buffer_compress_percentage=60 --refill_buffers --rate_iops=1500 --time_based --runtime=300 \
	>"$TEST_DIR/fio.log" 2>&1 9>&- &
traffic=$!
cleanup_pid $traffic
wait_counter "$n" pages_read_total -gt 3000 20

# At the usual size: everything, and it moves.
open_terminal 80x24
top
shows 'pages/s' 5
wait_for 'screen | grep -q "swap-in .*k pages/s .*[▁▂▃▄▅▆▇█]"' 15 || fail "no curve: $(screen)"
wait_for 'screen | grep -q "^ read  *[0-9.k]* .*us"' 15 || fail "no latency: $(screen)"
for word in "zswapd $n" running 'ratio' ' memory ' ' store ' ' device ' ' swap-out ' 'reads from' ' compress ' ' health ' \
	'MiB of 32.0 MiB'; do
	shows "$word" 2
done
[ "$(screen | wc -l)" -eq 24 ] || fail "not 24 lines"
screen -e | grep -q $'\e\[[0-9;]*3[0-7]' || fail "no colour where there may be"
sleep 4
check_labels "the beginning"

# It follows the terminal: the last line is the last line of every size.
for size in 60x20 200x50 80x24; do
	terminal resize-window -t term -x ${size%x*} -y ${size#*x}
	wait_for "screen | tail -n 1 | grep -q 'q quit'" 5 || fail "not drawn anew at $size: $(screen)"
	[ "$(screen | wc -l)" -eq ${size#*x} ] || fail "not as high as $size"
	sleep 1
	check_labels $size
	keep $size
done
terminal resize-window -t term -x 30 -y 6
shows 'too small' 5
terminal resize-window -t term -x 80 -y 24
shows 'reads from' 5

# The daemon ends and comes back.
kill $traffic
wait_for "has_ended $traffic" 10 || fail "fio does not end"
zswapd_stop "$n"
shows 'NO ANSWER' 10
shows 'MiB of 32.0 MiB' 1
zswapd_start "$n" "${settings[@]}"
wait_for '! screen | grep -q "NO ANSWER"' 10 || fail "the daemon that came back is not seen: $(screen)"

# Three ways to end it, and each leaves the terminal as it was.
terminal send-keys -t term q
check_restored 0
top
terminal send-keys -t term C-c
check_restored 130
top
pid=$(terminal display -p -t term '#{pane_pid}')
kill -TERM "$(pgrep -P "$pid" zswapctl)"
check_restored 143

# Stopped and gone on with, it draws anew.
top
terminal send-keys -t term C-z
shows Stopped 10
type_line fg
shows 'reads from' 10

# A daemon that hangs does not make it hang.
kill -STOP "$(zswapd_pids "$n" worker)"
shows 'NO ANSWER' 15
terminal send-keys -t term q
wait_for "[ \"\$(terminal display -p -t term '#{pane_current_command}')\" = bash ]" 3 || fail "it does not end while the daemon hangs"
kill -CONT "$(zswapd_pids "$n" worker)"
check_restored 0

# It ends with its terminal.
top
pid=$(pgrep -P "$pid" zswapctl)
close_terminal
wait_for "has_ended $pid" 5 || fail "it outlives its terminal"

# Without UTF-8, without colour, as anybody.
open_terminal 80x24
top LC_ALL=C NO_COLOR=1
shows '[#' 5
! screen | LC_ALL=C grep -q '[^ -~]' || fail "more than ASCII in the locale C"
! screen -e | grep -q $'\e\[[0-9;]*3[0-7]' || fail "colour in spite of NO_COLOR"
keep ascii
terminal send-keys -t term q
check_restored 0
top TERM=vt100
! screen -e | grep -q $'\e\[[0-9;]*3[0-7]' || fail "colour on a terminal that has none"
terminal send-keys -t term q
check_restored 0
install -m 0755 "$ZSWAPCTL" "$TEST_DIR/zswapctl"
chmod 0755 "$TEST_DIR"
type_line "setpriv --reuid 65534 --regid 65534 --clear-groups $TEST_DIR/zswapctl --device $n top"
shows 'q quit' 10
shows running 5
terminal send-keys -t term q
check_restored 0

# Where it cannot draw it says so.
type_line "TERM=dumb $ZSWAPCTL --device $n top"
shows 'TERM=dumb is no terminal' 10
check_restored 1
type_line "clear; $ZSWAPCTL --device $n top </dev/null"
shows 'needs a terminal' 10
close_terminal

# Before there is a daemon.
zswapd_stop "$n"
open_terminal 80x24
type_line "$ZSWAPCTL --device $n top"
shows "waiting for zswapd ($n)" 10
terminal send-keys -t term q
check_restored 0

test_end

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The daemon's life: what it says when, what it refuses, and that nothing is left of it.
set -euo pipefail
# shellcheck source=tests/lib/zswapd.sh
. "$(dirname "$0")/../lib/zswapd.sh"

test_begin mkfs.ext4 unshare
test_swaps
n=$TEST_NAME
log=$(zswapd_log "$n")
usual=(device.size=64M memory.limit=32M)

# said NAME REGEX: its log has a line of it.
said()
{
	grep -qE "$2" "$(zswapd_log "$1")" || fail "the log of $1 does not say: $2"
}

# refused STATUS NAME: it ends with STATUS before it is ready, and leaves nothing.
refused()
{
	local status=0
	wait_for "has_ended $PID" 30 || fail "$2 neither starts nor ends"
	wait "$PID" || status=$?
	! grep -q 'zswapd: ready: ' "$(zswapd_log "$2")" || fail "$2 became ready, though it must not"
	[ $status -eq "$1" ] || fail "$2 ended with status $status, not $1: $(tail -1 "$(zswapd_log "$2")")"
	ZSWAPD_PIDS[$2]=
	[ ! -L "/dev/zswap/$2" ] || fail "$2 left its link"
	rm -f "/run/zswapd/$2.lock"
}

# --- it is ready when it answers, and says so -----------------------------------------------------

# A service manager that writes down what it is told, a message a line.
cat >"$TEST_DIR/notified.pl" <<'PERL'
use Socket;
socket my $s, AF_UNIX, SOCK_DGRAM, 0 or die; bind $s, sockaddr_un($ARGV[0]) or die;
$| = 1;
while (defined recv $s, my $text, 4096, 0) {
	$text =~ tr/\n/ /;
	# The device's state at that moment, before the daemon can go on far.
	my $up = (grep { m{^/dev/loop} } do { open my $f, "<", "/proc/swaps"; <$f> }) ? "swapping" : "not-swapping";
	print "$up $text\n";
}
PERL
perl "$TEST_DIR/notified.pl" "$TEST_DIR/notify" >"$TEST_DIR/notified" 9>&- &
cleanup_pid $!
wait_for "[ -S $TEST_DIR/notify ]" 5 || fail "no notify socket"
zswapd_config "$n" "${usual[@]}"
zswapd_launch "$n" env NOTIFY_SOCKET="$TEST_DIR/notify"
zswapd_ready "$n"
is_swapping "$DEVICE" || fail "it was ready before it was swap"
[ "$(bounded 10 dd if="$DEVICE" iflag=direct bs=4096 count=1 status=none | tail -c 10)" = SWAPSPACE2 ] ||
	fail "the device does not answer as swap"
[ -L "$DEVICE" ] || fail "$DEVICE is no link"
timeout 10 "$ZSWAPCTL" --device "$n" status >"$TEST_DIR/status" || fail "zswapctl status"
grep -q "/dev/zswap/$n" "$TEST_DIR/status" || fail "zswapctl status does not name the device"
priority=$(awk -v d="$(realpath "$DEVICE")" '$1 == d { print $5 }' /proc/swaps)
[ "$priority" -eq 32767 ] || fail "the priority is $priority"

# --- one daemon a name ----------------------------------------------------------------------------

cp "$TEST_DIR/$n.conf" "$TEST_DIR/again.conf"
zswapd_launch again
refused 1 again
said again "name: $n is served by another zswapd \(pid ${ZSWAPD_PIDS[$n]}\)"
[ -L "$DEVICE" ] || fail "the refused daemon took the link of the other"
is_swapping "$DEVICE" || fail "the refused daemon ended the other's swap"

zswapd_stop "$n"
grep -q '^swapping READY=1 ' "$TEST_DIR/notified" || fail "READY=1 did not come, or before swap: $(cat "$TEST_DIR/notified")"
grep -q 'STOPPING=1' "$TEST_DIR/notified" || fail "STOPPING=1 did not come"
! grep -q READY "$TEST_DIR/again.log" || fail "the refused daemon said it was ready"
[ ! -d /dev/zswap ] || [ -n "$(ls /dev/zswap)" ] || fail "an empty /dev/zswap is left"

# --- one daemon a store ---------------------------------------------------------------------------

with_store=("${usual[@]}" swap.enable=no store.path="$TEST_DIR/store" store.size=32M)
zswapd_start "$n" "${with_store[@]}"
zswapd_config other "${with_store[@]}"
zswapd_launch other
refused 1 other
said other 'store .*/store is in use by another zswapd'
# A second one beside it, with a name and a store of its own, is welcome.
zswapd_start "$n-b" "${usual[@]}" swap.enable=no
zswapd_stop "$n-b"
zswapd_stop "$n"
# And its store can be used again.
zswapd_start "$n" "${with_store[@]}"
zswapd_stop "$n"

# --- a store that is not there --------------------------------------------------------------------

missing=("${usual[@]}" store.path="$TEST_DIR/late/store" store.size=32M)
zswapd_config "$n" "${missing[@]}" store.required=yes
zswapd_launch "$n"
refused 1 "$n"
said "$n" 'store .*/late/store'
zswapd_start "$n" "${missing[@]}"
said "$n" '<4>.*store .*/late/store is not there, after [0-9]* ms; all pages stay in memory'
timeout 10 "$ZSWAPCTL" --device "$n" status >"$TEST_DIR/status" || fail "zswapctl status"
grep -q 'store not there at the start' "$TEST_DIR/status" || fail "status does not show that the store is missing"
[ "$(counter "$n" store_size_bytes)" -eq 0 ] || fail "a store that is missing has a size"
is_swapping "$DEVICE" || fail "it does not swap without the store"
mkdir "$TEST_DIR/late"
[ ! -e "$TEST_DIR/late/store" ] || fail "a store appeared"
zswapd_stop "$n"
zswapd_start "$n" "${missing[@]}"
[ "$(counter "$n" store_size_bytes)" -gt 0 ] || fail "the store that is there is not used"
zswapd_stop "$n"

# --- somebody's data is refused -------------------------------------------------------------------

head -c 33554432 /dev/zero >"$TEST_DIR/ext4"
mkfs.ext4 -q -F -L precious "$TEST_DIR/ext4"
chmod 600 "$TEST_DIR/ext4"
cp "$TEST_DIR/ext4" "$TEST_DIR/ext4.before"
zswapd_config foreign "${usual[@]}" store.path="$TEST_DIR/ext4" store.size=32M
zswapd_launch foreign
refused 1 foreign
said foreign 'holds somebody else.s data \(ext4, label "precious"\)'
cmp "$TEST_DIR/ext4" "$TEST_DIR/ext4.before" || fail "a refused store was written to"

# --- configuration --------------------------------------------------------------------------------

# wrong LINE REGEX SETTING...: refused with status 2, naming the file and the line.
wrong()
{
	local line=$1 text=$2
	shift 2
	zswapd_config wrong "$@"
	zswapd_launch wrong
	refused 2 wrong
	said wrong "/wrong.conf:$line: $text"
}
wrong 7 '\[device\] size: ' device.size=12Q
wrong 7 '\[memory\] level: ' memory.level=99
wrong 7 '\[store\] path: ' store.path=relative/path
wrong 7 '\[read\] overlap: ' read.overlap=perhaps
zswapd_config wrong "${usual[@]}" device.colour=blue swap.enable=no
zswapd_launch wrong
zswapd_ready wrong
said wrong '/wrong.conf:11: .*colour'
zswapd_stop wrong
"$ZSWAPD" --check-config --config "$TEST_DIR/$n.conf" &>"$TEST_DIR/checked" || fail "--check-config: $?"
"$ZSWAPD" --print-config --config "$TEST_DIR/$n.conf" >"$TEST_DIR/checked" 2>&1 || fail "--print-config: $?"
grep -q "$n" "$TEST_DIR/checked" || fail "--print-config does not print the name"
status=0
"$ZSWAPD" --config "$TEST_DIR/not-there.conf" 2>"$TEST_DIR/usage" || status=$?
[ $status -eq 2 ] || fail "a configuration that is not there: status $status"

# --- warnings -------------------------------------------------------------------------------------

if [ -e /sys/module/zswap/parameters/enabled ]; then
	# Restored by test_swaps' clean-up.
	echo Y >/sys/module/zswap/parameters/enabled
	zswapd_start "$n" "${usual[@]}" swap.enable=no
	echo N >/sys/module/zswap/parameters/enabled
	said "$n" '<4>zswapd: kernel zswap is enabled'
	zswapd_stop "$n"
fi
cgroup_new life $((1 << 30))
zswapd_config "$n" "${usual[@]}" swap.enable=no
# shellcheck disable=SC2016
zswapd_launch "$n" bash -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$CGROUP"
zswapd_ready "$n"
said "$n" '<4>zswapd: this daemon runs in a memory cgroup limited to 1073741824 bytes'
zswapd_stop "$n"

# --- memory that can't hold what is swapped -------------------------------------------------------

# In a mount namespace of its own, the daemon reads a /proc/meminfo of ours, so that nothing is
# really short of memory.
available()
{
	sed "s/^MemAvailable:.*/MemAvailable: $1 kB/" /proc/meminfo >"$TEST_DIR/meminfo.new"
	# The same inode, which is what is mounted.
	cat "$TEST_DIR/meminfo.new" >"$TEST_DIR/meminfo"
}
available 100000000
zswapd_config "$n" device.size=256M memory.limit=128M
: >"$TEST_DIR/notified"
# shellcheck disable=SC2016
zswapd_launch "$n" env NOTIFY_SOCKET="$TEST_DIR/notify" unshare --mount \
	bash -c 'mount --bind "$0" /proc/meminfo && exec "$@"' "$TEST_DIR/meminfo"
zswapd_ready "$n"
cgroup_limit "$CGROUP" $((32 << 20))
cgroup_patience "$CGROUP"
cleanup_push zswapd_abort_dead "$n"
# 96 MiB, of which two thirds are swapped out and stay there while it sleeps.
cat >"$TEST_DIR/sleeper.pl" <<'PERL'
my $text = "";
$text .= sprintf "%08x", $_ * 2654435761 % 4294967296 for 1 .. 6 * 1048576;
$text .= $text; $| = 1; print length $text, "\n"; sleep 100;
PERL
cgroup_run "$CGROUP" perl "$TEST_DIR/sleeper.pl" >"$TEST_DIR/sleeper.out" 9>&- &
cleanup_pid $!
wait_for "[ -s $TEST_DIR/sleeper.out ]" 60 || fail "the program does not get ready"
other=$(awk -v d="$(realpath "$DEVICE")" 'NR > 1 && $1 != d { sum += $3 - $4 } END { print sum + 0 }' /proc/swaps)
used=$(awk -v d="$(realpath "$DEVICE")" '$1 == d { print $4 }' /proc/swaps)
[ "$used" -gt 40000 ] || fail "only $used kB are swapped out"
if [ "$other" -gt 0 ]; then
	note "there is other swap with $other kB free: that stopping can be refused is not tried"
else
	available 81920
	kill "$PID"
	wait_for "grep -q 'stop: refused' $log" 30 || fail "it was not refused to stop: $(cat /proc/swaps)"
	said "$n" 'stop: refused: [0-9.]+ MiB are swapped out and only 16.0 MiB would hold them'
	! has_ended "$PID" || fail "it ended all the same"
	is_swapping "$DEVICE" || fail "it is not swap any more"
	wait_for "grep -q 'READY=1 STATUS=Refused' $TEST_DIR/notified" 5 ||
		fail "the refusal was not told: $(cat "$TEST_DIR/notified")"
fi
# With room again, it goes.
available 100000000
cgroup_kill "$CGROUP"
zswapd_stop "$n"

# --- killed ---------------------------------------------------------------------------------------

zswapd_start "$n" "${usual[@]}" swap.enable=no
loop=${ZSWAPD_LOOPS[$n]}
zswapd_killed "$n"
! grep -qF /run/zswapd/ /proc/mounts || fail "a killed daemon left a mount"
flock -n "/run/zswapd/$n.lock" true || fail "a killed daemon's lock is held"
bounded 30 losetup -d "$loop" || fail "a killed daemon's loop device can't be detached"
wait_for "[ ! -e /sys/block/${loop##*/}/loop/backing_file ]" 10 || fail "$loop stays attached"
# The next one under the same name is not bothered by what is left.
zswapd_start "$n" "${usual[@]}"
is_swapping "$DEVICE" || fail "no swap after a killed daemon"
zswapd_stop "$n"
test_end

# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# Clean-up for tests that own swap devices, loops, mounts and cgroups.  Source it.
#
# Whatever a test makes it registers at once, and on exit (also after a failure or a signal) it is
# undone in reverse order.  Each step has a time limit and a failing step does not keep the others
# from running.  Never `exec`, and never set another EXIT trap, in a script that uses this.
#
#   cleanup_push COMMAND [ARG]...   any command
#   cleanup_pid PID                 TERM, CLEANUP_TERM_SECONDS (10) later KILL; only for processes that this
#                                   script started
#   cleanup_swap DEVICE             swapoff, if it is on
#   cleanup_loop DEVICE             losetup -d, if it is attached
#   cleanup_mount DIR               umount, if it is mounted
#   cleanup_fuse DIR                aborts the FUSE connection first, then umount
#   cleanup_file PATH...            rm -f
#   cleanup_sysfs FILE              writes back what FILE holds now
#   cleanup_now                     runs everything registered so far
#   wait_for COMMAND SECONDS        until COMMAND (a string for eval) succeeds; 1 after SECONDS
#   fuse_abort DIR                  lets everybody who hangs on this FUSE mount go, with errors
#   note TEXT, die TEXT             to stderr, under the script's name

CLEANUP_STEPS=()

note()
{
	echo "${0##*/}: $*" >&2
}

die()
{
	note "$*"
	exit 1
}

cleanup_push()
{
	local step
	printf -v step '%q ' "$@"
	CLEANUP_STEPS+=("$step")
}

cleanup_now()
{
	local i status=0
	for ((i = ${#CLEANUP_STEPS[@]} - 1; i >= 0; i--)); do
		local step=${CLEANUP_STEPS[i]}
		unset 'CLEANUP_STEPS[i]'
		# In a condition, so that the caller's `set -e` does not end the clean-up half way.
		if ! eval "$step"; then
			note "clean-up failed: $step"
			status=1
		fi
	done
	return $status
}

cleanup_on_exit()
{
	local status=$?
	# PIPE: who reads our notes may be gone.
	trap '' INT TERM HUP PIPE
	cleanup_now || [ $status -ne 0 ] || status=1
	exit $status
}

trap cleanup_on_exit EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
trap 'exit 129' HUP

wait_for()
{
	local end=$((SECONDS + $2))
	until eval "$1"; do
		((SECONDS < end)) || return 1
		sleep 0.05
	done
}

# True once PID has ended; a zombie of ours counts as ended.
has_ended()
{
	local state
	state=$(sed 's/.*) \(.\).*/\1/' "/proc/$1/stat" 2>/dev/null) || return 0
	[ -z "$state" ] || [ "$state" = Z ]
}

# In a trap a bare `return` gives the status from before the trap, so it says 0.
undo_pid()
{
	has_ended "$1" && return 0
	kill "$1" 2>/dev/null
	kill -CONT "$1" 2>/dev/null
	wait_for "has_ended $1" "${CLEANUP_TERM_SECONDS:-10}" && return 0
	kill -KILL "$1" 2>/dev/null
	wait_for "has_ended $1" 10
}

cleanup_pid()
{
	cleanup_push undo_pid "$1"
}

is_swapping()
{
	local device
	device=$(realpath "$1" 2>/dev/null) || return 1
	awk -v d="$device" '$1 == d { found = 1 } END { exit !found }' /proc/swaps
}

undo_swap()
{
	! is_swapping "$1" || timeout -k 5 300 swapoff "$1"
}

cleanup_swap()
{
	cleanup_push undo_swap "$1"
}

undo_loop()
{
	[ ! -e "/sys/block/${1##*/}/loop/backing_file" ] || timeout -k 5 30 losetup -d "$1"
}

cleanup_loop()
{
	cleanup_push undo_loop "$1"
}

is_mounted()
{
	awk -v d="$1" '$5 == d { found = 1 } END { exit !found }' /proc/self/mountinfo
}

undo_mount()
{
	! is_mounted "$1" || timeout -k 5 30 umount "$1" || umount -l "$1"
}

cleanup_mount()
{
	cleanup_push undo_mount "$(realpath "$1")"
}

# The connection's number is the mount's device minor.  mountinfo tells it without touching the
# mount, which may hang.
fuse_abort()
{
	local minor dir=/sys/fs/fuse/connections mounted_here=
	minor=$(awk -v d="$1" '$5 == d { split($3, n, ":"); print n[2]; exit }' /proc/self/mountinfo)
	[ -n "$minor" ] || return 0
	if ! is_mounted $dir; then
		mount -t fusectl none $dir || return 1
		mounted_here=1
	fi
	[ ! -e "$dir/$minor/abort" ] || echo 1 >"$dir/$minor/abort"
	[ -z "$mounted_here" ] || umount $dir
}

undo_fuse()
{
	fuse_abort "$1"
	undo_mount "$1"
}

cleanup_fuse()
{
	cleanup_push undo_fuse "$1"
}

cleanup_file()
{
	cleanup_push rm -f -- "$@"
}

write_file()
{
	echo "$2" >"$1"
}

cleanup_sysfs()
{
	cleanup_push write_file "$1" "$(cat "$1")"
}

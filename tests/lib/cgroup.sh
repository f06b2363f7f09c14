# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# Memory cgroups, v2 where it has the memory controller, else v1.  Source cleanup.sh first.
#
#   cgroup_new NAME BYTES          makes it with that limit (swap unlimited), registers its removal,
#                                  and sets CGROUP to its directory
#   cgroup_limit DIR BYTES         changes the limit
#   cgroup_run DIR COMMAND...      runs a command inside, from its first instruction on
#   cgroup_swapped DIR             bytes of it that are in swap now
#   cgroup_memory DIR              bytes charged to it now
#   cgroup_patience DIR            until the script ends, a failed reclaim makes the program wait
#                                  instead of being killed (see below); v1 only, no effect on v2
#   cgroup_stalls DIR              how often that happened
#   cgroup_kill DIR                kills what is left inside
#   swap_in_total, swap_out_total  pages since boot, from /proc/vmstat

CGROUP=

# Prints "2 DIR" or "1 DIR", DIR being where to make groups.
cgroup_root()
{
	local dir
	for dir in /sys/fs/cgroup /sys/fs/cgroup/unified; do
		if grep -qw memory "$dir/cgroup.controllers" 2>/dev/null; then
			echo "2 $dir"
			return
		fi
	done
	[ -e /sys/fs/cgroup/memory/memory.limit_in_bytes ] || return 1
	echo "1 /sys/fs/cgroup/memory"
}

cgroup_limit()
{
	if [ -e "$1/memory.max" ]; then
		echo "$2" >"$1/memory.max"
	else
		echo "$2" >"$1/memory.limit_in_bytes"
	fi
}

cgroup_new()
{
	local version root
	read -r version root < <(cgroup_root) || die "no memory cgroup controller is mounted"
	if [ "$version" = 2 ] && ! grep -qw memory "$root/cgroup.subtree_control"; then
		echo +memory >"$root/cgroup.subtree_control"
		cleanup_push write_file "$root/cgroup.subtree_control" -memory
	fi
	CGROUP=$root/zswapd-$1-$$
	mkdir "$CGROUP"
	cleanup_push cgroup_remove "$CGROUP"
	cgroup_limit "$CGROUP" "$2"
}

cgroup_run()
{
	local dir=$1
	shift
	# The shell enters the group and then becomes the command.
	# shellcheck disable=SC2016
	bash -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$dir" "$@"
}

cgroup_swapped()
{
	if [ -e "$1/memory.swap.current" ]; then
		cat "$1/memory.swap.current"
	else
		awk '$1 == "swap" { print $2 }' "$1/memory.stat"
	fi
}

cgroup_memory()
{
	cat "$1/memory.current" 2>/dev/null || cat "$1/memory.usage_in_bytes"
}

# The v1 controller kills after sixteen fruitless rounds of reclaim, and with fast swap that happens
# with most of the swap free and nothing under writeback: all pages were just referenced, or just
# activated.  A moment later reclaim works again.  So the killer is switched off, and when the
# program waits for memory, room for a few pages wakes it; the limit itself is put back at once.
# What has not gone on after 5 seconds never will: then the killer comes back.
cgroup_nudge()
{
	local dir=$1 limit=$2 stalls=0 since=
	while sleep 0.02; do
		if grep -q '^under_oom 1' "$dir/memory.oom_control" 2>/dev/null; then
			if [ -z "$since" ]; then
				since=$SECONDS
				stalls=$((stalls + 1))
				echo $stalls >"$3"
				echo $((limit + 1048576)) >"$dir/memory.limit_in_bytes"
			elif [ $((SECONDS - since)) -ge 5 ]; then
				note "reclaim finds nothing any more in $dir, its program is killed"
				echo 0 >"$dir/memory.oom_control"
			fi
		fi
		# Fails while reclaim finds nothing; then the next turn does it.
		if [ -n "$since" ] && echo "$limit" 2>/dev/null >"$dir/memory.limit_in_bytes"; then
			since=
		fi
	done
}

declare -A CGROUP_STALLS=()

cgroup_patience()
{
	[ -e "$1/memory.oom_control" ] && [ -e "$1/memory.limit_in_bytes" ] || return 0
	CGROUP_STALLS[$1]=$(mktemp)
	cleanup_file "${CGROUP_STALLS[$1]}"
	echo 1 >"$1/memory.oom_control"
	cgroup_nudge "$1" "$(cat "$1/memory.limit_in_bytes")" "${CGROUP_STALLS[$1]}" &
	cleanup_pid $!
}

cgroup_stalls()
{
	local file=${CGROUP_STALLS[$1]-}
	{ [ -n "$file" ] && [ -s "$file" ] && cat "$file"; } || echo 0
}

cgroup_kill()
{
	local pid
	while read -r pid; do
		kill -KILL "$pid" 2>/dev/null
	done <"$1/cgroup.procs"
	wait_for "[ -z \"\$(cat $(printf %q "$1")/cgroup.procs)\" ]" 20
}

cgroup_remove()
{
	[ -d "$1" ] || return 0
	cgroup_kill "$1"
	# Freed pages are uncharged with a delay.
	wait_for "rmdir $(printf %q "$1") 2>/dev/null" 10
}

swap_in_total()
{
	awk '$1 == "pswpin" { print $2 }' /proc/vmstat
}

swap_out_total()
{
	awk '$1 == "pswpout" { print $2 }' /proc/vmstat
}

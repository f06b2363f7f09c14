# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# The processes of one zswapd, known by the configuration file that it was started with
# (--config FILE), so that nobody else's is ever touched.  Source cleanup.sh first.
#
#   daemon_pids CONFIG [WHAT]...   their pids
#   daemon_kill CONFIG [WHAT]...   SIGKILL, all at one moment, as nearly as that goes; not waited for
#   daemon_gone CONFIG             true if none lives
#   daemon_killed CONFIG           kills until none lives, even if one was being forked just then
#   undo_daemon CONFIG             ends it: TERM, which swaps off, CLEANUP_TERM_SECONDS (10) later KILL
#
# WHAT is supervisor, worker or standby; without any, all are meant.

daemon_pids()
{
	local config=$1 what wanted comm name pids=()
	shift
	[ $# -gt 0 ] || set -- supervisor worker standby
	# The supervisor first, which would fork others.
	for what in "$@"; do
		wanted=zswapd-$what
		[ "$what" != supervisor ] || wanted=zswapd
		# The command line of a process that hangs in a page fault can't always be read: only those
		# of our own are looked at.
		for comm in /proc/[0-9]*/comm; do
			{ read -r name <"$comm"; } 2>/dev/null || continue
			[ "$name" = "$wanted" ] || continue
			! grep -qzxF -- "$config" "${comm%comm}cmdline" 2>/dev/null || pids+=("${comm//[!0-9]/}")
		done
	done
	echo "${pids[*]}"
}

daemon_kill()
{
	local pids
	read -r -a pids < <(daemon_pids "$@") || true
	[ ${#pids[@]} -eq 0 ] || kill -KILL "${pids[@]}" 2>/dev/null || true
}

daemon_gone()
{
	[ -z "$(daemon_pids "$1")" ]
}

daemon_killed()
{
	daemon_kill "$1"
	daemon_gone "$1"
}

# A worker whose supervisor has died ends by TERM as well.
undo_daemon()
{
	local what pid
	for what in supervisor worker; do
		for pid in $(daemon_pids "$1" $what); do
			undo_pid "$pid" || true
		done
	done
	wait_for "daemon_killed '$1'" 10
}

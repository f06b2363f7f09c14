/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a process that serves swap asks of the system before it starts.
 *
 * Main thread, before any other thread is started, where nothing else is said.
 */
#ifndef ZSWAPD_WORKER_SYSTEM_H
#define ZSWAPD_WORKER_SYSTEM_H

#include <stdbool.h>

struct system_grants {
	bool locked;	 /* all memory, now and later */
	bool oom_exempt; /* OOM score -1000 */
	bool io_flusher; /* PR_SET_IO_FLUSHER; see common/thread.h */
};

/*
 * Blocks SIGTERM, SIGINT and SIGHUP, for all threads that are started from now on, and ignores
 * SIGPIPE.  Returns a non-blocking signalfd that they are read from, or a negative errno.
 */
int system_open_signals(void);

/*
 * Locks the process's memory, lowers its OOM score, marks the main thread; says in *ret what was
 * granted.  -EPERM, logged: memory can't be locked, without which swap must not be served.
 */
int system_prepare(struct system_grants *ret);

/*
 * Warns of what was not granted and of the risk, of kernel zswap in front of our device, and of a
 * memory limit on our own cgroup.
 */
void system_warn(const struct system_grants *g);

/* Whether kernel zswap is enabled.  Any thread but data threads. */
bool system_kernel_zswap(void);

#endif

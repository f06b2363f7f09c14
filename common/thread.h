/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Threads of a daemon that serves swap.
 *
 * Each of them is marked with PR_SET_IO_FLUSHER: its allocations in the kernel must not wait for
 * pages to be written out through itself (mm: PF_MEMALLOC_NOIO, PF_LOCAL_THROTTLE).  The mark
 * belongs to one thread and is not inherited by the others.
 */
#ifndef ZSWAPD_COMMON_THREAD_H
#define ZSWAPD_COMMON_THREAD_H

#include <pthread.h>
#include <stdbool.h>

/*
 * Starts @main(@arg) as "zswapd-@name" (at most 15 characters together) with a small stack, which
 * mlockall() would otherwise fill with 8 MiB a thread.  Negative errno of pthread_create(3).
 */
int thread_start(pthread_t *ret, const char *name, void *(*main)(void *), void *arg);

/*
 * Marks the calling thread, for those that thread_start() does not start.  False if the kernel
 * refused (no CAP_SYS_RESOURCE).
 */
bool thread_mark_io_flusher(void);

/* True if every thread that asked so far was marked. */
bool thread_all_io_flushers(void);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A thread's sign of life: it counts its turns where somebody else can see it, another process
 * maybe.  A count that stands still is a thread that does not come round.
 */
#ifndef ZSWAPD_COMMON_BEAT_H
#define ZSWAPD_COMMON_BEAT_H

#include "common/util.h"

#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>

struct beat {
	_Alignas(CACHE_LINE) _Atomic uint64_t turns;
	_Atomic int tid; /* of the thread that is watched; 0: none is */
};

static inline void beat_turn(struct beat *b)
{
	/* relaxed, one writer: it orders nothing. */
	atomic_store_explicit(&b->turns, atomic_load_explicit(&b->turns, memory_order_relaxed) + 1,
			      memory_order_relaxed);
}

/* The calling thread is to be watched from now on. */
static inline void beat_begin(struct beat *b)
{
	atomic_store(&b->tid, (int)syscall(SYS_gettid));
}

static inline void beat_end(struct beat *b)
{
	atomic_store(&b->tid, 0);
}

#endif

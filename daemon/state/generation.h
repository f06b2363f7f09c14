/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which frames of the front tier are present in memory, for a process that stands by.
 *
 * A frame that is made present gets a number that no frame had before (but for a wrap of 32 bits);
 * one that is given back to the system gets 0.  Who compares the numbers with those of its last
 * look knows which frames are new to it, also those that went and came back in between.
 *
 * The number is written after the frame is there and cleared before it goes: a frame with a number
 * is whole, at any instant its writer can die.  One without may be there all the same, in part.
 *
 * Written by the mover; at a takeover by who takes over.  Read by any process.
 */
#ifndef ZSWAPD_STATE_GENERATION_H
#define ZSWAPD_STATE_GENERATION_H

#include <stdatomic.h>
#include <stdint.h>

#define GENERATION_ABSENT 0u

struct generations {
	_Atomic uint32_t last; /* given out; unchanged: no frame has come since */
	_Atomic uint32_t frame[];
};

static inline uint32_t generation_last(struct generations *g)
{
	/* acquire: pairs with generation_begin(); the frames' numbers up to this one are seen. */
	return atomic_load_explicit(&g->last, memory_order_acquire);
}

static inline uint32_t generation_load(struct generations *g, uint32_t frame)
{
	return atomic_load_explicit(&g->frame[frame], memory_order_acquire);
}

static inline void generation_begin(struct generations *g, uint32_t frame)
{
	uint32_t n = atomic_load_explicit(&g->last, memory_order_relaxed) + 1;

	if (n == GENERATION_ABSENT)
		n++;
	/* release: the frame is there before its number, and that before `last`. */
	atomic_store_explicit(&g->frame[frame], n, memory_order_release);
	atomic_store_explicit(&g->last, n, memory_order_release);
}

static inline void generation_end(struct generations *g, uint32_t frame)
{
	/* seq_cst: nothing that gives the frame back is moved before it. */
	atomic_store_explicit(&g->frame[frame], GENERATION_ABSENT, memory_order_seq_cst);
}

/* At a takeover: `last` of a process that died between its two stores, or was damaged. */
static inline void generation_raise(struct generations *g, uint32_t last)
{
	if (last > atomic_load_explicit(&g->last, memory_order_relaxed))
		atomic_store_explicit(&g->last, last, memory_order_release);
}

#endif

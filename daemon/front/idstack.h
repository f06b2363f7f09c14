/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A lock-free stack of small numbers: free frames, free segment records.
 *
 * R. K. Treiber's stack (1986) with numbers for pointers.  The head carries a tag that grows with
 * every change, so that a head seen again is the same head (the ABA problem).  A count next to it
 * is taken down before a pop and up after a push; who got a unit of the count is sure to find an
 * entry, and a part of the count can be kept for a privileged caller.
 *
 * Any thread may push and pop.  Nothing allocates after init.
 */
#ifndef ZSWAPD_FRONT_IDSTACK_H
#define ZSWAPD_FRONT_IDSTACK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define IDSTACK_NONE UINT32_MAX

struct idstack {
	_Atomic uint64_t head;	/* tag in the high half, number in the low half */
	_Atomic uint32_t count; /* entries that nobody has claimed */
	_Atomic uint32_t *next; /* set at start */
};

#define IDSTACK_NULL                 \
	{                            \
		.head = IDSTACK_NONE \
	}

/* For numbers below @capacity; empty at first. -ENOMEM. */
int idstack_init(struct idstack *s, uint32_t capacity);
void idstack_deinit(struct idstack *s);

void idstack_push(struct idstack *s, uint32_t id);

/* Takes an entry if more than @keep are left; else IDSTACK_NONE. */
uint32_t idstack_pop(struct idstack *s, uint32_t keep);

static inline uint32_t idstack_count(struct idstack *s)
{
	return atomic_load_explicit(&s->count, memory_order_relaxed);
}

#endif

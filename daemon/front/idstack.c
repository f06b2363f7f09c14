// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/front/idstack.h"
#include "common/util.h"

#include <errno.h>
#include <stdlib.h>

int idstack_init(struct idstack *s, uint32_t capacity)
{
	s->next = calloc(capacity ? capacity : 1, sizeof(*s->next));
	if (!s->next)
		return -ENOMEM;
	atomic_init(&s->head, IDSTACK_NONE);
	atomic_init(&s->count, 0);
	return 0;
}

void idstack_deinit(struct idstack *s)
{
	free(s->next);
	s->next = NULL;
}

static uint64_t next_head(uint64_t head, uint32_t id)
{
	return ((head >> 32) + 1) << 32 | id;
}

void idstack_push(struct idstack *s, uint32_t id)
{
	uint64_t head = atomic_load_explicit(&s->head, memory_order_relaxed);

	do {
		atomic_store_explicit(&s->next[id], (uint32_t)head, memory_order_relaxed);
		/* release: what the pusher did with the entry, and its next, come before. */
	} while (!atomic_compare_exchange_weak_explicit(
		&s->head, &head, next_head(head, id), memory_order_release, memory_order_relaxed));
	/* release: whoever claims this unit finds the entry in the stack. */
	atomic_fetch_add_explicit(&s->count, 1, memory_order_release);
}

uint32_t idstack_pop(struct idstack *s, uint32_t keep)
{
	uint32_t count = atomic_load_explicit(&s->count, memory_order_relaxed);
	uint64_t head;
	uint32_t id;

	do {
		if (count <= keep)
			return IDSTACK_NONE;
		/* acquire: pairs with the release in push. */
	} while (!atomic_compare_exchange_weak_explicit(
		&s->count, &count, count - 1, memory_order_acquire, memory_order_relaxed));
	head = atomic_load_explicit(&s->head, memory_order_acquire);
	do {
		id = (uint32_t)head;
		z_assert(id != IDSTACK_NONE);
		/* A stale next is possible here; the tag makes the exchange fail then. */
	} while (!atomic_compare_exchange_weak_explicit(
		&s->head, &head,
		next_head(head, atomic_load_explicit(&s->next[id], memory_order_relaxed)),
		memory_order_acquire, memory_order_acquire));
	return id;
}

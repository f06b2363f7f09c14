// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/engine/health.h"

#include <errno.h>

/* Times of other threads can be a little later than one's own. */
static uint64_t age(const _Atomic uint64_t *then, uint64_t now)
{
	uint64_t at = atomic_load_explicit(then, memory_order_relaxed);

	return now > at ? now - at : 0;
}

bool store_watch_overdue(const struct store_watch *w, uint64_t now)
{
	return atomic_load_explicit(&w->waiting, memory_order_relaxed) > 0 &&
	       age(&w->since, now) >= STALLED_NS;
}

bool store_watch_lively(const struct store_watch *w, uint64_t now)
{
	return atomic_load_explicit(&w->answered, memory_order_relaxed) != 0 &&
	       age(&w->answered, now) < STALLED_NS;
}

bool store_fault_is_local(int32_t res)
{
	/* 0 and more: a transfer that was cut short. */
	return res >= 0 || res == -EIO || res == -ENODATA || res == -EREMOTEIO || res == -EILSEQ;
}

bool store_fault_is_gone(int32_t res)
{
	return res == -ENODEV || res == -ENXIO;
}

bool write_health_allows(const struct write_health *h, unsigned writing, uint64_t now)
{
	if (h->failures == 0 && !h->lost)
		return true;
	return !h->gone && writing == 0 && now >= h->next;
}

void write_health_failed(struct write_health *h, bool try, uint64_t now)
{
	h->failures++;
	if (!try)
		return;
	h->tries++;
	if (h->tries >= LOST_TRIES)
		h->lost = true;
	h->next = now + (h->lost ? LOST_PAUSE_NS : TRY_PAUSE_NS << (h->tries - 1));
}

void write_health_succeeded(struct write_health *h)
{
	*h = (struct write_health){0};
}

void write_health_gone(struct write_health *h)
{
	h->lost = h->gone = true;
}

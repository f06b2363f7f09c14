// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The front tier's limit and the watermark.
 *
 * Both are numbers in the state's header, so that they outlive the process; any thread may set
 * them.  Everything else follows from the mover's next look at the tiers (survey.c, policy.c): it
 * asks for no frame beyond the limit, and makes room while there are more.  Records and tables are
 * made at the start for the highest limit there can be, so nothing has to be allocated later.
 */
#include "daemon/engine/internal.h"

#include <errno.h>
#include <inttypes.h>

/* Of a segment, what is taken as full: cleaning the rest away costs more than it gives. */
#define FULL_16THS 15u

static uint32_t min_frames(unsigned nqueues)
{
	/* Two open segments a queue, two of the mover's, what is kept for it, and two to move. */
	return 2 * nqueues + 2 + FRAMES_KEPT + 2;
}

uint64_t engine_memory_min(unsigned nqueues)
{
	return (uint64_t)min_frames(nqueues) * SEGMENT_SIZE;
}

/* relaxed: plain settings, nothing is published by them. */
uint32_t engine_limit_frames(const struct engine *e)
{
	return atomic_load_explicit(&e->state->header->limit, memory_order_relaxed);
}

/*
 * A queue takes a frame in the time that it takes to compress 1 MiB of objects, some 20 ms; writing
 * one back takes a few.  So two a queue, beyond what is kept, are plenty, and more would only hold
 * no pages.  What the threads hold open must fit beside the reserve.
 */
uint32_t engine_reserve_frames(const struct engine *e)
{
	uint32_t wanted = atomic_load_explicit(&e->state->header->reserve, memory_order_relaxed);
	uint32_t spare = engine_limit_frames(e) - min_frames(e->nqueues);

	if (wanted == 0)
		wanted = FRAMES_KEPT + 1 + 2 * e->nqueues;
	wanted = (uint32_t)max_u64(wanted, FRAMES_KEPT + 1);
	return (uint32_t)min_u64(wanted, FRAMES_KEPT + 1 + (uint64_t)spare);
}

static uint32_t reserve_of(uint64_t bytes)
{
	return (uint32_t)min_u64(bytes / SEGMENT_SIZE + (bytes % SEGMENT_SIZE != 0),
				 SEGMENT_NONE / 2);
}

/* What a former process had set, as far as it can be. */
static uint64_t kept_limit(const struct engine *e)
{
	uint32_t limit = engine_limit_frames(e);

	if (limit < min_frames(e->nqueues) || limit > e->state->geo.nframes)
		return max_u64(engine_memory_min(e->nqueues),
			       min_u64(limit, e->state->geo.nframes) * SEGMENT_SIZE);
	return (uint64_t)limit * SEGMENT_SIZE;
}

int limit_check(uint64_t limit, unsigned nqueues)
{
	if (limit >= engine_memory_min(nqueues))
		return 0;
	log_err("[memory] limit: %" PRIu64 " bytes are too few for %u queues, which need %" PRIu64
		"; raise the limit or lower [device] queues",
		limit, nqueues, engine_memory_min(nqueues));
	return -EINVAL;
}

void limit_init(struct engine *e, const struct engine_options *o)
{
	atomic_store(&e->state->header->limit, (uint32_t)(o->memory_limit / SEGMENT_SIZE));
	atomic_store(&e->state->header->reserve, reserve_of(o->memory_reserve));
}

void limit_keep(struct engine *e)
{
	atomic_store(&e->state->header->limit, (uint32_t)(kept_limit(e) / SEGMENT_SIZE));
}

/* Bytes of objects that the store has room for. */
static uint64_t storable(const struct engine *e)
{
	uint64_t used = atomic_load_explicit(&e->places_used, memory_order_relaxed);
	uint64_t places = e->state->geo.nplaces;

	return places > used + PLACES_KEPT && !atomic_load(&e->store_lost)
		       ? (places - used - PLACES_KEPT) * SEGMENT_SIZE / 16 * FULL_16THS
		       : 0;
}

void engine_memory_range(struct engine *e, uint64_t *ret_min, uint64_t *ret_max)
{
	uint64_t room = storable(e), stays;
	struct holdings h;

	engine_count_objects(e, &h);
	stays = h.resident_bytes > room ? h.resident_bytes - room : 0;
	*ret_max = (uint64_t)e->state->geo.nframes * SEGMENT_SIZE;
	*ret_min = min_u64(engine_memory_min(e->nqueues) +
				   align_up(stays * 16 / FULL_16THS, SEGMENT_SIZE),
			   *ret_max);
}

int engine_set_memory_limit(struct engine *e, uint64_t bytes)
{
	uint64_t frames = bytes / SEGMENT_SIZE, min, max;

	if (frames < min_frames(e->nqueues) || frames > e->state->geo.nframes)
		return -ERANGE;
	if (frames < engine_limit_frames(e)) {
		engine_memory_range(e, &min, &max);
		if (frames * SEGMENT_SIZE < min)
			return -ENOSPC;
	}
	job_limit_set(e, (uint32_t)frames);
	engine_kick_mover(e);
	return 0;
}

void engine_set_memory_reserve(struct engine *e, uint64_t bytes)
{
	atomic_store(&e->state->header->reserve, reserve_of(bytes));
	engine_kick_mover(e);
}

uint64_t engine_memory_reserve(const struct engine *e)
{
	return (uint64_t)engine_reserve_frames(e) * SEGMENT_SIZE;
}

uint64_t engine_memory_limit(const struct engine *e)
{
	return (uint64_t)engine_limit_frames(e) * SEGMENT_SIZE;
}

uint64_t engine_memory_reserve_wanted(const struct engine *e)
{
	return (uint64_t)atomic_load_explicit(&e->state->header->reserve, memory_order_relaxed) *
	       SEGMENT_SIZE;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Writing segments back, and what becomes of the store when that fails.
 *
 * A segment whose write fails stays in memory, as if it had never been tried; the next try, of this
 * or another segment, goes elsewhere.  When to try and when to give up is said in health.h.
 *
 * The place that was written to is put aside.  When a write elsewhere succeeds it is tried once
 * more, at once: the whole store may have been away for a moment.  When it fails again and another
 * does not, it is retired: a record of its own keeps it, so that it is used no more as long as the
 * state lives, by no successor either.  When more writes have failed than can have been under way
 * at once the fault is the store's, and its places are none the worse for it; they are used again,
 * last, as is a place whose error says nothing about it.
 */
#include "daemon/engine/evictor_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/ioctl.h>

void evictor_put_place_last(struct evictor *v, uint32_t place)
{
	memmove(v->places + 1, v->places, v->nplaces * sizeof(*v->places));
	v->places[0] = place;
	v->nplaces++;
	v->strikes[place] = 0;
	atomic_fetch_sub_explicit(&v->e->places_used, 1, memory_order_relaxed);
}

/* From elsewhere while writes fail: a bad place has bad neighbours. */
static uint32_t take_place(struct evictor *v)
{
	/* Fibonacci hashing: successive ones are far from each other. */
	uint32_t spread = v->health.failures * 2654435769u;
	uint32_t at = v->health.failures ? (uint32_t)((uint64_t)spread * v->nplaces >> 32)
					 : v->nplaces - 1;
	uint32_t place = v->places[at];

	v->places[at] = v->places[--v->nplaces];
	atomic_fetch_add_explicit(&v->e->places_used, 1, memory_order_relaxed);
	return place;
}

static void put_aside(struct evictor *v, uint32_t place, int32_t res)
{
	if (store_fault_is_local(res) && v->health.failures <= EVICTOR_WRITES) {
		v->strikes[place]++;
		v->aside[v->naside++] = place;
		return;
	}
	evictor_put_place_last(v, place);
	while (v->naside > 0)
		evictor_put_place_last(v, v->aside[--v->naside]);
}

/* There is a record for it: as many as frames and places, and no other record has this place. */
static void retire_place(struct evictor *v, uint32_t place)
{
	struct engine *e = v->e;
	uint32_t id = idstack_pop(&e->records, 0), n;
	struct segment *s;

	z_assert(id != IDSTACK_NONE);
	s = &e->state->segments[id];
	z_assert(segment_state_load(s) == SEGMENT_FREE);
	s->used = 0;
	segment_added_set(s, 0);
	atomic_store_explicit(&s->released, 0, memory_order_relaxed);
	segment_where_set(s, SEGMENT_NONE, place);
	CRASH_POINT(retire_place_set);
	segment_state_set(s, SEGMENT_RETIRED);
	CRASH_POINT(retired);
	n = atomic_fetch_add_explicit(&e->places_retired, 1, memory_order_relaxed) + 1;
	log_post(LOG_LEVEL_WARN,
		 "store: place %" PRIu32 ", at byte %" PRIu64
		 ", is not used any more, since a write to it failed; %" PRIu32 " of %" PRIu32
		 " are lost so",
		 place, e->store.data_offset + (uint64_t)place * SEGMENT_SIZE, n,
		 e->state->geo.nplaces);
}

static void write_succeeded(struct evictor *v, uint32_t place)
{
	v->strikes[place] = 0;
	while (v->naside > 0) {
		uint32_t other = v->aside[--v->naside];

		if (v->strikes[other] > 1)
			retire_place(v, other);
		else
			evictor_put_place(v, other);
	}
	write_health_succeeded(&v->health);
}

static void write_failed(struct evictor *v, const struct segment_write *w, int32_t res,
			 uint64_t now)
{
	static struct log_limit limit;
	unsigned more;

	counter_add(v->c, CTR_store_write_errors_total, 1);
	write_health_failed(&v->health, w->try, now);
	if (store_fault_is_gone(res))
		write_health_gone(&v->health);
	put_aside(v, w->place, res);
	if (log_limit_ok(&limit, 1, LOG_BURST_NS, &more))
		log_post(LOG_LEVEL_ERR,
			 "store: write of %u bytes to place %u: %s; the pages stay in memory (%u "
			 "more since the last such line)",
			 w->len, w->place, res < 0 ? strerror(-res) : "short write", more);
}

static void write_done(struct ring_op *op, int32_t res, uint32_t flags)
{
	struct segment_write *w = container_of(op, struct segment_write, op);
	struct evictor *v = w->v;
	struct segment *s = &v->e->state->segments[w->segment];
	uint32_t frame = segment_where_load(s).frame;
	bool failed = res != (int32_t)w->len;
	uint64_t now = now_ns();

	(void)flags;
	v->writing--;
	w->busy = false;
	store_watch_answered(&v->e->mover_watch, now, failed);
	if (w->job && w->job == v->job) {
		v->job_writes.under_way--;
		/* The first one to fail is tried again elsewhere. */
		v->job_writes.failed += failed && w->try;
		v->job_writes.done += !failed;
	}
	if (failed) {
		segment_where_set(s, frame, SEGMENT_NONE);
		CRASH_POINT(evict_failed_place_cleared);
		segment_state_set(s, SEGMENT_SEALED);
		CRASH_POINT(evict_failed_sealed);
		write_failed(v, w, res, now);
		return;
	}
	CRASH_POINT(evict_written);
	histogram_add(v->h, HIST_store_write_latency, now - w->sent, 1);
	counter_add(v->c, CTR_segments_written_total, 1);
	counter_add(v->c, CTR_pages_written_back_total, segment_live_objects(s));
	/* STORED first: a process that dies in between leaves a whole segment in the store. */
	segment_state_set(s, SEGMENT_STORED);
	CRASH_POINT(evict_stored);
	evictor_retire_frame(v, w->segment, frame, w->place);
	write_succeeded(v, w->place);
}

static int start_write(struct evictor *v, uint32_t segment, bool for_job)
{
	struct engine *e = v->e;
	struct segment *s = &e->state->segments[segment];
	uint32_t frame = segment_where_load(s).frame;
	struct segment_write *w = NULL;
	uint64_t now = now_ns();
	uint32_t place;

	for (unsigned i = 0; i < EVICTOR_WRITES && !w; i++) {
		if (!v->writes[i].busy)
			w = &v->writes[i];
	}
	if (!w)
		return -EAGAIN;
	if (!write_health_allows(&v->health, v->writing, now))
		return v->writing > 0 ? -EAGAIN : -EIO;
	/* One that a former process has begun to write has a place, and must keep to it. */
	place = segment_where_load(s).place;
	if (place == SEGMENT_NONE && v->nplaces == 0)
		return -ENOSPC;
	z_assert(segment_state_load(s) == SEGMENT_SEALED && frame != SEGMENT_NONE);
	*w = (struct segment_write){.op.done = write_done,
				    .v = v,
				    .segment = segment,
				    .place = place != SEGMENT_NONE ? place : take_place(v),
				    .len = (uint32_t)align_up(s->used, SLOT_SIZE),
				    .sent = now,
				    .busy = true,
				    .try = v->health.failures > 0,
				    .job = for_job ? v->job : 0};
	v->job_writes.under_way += for_job;
	v->writing++;
	segment_where_set(s, frame, w->place);
	CRASH_POINT(evict_place_set);
	segment_state_set(s, SEGMENT_WRITING);
	CRASH_POINT(evict_writing);
	counter_add(v->c, CTR_store_write_requests_total, 1);
	counter_add(v->c, CTR_store_write_bytes_total, w->len);
	store_watch_sent(&e->mover_watch, now);
	/* One that a former process left: not at the start, which has to be over soon. */
	if (!v->registered[frame] && !v->register_warned)
		evictor_register_frame(v, frame, true);
	ring_store_write(&v->ring, &w->op, front_frame(e->front, frame), w->len,
			 e->store.data_offset + (uint64_t)w->place * SEGMENT_SIZE,
			 v->registered[frame] ? (int)frame : -1);
	ring_submit(&v->ring);
	CRASH_POINT(evict_submitted);
	if (for_job)
		CRASH_POINT(evict_job_submitted);
	return 0;
}

int evictor_write(struct evictor *v, uint32_t segment)
{
	return start_write(v, segment, false);
}

int evictor_job_write(struct evictor *v, uint32_t segment)
{
	return start_write(v, segment, true);
}

/* --- the store as a whole --- */

bool evictor_store_owes(const struct evictor *v)
{
	return v->staging_read.out || engine_store_state(v->e) == ENGINE_STORE_STALLED;
}

static uint64_t last_failure(struct engine *e)
{
	uint64_t at = atomic_load_explicit(&e->mover_watch.failed, memory_order_relaxed);

	for (unsigned i = 0; i < e->nqueues; i++)
		at = max_u64(
			at, atomic_load_explicit(&e->queues[i].watch.failed, memory_order_relaxed));
	return at;
}

/*
 * A drive that was taken out has no size any more, and the kernel answers by that: reads are cut
 * short, writes find no space.  A file's size is asked for in vain, and not by this request.
 */
static bool device_is_gone(const struct engine *e)
{
	uint64_t bytes;

	return ioctl(e->store.fd, BLKGETSIZE64, &bytes) == 0 && bytes == 0;
}

static void look_for_device(struct evictor *v)
{
	uint64_t failed = last_failure(v->e);

	if (failed == v->gone_asked || v->health.gone)
		return;
	v->gone_asked = failed;
	if (device_is_gone(v->e))
		write_health_gone(&v->health);
}

static unsigned requests_out(struct engine *e)
{
	unsigned n = atomic_load_explicit(&e->mover_watch.waiting, memory_order_relaxed);

	for (unsigned i = 0; i < e->nqueues; i++)
		n += atomic_load_explicit(&e->queues[i].watch.waiting, memory_order_relaxed);
	return n;
}

static void log_state(struct evictor *v, enum engine_store_state was, enum engine_store_state is)
{
	switch (is) {
	case ENGINE_STORE_LOST:
		log_post(LOG_LEVEL_ERR,
			 "store: lost (%s); no page leaves memory any more, and what is in the "
			 "store answers with I/O errors; make room in memory, or swap off",
			 v->health.gone ? "the device is gone"
					: "writes fail; one a minute is tried");
		break;
	case ENGINE_STORE_STALLED:
		log_post(LOG_LEVEL_WARN,
			 "store: it has not answered for %u s, and owes %u answers; nothing is "
			 "dropped, and what is in memory is served; see the kernel's log",
			 (unsigned)(STALLED_NS / 1000000000u), requests_out(v->e));
		break;
	case ENGINE_STORE_DEGRADED:
	case ENGINE_STORE_OK:
		if (was == ENGINE_STORE_STALLED || was == ENGINE_STORE_LOST)
			log_post(LOG_LEVEL_NOTICE, "store: it answers again");
		else if (is == ENGINE_STORE_OK)
			log_post(LOG_LEVEL_INFO, "store: no request has failed for a minute");
		break;
	case ENGINE_STORE_NONE:
		break;
	}
}

void evictor_judge_store(struct evictor *v)
{
	struct engine *e = v->e;
	enum engine_store_state was = v->judged;

	if (e->store.fd < 0)
		return;
	look_for_device(v);
	atomic_store_explicit(&e->store_failing, v->health.failures > 0, memory_order_relaxed);
	atomic_store_explicit(&e->store_lost, v->health.lost, memory_order_relaxed);
	v->judged = engine_store_state(e);
	if (v->judged != was)
		log_state(v, was, v->judged);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Making an engine, and its numbers.  See recover.c for taking one over.
 */
#include "daemon/engine/internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

static int check_options(const struct engine_options *o)
{
	if (o->nqueues == 0 || o->nqueues > ENGINE_QUEUES_MAX || o->device_bytes < SLOT_SIZE ||
	    o->device_bytes % SLOT_SIZE || o->device_bytes / SLOT_SIZE > SLOTS_MAX ||
	    o->level < CODEC_LEVEL_MIN || o->level > CODEC_LEVEL_MAX)
		return -EINVAL;
	if (o->store.fd >= 0 &&
	    (o->store.dio_align == 0 || o->store.dio_align > SLOT_SIZE ||
	     o->store.data_offset % SLOT_SIZE || o->store.nplaces <= PLACES_KEPT)) {
		log_err("store: room for %u segments is too little; give [store] size at least %u MiB",
			o->store.nplaces, PLACES_KEPT + 2);
		return -EINVAL;
	}
	if (o->standby && (o->state_fd < 0 || o->front_fd < 0))
		return -EINVAL;
	if (o->state_fd >= 0)
		return 0; /* the limit is as it was */
	return limit_check(o->memory_limit, o->nqueues);
}

static int open_state(struct engine *e, const struct engine_options *o)
{
	struct state_geometry geo = {
		.nslots = o->device_bytes / SLOT_SIZE,
		.nframes = (uint32_t)(max_u64(o->memory_limit, o->memory_max) / SEGMENT_SIZE),
		.nplaces = o->store.fd >= 0 ? o->store.nplaces : 0,
	};
	struct state *s = NULL;
	int r;

	r = o->state_fd >= 0 ? state_attach(&s, o->state_fd) : state_new(&s, &geo);
	if (r < 0)
		return r;
	e->state = s;
	if (s->geo.nslots == geo.nslots && s->geo.nplaces == geo.nplaces)
		return 0;
	log_err("state: holds %" PRIu64 " slots, %u places, but %" PRIu64 ", %u are "
		"configured; start with the former configuration, or swap off first",
		s->geo.nslots, s->geo.nplaces, geo.nslots, geo.nplaces);
	return -EBADMSG;
}

static int open_queues(struct engine *e)
{
	for (unsigned i = 0; i < ENGINE_QUEUES_MAX; i++)
		e->queues[i].wake_fd = -1;
	for (unsigned i = 0; i < e->nqueues; i++) {
		e->queues[i].wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		if (e->queues[i].wake_fd < 0)
			return -errno;
	}
	e->mover_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return e->mover_fd < 0 ? -errno : 0;
}

static int new_histograms(struct engine *e)
{
	size_t size = (e->nqueues + 1) * sizeof(*e->histograms);

	e->histograms = aligned_alloc(CACHE_LINE, size);
	if (!e->histograms)
		return -ENOMEM;
	memset(e->histograms, 0, size);
	return 0;
}

/* So many take some 2 ms. */
#define HOLD_FRAMES 16u

static int engine_init(struct engine *e, const struct engine_options *o)
{
	int r;

	r = open_queues(e);
	if (r < 0)
		return r;
	r = open_state(e, o);
	if (r < 0)
		return r;
	r = front_new(&e->front, e->state->geo.nframes, o->front_fd, e->state->generations);
	if (r < 0)
		return r;
	r = new_histograms(e);
	if (r < 0)
		return r;
	e->frame_segment = calloc(e->state->geo.nframes, sizeof(*e->frame_segment));
	e->dead_next = calloc(e->state->nsegments, sizeof(*e->dead_next));
	if (!e->frame_segment || !e->dead_next)
		return -ENOMEM;
	for (uint32_t i = 0; i < e->state->geo.nframes; i++)
		atomic_init(&e->frame_segment[i], SEGMENT_NONE);
	r = idstack_init(&e->records, e->state->nsegments);
	if (r < 0)
		return r;
	if (o->state_fd >= 0) {
		r = recovery_new(&e->recovery, e->state);
		if (r < 0 || o->standby)
			return r;
		/* Nobody holds these pages now: the sooner they are locked, the fewer get lost. */
		while (front_hold(e->front, HOLD_FRAMES))
			;
		return engine_take_over(e);
	}
	limit_init(e, o);
	recover_sort_out(e);
	return 0;
}

bool engine_standby_hold(struct engine *e)
{
	return e->recovery && front_hold(e->front, HOLD_FRAMES);
}

bool engine_hold(struct engine *e)
{
	return !e->recovery && e->front->held && front_hold(e->front, HOLD_FRAMES);
}

int engine_take_over(struct engine *e)
{
	if (!e->recovery)
		return -EINVAL;
	CRASH_POINT(takeover_begun);
	state_take_over(e->state);
	CRASH_POINT(takeover_pins_reset);
	limit_keep(e);
	CRASH_POINT(takeover_limit_kept);
	recover(e);
	recover_sort_out(e);
	recovery_free(e->recovery);
	e->recovery = NULL;
	return 0;
}

int engine_new(struct engine **ret, const struct engine_options *o)
{
	struct engine *e;
	int r;

	r = check_options(o);
	if (r < 0)
		return r;
	e = aligned_alloc(CACHE_LINE, align_up(sizeof(*e), CACHE_LINE));
	if (!e)
		return -ENOMEM;
	memset(e, 0, sizeof(*e));
	e->store = o->store;
	e->nqueues = o->nqueues;
	e->mover_fd = -1;
	atomic_init(&e->level, o->level);
	atomic_init(&e->overlap, o->overlap);
	atomic_init(&e->poll_works, o->store.fd >= 0 && o->store.polls);
	atomic_init(&e->poll, o->poll);
	atomic_init(&e->dead_head, DEAD_END);
	pthread_mutex_init(&e->job_lock, NULL);
	r = engine_init(e, o);
	if (r < 0) {
		/* The descriptors stay the caller's. */
		if (e->state && o->state_fd >= 0)
			e->state->fd = -1;
		if (e->front && o->front_fd >= 0)
			e->front->fd = -1;
		engine_free(e);
		return r;
	}
	*ret = e;
	return 0;
}

void engine_free(struct engine *e)
{
	if (!e)
		return;
	for (unsigned i = 0; i < ENGINE_QUEUES_MAX; i++)
		close_fd(e->queues[i].wake_fd);
	close_fd(e->mover_fd);
	idstack_deinit(&e->records);
	recovery_free(e->recovery);
	free(e->frame_segment);
	free(e->dead_next);
	free(e->histograms);
	pthread_mutex_destroy(&e->job_lock);
	front_free(e->front);
	state_free(e->state);
	free(e);
}

int engine_state_fd(const struct engine *e)
{
	return e->state->fd;
}

int engine_front_fd(const struct engine *e)
{
	return e->front->fd;
}

void engine_set_device(struct engine *e, const char *path, uint64_t diskseq)
{
	struct state_owner o = {.diskseq = diskseq};

	snprintf(o.device, sizeof(o.device), "%s", path);
	if (e->store.fd >= 0)
		memcpy(o.store, e->store.id, sizeof(o.store));
	state_set_owner(e->state, &o);
}

void engine_set_level(struct engine *e, int level)
{
	z_assert(level >= CODEC_LEVEL_MIN && level <= CODEC_LEVEL_MAX);
	atomic_store_explicit(&e->level, level, memory_order_relaxed);
}

void engine_set_overlap(struct engine *e, bool overlap)
{
	atomic_store_explicit(&e->overlap, overlap, memory_order_relaxed);
}

/*
 * relaxed, as above: either mode is right for any read, and each read is sent in one of them.  The
 * rings for it were made with the queues.
 */
int engine_set_poll(struct engine *e, enum engine_poll poll)
{
	if (poll != ENGINE_POLL_OFF && !atomic_load_explicit(&e->poll_works, memory_order_relaxed))
		return -EOPNOTSUPP;
	atomic_store_explicit(&e->poll, poll, memory_order_relaxed);
	return 0;
}

void engine_kick_mover(struct engine *e)
{
	/* One write(2) until the mover has looked; it lowers the flag before it looks. */
	if (!atomic_exchange(&e->mover_kicked, true))
		eventfd_write(e->mover_fd, 1);
}

void engine_push_dead(struct engine *e, uint32_t segment)
{
	struct segment *s = &e->state->segments[segment];
	uint32_t head;

	/* The sealer and the last releaser may both come here; one of them pushes. */
	if (atomic_exchange(&s->dead, 1))
		return;
	head = atomic_load_explicit(&e->dead_head, memory_order_relaxed);
	do {
		e->dead_next[segment] = head;
		/* release: the link is there before the entry.  The stack is emptied as a whole: no
		 * ABA. */
	} while (!atomic_compare_exchange_weak_explicit(
		&e->dead_head, &head, segment, memory_order_release, memory_order_relaxed));
	engine_kick_mover(e);
}

void engine_release_word(struct engine *e, uint64_t word)
{
	uint32_t id = index_segment(word);
	struct segment *s = &e->state->segments[id];

	if (segment_release(s, index_size(word)) && segment_state_load(s) != SEGMENT_OPEN)
		engine_push_dead(e, id);
}

void engine_report_damage(struct counter_set *c, uint64_t slot, uint32_t segment, const char *where)
{
	static struct log_limit limit;
	unsigned more;

	counter_add(c, CTR_checksum_failures_total, 1);
	if (log_limit_ok(&limit, 5, 10000000000ull, &more))
		log_post(LOG_LEVEL_ERR,
			 "checksum: the page of slot %" PRIu64
			 " in segment %u is damaged in %s; it answers "
			 "with an I/O error (%u more since the last such line)",
			 slot, segment, where, more);
}

static bool failed_lately(struct store_watch *w, uint64_t now)
{
	uint64_t failed = atomic_load_explicit(&w->failed, memory_order_relaxed);

	return failed && now < failed + DEGRADED_NS;
}

enum engine_store_state engine_store_state(struct engine *e)
{
	bool overdue = false, lively = false, failed = false;
	uint64_t now = now_ns();

	if (e->store.fd < 0)
		return ENGINE_STORE_NONE;
	for (unsigned i = 0; i <= e->nqueues; i++) {
		struct store_watch *w = i < e->nqueues ? &e->queues[i].watch : &e->mover_watch;

		overdue |= store_watch_overdue(w, now);
		lively |= store_watch_lively(w, now);
		failed |= failed_lately(w, now);
	}
	if (atomic_load_explicit(&e->store_lost, memory_order_relaxed))
		return ENGINE_STORE_LOST;
	if (overdue && !lively)
		return ENGINE_STORE_STALLED;
	return failed || atomic_load_explicit(&e->store_failing, memory_order_relaxed)
		       ? ENGINE_STORE_DEGRADED
		       : ENGINE_STORE_OK;
}

static void sum_counters(struct engine *e, uint64_t v[COUNTER_COUNT])
{
	for (unsigned i = 0; i < COUNTER_COUNT; i++) {
		v[i] = atomic_load_explicit(&e->mover_counters.v[i], memory_order_relaxed);
		for (unsigned q = 0; q < e->nqueues; q++)
			v[i] += atomic_load_explicit(&e->queues[q].counters.v[i],
						     memory_order_relaxed);
	}
	for (unsigned q = 0; q < e->nqueues; q++)
		v[CTR_requests_in_flight] +=
			atomic_load_explicit(&e->queues[q].inflight, memory_order_relaxed);
	/* Added up here, so that it is the sum of its parts at any moment. */
	v[CTR_pages_read_total] =
		v[CTR_pages_read_resident_total] + v[CTR_pages_read_stored_total] +
		v[CTR_pages_read_same_filled_total] + v[CTR_pages_read_empty_total];
	v[CTR_takeovers_total] =
		atomic_load_explicit(&e->state->header->takeovers, memory_order_relaxed);
}

void engine_count_objects(struct engine *e, struct holdings *ret)
{
	uint32_t top = atomic_load_explicit(&e->records_top, memory_order_relaxed);

	*ret = (struct holdings){0};
	for (uint32_t i = 0; i < top; i++) {
		struct segment *s = &e->state->segments[i];
		uint64_t live;

		if (segment_state_load(s) == SEGMENT_FREE)
			continue;
		live = segment_live_load(s);
		if (segment_where_load(s).frame != SEGMENT_NONE) {
			ret->resident += live >> 32;
			ret->resident_bytes += (uint32_t)live;
		} else {
			ret->stored += live >> 32;
			ret->stored_bytes += (uint32_t)live;
		}
	}
}

/* A sum taken while others count can be off by what is in flight: never shown above its whole. */
static void clamp(uint64_t *part, uint64_t *room)
{
	if ((int64_t)*part < 0)
		*part = 0;
	if (*part > *room)
		*part = *room;
	*room -= *part;
}

void engine_counters(struct engine *e, uint64_t v[COUNTER_COUNT])
{
	uint64_t room = e->state->geo.nslots;
	struct holdings h;

	sum_counters(e, v);
	engine_count_objects(e, &h);
	v[CTR_slots_resident] = h.resident;
	v[CTR_slots_stored] = h.stored;
	v[CTR_resident_compressed_bytes] = h.resident_bytes;
	v[CTR_stored_compressed_bytes] = h.stored_bytes;
	clamp(&v[CTR_slots_resident], &room);
	clamp(&v[CTR_slots_stored], &room);
	clamp(&v[CTR_slots_same_filled], &room);
	clamp(&v[CTR_slots_lost], &room);
	v[CTR_slots_total] = e->state->geo.nslots;
	v[CTR_slots_used] = v[CTR_slots_total] - room;
	v[CTR_device_bytes] = v[CTR_slots_total] * SLOT_SIZE;
	/* In this order, so that a limit that is raised meanwhile is not the former one. */
	v[CTR_memory_used_bytes] = (uint64_t)front_present(e->front) * SEGMENT_SIZE;
	v[CTR_memory_limit_bytes] = (uint64_t)engine_limit_frames(e) * SEGMENT_SIZE;
	v[CTR_memory_metadata_bytes] = state_bytes(e->state);
	v[CTR_store_size_bytes] = (uint64_t)e->state->geo.nplaces * SEGMENT_SIZE;
	v[CTR_store_used_bytes] =
		(uint64_t)atomic_load_explicit(&e->places_used, memory_order_relaxed) *
		SEGMENT_SIZE;
	v[CTR_store_retired_bytes] =
		(uint64_t)atomic_load_explicit(&e->places_retired, memory_order_relaxed) *
		SEGMENT_SIZE;
	v[CTR_store_used_bytes] -= min_u64(v[CTR_store_retired_bytes], v[CTR_store_used_bytes]);
	v[CTR_store_state] = engine_store_state(e);
	/* The walk over the records and these were not of one instant either. */
	v[CTR_resident_compressed_bytes] =
		min_u64(v[CTR_resident_compressed_bytes], v[CTR_memory_used_bytes]);
	v[CTR_stored_compressed_bytes] =
		min_u64(v[CTR_stored_compressed_bytes], v[CTR_store_used_bytes]);
}

void engine_histograms(struct engine *e, struct histogram ret[HISTOGRAM_COUNT])
{
	memset(ret, 0, HISTOGRAM_COUNT * sizeof(*ret));
	for (unsigned q = 0; q <= e->nqueues; q++) {
		struct histogram_set *h = &e->histograms[q];

		for (unsigned id = 0; id < HISTOGRAM_COUNT; id++) {
			ret[id].sum += atomic_load_explicit(&h->sum[id], memory_order_relaxed);
			for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
				ret[id].buckets[i] += atomic_load_explicit(&h->buckets[id][i],
									   memory_order_relaxed);
		}
	}
}

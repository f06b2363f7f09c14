// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Freeing whole segments; see clean.c for moving objects, writeback.c for what goes to the store.
 *
 * A segment is freed in two steps that need not follow at once: its frame when no reader has it
 * pinned, its record (and place) when nothing in it is live, nobody has it pinned and no store read
 * is under way.  What can't be freed yet stays on the lists below and is looked at again.
 */
#include "common/textfile.h"
#include "daemon/engine/evictor_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>

#define FIXED_BUFFERS_MAX 16383u	/* io_uring's limit, less one for the staging buffer */
#define BACK_OFF_NS	  1000000000ull /* after the system had no memory, or took none */
#define STOP_NS		  5000000000ull /* for what is the store's at the end */

enum place_use {
	PLACE_FREE = 0,
	PLACE_USED = 1,
	/* A former process was writing a segment there, and the drive may not have done with it. */
	PLACE_LATE = 2,
};

static void kicked(struct ring_op *op, int32_t res, uint32_t flags)
{
	struct evictor *v = container_of(op, struct evictor, kick);

	/* The descriptor stays readable for evictor_wait(): a round may end without another look.
	 */
	(void)res;
	(void)flags;
	v->kick_armed = false;
}

/*
 * What no record names is free.  A segment that is sealed and has a place was being written when a
 * former process died.  Nobody can tell when that write is over, so it is made harmless whenever it
 * comes: the segment is written to the same place again, with the same bytes, and the memory that
 * the former process gave to the drive is used for nothing else; see free_frame().
 */
static void init_places(struct evictor *v)
{
	for (uint32_t i = 0; i < v->e->state->nsegments; i++) {
		struct segment *s = &v->e->state->segments[i];
		uint32_t place = segment_where_load(s).place;

		if (place != SEGMENT_NONE)
			v->place_use[place] =
				segment_state_load(s) == SEGMENT_SEALED ? PLACE_LATE : PLACE_USED;
	}
	for (uint32_t i = v->e->state->geo.nplaces; i-- > 0;) {
		if (v->place_use[i] == PLACE_FREE)
			v->places[v->nplaces++] = i;
	}
}

static void release(struct evictor *v)
{
	if (v->staging != MAP_FAILED)
		munmap(v->staging, SEGMENT_SIZE);
	free(v->retiring);
	free(v->dead);
	free(v->suspects);
	free(v->clean_again);
	free(v->registered);
	free(v->places);
	free(v->place_use);
	free(v->strikes);
	codec_free(v->codec);
	free(v);
}

int evictor_prepare(struct evictor **ret, struct engine *e)
{
	uint32_t nbuffers = (uint32_t)min_u64(e->state->geo.nframes, FIXED_BUFFERS_MAX);
	struct evictor *v = calloc(1, sizeof(*v));
	uint64_t kib;
	int r;

	if (!v)
		return -ENOMEM;
	v->e = e;
	v->c = &e->mover_counters;
	v->h = &e->histograms[e->nqueues];
	v->nbuffers = e->store.fd >= 0 ? nbuffers : 0;
	v->kick.done = kicked;
	v->job = 1;
	if (textfile_read_u64("/proc/sys/vm/min_free_kbytes", &kib) == 0)
		v->emergency_bytes = KIB(kib);
	writer_init(&v->young, e, SEGMENT_PLAIN, 0);
	writer_init(&v->survivors, e, SEGMENT_SURVIVOR, 0);
	v->retiring = calloc(e->state->geo.nframes, sizeof(*v->retiring));
	v->dead = calloc(e->state->nsegments, sizeof(*v->dead));
	v->registered = calloc(e->state->geo.nframes, sizeof(*v->registered));
	v->clean_again = calloc(e->state->nsegments, sizeof(*v->clean_again));
	v->suspects = calloc(e->state->nsegments, sizeof(*v->suspects));
	v->places = calloc(e->state->geo.nplaces + 1, sizeof(*v->places));
	v->place_use = calloc(e->state->geo.nplaces + 1, sizeof(*v->place_use));
	v->strikes = calloc(e->state->geo.nplaces + 1, sizeof(*v->strikes));
	v->staging = mmap(NULL, SEGMENT_SIZE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	r = !v->retiring || !v->dead || !v->suspects || !v->clean_again || !v->registered ||
			    !v->places || !v->place_use || !v->strikes || v->staging == MAP_FAILED
		    ? -ENOMEM
		    : 0;
	if (r == 0)
		r = codec_new(&v->codec, CODEC_LEVEL_MIN);
	if (r == 0)
		r = ring_init(&v->ring, 32, e->store.fd, v->nbuffers ? v->nbuffers + 1 : 0);
	if (r < 0) {
		release(v);
		return r;
	}
	if (v->nbuffers) {
		v->staging_index = v->nbuffers;
		v->staging_registered =
			ring_set_buffer(&v->ring, v->staging_index, v->staging, SEGMENT_SIZE) == 0;
	}
	*ret = v;
	return 0;
}

void evictor_begin(struct evictor *v)
{
	/* As the former engine has left it. */
	v->judged = engine_store_state(v->e);
	init_places(v);
}

int evictor_new(struct evictor **ret, struct engine *e)
{
	int r = evictor_prepare(ret, e);

	if (r == 0)
		evictor_begin(*ret);
	return r;
}

/* False: not all that was sent has been answered, in a bounded time. */
static bool wait_for_store(struct evictor *v)
{
	uint64_t give_up = now_ns() + STOP_NS;

	while (v->writing > 0 || v->staging_read.out) {
		if (now_ns() >= give_up)
			return false;
		evictor_wait(v, STOP_NS / 20);
		evictor_take_staged(v);
	}
	return true;
}

void evictor_free(struct evictor *v)
{
	if (!v)
		return;
	writer_seal(&v->young);
	writer_seal(&v->survivors);
	if (!wait_for_store(v)) {
		log_post(LOG_LEVEL_ERR,
			 "store: %u writes and %u reads of the mover are not answered and are left "
			 "behind; their memory is the kernel's until the device answers",
			 v->writing, v->staging_read.out);
		return;
	}
	/* Readers are done with a batch in less; what they still hold would be nobody's. */
	evictor_reap(v);
	for (unsigned i = 0; i < 1000 && evictor_busy(v); i++) {
		evictor_wait(v, 1000000ull);
		evictor_reap(v);
	}
	ring_deinit(&v->ring);
	release(v);
}

bool evictor_wait(struct evictor *v, uint64_t timeout_ns)
{
	eventfd_t n;
	bool any;

	if (!v->kick_armed) {
		ring_poll_in(&v->ring, &v->kick, v->e->mover_fd);
		v->kick_armed = true;
	}
	any = ring_wait(&v->ring, timeout_ns) > 0;
	/* Both lowered before the tiers are looked at: a kick that comes later is not lost. */
	if (!v->kick_armed)
		eventfd_read(v->e->mover_fd, &n);
	atomic_store(&v->e->mover_kicked, false);
	return any;
}

void evictor_wake(struct engine *e)
{
	eventfd_write(e->mover_fd, 1);
}

bool evictor_busy(const struct evictor *v)
{
	return v->nretiring > 0 || v->ndead > 0 || v->nsuspects > 0;
}

/*
 * A frame that cannot be registered is written all the same, slower by a page walk.  One that was
 * given back is never used by its old registration, which holds other pages by then.
 */
void evictor_register_frame(struct evictor *v, uint32_t frame, bool present)
{
	void *base = present ? front_frame(v->e->front, frame) : NULL;

	if (frame >= v->nbuffers)
		return;
	v->registered[frame] = false;
	if (ring_set_buffer(&v->ring, frame, base, FRAME_SIZE) == 0)
		v->registered[frame] = present;
	if (v->registered[frame] || !present || v->register_warned)
		return;
	log_post(LOG_LEVEL_WARN,
		 "store: frames cannot be registered with io_uring; is RLIMIT_MEMLOCK low?");
	v->register_warned = true;
}

/*
 * The kernel is short of memory beyond what it keeps for emergencies.  To ask for a MiB then is to
 * reclaim for it, in competition with those whose pages wait for this very thread; where there is a
 * store, room can be made without.
 */
static bool system_is_starved(const struct evictor *v)
{
	struct sysinfo si;

	return v->e->store.fd >= 0 && !v->health.lost && sysinfo(&si) == 0 &&
	       (uint64_t)si.freeram * si.mem_unit < v->emergency_bytes;
}

int evictor_grow(struct evictor *v)
{
	uint32_t frame;
	int r = system_is_starved(v) ? -ENOMEM : front_grow(v->e->front, &frame);

	if (r == 0)
		evictor_register_frame(v, frame, true);
	else
		v->grow_again = now_ns() + BACK_OFF_NS;
	return r;
}

bool evictor_shrink(struct evictor *v, uint32_t keep)
{
	uint32_t frame = front_shrink(v->e->front, keep);

	if (frame == FRAME_NONE) {
		/* Else a writer was faster. */
		if (idstack_count(&v->e->front->free) > keep)
			v->shrink_again = now_ns() + BACK_OFF_NS;
		return false;
	}
	/* The registration holds the pages as well; only now do they go back to the system. */
	evictor_register_frame(v, frame, false);
	v->freed = 0;
	return true;
}

void evictor_retire_frame(struct evictor *v, uint32_t id, uint32_t frame, uint32_t place)
{
	struct segment *s = &v->e->state->segments[id];

	segment_where_set(s, SEGMENT_NONE, place);
	CRASH_POINT(evict_frame_cleared);
	atomic_store_explicit(&v->e->frame_segment[frame], SEGMENT_NONE, memory_order_relaxed);
	v->retiring[v->nretiring++] = (struct retiring){.segment = id, .frame = frame};
}

/*
 * The frame of a segment with that place is free.  If a write of a former process may still read
 * it, its pages go back to the system, which leaves them to the drive for as long as it needs them.
 */
static void free_frame(struct evictor *v, uint32_t frame, uint32_t place)
{
	if (place == SEGMENT_NONE || v->place_use[place] != PLACE_LATE ||
	    !front_discard(v->e->front, frame)) {
		front_put(v->e->front, frame);
		return;
	}
	CRASH_POINT(evict_frame_punched);
	evictor_register_frame(v, frame, false);
	v->place_use[place] = PLACE_USED;
}

static bool reap_retiring(struct evictor *v)
{
	unsigned kept = 0;
	bool any = false;

	for (unsigned i = 0; i < v->nretiring; i++) {
		struct retiring *t = &v->retiring[i];

		if (segment_pinned(&v->e->state->segments[t->segment])) {
			v->retiring[kept++] = *t;
			continue;
		}
		free_frame(v, t->frame,
			   segment_where_load(&v->e->state->segments[t->segment]).place);
		CRASH_POINT(evict_frame_freed);
		v->freed++;
		any = true;
	}
	v->nretiring = kept;
	return any;
}

void evictor_put_place(struct evictor *v, uint32_t place)
{
	v->places[v->nplaces++] = place;
	atomic_fetch_sub_explicit(&v->e->places_used, 1, memory_order_relaxed);
}

/* False: somebody still reads in it, or it is being written. */
static bool free_segment(struct evictor *v, uint32_t id)
{
	struct segment *s = &v->e->state->segments[id];
	enum segment_state state = segment_state_load(s);
	struct segment_where where = segment_where_load(s);

	z_assert(segment_live_objects(s) == 0);
	if (state == SEGMENT_WRITING || segment_pinned(s) || segment_store_reading(s))
		return false;
	z_assert(state == SEGMENT_SEALED || state == SEGMENT_STORED);
	for (unsigned i = 0; i < v->nretiring; i++) {
		if (v->retiring[i].segment == id)
			return false;
	}
	evictor_forget_suspect(v, id);
	v->clean_again[id] = 0;
	segment_state_set(s, SEGMENT_FREE);
	CRASH_POINT(free_state_set);
	segment_where_set(s, SEGMENT_NONE, SEGMENT_NONE);
	CRASH_POINT(free_where_cleared);
	atomic_store(&s->dead, 0);
	/* The record before the frame: who gets a frame is sure to find a record. */
	idstack_push(&v->e->records, id);
	CRASH_POINT(free_record_free);
	if (where.frame != SEGMENT_NONE) {
		atomic_store_explicit(&v->e->frame_segment[where.frame], SEGMENT_NONE,
				      memory_order_relaxed);
		free_frame(v, where.frame, where.place);
		v->freed++;
		CRASH_POINT(free_frame_free);
	}
	if (where.place != SEGMENT_NONE) {
		/* A late write may come to the place of one that was never stored. */
		if (state == SEGMENT_SEALED)
			evictor_put_place_last(v, where.place);
		else
			evictor_put_place(v, where.place);
		CRASH_POINT(free_place_free);
	}
	return true;
}

static bool is_dead(struct segment *s)
{
	enum segment_state state = segment_state_load(s);
	uint32_t live;

	if (state == SEGMENT_FREE || state == SEGMENT_OPEN || state == SEGMENT_RETIRED)
		return false;
	live = segment_live_objects(s);
	z_assert(live <= SEGMENT_SIZE); /* else more were released than added */
	return live == 0;
}

/*
 * The sealer and the last releaser may both find the segment dead.  The slower of the two can push
 * it after the other's push was dealt with, when the record is free or somebody's again.
 * True if it is dead indeed.  A push that comes while the mark still stands is not lost: either it
 * comes after the mark is lowered, or what it saw is seen here.
 */
static bool confirm_dead(struct segment *s)
{
	if (is_dead(s))
		return true;
	atomic_store(&s->dead, 0);
	return is_dead(s) && !atomic_exchange(&s->dead, 1);
}

static bool reap_dead(struct evictor *v)
{
	/* acquire: pairs with the release in engine_push_dead(). */
	uint32_t id = atomic_exchange_explicit(&v->e->dead_head, DEAD_END, memory_order_acquire);
	unsigned kept = 0;
	bool any = false;

	for (; id != DEAD_END; id = v->e->dead_next[id])
		v->dead[v->ndead++] = id;
	for (unsigned i = 0; i < v->ndead; i++) {
		if (!confirm_dead(&v->e->state->segments[v->dead[i]]))
			continue;
		if (free_segment(v, v->dead[i]))
			any = true;
		else
			v->dead[kept++] = v->dead[i];
	}
	v->ndead = kept;
	return any;
}

bool evictor_reap(struct evictor *v)
{
	bool any;

	ring_reap(&v->ring);
	evictor_take_staged(v);
	evictor_judge_store(v);
	evictor_reap_suspects(v);
	any = reap_retiring(v);
	return reap_dead(v) || any;
}

bool evictor_seal(struct evictor *v)
{
	bool any = v->young.segment != SEGMENT_NONE || v->survivors.segment != SEGMENT_NONE;

	writer_seal(&v->young);
	writer_seal(&v->survivors);
	return any;
}

void evictor_answer(struct evictor *v, uint64_t denied)
{
	struct engine *e = v->e;

	if (denied)
		/* release: what was freed before is seen by a writer that finds itself denied. */
		atomic_store_explicit(&e->denied, denied, memory_order_release);
	for (unsigned i = 0; i < e->nqueues; i++) {
		if (atomic_load(&e->queues[i].wants_wake))
			eventfd_write(e->queues[i].wake_fd, 1);
	}
}

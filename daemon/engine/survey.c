// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The tiers in plain numbers, for the policy to decide on.  Everything is counted afresh: a walk
 * over the frames, and over all records when the store is asked for as well.
 */
#include "daemon/engine/evictor_internal.h"

static struct survey_victim victim(struct evictor *v, uint32_t id)
{
	struct segment *s = &v->e->state->segments[id];

	return (struct survey_victim){.id = id, .used = s->used, .live = segment_live_bytes(s)};
}

static bool sparser(const struct survey_victim *a, const struct survey_victim *b)
{
	/* Dead bytes are what there is to gain; the whole rest of the frame is, too. */
	return b->id == SEGMENT_NONE || a->live < b->live;
}

/* Raw segments first, then what came back from the store, then the oldest. */
static bool leaves_before(const struct segment *a, const struct segment *b)
{
	static const int rank[] = {[SEGMENT_RAW] = 0, [SEGMENT_SURVIVOR] = 1, [SEGMENT_PLAIN] = 2};

	if (rank[a->kind] != rank[b->kind])
		return rank[a->kind] < rank[b->kind];
	return a->seq < b->seq;
}

/* With only the kept places left, nothing but survivors can be written. */
static bool may_leave(const struct evictor *v, const struct segment *s)
{
	return v->nplaces > PLACES_KEPT || s->kind == SEGMENT_SURVIVOR;
}

static void survey_memory(struct evictor *v, struct survey *ret)
{
	struct engine *e = v->e;

	for (uint32_t i = 0; i < e->front->top; i++) {
		/* acquire: pairs with the release in writer_open(). */
		uint32_t id = atomic_load_explicit(&e->frame_segment[i], memory_order_acquire);
		struct survey_victim w;
		struct segment *s;

		if (id == SEGMENT_NONE)
			continue;
		s = &e->state->segments[id];
		if (segment_state_load(s) != SEGMENT_SEALED)
			continue;
		/* Its frame comes as soon as nobody has it pinned: no reason to refuse a write. */
		if (segment_live_objects(s) == 0 || evictor_is_suspect(v, id)) {
			ret->frames_coming++;
			continue;
		}
		w = victim(v, id);
		if (sparser(&w, &ret->sparsest))
			ret->sparsest = w;
		if (may_leave(v, s) && (ret->next.id == SEGMENT_NONE ||
					leaves_before(s, &e->state->segments[ret->next.id]))) {
			ret->next = w;
			ret->next_is_survivor = s->kind == SEGMENT_SURVIVOR;
		}
	}
}

void evictor_survey_store(struct evictor *v, struct survey *ret)
{
	uint64_t now = now_ns();

	/* What can't be read can't be cleaned, and what can't be written needs no place. */
	if (v->health.lost || ret->store_owes)
		return;
	for (uint32_t i = 0; i < atomic_load(&v->e->records_top); i++) {
		struct segment *s = &v->e->state->segments[i];
		struct survey_victim w;

		if (segment_state_load(s) != SEGMENT_STORED || segment_live_objects(s) == 0 ||
		    evictor_is_suspect(v, i) || now < v->clean_again[i])
			continue;
		w = victim(v, i);
		if (sparser(&w, &ret->sparsest_stored))
			ret->sparsest_stored = w;
	}
}

void evictor_survey(struct evictor *v, struct survey *ret)
{
	struct engine *e = v->e;
	static const struct survey_victim none = {.id = SEGMENT_NONE};

	*ret = (struct survey){
		.frames_max = engine_limit_frames(e),
		.frames_reserve = engine_reserve_frames(e),
		.frames_kept = FRAMES_KEPT,
		.shrink_due = v->freed >= 2,
		.shrink_ready = now_ns() >= v->shrink_again,
		.frames_coming = v->writing + v->nretiring,
		.places_max = e->state->geo.nplaces,
		.places_free = v->nplaces,
		.places_kept = PLACES_KEPT,
		.store_ready = e->store.fd >= 0 && v->writing < EVICTOR_WRITES &&
			       write_health_allows(&v->health, v->writing, now_ns()),
		.store_owes = evictor_store_owes(v),
		.store_pauses = v->health.failures > 0 && !v->health.lost,
		.next = none,
		.sparsest = none,
		.sparsest_stored = none,
	};
	/* The tickets before the frames: a ticket taken later is answered by a later survey. */
	ret->ticket = atomic_load(&e->tickets);
	ret->frames_present = front_present(e->front);
	/* Room must come from elsewhere while the system has no memory to give. */
	if (now_ns() < v->grow_again && ret->frames_present < ret->frames_max)
		ret->frames_max = ret->frames_present;
	ret->frames_free = idstack_count(&e->front->free);
	for (unsigned i = 0; i < e->nqueues; i++)
		ret->waiting |= atomic_load(&e->queues[i].wants_wake);
	survey_memory(v, ret);
}

/* What there is to be walked over: frames for segments in memory, else all records. */
static uint32_t walk_end(const struct evictor *v, enum evictor_find what)
{
	return what == EVICTOR_FIND_SPARSE_STORED ? atomic_load(&v->e->records_top)
						  : v->e->front->top;
}

/* Whether the segment at this step of the walk is one of those that are looked for. */
static bool is_found(struct evictor *v, uint32_t step, enum evictor_find what, uint64_t before,
		     uint32_t live_max, struct survey_victim *ret)
{
	bool stored = what == EVICTOR_FIND_SPARSE_STORED;
	/* acquire: pairs with the release in writer_open(). */
	uint32_t id =
		stored ? step
		       : atomic_load_explicit(&v->e->frame_segment[step], memory_order_acquire);
	struct segment *s;

	if (id == SEGMENT_NONE)
		return false;
	s = &v->e->state->segments[id];
	/* `seq` and `kind` are an open segment's owner's, until it is sealed. */
	if (segment_state_load(s) != (stored ? SEGMENT_STORED : SEGMENT_SEALED) ||
	    s->seq >= before || evictor_is_suspect(v, id))
		return false;
	*ret = victim(v, id);
	if (ret->live == 0 || ret->live > live_max)
		return false;
	if (what == EVICTOR_FIND_NEXT)
		return may_leave(v, s);
	if (what == EVICTOR_FIND_SURVIVOR)
		return s->kind == SEGMENT_SURVIVOR;
	return v->clean_again[id] == 0 || now_ns() >= v->clean_again[id];
}

struct survey_victim evictor_find(struct evictor *v, enum evictor_find what, uint64_t before)
{
	struct survey_victim best = {.id = SEGMENT_NONE}, w;
	struct segment *segments = v->e->state->segments;

	for (uint32_t i = 0; i < walk_end(v, what); i++) {
		if (is_found(v, i, what, before, SEGMENT_SIZE, &w) &&
		    (best.id == SEGMENT_NONE || leaves_before(&segments[w.id], &segments[best.id])))
			best = w;
	}
	return best;
}

struct survey_victim evictor_find_sparse(struct evictor *v, enum evictor_find what, uint64_t before,
					 uint32_t live_max, uint32_t *cursor)
{
	struct survey_victim w;

	for (; *cursor < walk_end(v, what); ++*cursor) {
		if (is_found(v, *cursor, what, before, live_max, &w))
			return w;
	}
	return (struct survey_victim){.id = SEGMENT_NONE};
}

void evictor_sum(struct evictor *v, enum evictor_find what, uint64_t before, uint32_t live_max,
		 uint32_t *ret_segments, uint64_t *ret_live)
{
	struct survey_victim w;

	*ret_segments = 0;
	*ret_live = 0;
	for (uint32_t i = 0; i < walk_end(v, what); i++) {
		if (!is_found(v, i, what, before, live_max, &w))
			continue;
		++*ret_segments;
		*ret_live += w.live;
	}
}

uint64_t evictor_seq(const struct evictor *v)
{
	return atomic_load_explicit(&v->e->state->header->next_seq, memory_order_relaxed);
}

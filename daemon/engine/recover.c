// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Taking over what a process that died has left.
 *
 * The index and what the records say about frames and places are trusted, each of which was
 * published by a single store; everything else is computed again: live counts from the index words,
 * free records, frames and places from what is left over.
 *
 * Whoever waits for a page waits for this, and its time grows with the device: every word is looked
 * at.  So no memory is asked for here, runs of empty words are passed over by the cache line, and
 * what the words add up to is collected in a dense table of 16 bytes a segment, not in the records.
 *
 * It may itself be cut short at any point: nothing of what it relies on is changed by it in a way
 * that a second try would read differently.
 */
#include "daemon/engine/internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

/* What the index says of a segment. */
struct tally {
	uint64_t live; /* objects in the high half, bytes in the low half */
	uint32_t end;  /* of the last object; bytes */
	uint32_t room; /* words may name bytes below this; 0: no words may name it */
};

struct recovery {
	uint32_t nsegments;
	struct tally *tallies; /* one more than there are segments, for words that name none */
	bool *places;	       /* which ones earlier records have claimed */
	uint64_t same, lost, made_lost; /* slots */
};

int recovery_new(struct recovery **ret, const struct state *s)
{
	struct recovery *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->nsegments = s->nsegments;
	r->tallies = calloc((size_t)s->nsegments + 1, sizeof(*r->tallies));
	r->places = calloc((size_t)s->geo.nplaces + 1, sizeof(*r->places));
	if (!r->tallies || !r->places) {
		recovery_free(r);
		return -ENOMEM;
	}
	*ret = r;
	return 0;
}

void recovery_free(struct recovery *r)
{
	if (!r)
		return;
	free(r->tallies);
	free(r->places);
	free(r);
}

/*
 * Makes the record's phase one that a new process can go on from; false if it makes no sense.
 */
static bool recover_record(struct engine *e, struct segment *s)
{
	bool *places = e->recovery->places;
	struct segment_where where = segment_where_load(s);
	bool frame = where.frame < e->state->geo.nframes;
	bool place = where.place < e->state->geo.nplaces;

	if ((!frame && where.frame != SEGMENT_NONE) || (!place && where.place != SEGMENT_NONE))
		return false;
	switch (segment_state_load(s)) {
	case SEGMENT_FREE:
		return true;
	case SEGMENT_OPEN:
	case SEGMENT_WRITING: /* whether the write has reached the store is unknown; the frame is
				 whole */
	case SEGMENT_SEALED:
		if (!frame || !front_claim(e->front, where.frame))
			return false;
		/* The write that was under way may still come: see evictor.c, init_places(). */
		if (place && places[where.place])
			where.place = SEGMENT_NONE;
		else if (place)
			places[where.place] = true;
		segment_where_set(s, where.frame, where.place);
		segment_state_set(s, SEGMENT_SEALED);
		return true;
	case SEGMENT_RETIRED:
	case SEGMENT_STORED:
		if (!place || places[where.place] || s->used > SEGMENT_SIZE)
			return false;
		places[where.place] = true;
		segment_where_set(s, SEGMENT_NONE, where.place);
		return true;
	}
	return false;
}

/* No two segments may have the same number, whatever happened to the header. */
static void raise_seq(struct engine *e, uint64_t seq)
{
	if (seq >= atomic_load(&e->state->header->next_seq) && seq < UINT64_MAX / 2)
		atomic_store(&e->state->header->next_seq, seq + 1);
}

static void recover_records(struct engine *e)
{
	for (uint32_t i = 0; i < e->state->nsegments; i++) {
		struct segment *s = &e->state->segments[i];
		enum segment_state state;

		segment_added_set(s, 0);
		atomic_store(&s->released, 0);
		CRASH_POINT(takeover_record_reset);
		if (s->kind > SEGMENT_SURVIVOR)
			s->kind = SEGMENT_PLAIN;
		if (!recover_record(e, s)) {
			log_err("state: record of segment %u makes no sense; its pages are lost",
				i);
			segment_where_set(s, SEGMENT_NONE, SEGMENT_NONE);
			segment_state_set(s, SEGMENT_FREE);
		}
		state = segment_state_load(s);
		if (state == SEGMENT_FREE || state == SEGMENT_RETIRED)
			continue;
		raise_seq(e, s->seq);
		CRASH_POINT(takeover_record_done);
		e->recovery->tallies[i].room = SEGMENT_SIZE;
	}
	CRASH_POINT(takeover_records_done);
	front_settle(e->front, engine_limit_frames(e));
}

/*
 * Counts what the word names; one that points nowhere becomes LOST.  Empty slots and others may lie
 * side by side in no order, so words of all sorts go the same way, without a branch to be
 * mispredicted: what is no object counts as 0 bytes of no segment.
 */
static inline void recover_word(struct recovery *r, index_word *w)
{
	uint64_t word = index_load(w);
	uint32_t mask = (uint32_t)0 - (index_tag(word) == INDEX_OBJECT); /* all bits or none */
	uint32_t size = index_size(word) & mask;
	uint32_t end = (index_offset(word) & mask) + size;
	struct tally *t = &r->tallies[min_u64(index_segment(word) | ~mask, r->nsegments)];

	r->same += index_tag(word) == INDEX_SAME;
	r->lost += index_tag(word) == INDEX_LOST;
	if (unlikely(end > t->room || (size | ~mask) < sizeof(struct object))) {
		index_publish(w, INDEX_LOST);
		r->made_lost++;
		return;
	}
	t->live += (uint64_t)(mask & 1) << 32 | size;
	t->end = (uint32_t)max_u64(t->end, end);
}

#define LINE_WORDS (CACHE_LINE / sizeof(index_word))

/* relaxed: nobody else is there. */
static inline bool line_is_empty(index_word *w)
{
	uint64_t any = 0;

	for (unsigned i = 0; i < LINE_WORDS; i++)
		any |= atomic_load_explicit(&w[i], memory_order_relaxed);
	return any == INDEX_EMPTY;
}

static void recover_words(struct engine *e)
{
	uint64_t nslots = e->state->geo.nslots;

	for (uint64_t first = 0; first < nslots; first += LINE_WORDS) {
		index_word *w = &e->state->index[first];
		uint64_t n = min_u64(nslots - first, LINE_WORDS);

		if (n == LINE_WORDS && line_is_empty(w))
			continue;
		for (uint64_t i = 0; i < n; i++)
			recover_word(e->recovery, &w[i]);
		CRASH_POINT(takeover_words);
	}
}

static void recover_index(struct engine *e)
{
	struct counter_set *c = &e->mover_counters;
	struct recovery *r = e->recovery;

	recover_words(e);
	CRASH_POINT(takeover_words_done);
	for (uint32_t i = 0; i < e->state->nsegments; i++) {
		struct segment *s = &e->state->segments[i];

		segment_added_set(s, r->tallies[i].live);
		/* A segment that was open when its writer died never had its length written down.
		 */
		s->used =
			(uint32_t)max_u64(s->used <= SEGMENT_SIZE ? s->used : 0, r->tallies[i].end);
		CRASH_POINT(takeover_record_counted);
	}
	counter_add(c, CTR_slots_same_filled, r->same);
	counter_add(c, CTR_slots_lost, r->lost + r->made_lost);
	if (r->made_lost)
		log_err("state: %" PRIu64 " slots point to nothing; reading them is an I/O error",
			r->made_lost);
}

void recover(struct engine *e)
{
	recover_records(e);
	recover_index(e);
	CRASH_POINT(takeover_index_done);
	atomic_fetch_add(&e->state->header->takeovers, 1);
	CRASH_POINT(takeover_counted);
}

void recover_sort_out(struct engine *e)
{
	uint32_t places = 0;

	/* Backwards, so that low numbers are taken first. */
	for (uint32_t i = e->state->nsegments; i-- > 0;) {
		struct segment *s = &e->state->segments[i];
		struct segment_where where = segment_where_load(s);

		if (segment_state_load(s) == SEGMENT_FREE) {
			segment_where_set(s, SEGMENT_NONE, SEGMENT_NONE);
			idstack_push(&e->records, i);
			continue;
		}
		if (atomic_load(&e->records_top) <= i)
			atomic_store(&e->records_top, i + 1);
		if (where.frame != SEGMENT_NONE)
			atomic_store(&e->frame_segment[where.frame], i);
		if (segment_state_load(s) == SEGMENT_RETIRED) {
			atomic_fetch_add(&e->places_retired, 1);
			continue;
		}
		places += where.place != SEGMENT_NONE;
		CRASH_POINT(takeover_sorting_out);
		if (segment_live_load(s) == 0)
			engine_push_dead(e, i);
	}
	atomic_store(&e->places_used, places + atomic_load(&e->places_retired));
	CRASH_POINT(takeover_sorted_out);
}

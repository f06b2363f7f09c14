// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Taking over what a process that died has left.
 *
 * The index and what the records say about frames and places are trusted, each of which was
 * published by a single store; everything else is computed again: live counts from the index words,
 * free records, frames and places from what is left over.
 */
#include "daemon/engine/internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

/*
 * Makes the record's phase one that a new process can go on from; false if it makes no sense.
 * @places: which ones earlier records have claimed.
 */
static bool recover_record(struct engine *e, struct segment *s, bool *places)
{
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
		/* A sealed segment's place: see evictor.c, init_places(). */
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

static int recover_records(struct engine *e)
{
	cleanup_free bool *places = calloc(e->state->geo.nplaces + 1, sizeof(*places));

	if (!places)
		return -ENOMEM;
	for (uint32_t i = 0; i < e->state->nsegments; i++) {
		struct segment *s = &e->state->segments[i];

		segment_added_set(s, 0);
		atomic_store(&s->released, 0);
		/* Only says who leaves memory first. */
		if (s->kind > SEGMENT_SURVIVOR)
			s->kind = SEGMENT_PLAIN;
		if (recover_record(e, s, places))
			continue;
		log_err("state: record of segment %u makes no sense; its pages are lost", i);
		segment_where_set(s, SEGMENT_NONE, SEGMENT_NONE);
		segment_state_set(s, SEGMENT_FREE);
	}
	front_settle(e->front);
	return 0;
}

/* Counts the objects again; a word that points nowhere becomes LOST. */
static int recover_index(struct engine *e)
{
	struct counter_set *c = &e->mover_counters;
	cleanup_free uint32_t *ends = calloc(e->state->nsegments, sizeof(*ends));
	uint64_t lost = 0;

	if (!ends)
		return -ENOMEM;
	for (uint64_t slot = 0; slot < e->state->geo.nslots; slot++) {
		index_word *w = &e->state->index[slot];
		uint64_t word = index_load(w);
		uint32_t id = index_segment(word);
		uint64_t end = (uint64_t)index_offset(word) + index_size(word);
		struct segment *s;

		if (index_tag(word) == INDEX_SAME)
			counter_add(c, CTR_slots_same_filled, 1);
		if (index_tag(word) == INDEX_LOST)
			counter_add(c, CTR_slots_lost, 1);
		if (index_tag(word) != INDEX_OBJECT)
			continue;
		s = &e->state->segments[id < e->state->nsegments ? id : 0];
		if (id >= e->state->nsegments || segment_state_load(s) == SEGMENT_FREE ||
		    segment_state_load(s) == SEGMENT_RETIRED || end > SEGMENT_SIZE ||
		    index_size(word) < sizeof(struct object)) {
			index_publish(w, INDEX_LOST);
			counter_add(c, CTR_slots_lost, 1);
			lost++;
			continue;
		}
		segment_added_set(s, segment_live_load(s) + segment_one(index_size(word)));
		ends[id] = (uint32_t)max_u64(ends[id], end);
	}
	/* A segment that was open when its writer died never had its length written down. */
	for (uint32_t i = 0; i < e->state->nsegments; i++) {
		struct segment *s = &e->state->segments[i];

		s->used = (uint32_t)max_u64(s->used <= SEGMENT_SIZE ? s->used : 0, ends[i]);
	}
	if (lost)
		log_err("state: %" PRIu64 " slots point to nothing; reading them is an I/O error",
			lost);
	return 0;
}

int recover(struct engine *e)
{
	int r = recover_records(e);

	if (r == 0)
		r = recover_index(e);
	if (r == 0)
		atomic_fetch_add(&e->state->header->takeovers, 1);
	return r;
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
		places += segment_state_load(s) == SEGMENT_STORED;
		if (segment_live_load(s) == 0)
			engine_push_dead(e, i);
	}
	atomic_store(&e->places_used, places + atomic_load(&e->places_retired));
}

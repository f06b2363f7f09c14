// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A check of an engine that runs: every page is expanded, by the mover and in slices.
 *
 * Segment by segment first, so that the store is read in whole segments: what is live in each is
 * found by walking from header to header, as in clean.c.  If that leaves something out, a header is
 * damaged, and the index is searched for it.  Then slot by slot, for words that name what is not
 * there, for pages that were lost before, and for pages in segments that were open when their turn
 * came or were opened since.
 *
 * Only the mover frees or reuses frames, places and records, and it is the mover that comes here:
 * what a word names stays where it is for the length of a slice, without a pin.  Between two slices
 * anything may change; the segment at hand is known again by its sequence number.  A page that
 * moves to another segment meanwhile is verified by who moves it.
 */
#include "daemon/engine/evictor_internal.h"

#include <errno.h>
#include <inttypes.h>

#define SLICE_OBJECTS 256
#define SLICE_RECORDS 16384u
#define SLICE_SLOTS   65536u
#define READ_WEIGHT   64 /* objects: what a read of a single one from the store counts as */

static void report(uint64_t slot, const char *what)
{
	static struct log_limit limit;
	unsigned more;

	if (log_limit_ok(&limit, 1, LOG_BURST_NS, &more))
		log_post(LOG_LEVEL_ERR,
			 "check: the page of slot %" PRIu64
			 " %s (%u more since the last such line)",
			 slot, what, more);
}

/* @bytes: the segment's.  False: damaged, and not replaced meanwhile. */
static bool page_ok(struct evictor *v, uint32_t id, const uint8_t *bytes, uint64_t slot,
		    uint64_t word)
{
	struct engine *e = v->e;

	if (index_offset(word) + index_size(word) <= SEGMENT_SIZE &&
	    object_expand(v->codec, (const struct object *)(bytes + index_offset(word)),
			  index_size(word), (uint32_t)slot, e->state->segments[id].seq,
			  v->page) == 0)
		return true;
	if (!index_same_object(index_reload(&e->state->index[slot]), word))
		return true;
	report(slot, "is damaged");
	return false;
}

/* A header is damaged, or a credit is under way: the index knows. */
static void search(struct evictor *v, struct check *c, const uint8_t *bytes)
{
	struct engine *e = v->e;

	c->seen = c->wrong = 0;
	for (uint64_t slot = 0; slot < e->state->geo.nslots; slot++) {
		uint64_t word = index_load(&e->state->index[slot]);

		if (index_tag(word) != INDEX_OBJECT || index_segment(word) != c->segment)
			continue;
		c->seen++;
		c->wrong += !page_ok(v, c->segment, bytes, slot, word);
	}
}

/* True when the segment has been walked to its end. */
static bool check_objects(struct evictor *v, struct check *c, const uint8_t *bytes)
{
	struct segment *s = &v->e->state->segments[c->segment];

	for (int i = 0; i < SLICE_OBJECTS; i++) {
		const struct object *o;
		uint64_t word;

		if (c->offset + sizeof(struct object) > s->used) {
			if (c->seen < segment_live_objects(s))
				search(v, c, bytes);
			return true;
		}
		word = evictor_walk(v->e, c->segment, bytes, s->used, &c->offset);
		if (!word)
			continue;
		o = (const struct object *)(bytes + index_offset(word));
		c->seen++;
		c->wrong += !page_ok(v, c->segment, bytes, o->slot, word);
	}
	return false;
}

/* The bytes of the segment at hand, in memory or read from the store: -EIO, -EAGAIN. */
static int bytes_at_hand(struct evictor *v, struct check *c, const uint8_t **ret)
{
	struct segment *s = &v->e->state->segments[c->segment];
	int r;

	if (segment_state_load(s) != SEGMENT_STORED) {
		*ret = front_frame(v->e->front, segment_where_load(s).frame);
		return 0;
	}
	r = evictor_read_segment(v, c->segment);
	if (r == 0)
		*ret = v->staging;
	return r;
}

/* Whether the walk over segments is to deal with this one. */
static bool take_segment(struct evictor *v, struct check *c)
{
	struct segment *s = &v->e->state->segments[c->segment];
	enum segment_state state = segment_state_load(s);

	if (state == SEGMENT_FREE || state == SEGMENT_RETIRED || s->seq >= c->before)
		return false;
	if (state == SEGMENT_OPEN) {
		if (c->nopen < ARRAY_SIZE(c->open))
			c->open[c->nopen++] = s->seq;
		return false;
	}
	/* Freed and opened anew since the last slice. */
	if (c->seq && c->seq != s->seq)
		return false;
	c->seq = s->seq;
	return true;
}

static void next_segment(struct check *c)
{
	c->done += c->seen;
	c->found += c->wrong;
	c->segment++;
	c->seq = c->seen = c->wrong = 0;
	c->offset = 0;
}

/* -EAGAIN: the store owes the bytes. */
static int check_segment(struct evictor *v, struct check *c)
{
	struct segment *s = &v->e->state->segments[c->segment];
	const uint8_t *bytes = NULL;
	int r;

	r = bytes_at_hand(v, c, &bytes);
	if (r == -EAGAIN)
		return r;
	if (r < 0) {
		c->seen = c->wrong = segment_live_objects(s);
		next_segment(c);
	} else if (check_objects(v, c, bytes)) {
		/* Not before: a search looks at all of them once more. */
		counter_add(v->c, CTR_checksum_failures_total, c->wrong);
		next_segment(c);
	}
	return 0;
}

static bool left_over(const struct check *c, uint64_t seq)
{
	if (seq >= c->before)
		return true;
	for (unsigned i = 0; i < c->nopen; i++) {
		if (c->open[i] == seq)
			return true;
	}
	return false;
}

/* Where the segment's bytes lie, of which @word's are needed: -EIO, -EAGAIN. */
static int bytes_of_word(struct evictor *v, uint32_t id, uint64_t word, int *weight,
			 const uint8_t **ret)
{
	struct segment *s = &v->e->state->segments[id];
	uint32_t frame = segment_where_load(s).frame;

	*ret = v->staging;
	if (frame != SEGMENT_NONE)
		*ret = front_frame(v->e->front, frame);
	if (frame != SEGMENT_NONE || v->staging_seq == s->seq)
		return 0;
	*weight = READ_WEIGHT;
	return evictor_read_object(v, id, word);
}

/* How much of a slice that was, in objects.  -EAGAIN: the store owes the bytes. */
static int check_slot(struct evictor *v, struct check *c, uint64_t slot)
{
	struct engine *e = v->e;
	uint64_t word = index_load(&e->state->index[slot]);
	uint32_t id = index_segment(word);
	const uint8_t *bytes = NULL;
	struct segment *s;
	int weight = 1, r;

	if (index_tag(word) == INDEX_LOST) {
		report(slot, "was lost before");
		c->done++;
		c->found++;
	}
	if (index_tag(word) != INDEX_OBJECT)
		return 0;
	s = &e->state->segments[id < e->state->nsegments ? id : 0];
	if (id >= e->state->nsegments || segment_state_load(s) == SEGMENT_FREE) {
		report(slot, "is nowhere");
		c->found++;
		return 0;
	}
	if (!left_over(c, s->seq))
		return 0;
	r = bytes_of_word(v, id, word, &weight, &bytes);
	if (r == -EAGAIN)
		return r;
	c->done++;
	if (r < 0) {
		report(slot, "can't be read");
		c->found++;
	} else if (!page_ok(v, id, bytes, slot, word)) {
		counter_add(v->c, CTR_checksum_failures_total, 1);
		c->found++;
	}
	return weight;
}

static int check_slots(struct evictor *v, struct check *c)
{
	uint64_t end = min_u64(c->slot + SLICE_SLOTS, v->e->state->geo.nslots);
	int expanded = 0;

	for (; c->slot < end && expanded < SLICE_OBJECTS; c->slot++) {
		int r = check_slot(v, c, c->slot);

		if (r < 0)
			return r;
		expanded += r;
	}
	return c->slot < v->e->state->geo.nslots;
}

void evictor_check_begin(struct evictor *v, struct check *ret)
{
	struct holdings h;

	engine_count_objects(v->e, &h);
	*ret = (struct check){.total = h.resident + h.stored, .before = evictor_seq(v)};
}

int evictor_check(struct evictor *v, struct check *c)
{
	uint32_t top = atomic_load(&v->e->records_top);
	int r;

	for (unsigned i = 0; i < SLICE_RECORDS && c->segment < top; i++) {
		if (!take_segment(v, c)) {
			next_segment(c);
			continue;
		}
		r = check_segment(v, c);
		return r < 0 ? r : 1;
	}
	return c->segment < top ? 1 : check_slots(v, c);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The integrity sweep of an engine that stands still: expands every page, slot by slot, and adds up
 * what the records must count.  For tests; it shares nothing with what it looks after.
 */
#include "daemon/engine/internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

struct sweep {
	struct engine *e;
	struct codec *codec;
	uint64_t *live; /* a segment; objects in the high half, bytes in the low half */
	uint8_t *buf;	/* for the store, aligned */
	uint8_t page[SLOT_SIZE];
	uint64_t wrong;
};

#define SWEEP_BUFFER (4 * SLOT_SIZE)

static const struct object *fetch(struct sweep *s, uint64_t word, struct segment_where where)
{
	const struct engine_store *store = &s->e->store;
	uint64_t pos, start, end;

	if (where.frame != SEGMENT_NONE)
		return (const struct object *)(front_frame(s->e->front, where.frame) +
					       index_offset(word));
	if (where.place == SEGMENT_NONE || store->fd < 0)
		return NULL;
	pos = store->data_offset + (uint64_t)where.place * SEGMENT_SIZE + index_offset(word);
	start = align_down(pos, SLOT_SIZE);
	end = align_up(pos + index_size(word), SLOT_SIZE);
	if (pread(store->fd, s->buf, end - start, (off_t)start) != (ssize_t)(end - start))
		return NULL;
	return (const struct object *)(s->buf + (pos - start));
}

static void sweep_slot(struct sweep *s, uint64_t slot)
{
	uint64_t word = index_load(&s->e->state->index[slot]);
	uint32_t id = index_segment(word);
	const struct object *o;
	struct segment *seg;

	if (index_tag(word) != INDEX_OBJECT)
		return;
	if (id >= s->e->state->nsegments) {
		log_err("sweep: slot %" PRIu64 " names segment %u, which does not exist", slot, id);
		s->wrong++;
		return;
	}
	seg = &s->e->state->segments[id];
	s->live[id] += segment_one(index_size(word));
	o = fetch(s, word, segment_where_load(seg));
	if (o &&
	    object_expand(s->codec, o, index_size(word), (uint32_t)slot, seg->seq, s->page) == 0)
		return;
	log_err("sweep: slot %" PRIu64 " in segment %u cannot be read", slot, id);
	s->wrong++;
}

static void sweep_segments(struct sweep *s)
{
	for (uint32_t i = 0; i < s->e->state->nsegments; i++) {
		struct segment *seg = &s->e->state->segments[i];
		uint64_t counted =
			segment_state_load(seg) == SEGMENT_FREE ? 0 : segment_live_load(seg);

		if (counted == s->live[i])
			continue;
		log_err("sweep: segment %u counts %" PRIu64
			" live objects, the index names %" PRIu64,
			i, counted >> 32, s->live[i] >> 32);
		s->wrong++;
	}
}

uint64_t engine_check(struct engine *e)
{
	struct sweep s = {.e = e};

	s.live = calloc(e->state->nsegments, sizeof(*s.live));
	s.buf = aligned_alloc(SLOT_SIZE, SWEEP_BUFFER);
	if (!s.live || !s.buf || codec_new(&s.codec, CODEC_LEVEL_MIN) < 0) {
		log_err("sweep: no memory for the sweep");
		s.wrong = UINT64_MAX;
	} else {
		for (uint64_t slot = 0; slot < e->state->geo.nslots; slot++)
			sweep_slot(&s, slot);
		sweep_segments(&s);
	}
	codec_free(s.codec);
	free(s.buf);
	free(s.live);
	return s.wrong;
}

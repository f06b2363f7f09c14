// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Moving live objects from one segment to another.
 *
 * A segment is walked from header to header.  An object is live if its slot's word names exactly
 * this segment and offset; a live one is checked, copied, sealed for its new segment, and its word
 * replaced.  If the slot is written in the meantime the word differs, and the copy is dropped.
 *
 * After a full walk nothing may be left.  What is left lies behind a damaged header: then the index
 * itself is searched for words of this segment (slow, and as rare as damage).  An object that fails
 * its check makes its slot LOST, which reads as an I/O error.
 *
 * If even then the record counts something as live, no word refers to it: a data thread has just
 * replaced the word and is about to credit the segment.  The segment becomes a suspect: when every
 * data thread that was in the middle of a turn (queue.c) has ended it, all credits have been given.
 * If anything is left even then, it is nobody's (there is no way known to this), and is dropped, so
 * that the segment does not stay for ever.
 */
#include "daemon/engine/evictor_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

struct move {
	struct evictor *v;
	uint32_t id;
	struct segment *from;
	const uint8_t *bytes;
	struct writer *to;
	bool only_referenced;
};

/* The slot's bytes are damaged. */
static void lose(struct move *m, uint64_t slot, uint64_t word)
{
	struct engine *e = m->v->e;

	engine_report_damage(m->v->c, slot, m->id, "a segment that was cleaned");
	if (index_replace(&e->state->index[slot], word, INDEX_LOST)) {
		counter_add(m->v->c, CTR_slots_lost, 1);
		engine_release_word(e, word);
	}
}

/* Where the objects come from. */
#define MOVE_POINT(m, step)                               \
	do {                                              \
		if ((m)->bytes == (m)->v->staging)        \
			CRASH_POINT(clean_store_##step);  \
		else                                      \
			CRASH_POINT(clean_memory_##step); \
	} while (0)

static int move_object(struct move *m, uint64_t slot, uint64_t word)
{
	struct engine *e = m->v->e;
	const struct object *o = (const struct object *)(m->bytes + index_offset(word));
	uint32_t size = index_size(word);
	struct object *copy;
	uint64_t new;

	if (!object_check(o, size, (uint32_t)slot, m->from->seq)) {
		lose(m, slot, word);
		return 0;
	}
	copy = writer_reserve(m->to);
	if (!copy)
		return -ENOSPC;
	memcpy(copy, o, size);
	object_reseal(copy, m->to->record->seq);
	MOVE_POINT(m, copied);
	new = writer_commit(m->to, size);
	MOVE_POINT(m, committed);
	if (!index_replace(&e->state->index[slot], word, new)) {
		writer_uncommit(m->to, size);
		return 0;
	}
	MOVE_POINT(m, replaced);
	engine_release_word(e, word);
	MOVE_POINT(m, released);
	counter_add(m->v->c, CTR_pages_cleaned_total, 1);
	return 0;
}

/* The word, if the object at @offset is its slot's; else 0. */
static uint64_t live_word(struct engine *e, uint32_t id, uint32_t offset, uint32_t slot)
{
	uint64_t word;

	if (slot >= e->state->geo.nslots)
		return 0;
	word = index_load(&e->state->index[slot]);
	return index_tag(word) == INDEX_OBJECT && index_segment(word) == id &&
			       index_offset(word) == offset
		       ? word
		       : 0;
}

/* The next header behind @offset, or the segment's end if this one can't be believed. */
static uint32_t next_offset(const struct object *o, uint32_t offset, uint32_t used)
{
	if (o->len > CODEC_PAGE_SIZE || offset + object_size(o->len) > used)
		return used;
	return offset + object_size(o->len);
}

uint64_t evictor_walk(struct engine *e, uint32_t id, const uint8_t *bytes, uint32_t used,
		      uint32_t *offset)
{
	const struct object *o = (const struct object *)(bytes + *offset);
	uint64_t word = live_word(e, id, *offset, o->slot);

	/* The word knows the size, too, and was never on the device. */
	if (word && *offset + index_size(word) <= used)
		*offset += index_size(word);
	else
		*offset = next_offset(o, *offset, used);
	return word;
}

static int walk(struct move *m)
{
	uint32_t used = m->from->used;
	uint32_t offset = 0;

	while (offset + sizeof(struct object) <= used) {
		uint64_t word = evictor_walk(m->v->e, m->id, m->bytes, used, &offset);
		const struct object *o = (const struct object *)(m->bytes + index_offset(word));
		int r;

		if (!word || (m->only_referenced && !(word & INDEX_REF)))
			continue;
		r = move_object(m, o->slot, word);
		if (r < 0)
			return r;
	}
	return 0;
}

static int search_index(struct move *m)
{
	struct engine *e = m->v->e;

	for (uint64_t slot = 0; slot < e->state->geo.nslots; slot++) {
		/* seq_cst: a turn in which the word was replaced is seen by add_suspect(). */
		uint64_t word = index_reload(&e->state->index[slot]);
		int r;

		if (index_tag(word) != INDEX_OBJECT || index_segment(word) != m->id)
			continue;
		if (index_offset(word) + index_size(word) > SEGMENT_SIZE) {
			lose(m, slot, word);
			continue;
		}
		r = move_object(m, slot, word);
		if (r < 0)
			return r;
	}
	return 0;
}

bool evictor_is_suspect(const struct evictor *v, uint32_t segment)
{
	for (unsigned i = 0; i < v->nsuspects; i++) {
		if (v->suspects[i] == segment)
			return true;
	}
	return false;
}

void evictor_forget_suspect(struct evictor *v, uint32_t segment)
{
	for (unsigned i = 0; i < v->nsuspects; i++) {
		if (v->suspects[i] == segment)
			v->suspects[i--] = v->suspects[--v->nsuspects];
	}
}

/* One look at the turns serves all suspects; a new one makes the others wait a little longer. */
static void add_suspect(struct evictor *v, uint32_t segment)
{
	if (!evictor_is_suspect(v, segment))
		v->suspects[v->nsuspects++] = segment;
	for (unsigned i = 0; i < v->e->nqueues; i++)
		v->turns[i] = atomic_load(&v->e->queues[i].turn);
}

void evictor_reap_suspects(struct evictor *v)
{
	if (v->nsuspects == 0)
		return;
	for (unsigned i = 0; i < v->e->nqueues; i++) {
		if (v->turns[i] & 1 && atomic_load(&v->e->queues[i].turn) == v->turns[i])
			return;
	}
	while (v->nsuspects > 0) {
		uint32_t id = v->suspects[--v->nsuspects];
		struct segment *s = &v->e->state->segments[id];

		if (segment_live_objects(s) == 0)
			continue; /* the credit has come, and with it a place on the dead list */
		atomic_store(&s->released, atomic_load(&s->added));
		engine_push_dead(v->e, id);
	}
}

static int move_all(struct move *m)
{
	int r = walk(m);

	if (r == 0)
		MOVE_POINT(m, emptied);
	if (r < 0 || segment_live_objects(m->from) == 0)
		return r;
	r = search_index(m);
	if (r < 0)
		return r;
	if (segment_live_objects(m->from) != 0)
		add_suspect(m->v, m->id);
	return 0;
}

static struct move memory_move(struct evictor *v, uint32_t segment)
{
	struct segment *s = &v->e->state->segments[segment];
	struct segment_where where = segment_where_load(s);

	z_assert(segment_state_load(s) == SEGMENT_SEALED && where.frame != SEGMENT_NONE);
	return (struct move){
		.v = v,
		.id = segment,
		.from = s,
		.bytes = front_frame(v->e->front, where.frame),
		/* What came back from the store must stay entitled to the places kept for it. */
		.to = s->kind == SEGMENT_SURVIVOR ? &v->survivors : &v->young,
	};
}

int evictor_clean_memory(struct evictor *v, uint32_t segment)
{
	struct move m = memory_move(v, segment);
	int r = move_all(&m);

	if (r == 0)
		counter_add(v->c, CTR_segments_cleaned_total, 1);
	return r;
}

/* Live bytes that were read since the last look, and lowers the marks if @clear. */
static uint32_t count_referenced(struct move *m, bool clear)
{
	struct engine *e = m->v->e;
	uint32_t used = m->from->used;
	uint32_t offset = 0, bytes = 0;

	while (offset + sizeof(struct object) <= used) {
		uint64_t word = evictor_walk(e, m->id, m->bytes, used, &offset);
		const struct object *o = (const struct object *)(m->bytes + index_offset(word));

		if (!(word & INDEX_REF))
			continue;
		bytes += index_size(word);
		if (clear)
			index_clear_ref(&e->state->index[o->slot], word);
	}
	return bytes;
}

int evictor_spare_referenced(struct evictor *v, uint32_t segment)
{
	struct move m = memory_move(v, segment);
	uint32_t referenced = count_referenced(&m, false);
	int r = 0;

	m.only_referenced = true;
	if (referenced > segment_live_bytes(m.from) / 2)
		count_referenced(&m, true); /* all are equal then: the next look decides */
	else if (referenced > 0)
		r = walk(&m);
	return r < 0 ? r : (int)segment_live_bytes(m.from);
}

#define CLEAN_AGAIN_NS	 60000000000ull /* after a read for cleaning has failed */
#define READ_PATIENCE_NS 2000000000ull

static int staged(struct evictor *v)
{
	struct staging_read *rd = &v->staging_read;
	static struct log_limit limit;
	int32_t res = rd->answer.res;
	unsigned more;

	rd->out = false;
	store_watch_answered(&v->e->mover_watch, now_ns(), res != (int32_t)rd->len);
	if (res == (int32_t)rd->len) {
		v->staging_seq = rd->seq;
		return 0;
	}
	counter_add(v->c, CTR_store_read_errors_total, 1);
	if (log_limit_ok(&limit, 1, LOG_BURST_NS, &more))
		log_post(
			LOG_LEVEL_ERR,
			"store: the mover's read of %u bytes at place %u: %s; they stay as they are "
			"(%u more since the last such line)",
			rd->len, rd->place, res < 0 ? strerror(-res) : "short read", more);
	return -EIO;
}

void evictor_take_staged(struct evictor *v)
{
	if (v->staging_read.out && v->staging_read.answer.done)
		staged(v);
}

/*
 * Reads @len bytes from @from on of a stored segment to the same place of v->staging, whose content
 * is then that of @seq.  Waits for the one read, while completed writes are handled as they come;
 * but not for long, since nothing else is done meanwhile: -EAGAIN, and the buffer is the store's
 * until it has answered.
 */
static int read_stored(struct evictor *v, uint32_t segment, uint32_t from, uint32_t len,
		       uint64_t seq)
{
	struct staging_read *rd = &v->staging_read;

	evictor_take_staged(v);
	if (seq && v->staging_seq == seq)
		return 0;
	if (evictor_store_owes(v))
		return -EAGAIN;
	v->staging_seq = 0;
	*rd = (struct staging_read){
		.out = true,
		.seq = seq,
		.place = segment_where_load(&v->e->state->segments[segment]).place,
		.len = len};
	ring_answer_init(&rd->answer);
	store_watch_sent(&v->e->mover_watch, now_ns());
	ring_store_read(&v->ring, &rd->answer.op, v->staging + from, len,
			v->e->store.data_offset + (uint64_t)rd->place * SEGMENT_SIZE + from,
			v->staging_registered ? (int)v->staging_index : -1);
	/* Kicks are left to evictor_wait(), behind which the tiers are looked at. */
	return ring_await(&v->ring, &rd->answer, READ_PATIENCE_NS) ? staged(v) : -EAGAIN;
}

int evictor_read_segment(struct evictor *v, uint32_t segment)
{
	struct segment *s = &v->e->state->segments[segment];

	return read_stored(v, segment, 0, (uint32_t)align_up(s->used, SLOT_SIZE), s->seq);
}

int evictor_read_object(struct evictor *v, uint32_t segment, uint64_t word)
{
	uint32_t from = (uint32_t)align_down(index_offset(word), SLOT_SIZE);
	uint32_t end = (uint32_t)align_up(index_offset(word) + index_size(word), SLOT_SIZE);

	return end <= SEGMENT_SIZE ? read_stored(v, segment, from, end - from, 0) : -EIO;
}

int evictor_clean_store(struct evictor *v, uint32_t segment)
{
	struct segment *s = &v->e->state->segments[segment];
	struct move m = {
		.v = v, .id = segment, .from = s, .bytes = v->staging, .to = &v->survivors};
	int r;

	z_assert(segment_state_load(s) == SEGMENT_STORED);
	r = evictor_read_segment(v, segment);
	if (r != -EAGAIN)
		counter_add(v->c, CTR_store_clean_read_bytes_total, align_up(s->used, SLOT_SIZE));
	if (r == -EIO)
		/* Others can be cleaned meanwhile. */
		v->clean_again[segment] = now_ns() + CLEAN_AGAIN_NS;
	if (r == 0) {
		CRASH_POINT(clean_store_read);
		r = move_all(&m);
	}
	if (r == 0)
		counter_add(v->c, CTR_segments_cleaned_total, 1);
	return r;
}

// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/engine/internal.h"

void writer_init(struct writer *w, struct engine *e, enum segment_kind kind, uint32_t keep)
{
	*w = (struct writer){.e = e, .kind = kind, .keep = keep, .segment = SEGMENT_NONE};
}

/* Who walks over the records need not go further than this. */
static void raise_top(struct engine *e, uint32_t id)
{
	uint32_t top = atomic_load_explicit(&e->records_top, memory_order_relaxed);

	while (top <= id &&
	       !atomic_compare_exchange_weak_explicit(&e->records_top, &top, id + 1,
						      memory_order_relaxed, memory_order_relaxed))
		;
}

static bool writer_open(struct writer *w)
{
	struct engine *e = w->e;
	uint32_t frame = front_get(e->front, w->keep);
	uint32_t id;

	if (idstack_count(&e->front->free) < engine_reserve_frames(e))
		engine_kick_mover(e);
	if (frame == FRAME_NONE)
		return false;
	CRASH_POINT(open_frame_taken);
	/* There are as many records as frames and places, and each used one has one of these. */
	id = idstack_pop(&e->records, 0);
	z_assert(id != IDSTACK_NONE);
	raise_top(e, id);
	w->segment = id;
	w->record = &e->state->segments[id];
	w->base = front_frame(e->front, frame);
	w->used = 0;
	w->added = 0;
	z_assert(segment_state_load(w->record) == SEGMENT_FREE);
	w->record->kind = w->kind;
	w->record->used = 0;
	w->record->seq =
		atomic_fetch_add_explicit(&e->state->header->next_seq, 1, memory_order_relaxed);
	segment_added_set(w->record, 0);
	atomic_store_explicit(&w->record->released, 0, memory_order_relaxed);
	CRASH_POINT(open_record_filled);
	segment_where_set(w->record, frame, SEGMENT_NONE);
	CRASH_POINT(open_where_set);
	/* release: the mover reads the record's fields once it has found it here. */
	segment_state_set(w->record, SEGMENT_OPEN);
	atomic_store_explicit(&e->frame_segment[frame], id, memory_order_release);
	CRASH_POINT(opened);
	return true;
}

struct object *writer_reserve(struct writer *w)
{
	if (w->segment != SEGMENT_NONE && SEGMENT_SIZE - w->used < OBJECT_SIZE_MAX)
		writer_seal(w);
	if (w->segment == SEGMENT_NONE && !writer_open(w))
		return NULL;
	return (struct object *)(w->base + w->used);
}

uint64_t writer_commit(struct writer *w, uint32_t size)
{
	uint64_t word = index_make_object(w->segment, w->used, size);

	w->used += size;
	w->added += segment_one(size);
	segment_added_set(w->record, w->added);
	return word;
}

void writer_uncommit(struct writer *w, uint32_t size)
{
	w->used -= size;
	w->added -= segment_one(size);
	segment_added_set(w->record, w->added);
}

void writer_seal(struct writer *w)
{
	if (w->segment == SEGMENT_NONE)
		return;
	w->record->used = w->used;
	CRASH_POINT(seal_length_set);
	segment_state_set(w->record, SEGMENT_SEALED);
	CRASH_POINT(sealed);
	/* Whoever released the last object while it was open has left it to us; see segment.h. */
	if (segment_live_load(w->record) == 0)
		engine_push_dead(w->e, w->segment);
	w->segment = SEGMENT_NONE;
}

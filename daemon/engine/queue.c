// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A data thread's side of the engine: taking a batch, writing, discarding.
 *
 * Reserve before you destroy: a slot keeps its old word until the new object is complete, so a
 * write that fails or is cut short by a crash leaves the slot as it was.
 *
 * A write that finds no frame is put on the queue's list with its progress, takes a ticket and
 * wakes the mover; engine_poll() goes on with it.  It fails with -ENOSPC only when the mover has
 * answered for this ticket that neither memory nor store can give room.  Reads and discards are
 * never held up by stalled writes.
 */
#include "daemon/engine/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * Between these two the thread may have taken a word out of the index and not yet credited its
 * segment.  The mover, which finds neither a word nor the credit, waits for the turn to pass before
 * it takes the object for a stray (clean.c).
 *
 * seq_cst: the turn is seen before the words that are replaced in it.
 */
static void turn_begin(struct engine_queue *q)
{
	uint64_t turn = atomic_load_explicit(&q->slot->turn, memory_order_relaxed);

	atomic_store_explicit(&q->slot->turn, turn + 1, memory_order_seq_cst);
}

/* release: the credits come before. */
static void turn_end(struct engine_queue *q)
{
	uint64_t turn = atomic_load_explicit(&q->slot->turn, memory_order_relaxed);

	z_assert(turn & 1);
	atomic_store_explicit(&q->slot->turn, turn + 1, memory_order_release);
}

static void show_inflight(struct engine_queue *q)
{
	atomic_store_explicit(&q->slot->inflight, q->inflight, memory_order_relaxed);
}

void request_page_done(struct engine_queue *q, struct engine_request *r, uint64_t page, int error)
{
	z_assert(r->pending > 0);
	if (unlikely(error) && page < r->done) {
		r->done = page;
		r->error = error;
	}
	if (--r->pending > 0)
		return;
	q->inflight--;
	show_inflight(q);
	r->complete(r);
}

/* Compresses into the open segment directly; 0 if there is no frame for a new one. */
static uint64_t store_object(struct engine_queue *q, uint64_t slot, const void *page)
{
	struct object *o = writer_reserve(&q->plain);
	size_t len;

	if (!o)
		return 0;
	len = codec_compress(q->codec, o->data, OBJECT_COMPRESSED_MAX, page);
	if (likely(len > 0)) {
		object_seal(o, (uint32_t)slot, (uint16_t)len, OBJECT_ZSTD, q->plain.record->seq);
		return writer_commit(&q->plain, object_size((uint32_t)len));
	}
	o = writer_reserve(&q->raw);
	if (!o)
		return 0;
	memcpy(o->data, page, SLOT_SIZE);
	object_seal(o, (uint32_t)slot, SLOT_SIZE, OBJECT_RAW, q->raw.record->seq);
	counter_add(q->counters, CTR_pages_incompressible_total, 1);
	return writer_commit(&q->raw, object_size(SLOT_SIZE));
}

static void replaced(struct engine_queue *q, uint64_t old)
{
	switch (index_tag(old)) {
	case INDEX_EMPTY:
		break;
	case INDEX_SAME:
		counter_add(q->counters, CTR_slots_same_filled, (uint64_t)-1);
		break;
	case INDEX_LOST:
		counter_add(q->counters, CTR_slots_lost, (uint64_t)-1);
		break;
	case INDEX_OBJECT:
		engine_release_word(q->e, old);
		break;
	}
}

/* False: no room now. */
static bool write_page(struct engine_queue *q, uint64_t slot, const void *page)
{
	index_word *w = &q->e->state->index[slot];
	uint64_t value, new;

	if (page_same_filled(page, &value) && index_same_fits(value)) {
		new = index_make_same(value);
		counter_add(q->counters, CTR_slots_same_filled, 1);
	} else {
		new = store_object(q, slot, page);
		if (!new)
			return false;
	}
	if (index_is_empty(w))
		index_publish(w, new);
	else
		replaced(q, index_exchange(w, new));
	counter_add(q->counters, CTR_pages_written_total, 1);
	return true;
}

/* Pages of a write are done in order, so `pending` says where to go on.  False: no room now. */
static bool write_request(struct engine_queue *q, struct engine_request *r)
{
	while (true) {
		uint64_t page = r->count - r->pending;
		bool last = r->pending == 1;

		if (!write_page(q, r->slot + page, (char *)r->data + page * SLOT_SIZE))
			return false;
		request_page_done(q, r, page, 0);
		if (last)
			return true; /* r may be gone */
	}
}

static void take_ticket(struct engine_queue *q)
{
	/* seq_cst: the ticket is there before the mover, woken next, looks for tickets. */
	q->ticket = atomic_fetch_add(&q->e->tickets, 1) + 1;
	atomic_store(&q->slot->wants_wake, true);
	engine_kick_mover(q->e);
}

static void stall(struct engine_queue *q, struct engine_request *r)
{
	counter_add(q->counters, CTR_writes_stalled_total, r->pending);
	r->next = NULL;
	*q->stalled_tail = r;
	q->stalled_tail = &r->next;
	if (!q->ticket)
		take_ticket(q);
}

static void reject(struct engine_queue *q, struct engine_request *r)
{
	static struct log_limit limit;
	unsigned more;

	counter_add(q->counters, CTR_writes_rejected_total, r->pending);
	if (log_limit_ok(&limit, 1, 10000000000ull, &more))
		log_post(
			LOG_LEVEL_ERR,
			"no room for a write of %llu pages at slot %llu: the front tier's limit is "
			"reached and the store has no room (%u more since the last such line); raise "
			"[memory] limit or [store] size",
			(unsigned long long)r->count, (unsigned long long)r->slot, more);
	while (true) {
		bool last = r->pending == 1;

		request_page_done(q, r, r->count - r->pending, -ENOSPC);
		if (last)
			return;
	}
}

static void unstall_head(struct engine_queue *q)
{
	q->stalled = q->stalled->next;
	if (!q->stalled)
		q->stalled_tail = &q->stalled;
}

static void retry_stalled(struct engine_queue *q)
{
	while (q->stalled) {
		struct engine_request *r = q->stalled;
		/* acquire: what the mover freed before it answered is seen by the try below. */
		uint64_t denied = atomic_load_explicit(&q->e->denied, memory_order_acquire);

		if (denied < q->ticket && idstack_count(&q->e->front->free) <= FRAMES_KEPT)
			return;
		/* The head leaves the list first: once completed it is no longer ours. */
		unstall_head(q);
		if (write_request(q, r))
			continue;
		if (denied < q->ticket) {
			r->next = q->stalled;
			q->stalled = r;
			if (!r->next)
				q->stalled_tail = &r->next;
			return;
		}
		reject(q, r);
		if (q->stalled)
			take_ticket(q); /* the others are judged by a new look at the tiers */
	}
	q->ticket = 0;
	atomic_store(&q->slot->wants_wake, false);
}

static void discard_request(struct engine_queue *q, struct engine_request *r)
{
	index_word *w = &q->e->state->index[r->slot];
	uint64_t n = 0;

	for (uint64_t i = 0; i < r->count; i++) {
		/* Most of a discarded range is empty already: one load, no lock, no write. */
		if (index_is_empty(&w[i]))
			continue;
		uint64_t old = index_exchange(&w[i], INDEX_EMPTY);

		n += index_tag(old) != INDEX_EMPTY;
		replaced(q, old);
	}
	counter_add(q->counters, CTR_pages_discarded_total, n);
	r->pending = 1;
	request_page_done(q, r, r->count, 0);
}

static bool request_in_range(const struct engine_queue *q, const struct engine_request *r)
{
	uint64_t nslots = q->e->state->geo.nslots;

	return r->count > 0 && r->slot < nslots && r->count <= nslots - r->slot &&
	       (r->op == ENGINE_DISCARD || r->count <= q->request_pages);
}

/* Counts the request as in flight; false if it was answered at once, being outside the device. */
static bool accept_request(struct engine_queue *q, struct engine_request *r)
{
	bool ok = request_in_range(q, r);

	r->error = ok ? 0 : -EINVAL;
	r->done = ok ? r->count : 0;
	r->pending = ok ? r->count : 1;
	q->inflight++;
	show_inflight(q);
	if (!ok)
		request_page_done(q, r, 0, 0);
	return ok;
}

void engine_submit(struct engine_queue *q, struct engine_request *const *batch, unsigned n)
{
	struct engine_request *reads[ENGINE_REQUESTS_MAX], *others[ENGINE_REQUESTS_MAX];
	unsigned nreads = 0, nothers = 0;

	z_assert(q->inflight + n <= q->requests);
	codec_set_level(q->codec, atomic_load_explicit(&q->e->level, memory_order_relaxed));
	for (unsigned i = 0; i < n; i++) {
		if (!accept_request(q, batch[i]))
			continue;
		if (batch[i]->op == ENGINE_READ)
			reads[nreads++] = batch[i];
		else
			others[nothers++] = batch[i];
	}
	if (nreads + nothers == 0)
		return;
	counter_add(q->counters, CTR_batches_total, 1);
	/* Reads first: somebody waits for each of them, while writes are the kernel's to wait for.
	 */
	if (nreads)
		read_batch(q, reads, nreads);
	if (nothers == 0)
		return;
	turn_begin(q);
	for (unsigned i = 0; i < nothers; i++) {
		struct engine_request *r = others[i];

		if (r->op == ENGINE_DISCARD)
			discard_request(q, r);
		/* Behind others that wait, in their order, so that none starves. */
		else if (q->stalled || !write_request(q, r))
			stall(q, r);
	}
	turn_end(q);
}

bool engine_poll(struct engine_queue *q)
{
	bool waiting = read_poll(q);

	if (q->stalled) {
		turn_begin(q);
		retry_stalled(q);
		turn_end(q);
	}
	return waiting || q->stalled;
}

unsigned engine_queue_inflight(const struct engine_queue *q)
{
	return q->inflight;
}

int engine_queue_wake_fd(const struct engine_queue *q)
{
	return q->slot->wake_fd;
}

static int take_slot(struct engine_queue *q)
{
	for (unsigned i = 0; i < q->e->nqueues; i++) {
		if (atomic_exchange(&q->e->queues[i].taken, true))
			continue;
		q->slot = &q->e->queues[i];
		q->counters = &q->slot->counters;
		return 0;
	}
	return -EBUSY;
}

int engine_queue_new(struct engine_queue **ret, struct engine *e,
		     const struct engine_queue_options *o)
{
	struct engine_queue *q;
	int r;

	if (o->requests == 0 || o->requests > ENGINE_REQUESTS_MAX || o->request_pages == 0)
		return -EINVAL;
	q = calloc(1, sizeof(*q));
	if (!q)
		return -ENOMEM;
	q->e = e;
	q->ring = o->ring;
	q->requests = o->requests;
	q->request_pages = o->request_pages;
	q->max_pages = o->requests * o->request_pages;
	q->stalled_tail = &q->stalled;
	writer_init(&q->plain, e, SEGMENT_PLAIN, FRAMES_KEPT);
	writer_init(&q->raw, e, SEGMENT_RAW, FRAMES_KEPT);
	r = codec_new(&q->codec, atomic_load(&e->level));
	if (r == 0)
		r = read_init(q);
	if (r == 0)
		r = take_slot(q);
	if (r < 0) {
		read_deinit(q);
		codec_free(q->codec);
		free(q);
		return r;
	}
	*ret = q;
	return 0;
}

void engine_queue_free(struct engine_queue *q)
{
	if (!q)
		return;
	z_assert(q->inflight == 0 && !q->stalled);
	writer_seal(&q->plain);
	writer_seal(&q->raw);
	atomic_store(&q->slot->taken, false);
	read_deinit(q);
	codec_free(q->codec);
	free(q);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A data thread's side of the engine: taking a batch, writing, discarding.
 *
 * Reserve before you destroy: a slot keeps its old word until the new object is complete, so a
 * write that fails or is cut short by a crash leaves the slot as it was.
 *
 * Writes wait in a list and are done a few pages at a time by engine_poll().  One that finds no
 * frame takes a ticket, wakes the mover and stays at the head of the list.  It fails with -ENOSPC
 * only when the mover has answered for this ticket that neither memory nor store can give room.
 * Reads and discards are never held up by writes.
 */
#include "daemon/engine/internal.h"

#include <errno.h>
#include <inttypes.h>
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

void count_answered(struct engine_queue *q, enum histogram_id id)
{
	struct uncounted *a = &q->uncounted[id];

	if (a->n)
		histogram_add(q->histograms, id, now_ns() - a->taken, a->n);
	a->n = 0;
}

/* One look at the clock serves all that are answered in one go. */
static void note_answered(struct engine_queue *q, const struct engine_request *r)
{
	enum histogram_id id = r->op == ENGINE_READ ? HIST_read_latency : HIST_write_latency;
	struct uncounted *a = &q->uncounted[id];

	if (r->op == ENGINE_DISCARD || r->taken == 0)
		return;
	if (a->n && a->taken != r->taken)
		count_answered(q, id);
	a->taken = r->taken;
	a->n++;
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
	note_answered(q, r);
	q->inflight--;
	show_inflight(q);
	r->complete(r);
}

/* Out of line, so that the many that are not timed pay for a branch only. */
static __attribute__((noinline, cold)) size_t compress_timed(struct engine_queue *q, void *dst,
							     const void *page)
{
	uint64_t start = now_ns();
	size_t len = codec_compress(q->codec, dst, OBJECT_COMPRESSED_MAX, page);

	histogram_add(q->histograms, HIST_compress_time, now_ns() - start, 1);
	return len;
}

static size_t compress(struct engine_queue *q, void *dst, const void *page)
{
	if (unlikely(q->compressed++ % TIMED_PAGES == 0))
		return compress_timed(q, dst, page);
	return codec_compress(q->codec, dst, OBJECT_COMPRESSED_MAX, page);
}

/* Compresses into the open segment directly; 0 if there is no frame for a new one. */
static uint64_t store_object(struct engine_queue *q, uint64_t slot, const void *page)
{
	struct object *o = writer_reserve(&q->plain);
	size_t len;

	if (!o)
		return 0;
	CRASH_POINT(write_reserved);
	len = compress(q, o->data, page);
	if (likely(len > 0)) {
		object_seal(o, (uint32_t)slot, (uint16_t)len, OBJECT_ZSTD, q->plain.record->seq);
		CRASH_POINT(write_filled);
		return writer_commit(&q->plain, object_size((uint32_t)len));
	}
	o = writer_reserve(&q->raw);
	if (!o)
		return 0;
	memcpy(o->data, page, SLOT_SIZE);
	object_seal(o, (uint32_t)slot, SLOT_SIZE, OBJECT_RAW, q->raw.record->seq);
	CRASH_POINT(write_raw_filled);
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
		CRASH_POINT(write_committed);
	}
	if (index_is_empty(w) && index_claim(w, new)) {
		CRASH_POINT(write_claimed);
	} else {
		uint64_t old;

		turn_begin(q);
		old = index_exchange(w, new);
		CRASH_POINT(write_exchanged);
		replaced(q, old);
		CRASH_POINT(write_old_released);
		turn_end(q);
	}
	counter_add(q->counters, CTR_pages_written_total, 1);
	return true;
}

static void take_ticket(struct engine_queue *q)
{
	/* seq_cst: the ticket is there before the mover, woken next, looks for tickets. */
	q->ticket = atomic_fetch_add(&q->e->tickets, 1) + 1;
	atomic_store(&q->slot->wants_wake, true);
	engine_kick_mover(q->e);
}

static void drop_ticket(struct engine_queue *q)
{
	q->ticket = 0;
	atomic_store(&q->slot->wants_wake, false);
}

static void queue_write(struct engine_queue *q, struct engine_request *r)
{
	r->next = NULL;
	*q->writes_tail = r;
	q->writes_tail = &r->next;
}

/* Takes the oldest write off the list; once completed it is no longer ours. */
static void unqueue_write(struct engine_queue *q)
{
	q->writes = q->writes->next;
	if (!q->writes)
		q->writes_tail = &q->writes;
}

/* The next page of the oldest write is over, well or not. */
static void write_page_done(struct engine_queue *q, int error)
{
	struct engine_request *r = q->writes;

	if (r->pending == 1)
		unqueue_write(q);
	request_page_done(q, r, r->count - r->pending, error);
}

/* Fails what is left of the oldest write. */
static void reject_write(struct engine_queue *q)
{
	static struct log_limit limit;
	struct engine_request *r = q->writes;
	unsigned more;

	counter_add(q->counters, CTR_writes_rejected_total, r->pending);
	if (log_limit_ok(&limit, 1, 10000000000ull, &more))
		log_post(
			LOG_LEVEL_ERR,
			"no room for a write of %" PRIu64 " pages at slot %" PRIu64
			": the front tier's limit is reached and the store has no room (%u more since the "
			"last such line); raise [memory] limit or [store] size",
			r->count, r->slot, more);
	for (uint64_t left = r->pending; left > 0; left--)
		write_page_done(q, -ENOSPC);
}

/* There was no frame.  True if the oldest write was given up; else it waits for the mover's answer.
 */
static bool out_of_room(struct engine_queue *q)
{
	/* The answer was loaded before the try that failed; see may_go_on(). */
	if (q->ticket && q->denied >= q->ticket) {
		reject_write(q);
		drop_ticket(q); /* the others are judged by a new look at the tiers */
		return true;
	}
	if (!q->ticket) {
		counter_add(q->counters, CTR_writes_stalled_total, q->writes->pending);
		take_ticket(q);
	}
	return false;
}

/* A waiting write may go on: there is a frame, or the answer that there will be none. */
static bool may_go_on(struct engine_queue *q)
{
	/* acquire: loaded before the try, so that a frame freed before the answer is found by it.
	 */
	q->denied = atomic_load_explicit(&q->e->denied, memory_order_acquire);
	return q->denied >= q->ticket || idstack_count(&q->e->front->free) > FRAMES_KEPT;
}

/*
 * Writes a few pages.  A write of 32 pages takes the better part of a millisecond to compress,
 * while a read that has come in meanwhile makes a program wait; so the transport looks for requests
 * between any two slices.  True if there is more to write now.
 */
static bool write_slice(struct engine_queue *q)
{
	bool room = true;

	if (q->ticket && !may_go_on(q))
		return false;
	for (unsigned i = 0; i < WRITE_SLICE && q->writes && room; i++) {
		struct engine_request *r = q->writes;
		uint64_t page = r->count - r->pending;

		if (write_page(q, r->slot + page, (char *)r->data + page * SLOT_SIZE)) {
			if (q->ticket)
				drop_ticket(q);
			write_page_done(q, 0);
		} else {
			room = out_of_room(q);
		}
	}
	count_answered(q, HIST_write_latency);
	return room && q->writes != NULL;
}

static void discard_request(struct engine_queue *q, struct engine_request *r)
{
	index_word *w = &q->e->state->index[r->slot];
	uint64_t n = 0;

	turn_begin(q);
	for (uint64_t i = 0; i < r->count; i++) {
		/* Most of a discarded range is empty already: one load, no lock, no write. */
		if (index_is_empty(&w[i]))
			continue;
		uint64_t old = index_exchange(&w[i], INDEX_EMPTY);

		CRASH_POINT(discard_cleared);
		n += index_tag(old) != INDEX_EMPTY;
		replaced(q, old);
		CRASH_POINT(discard_released);
	}
	turn_end(q);
	CRASH_POINT(discard_done);
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
static bool accept_request(struct engine_queue *q, struct engine_request *r, uint64_t now)
{
	bool ok = request_in_range(q, r);

	r->taken = ok ? now : 0;
	r->error = ok ? 0 : -EINVAL;
	r->done = ok ? r->count : 0;
	r->pending = ok ? r->count : 1;
	q->inflight++;
	show_inflight(q);
	if (!ok)
		request_page_done(q, r, 0, 0);
	return ok;
}

/*
 * When the batch was taken; 0: its one page is not timed unless it comes from the store.  That page
 * is most often a fault's, which is over in a few us.
 */
static uint64_t time_taken(struct engine_queue *q, struct engine_request *const *batch, unsigned n)
{
	q->stands_for = 1;
	if (n == 1 && batch[0]->op == ENGINE_READ && batch[0]->count == 1) {
		q->stands_for = TIMED_READS;
		/* Counted once it is known to be one: see serve_local(). */
		if (q->single_local % TIMED_READS)
			return 0;
	}
	return now_ns();
}

void engine_submit(struct engine_queue *q, struct engine_request *const *batch, unsigned n)
{
	struct engine_request *reads[ENGINE_REQUESTS_MAX], *discards = NULL, *next;
	unsigned nreads = 0, accepted = 0;
	uint64_t now = time_taken(q, batch, n);

	z_assert(q->inflight + n <= q->requests);
	codec_set_level(q->codec, atomic_load_explicit(&q->e->level, memory_order_relaxed));
	for (unsigned i = 0; i < n; i++) {
		if (!accept_request(q, batch[i], now))
			continue;
		accepted++;
		if (batch[i]->op == ENGINE_READ)
			reads[nreads++] = batch[i];
		else if (batch[i]->op == ENGINE_WRITE)
			queue_write(q, batch[i]);
		else {
			batch[i]->next = discards;
			discards = batch[i];
		}
	}
	if (accepted)
		counter_add(q->counters, CTR_batches_total, 1);
	if (nreads)
		read_batch(q, reads, nreads);
	/* Nobody waits for them, and they can take a while. */
	for (; discards; discards = next) {
		next = discards->next;
		discard_request(q, discards);
	}
}

bool engine_poll(struct engine_queue *q)
{
	read_poll(q);
	return q->writes && write_slice(q);
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
		q->histograms = &q->e->histograms[i];
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
	q->writes_tail = &q->writes;
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
	z_assert(q->inflight == 0 && !q->writes);
	writer_seal(&q->plain);
	writer_seal(&q->raw);
	atomic_store(&q->slot->taken, false);
	read_deinit(q);
	codec_free(q->codec);
	free(q);
}

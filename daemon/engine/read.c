// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Reading a batch in two phases.
 *
 * Pass 1 looks every slot up.  What is only in the store is collected, sorted by position, merged
 * with its neighbours and submitted.  Pass 2 expands what is resident or same-filled while the
 * device works, and completes the requests that need nothing more.  Store completions come through
 * the ring later and are verified, expanded and completed there.  With overlap off the two passes
 * change places; everything else is the same, so that the two can be compared.
 *
 * The idea is that of "mm: overlap synchronous readahead decompression with disk I/O" (A. Ghiti),
 * carried over from zswap's readahead to the requests of a block device.
 *
 * The read of one page that is alone in its batch, as a fault causes it, may be polled for:
 * somebody waits for just that, and to be woken by an interrupt is a good part of it.  Everything
 * else waits in the main ring, where other reads, requests and wake-ups come along.
 *
 * Between the passes a resident slot holds a pin on its segment, which lasts for one batch; a store
 * read holds the place (store_reads) until the device has answered.
 *
 * If a read of several pages fails they are read once more, one by one: what can't be read is an
 * I/O error for its own page, not for the neighbours that were merged with it.
 */
#include "daemon/engine/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* A slot that waits for the store. */
struct read_page {
	struct read_page *next;
	struct engine_request *req;
	uint64_t pos; /* bytes, in the store */
	uint32_t page;
	uint32_t segment;
	uint32_t size;
};

/* One request to the store, for neighbouring objects. */
struct store_read {
	struct ring_op op;
	struct engine_queue *q;
	struct store_read *next;
	struct read_page *first;
	struct read_page *rest; /* to be read one by one, since all together failed */
	uint8_t *buf;
	uint64_t sent; /* CLOCK_MONOTONIC, ns */
	uint64_t start;
	uint32_t len;
	bool polled;
};

static void *page_of(const struct engine_request *r, uint32_t page)
{
	return (char *)r->data + (uint64_t)page * SLOT_SIZE;
}

/*
 * Loads the slot's word and, for an object, takes hold of its bytes: *ret_frame with the segment
 * pinned, or *ret_pos with a store read begun.  Loops only when the word has changed in between.
 */
static uint64_t locate(struct engine *e, uint64_t slot, uint32_t *ret_frame, uint64_t *ret_pos)
{
	index_word *w = &e->state->index[slot];

	while (true) {
		uint64_t word = index_load(w);
		struct segment_where where;
		struct segment *s;

		if (index_tag(word) != INDEX_OBJECT)
			return word;
		z_assert(index_segment(word) < e->state->nsegments);
		s = &e->state->segments[index_segment(word)];
		segment_pin(s);
		if (unlikely(!index_same_object(index_reload(w), word))) {
			segment_unpin(s);
			continue;
		}
		CRASH_POINT(read_pinned);
		where = segment_where_load(s);
		*ret_frame = where.frame;
		if (where.frame != SEGMENT_NONE)
			return word;
		z_assert(where.place != SEGMENT_NONE);
		segment_store_read_begin(s);
		segment_unpin(s);
		CRASH_POINT(read_store_begun);
		*ret_pos = e->store.data_offset + (uint64_t)where.place * SEGMENT_SIZE +
			   index_offset(word);
		return word;
	}
}

static void look_up(struct engine_queue *q, struct engine_request *r, uint32_t page)
{
	uint32_t frame = SEGMENT_NONE;
	uint64_t pos = 0;
	uint64_t word = locate(q->e, r->slot + page, &frame, &pos);
	struct read_page *p;

	if (index_tag(word) != INDEX_OBJECT || frame != SEGMENT_NONE) {
		q->local[q->nlocal++] =
			(struct local_page){.req = r, .word = word, .page = page, .frame = frame};
		return;
	}
	p = q->free_page;
	z_assert(p); /* as many as pages can be in flight */
	q->free_page = p->next;
	*p = (struct read_page){.req = r,
				.pos = pos,
				.page = page,
				.segment = index_segment(word),
				.size = index_size(word)};
	q->order[q->norder++] = p;
}

/* D. L. Shell's sort with the gaps of M. Ciura: in place, no allocation, quick on nearly sorted
 * input. */
static void sort_order(struct read_page **a, unsigned n)
{
	static const unsigned gaps[] = {701, 301, 132, 57, 23, 10, 4, 1};

	for (unsigned g = 0; g < ARRAY_SIZE(gaps); g++) {
		for (unsigned i = gaps[g]; i < n; i++) {
			struct read_page *p = a[i];
			unsigned j = i;

			for (; j >= gaps[g] && a[j - gaps[g]]->pos > p->pos; j -= gaps[g])
				a[j] = a[j - gaps[g]];
			a[j] = p;
		}
	}
}

/* Out of line, so that the many that are not timed pay for a branch only. */
static __attribute__((noinline, cold)) int expand_timed(struct engine_queue *q, const void *object,
							uint32_t size, uint64_t slot, uint64_t seq,
							void *page)
{
	uint64_t start = now_ns();
	int error = object_expand(q->codec, object, size, (uint32_t)slot, seq, page);

	histogram_add(q->histograms, HIST_decompress_time, now_ns() - start, 1);
	return error;
}

static int expand(struct engine_queue *q, const void *object, uint32_t size, uint64_t slot,
		  uint64_t seq, void *page)
{
	if (unlikely(q->expanded++ % TIMED_PAGES == 0))
		return expand_timed(q, object, size, slot, seq, page);
	return object_expand(q->codec, object, size, (uint32_t)slot, seq, page);
}

/* A page from the store is over, well or not. */
static void finish_page(struct engine_queue *q, struct read_page *p, int error)
{
	struct engine_request *r = p->req;
	uint32_t page = p->page;

	CRASH_POINT(read_store_answered);
	segment_store_read_end(&q->e->state->segments[p->segment]);
	p->next = q->free_page;
	q->free_page = p;
	request_page_done(q, r, page, error);
	count_answered(q, HIST_read_latency);
}

/* True: what is left of it is read page by page. */
static bool store_read_failed(struct engine_queue *q, struct store_read *rd, int32_t res)
{
	bool alone = rd->first->next && store_fault_is_local(res);
	static struct log_limit limit;
	unsigned more;

	counter_add(q->counters, CTR_store_read_errors_total, 1);
	if (log_limit_ok(&limit, 5, 10000000000ull, &more))
		log_post(
			LOG_LEVEL_ERR,
			"store: read of %u bytes at %llu: %s; %s (%u more since the last such line)",
			rd->len, (unsigned long long)rd->start,
			res < 0 ? strerror(-res) : "short read",
			alone ? "its pages are read one by one"
			      : "its pages answer with an I/O error",
			more);
	if (alone) {
		rd->rest = rd->first;
		rd->first = NULL;
	}
	return alone;
}

static void store_read_done(struct ring_op *op, int32_t res, uint32_t flags);

static void send_unpolled(struct engine_queue *q, struct store_read *rd)
{
	rd->polled = false;
	ring_store_read(q->ring, &rd->op, rd->buf, rd->len, rd->start,
			q->buffers_registered ? 0 : -1);
}

/*
 * A polled read that has failed, for whatever reason, has still the other way to go.  That a store
 * can be polled is known from the start, but a drive may lose its polled queues in a reset.
 */
static void repeat_unpolled(struct engine_queue *q, struct store_read *rd, int32_t res)
{
	/* relaxed: who still sends a polled read after this comes here as well. */
	if (res == -EOPNOTSUPP &&
	    atomic_exchange_explicit(&q->e->poll_works, false, memory_order_relaxed))
		log_post(LOG_LEVEL_WARN,
			 "[store] poll: the store can't be polled any more; its reads wait for "
			 "interrupts until zswapd is started again");
	counter_add(q->counters, CTR_store_read_requests_total, 1);
	counter_add(q->counters, CTR_store_read_bytes_total, rd->len);
	send_unpolled(q, rd);
	ring_submit(q->ring);
}

/* Hands the pages of a read out, which went well or not. */
static void finish_pages(struct engine_queue *q, struct store_read *rd, bool ok)
{
	struct read_page *next;

	for (struct read_page *p = rd->first; p; p = next) {
		struct segment *s = &q->e->state->segments[p->segment];
		uint64_t slot = p->req->slot + p->page;
		int error = -EIO;

		next = p->next;
		if (ok) {
			error = expand(q, rd->buf + (p->pos - rd->start), p->size, slot, s->seq,
				       page_of(p->req, p->page));
			if (error)
				engine_report_damage(q->counters, slot, p->segment, "the store");
		}
		finish_page(q, p, error);
	}
	rd->first = NULL;
}

static void send_read(struct engine_queue *q, struct store_read *rd, uint64_t start, uint64_t end,
		      enum engine_poll poll)
{
	rd->start = start;
	rd->len = (uint32_t)(end - start);
	rd->op.done = store_read_done;
	counter_add(q->counters, CTR_store_read_requests_total, 1);
	counter_add(q->counters, CTR_store_read_bytes_total, rd->len);
	store_watch_sent(&q->slot->watch, rd->sent);
	rd->polled = poll != ENGINE_POLL_OFF;
	if (rd->polled && ring_store_read_polled(q->ring, &rd->op, rd->buf, rd->len, rd->start,
						 q->buffers_registered, poll == ENGINE_POLL_HYBRID))
		counter_add(q->counters, CTR_store_reads_polled_total, 1);
	else
		send_unpolled(q, rd);
}

static void read_next_alone(struct engine_queue *q, struct store_read *rd, uint64_t now)
{
	uint64_t align = q->e->store.dio_align;
	struct read_page *p = rd->rest;

	rd->rest = p->next;
	p->next = NULL;
	rd->first = p;
	rd->sent = now;
	send_read(q, rd, align_down(p->pos, align), align_up(p->pos + p->size, align),
		  ENGINE_POLL_OFF);
	ring_submit(q->ring);
}

static void store_read_done(struct ring_op *op, int32_t res, uint32_t flags)
{
	struct store_read *rd = container_of(op, struct store_read, op);
	struct engine_queue *q = rd->q;
	bool ok = res == (int32_t)rd->len;
	uint64_t now;

	(void)flags;
	if (unlikely(!ok && rd->polled)) {
		repeat_unpolled(q, rd, res);
		return;
	}
	now = now_ns();
	store_watch_answered(&q->slot->watch, now, !ok);
	if (ok)
		histogram_add(q->histograms, HIST_store_read_latency, now - rd->sent, 1);
	if (ok || !store_read_failed(q, rd, res))
		finish_pages(q, rd, ok);
	if (unlikely(rd->rest)) {
		read_next_alone(q, rd, now);
		return;
	}
	rd->next = q->free_read;
	q->free_read = rd;
}

/*
 * Takes q->order, which is sorted, and queues one store read for each run of neighbours.  What
 * finds no buffer is left on q->waiting.
 */
static void merge_and_send(struct engine_queue *q, enum engine_poll poll)
{
	uint64_t align = q->e->store.dio_align;
	uint64_t now = now_ns();
	unsigned i = 0;

	/* Not timed so far; but the store makes it one of few, and slow. */
	if (q->norder == 1 && q->order[0]->req->taken == 0)
		q->order[0]->req->taken = now;
	while (i < q->norder && q->free_read) {
		struct store_read *rd = q->free_read;
		uint64_t start = align_down(q->order[i]->pos, align);
		uint64_t end = align_up(q->order[i]->pos + q->order[i]->size, align);
		struct read_page *last = q->order[i];

		q->free_read = rd->next;
		rd->first = last;
		rd->sent = now;
		for (i++; i < q->norder; i++) {
			struct read_page *p = q->order[i];
			uint64_t p_end = align_up(p->pos + p->size, align);

			if (p->pos > end + READ_GAP || p_end - start > READ_BUFFER)
				break;
			last->next = p;
			last = p;
			end = max_u64(end, p_end);
		}
		last->next = NULL;
		send_read(q, rd, start, end, poll);
	}
	for (; i < q->norder; i++) {
		q->order[i]->next = q->waiting;
		q->waiting = q->order[i];
	}
	q->norder = 0;
}

/* Sends what q->order holds. */
static void send_order(struct engine_queue *q, enum engine_poll poll)
{
	sort_order(q->order, q->norder);
	merge_and_send(q, poll);
	ring_submit(q->ring);
}

/* Whether, and how, the store reads of this batch are polled for. */
static enum engine_poll poll_mode(const struct engine_queue *q)
{
	/* relaxed: see engine_set_poll(). */
	enum engine_poll poll = atomic_load_explicit(&q->e->poll, memory_order_relaxed);

	if (likely(poll == ENGINE_POLL_OFF) || q->norder != 1 || q->order[0]->req->count != 1 ||
	    !atomic_load_explicit(&q->e->poll_works, memory_order_relaxed))
		return ENGINE_POLL_OFF;
	return poll;
}

static void send_store_reads(struct engine_queue *q)
{
	if (q->norder == 0)
		return;
	counter_add(q->counters, CTR_pages_read_stored_total, q->norder);
	send_order(q, poll_mode(q));
}

void read_poll(struct engine_queue *q)
{
	if (!q->waiting || !q->free_read)
		return;
	for (struct read_page *p = q->waiting; p; p = p->next)
		q->order[q->norder++] = p;
	q->waiting = NULL;
	send_order(q, ENGINE_POLL_OFF);
}

static int expand_resident(struct engine_queue *q, const struct local_page *l, uint64_t slot,
			   void *page)
{
	struct engine *e = q->e;
	struct segment *s = &e->state->segments[index_segment(l->word)];
	const uint8_t *base = front_frame(e->front, l->frame);
	int error =
		expand(q, base + index_offset(l->word), index_size(l->word), slot, s->seq, page);

	if (unlikely(error))
		engine_report_damage(q->counters, slot, index_segment(l->word), "memory");
	segment_unpin(s);
	index_set_ref(&e->state->index[slot], l->word);
	counter_add(q->counters, CTR_pages_read_resident_total, 1);
	return error;
}

static void serve_local(struct engine_queue *q)
{
	for (unsigned i = 0; i < q->nlocal; i++) {
		const struct local_page *l = &q->local[i];
		void *page = page_of(l->req, l->page);
		int error = 0;

		switch (index_tag(l->word)) {
		case INDEX_EMPTY:
			page_fill(page, 0);
			counter_add(q->counters, CTR_pages_read_empty_total, 1);
			break;
		case INDEX_SAME:
			page_fill(page, index_same_value(l->word));
			counter_add(q->counters, CTR_pages_read_same_filled_total, 1);
			break;
		case INDEX_LOST:
			error = -EIO;
			break;
		case INDEX_OBJECT:
			error = expand_resident(q, l, l->req->slot + l->page, page);
			break;
		}
		request_page_done(q, l->req, l->page, error);
		/* Answers may travel by the ring: the first ones do not wait for the last. */
		if (i % ANSWER_PAGES == ANSWER_PAGES - 1) {
			ring_submit(q->ring);
			count_answered(q, HIST_read_latency);
		}
	}
	/*
	 * Those from the store have a count of their own, of all: else one in four of a regular mix
	 * would be one of a kind.
	 */
	if (q->nlocal && q->stands_for > 1)
		q->single_local++;
	q->uncounted[HIST_read_latency].n *= q->stands_for;
	count_answered(q, HIST_read_latency);
	q->nlocal = 0;
}

void read_batch(struct engine_queue *q, struct engine_request *const *batch, unsigned n)
{
	bool overlap = atomic_load_explicit(&q->e->overlap, memory_order_relaxed);

	for (unsigned i = 0; i < n; i++) {
		for (uint32_t page = 0; page < batch[i]->count; page++)
			look_up(q, batch[i], page);
	}
	if (overlap) {
		if (q->norder && q->nlocal)
			counter_add(q->counters, CTR_batches_overlapped_total, 1);
		send_store_reads(q);
		serve_local(q);
	} else {
		serve_local(q);
		send_store_reads(q);
	}
}

/* Made also while polling is off, since it may be switched on later. */
static void open_polled(struct engine_queue *q)
{
	int r;

	if (!q->e->store.polls)
		return;
	r = ring_open_polled(q->ring, q->e->store.fd, q->buffers_registered ? q->buffers : NULL,
			     q->buffers_size);
	if (r < 0)
		log_warn("store: a data thread can't poll: no ring for it: %s", strerror(-r));
}

int read_init(struct engine_queue *q)
{
	unsigned nreads = q->e->store.fd >= 0 ? q->requests : 0;

	q->local = calloc(q->max_pages, sizeof(*q->local));
	q->pages = calloc(q->max_pages, sizeof(*q->pages));
	q->order = calloc(q->max_pages, sizeof(struct read_page *));
	q->reads = calloc(nreads + 1, sizeof(*q->reads));
	if (!q->local || !q->pages || !q->order || !q->reads)
		return -ENOMEM;
	/* Touched now: a data thread takes no page faults later, locked in memory or not. */
	memset(q->local, 0, q->max_pages * sizeof(*q->local));
	memset(q->order, 0, q->max_pages * sizeof(struct read_page *));
	for (unsigned i = 0; i < q->max_pages; i++) {
		q->pages[i].next = q->free_page;
		q->free_page = &q->pages[i];
	}
	if (nreads == 0)
		return 0;
	q->buffers_size = (size_t)nreads * READ_BUFFER;
	q->buffers = mmap(NULL, q->buffers_size, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (q->buffers == MAP_FAILED) {
		q->buffers = NULL;
		return -ENOMEM;
	}
	q->buffers_registered = ring_set_buffer(q->ring, 0, q->buffers, q->buffers_size) == 0;
	if (!q->buffers_registered)
		log_warn(
			"store: read buffers cannot be registered; going on without (is RLIMIT_MEMLOCK "
			"low?)");
	open_polled(q);
	for (unsigned i = 0; i < nreads; i++) {
		q->reads[i].q = q;
		q->reads[i].buf = q->buffers + (size_t)i * READ_BUFFER;
		q->reads[i].next = q->free_read;
		q->free_read = &q->reads[i];
	}
	return 0;
}

void read_deinit(struct engine_queue *q)
{
	if (q->buffers) {
		ring_close_polled(q->ring);
		if (q->buffers_registered)
			ring_set_buffer(q->ring, 0, NULL, 0);
		munmap(q->buffers, q->buffers_size);
	}
	free(q->local);
	free(q->pages);
	free(q->order);
	free(q->reads);
}

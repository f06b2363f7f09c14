// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Data threads, the mover and a reader of the counters at work on one engine.
 *
 *	race THREADS SECONDS MEMORY_MIB STORE_MIB SHARED [MEDDLE]
 *
 * It goes on for longer than SECONDS, up to twenty times, until pages have been cleaned and, with a
 * store, read from it.
 *
 * Each thread owns a stripe of slots and remembers what it wrote there: every page is compared.
 * With SHARED 1 there is one more stripe in which all of them write, read and discard at the same
 * time, with overlapping requests in flight.  Whatever is read there must be a page that somebody
 * wrote, or zeroes: never a mixture, never an error.
 *
 * With MEDDLE 1 one more thread changes the limit (between what the threads need and three times
 * MEMORY_MIB), the watermark and the level all the time, and starts and cancels jobs.  No check may
 * find anything, and with a store memory must come down to the last limit.
 *
 * At the end the integrity sweep must find nothing, and a successor of the engine must find every
 * page.
 *
 * To be run under ThreadSanitizer as well.
 */
#include "common/log.h"
#include "common/util.h"
#include "daemon/engine/engine.h"
#include "daemon/policy/mover.h"
#include "tests/model/pages.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS_MAX   8u
#define STRIPE	      3000u
#define SHARED_SLOTS  256u
#define REQUESTS      24u
#define REQUEST_PAGES 8u

#define FAIL(...)                             \
	do {                                  \
		fprintf(stderr, __VA_ARGS__); \
		_exit(1);                     \
	} while (0)

static struct {
	struct engine_options o;
	struct engine *e;
	unsigned nthreads;
	bool shared, meddle;
	_Atomic bool stop;
	_Atomic uint64_t reads, writes, discards, rejected;
	unsigned jobs; /* the meddler's */
} t;

struct worker;

struct flight {
	struct engine_request req;
	struct worker *w;
	uint64_t seeds[REQUEST_PAGES];
	uint8_t *data;
	bool busy, shared;
};

struct worker {
	pthread_t thread;
	unsigned nr;
	struct rng rng;
	struct ring ring;
	struct engine_queue *q;
	uint64_t seeds[STRIPE];
	bool slot_busy[STRIPE];
	struct flight flights[REQUESTS];
};

/* A page that says itself what it must be. */
static void shared_make(uint64_t seed, void *page)
{
	uint64_t *w = page;

	for (unsigned i = 0; i < PAGE_BYTES / 8; i++)
		w[i] = i ? mix64(seed + i % 64) : seed;
}

static bool shared_is_whole(const void *page)
{
	uint64_t want[PAGE_BYTES / 8], seed = *(const uint64_t *)page;

	if (seed == 0)
		return page_is(0, page);
	shared_make(seed, want);
	return memcmp(want, page, PAGE_BYTES) == 0;
}

static void landed_in_stripe(struct flight *f)
{
	struct engine_request *r = &f->req;
	struct worker *w = f->w;

	for (uint64_t i = 0; i < r->count; i++) {
		uint64_t slot = r->slot + i - (uint64_t)w->nr * STRIPE;

		w->slot_busy[slot] = false;
		if (r->op == ENGINE_READ && !page_is(w->seeds[slot], f->data + i * PAGE_BYTES))
			FAIL("slot %" PRIu64 ": wrong page\n", r->slot + i);
		if (r->op == ENGINE_DISCARD)
			w->seeds[slot] = 0;
		if (r->op == ENGINE_WRITE && i < r->done)
			w->seeds[slot] = f->seeds[i];
	}
}

static void landed(struct engine_request *r)
{
	struct flight *f = container_of(r, struct flight, req);

	if (r->op == ENGINE_WRITE && r->error == -ENOSPC)
		atomic_fetch_add(&t.rejected, r->count - r->done);
	else if (r->error)
		FAIL("slot %" PRIu64 ", op %d: %s\n", r->slot, r->op, strerror(-r->error));
	if (!f->shared)
		landed_in_stripe(f);
	for (uint64_t i = 0; f->shared && r->op == ENGINE_READ && i < r->count; i++) {
		if (!shared_is_whole(f->data + i * PAGE_BYTES))
			FAIL("shared slot %" PRIu64 ": a mixture\n", r->slot + i);
	}
	atomic_fetch_add_explicit(r->op == ENGINE_READ	  ? &t.reads
				  : r->op == ENGINE_WRITE ? &t.writes
							  : &t.discards,
				  r->count, memory_order_relaxed);
	f->busy = false;
}

static bool stripe_free(struct worker *w, uint64_t first, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		if (w->slot_busy[first + i])
			return false;
	}
	for (uint64_t i = 0; i < n; i++)
		w->slot_busy[first + i] = true;
	return true;
}

static bool prepare(struct worker *w, struct flight *f)
{
	struct engine_request *r = &f->req;
	uint64_t kind = rng_below(&w->rng, 100);
	uint64_t range, first;

	f->shared = t.shared && rng_below(&w->rng, 3) == 0;
	range = f->shared ? SHARED_SLOTS : rng_below(&w->rng, 2) ? STRIPE : STRIPE / 10;
	*r = (struct engine_request){
		.op = kind < 45	  ? ENGINE_WRITE
		      : kind < 90 ? ENGINE_READ
				  : ENGINE_DISCARD,
		.count = 1 + rng_below(&w->rng, REQUEST_PAGES),
		.data = f->data,
		.complete = landed,
	};
	first = rng_below(&w->rng, range - r->count);
	r->slot = first + (uint64_t)(f->shared ? t.nthreads : w->nr) * STRIPE;
	if (!f->shared && !stripe_free(w, first, r->count))
		return false;
	for (uint64_t i = 0; r->op == ENGINE_WRITE && i < r->count; i++) {
		f->seeds[i] = rng_next(&w->rng) | 1u << 20;
		if (rng_below(&w->rng, 4) == 0)
			f->seeds[i] = (f->seeds[i] & ~(uint64_t)15) | 2; /* incompressible */
		if (f->shared)
			shared_make(f->seeds[i], f->data + i * PAGE_BYTES);
		else
			page_make(f->seeds[i], f->data + i * PAGE_BYTES);
	}
	f->busy = true;
	return true;
}

static void turn(struct worker *w, uint64_t wait_ns)
{
	while (engine_poll(w->q))
		;
	if (wait_ns && engine_queue_inflight(w->q))
		ring_wait(&w->ring, wait_ns);
	else
		ring_reap(&w->ring);
}

static void drain(struct worker *w)
{
	uint64_t end = now_ns() + 60000000000ull;

	while (engine_queue_inflight(w->q)) {
		turn(w, 1000000);
		if (now_ns() > end)
			FAIL("requests are not answered within a minute\n");
	}
}

static void submit_some(struct worker *w)
{
	unsigned want = 1 + (unsigned)rng_below(&w->rng, REQUESTS), n = 0;
	struct engine_request *batch[REQUESTS];

	for (unsigned i = 0; i < REQUESTS && n < want; i++) {
		if (!w->flights[i].busy && prepare(w, &w->flights[i]))
			batch[n++] = &w->flights[i].req;
	}
	engine_submit(w->q, batch, n);
}

/* All of the stripe, and again at the end through a new engine. */
static void read_stripe(struct worker *w)
{
	for (uint64_t slot = 0; slot < STRIPE; slot += REQUEST_PAGES) {
		struct flight *f = &w->flights[0];
		struct engine_request *batch[] = {&f->req};

		f->shared = false;
		f->req = (struct engine_request){.op = ENGINE_READ,
						 .slot = (uint64_t)w->nr * STRIPE + slot,
						 .count = min_u64(REQUEST_PAGES, STRIPE - slot),
						 .data = f->data,
						 .complete = landed};
		engine_submit(w->q, batch, 1);
		drain(w);
	}
}

static void open_worker(struct worker *w)
{
	struct engine_queue_options qo = {
		.ring = &w->ring, .requests = REQUESTS, .request_pages = REQUEST_PAGES};

	if (ring_init(&w->ring, 64, t.o.store.fd, 1) < 0 || engine_queue_new(&w->q, t.e, &qo) < 0)
		FAIL("no queue\n");
}

static void close_worker(struct worker *w)
{
	engine_queue_free(w->q);
	ring_deinit(&w->ring);
}

static void *work(void *arg)
{
	struct worker *w = arg;

	open_worker(w);
	while (!atomic_load(&t.stop)) {
		submit_some(w);
		turn(w, rng_below(&w->rng, 4) ? 0 : 200000);
	}
	drain(w);
	read_stripe(w);
	close_worker(w);
	return NULL;
}

/* What must be true at any moment. */
static void check_gauges(const uint64_t v[COUNTER_COUNT])
{
	uint64_t most = t.meddle ? t.o.memory_max : v[CTR_memory_limit_bytes];

	if (v[CTR_slots_used] > v[CTR_slots_total] || v[CTR_memory_used_bytes] > most ||
	    v[CTR_resident_compressed_bytes] > v[CTR_memory_used_bytes] ||
	    v[CTR_store_used_bytes] > v[CTR_store_size_bytes] ||
	    v[CTR_stored_compressed_bytes] > v[CTR_store_used_bytes])
		FAIL("counters: a part is more than its whole\n");
	if (v[CTR_slots_resident] + v[CTR_slots_stored] + v[CTR_slots_same_filled] +
		    v[CTR_slots_lost] !=
	    v[CTR_slots_used])
		FAIL("counters: the parts are not the slots in use\n");
	if (v[CTR_pages_read_resident_total] + v[CTR_pages_read_stored_total] +
		    v[CTR_pages_read_same_filled_total] + v[CTR_pages_read_empty_total] !=
	    v[CTR_pages_read_total])
		FAIL("counters: the parts are not the pages read\n");
	if (v[CTR_requests_in_flight] > (uint64_t)t.nthreads * REQUESTS)
		FAIL("counters: more in flight than there can be\n");
}

static void check_job(const struct engine_job *job)
{
	if (job->kind == ENGINE_JOB_CHECK && job->found)
		FAIL("a check has found %" PRIu64 " damaged pages\n", job->found);
	if (job->done > job->total)
		FAIL("a job has done more than there is\n");
	/* Without a store, or with little memory, there may be nowhere to move pages to. */
	if (!job->running && job->result && job->result != -ECANCELED && job->result != -ENOSPC)
		FAIL("a job has failed: %s\n", strerror(-job->result));
}

static void *meddle(void *arg)
{
	uint64_t min = engine_memory_min(t.nthreads);
	struct rng rng = {77};
	struct engine_job job;

	(void)arg;
	while (!atomic_load(&t.stop)) {
		switch (rng_below(&rng, 8)) {
		case 0:
		case 1:
			engine_set_memory_limit(t.e, min + rng_below(&rng, t.o.memory_max - min));
			break;
		case 2:
			engine_set_memory_limit(t.e, min);
			break;
		case 3:
			engine_set_memory_reserve(t.e, rng_below(&rng, MIB(16)));
			break;
		case 4:
			engine_set_level(t.e, (int)rng_below(&rng, 5));
			break;
		case 5:
			/* Seldom, so that most come to their end. */
			if (rng_below(&rng, 16) == 0)
				engine_job_cancel(t.e);
			break;
		default:
			if (engine_job_start(t.e, ENGINE_JOB_WRITEBACK + rng_below(&rng, 3),
					     MIB(rng_below(&rng, 32))) == 0)
				t.jobs++;
		}
		engine_job_status(t.e, &job);
		check_job(&job);
		usleep((useconds_t)rng_below(&rng, 20000));
	}
	return NULL;
}

/* After the last request: the job ends, memory comes down, everything is there. */
static void end_meddling(void)
{
	uint64_t v[COUNTER_COUNT], end = now_ns() + 60000000000ull;
	struct engine_job job;

	engine_job_cancel(t.e);
	engine_set_memory_limit(t.e, engine_memory_min(t.nthreads));
	for (bool checked = false; true; usleep(1000)) {
		if (now_ns() > end)
			FAIL("jobs and the limit have come to no end\n");
		engine_job_status(t.e, &job);
		check_job(&job);
		engine_counters(t.e, v);
		if (job.running ||
		    (t.o.store.fd >= 0 && v[CTR_memory_used_bytes] > v[CTR_memory_limit_bytes]))
			continue;
		if (checked)
			break;
		checked = engine_job_start(t.e, ENGINE_JOB_CHECK, 0) == 0;
	}
	printf("%u jobs; limit %" PRIu64 " MiB, used %" PRIu64 " MiB, checked %" PRIu64 "\n",
	       t.jobs, v[CTR_memory_limit_bytes] >> 20, v[CTR_memory_used_bytes] >> 20, job.done);
}

static void *count(void *arg)
{
	uint64_t before[COUNTER_COUNT] = {0}, v[COUNTER_COUNT];
	struct histogram h[HISTOGRAM_COUNT];

	(void)arg;
	while (!atomic_load(&t.stop)) {
		/* Many close together, so that no moment is safe from it. */
		for (unsigned i = 0; i < 100; i++) {
			engine_counters(t.e, v);
			check_gauges(v);
		}
		for (unsigned i = 0; i < COUNTER_COUNT; i++) {
			if (counter_table[i].kind == COUNTER_KIND_COUNTER && v[i] < before[i])
				FAIL("counters: %s has gone down\n", counter_table[i].name);
		}
		memcpy(before, v, sizeof(v));
		engine_histograms(t.e, h);
		log_drain();
		usleep(200);
	}
	return NULL;
}

static void expect(const char *what, bool ok)
{
	if (!ok)
		FAIL("%s\n", what);
}

static void check_counters(void)
{
	uint64_t v[COUNTER_COUNT];

	engine_counters(t.e, v);
	printf("read %" PRIu64 ", written %" PRIu64 ", discarded %" PRIu64 ", refused %" PRIu64
	       "; written back %" PRIu64 ", cleaned %" PRIu64 " pages, stalled %" PRIu64 "\n",
	       t.reads, t.writes, t.discards, t.rejected, v[CTR_pages_written_back_total],
	       v[CTR_pages_cleaned_total], v[CTR_writes_stalled_total]);
	expect("reads are miscounted", v[CTR_pages_read_total] == t.reads);
	expect("writes are miscounted", v[CTR_pages_written_total] + t.rejected == t.writes);
	expect("rejects are miscounted", v[CTR_writes_rejected_total] == t.rejected);
	expect("pages were lost", v[CTR_slots_lost] == 0 && v[CTR_checksum_failures_total] == 0);
	expect("nothing was cleaned", v[CTR_pages_cleaned_total] > 0);
	expect("requests are in flight", v[CTR_requests_in_flight] == 0);
	if (t.o.store.fd >= 0) {
		expect("nothing was read from the store", v[CTR_pages_read_stored_total] > 0);
		expect("a write was refused, with room in the store", t.rejected == 0);
	}
}

/* What the end expects has happened; under a sanitizer on a busy machine that takes a while. */
static bool seen_enough(void)
{
	uint64_t v[COUNTER_COUNT];

	engine_counters(t.e, v);
	return v[CTR_pages_cleaned_total] > 0 &&
	       (t.o.store.fd < 0 || v[CTR_pages_read_stored_total] > 0);
}

static void take_over(struct worker *w)
{
	t.o.state_fd = dup(engine_state_fd(t.e));
	t.o.front_fd = dup(engine_front_fd(t.e));
	engine_free(t.e);
	expect("no takeover", engine_new(&t.e, &t.o) == 0);
	expect("the integrity sweep found faults", engine_check(t.e) == 0);
	for (unsigned i = 0; i < t.nthreads; i++) {
		open_worker(&w[i]);
		read_stripe(&w[i]);
		close_worker(&w[i]);
	}
}

static int open_store(uint64_t mib)
{
	const char *dir = getenv("ZSWAPD_TEST_DIR");
	int fd = open(dir ? dir : "/var/tmp", O_TMPFILE | O_RDWR | O_DIRECT | O_CLOEXEC, 0600);

	expect("no store file", fd >= 0 && fallocate(fd, 0, 0, (off_t)MIB(mib)) == 0);
	return fd;
}

int main(int argc, char **argv)
{
	uint64_t seconds, memory, store;
	struct worker *w;
	struct mover *mover;
	pthread_t counter, meddler;

	if (argc != 6 && argc != 7)
		FAIL("usage: race THREADS SECONDS MEMORY_MIB STORE_MIB SHARED [MEDDLE]\n");
	t.nthreads = (unsigned)strtoul(argv[1], NULL, 0);
	seconds = strtoull(argv[2], NULL, 0);
	memory = strtoull(argv[3], NULL, 0);
	store = strtoull(argv[4], NULL, 0);
	t.shared = argv[5][0] == '1';
	t.meddle = argc == 7 && argv[6][0] == '1';
	expect("too many threads", t.nthreads > 0 && t.nthreads <= THREADS_MAX);
	t.o = (struct engine_options){
		.device_bytes = ((uint64_t)t.nthreads * STRIPE + SHARED_SLOTS) * PAGE_BYTES,
		.memory_limit = MIB(memory),
		.memory_max = t.meddle ? 3 * MIB(memory) : 0,
		.level = 1,
		.overlap = true,
		.nqueues = t.nthreads,
		.store = {.fd = store ? open_store(store) : -1,
			  .nplaces = (uint32_t)store,
			  .dio_align = 512},
		.state_fd = -1,
		.front_fd = -1,
	};
	w = calloc(t.nthreads, sizeof(*w));
	expect("no engine", engine_new(&t.e, &t.o) == 0 && mover_start(&mover, t.e) == 0);
	for (unsigned i = 0; i < t.nthreads; i++) {
		w[i].nr = i;
		w[i].rng.state = (uint64_t)(i + 1) << 32;
		for (unsigned k = 0; k < REQUESTS; k++) {
			w[i].flights[k].w = &w[i];
			w[i].flights[k].data =
				aligned_alloc(PAGE_BYTES, REQUEST_PAGES * PAGE_BYTES);
		}
		expect("no thread", pthread_create(&w[i].thread, NULL, work, &w[i]) == 0);
	}
	expect("no thread", pthread_create(&counter, NULL, count, NULL) == 0);
	if (t.meddle)
		expect("no thread", pthread_create(&meddler, NULL, meddle, NULL) == 0);
	sleep((unsigned)seconds);
	for (uint64_t i = 0; i < 20 * seconds && !seen_enough(); i++)
		sleep(1);
	atomic_store(&t.stop, true);
	for (unsigned i = 0; i < t.nthreads; i++)
		pthread_join(w[i].thread, NULL);
	pthread_join(counter, NULL);
	if (t.meddle) {
		pthread_join(meddler, NULL);
		end_meddling();
	}
	mover_stop(mover);
	log_drain();
	check_counters();
	expect("the integrity sweep found faults", engine_check(t.e) == 0);
	take_over(w);
	engine_free(t.e);
	close_fd(t.o.store.fd);
	for (unsigned i = 0; i < t.nthreads; i++) {
		for (unsigned k = 0; k < REQUESTS; k++)
			free(w[i].flights[k].data);
	}
	free(w);
	return 0;
}

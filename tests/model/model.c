// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Random operations on an engine against an array that remembers each slot's page.
 *
 *	model OPS SEED SLOTS MEMORY_MIB STORE_MIB [MAX_MIB]
 *
 * One thread is transport and mover in turn.  Requests of 1 to 16 pages are in flight in batches;
 * none overlaps another.  Memory and store are so small that everything is evicted and cleaned many
 * times over.  Without a store, or with one that is too small, writes may fail for want of room;
 *the slot then keeps its page, which is checked as well.  Every read is compared, every slot is
 *read at the end, the counters must agree, and the integrity sweep must find nothing.
 *
 * With MAX_MIB the limit wanders between what is needed and that, the watermark with it, and jobs
 * are started and cancelled at random.  A check must never find anything, and what a job says it
 * has done must never be more than there was.
 */
#include "common/log.h"
#include "common/util.h"
#include "daemon/engine/engine.h"
#include "daemon/engine/evictor.h"
#include "daemon/policy/jobs.h"
#include "daemon/policy/mover.h"
#include "tests/model/pages.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REQUESTS      32u
#define REQUEST_PAGES 16u

struct flight {
	struct engine_request req;
	uint64_t seeds[REQUEST_PAGES]; /* what is written */
	uint8_t *data;
	bool busy;
};

static struct {
	struct engine *e;
	struct engine_queue *q;
	struct evictor *v;
	struct ring ring;
	struct rng rng;
	uint64_t nslots;
	uint64_t *seeds; /* the model */
	bool *busy;
	struct flight flights[REQUESTS];
	uint64_t reads, writes, discards, rejected;
	bool may_reject;
	uint64_t max; /* of the limit; 0: it stays */
	struct jobs jobs;
	uint64_t limits, refused, ended[ENGINE_JOB_SHRINK + 1], cancelled, out_of_room;
} t;

#define FAIL(...)                             \
	do {                                  \
		fprintf(stderr, __VA_ARGS__); \
		exit(1);                      \
	} while (0)

static void completed(struct engine_request *r)
{
	struct flight *f = container_of(r, struct flight, req);

	for (uint64_t i = 0; i < r->count; i++) {
		uint64_t slot = r->slot + i;

		t.busy[slot] = false;
		if (r->op == ENGINE_READ && !page_is(t.seeds[slot], f->data + i * PAGE_BYTES))
			FAIL("slot %" PRIu64 ": wrong page\n", slot);
		if (r->op == ENGINE_DISCARD)
			t.seeds[slot] = 0;
		if (r->op == ENGINE_WRITE && i < r->done)
			t.seeds[slot] = f->seeds[i];
	}
	if (r->error == -ENOSPC && r->op == ENGINE_WRITE && t.may_reject)
		t.rejected += r->count - r->done;
	else if (r->error || r->done != r->count)
		FAIL("slot %" PRIu64 ", op %d: %s\n", r->slot, r->op, strerror(-r->error));
	f->busy = false;
}

/* False: the range is in use by another request. */
static bool prepare(struct flight *f)
{
	struct engine_request *r = &f->req;
	uint64_t kind = rng_below(&t.rng, 100);

	*r = (struct engine_request){
		.op = kind < 45	  ? ENGINE_WRITE
		      : kind < 92 ? ENGINE_READ
				  : ENGINE_DISCARD,
		.count = 1 + rng_below(&t.rng, rng_below(&t.rng, 4) ? 8 : REQUEST_PAGES),
		.data = f->data,
		.complete = completed,
	};
	/* Half of the traffic goes to a tenth of the slots, so that segments differ in age. */
	r->slot = rng_below(&t.rng, rng_below(&t.rng, 2) ? t.nslots : t.nslots / 10);
	r->count = min_u64(r->count, t.nslots - r->slot);
	for (uint64_t i = 0; i < r->count; i++) {
		if (t.busy[r->slot + i])
			return false;
	}
	for (uint64_t i = 0; i < r->count; i++) {
		t.busy[r->slot + i] = true;
		if (r->op != ENGINE_WRITE)
			continue;
		f->seeds[i] = rng_next(&t.rng) | 1u << 20;
		page_make(f->seeds[i], f->data + i * PAGE_BYTES);
	}
	t.reads += r->op == ENGINE_READ ? r->count : 0;
	t.writes += r->op == ENGINE_WRITE ? r->count : 0;
	t.discards += r->op == ENGINE_DISCARD ? r->count : 0;
	f->busy = true;
	return true;
}

static void move_limit(void)
{
	uint64_t min = engine_memory_min(1), low, high;
	uint64_t limit = min + rng_below(&t.rng, t.max - min + 1);
	int r = engine_set_memory_limit(t.e, limit);

	engine_memory_range(t.e, &low, &high);
	if (r == 0)
		t.limits++;
	else if (r == -ENOSPC && align_down(limit, MIB(1)) < low)
		t.refused++;
	else
		FAIL("limit of %" PRIu64 " refused: %s\n", limit, strerror(-r));
	engine_set_memory_reserve(t.e, rng_below(&t.rng, 4) ? 0 : rng_below(&t.rng, MIB(12)));
}

static void count_job(const struct engine_job *job)
{
	if (job->done > job->total || job->found)
		FAIL("job %u: %" PRIu64 " of %" PRIu64 " done, %" PRIu64 " found\n", job->kind,
		     job->done, job->total, job->found);
	if (job->result == 0)
		t.ended[job->kind]++;
	else if (job->result == -ECANCELED)
		t.cancelled++;
	else if (job->result == -ENOSPC)
		t.out_of_room++;
	else
		FAIL("job %u: %s\n", job->kind, strerror(-job->result));
}

/* A slice of the job there is; now and then a new one, or its end. */
static void work_on_job(void)
{
	static uint32_t counted;
	struct engine_job job;

	jobs_step(&t.jobs, t.v);
	engine_job_status(t.e, &job);
	if (!job.running && job.id != counted && job.kind != ENGINE_JOB_NONE) {
		counted = job.id;
		count_job(&job);
	}
	if (job.running && rng_below(&t.rng, 200) == 0)
		engine_job_cancel(t.e);
	if (!job.running && rng_below(&t.rng, 150) == 0)
		engine_job_start(t.e, ENGINE_JOB_WRITEBACK + rng_below(&t.rng, 3),
				 rng_below(&t.rng, 4) ? MIB(rng_below(&t.rng, 20))
						      : ENGINE_JOB_ALL);
}

static void turn(void)
{
	ring_reap(&t.ring);
	if (t.max) {
		work_on_job();
		if (rng_below(&t.rng, 100) == 0)
			move_limit();
	}
	if (rng_below(&t.rng, 4) == 0)
		mover_round(t.v, rng_below(&t.rng, 64) == 0);
	engine_poll(t.q);
}

static void drain(void)
{
	uint64_t give_up = now_ns() + 60000000000ull;

	while (engine_queue_inflight(t.q)) {
		ring_wait(&t.ring, 100000);
		mover_round(t.v, false);
		engine_poll(t.q);
		if (now_ns() > give_up)
			FAIL("requests are not answered within a minute\n");
	}
}

static uint64_t run(uint64_t ops)
{
	struct engine_request *batch[REQUESTS];
	uint64_t done = 0;

	while (done < ops) {
		unsigned want = 1 + (unsigned)rng_below(&t.rng, REQUESTS), n = 0;

		for (unsigned i = 0; i < REQUESTS && n < want; i++) {
			if (t.flights[i].busy || !prepare(&t.flights[i]))
				continue;
			batch[n++] = &t.flights[i].req;
			done += t.flights[i].req.count;
		}
		engine_submit(t.q, batch, n);
		turn();
	}
	drain();
	return done;
}

static void read_all(void)
{
	struct engine_request *batch[1];

	for (uint64_t slot = 0; slot < t.nslots; slot += REQUEST_PAGES) {
		struct flight *f = &t.flights[0];

		f->req = (struct engine_request){.op = ENGINE_READ,
						 .slot = slot,
						 .count = min_u64(REQUEST_PAGES, t.nslots - slot),
						 .data = f->data,
						 .complete = completed};
		batch[0] = &f->req;
		t.reads += f->req.count;
		engine_submit(t.q, batch, 1);
		drain();
	}
}

static void expect(const char *what, uint64_t have, uint64_t want)
{
	if (have != want)
		FAIL("%s: %" PRIu64 ", must be %" PRIu64 "\n", what, have, want);
}

static void check_counters(bool store)
{
	uint64_t v[COUNTER_COUNT], used = 0, same = 0;

	engine_counters(t.e, v);
	for (uint64_t i = 0; i < t.nslots; i++) {
		used += t.seeds[i] != 0;
		same += t.seeds[i] != 0 && t.seeds[i] % 16 == 0;
	}
	expect("slots_used", v[CTR_slots_used], used);
	expect("slots_same_filled", v[CTR_slots_same_filled], same);
	expect("slots_resident + slots_stored", v[CTR_slots_resident] + v[CTR_slots_stored],
	       used - same);
	expect("slots_lost", v[CTR_slots_lost], 0);
	expect("pages_read_total", v[CTR_pages_read_total], t.reads);
	expect("reads by kind",
	       v[CTR_pages_read_resident_total] + v[CTR_pages_read_stored_total] +
		       v[CTR_pages_read_same_filled_total] + v[CTR_pages_read_empty_total],
	       t.reads);
	expect("pages_written_total", v[CTR_pages_written_total], t.writes - t.rejected);
	expect("writes_rejected_total", v[CTR_writes_rejected_total], t.rejected);
	expect("checksum_failures_total", v[CTR_checksum_failures_total], 0);
	expect("requests_in_flight", v[CTR_requests_in_flight], 0);
	if (v[CTR_memory_used_bytes] > (t.max ? t.max : v[CTR_memory_limit_bytes]))
		FAIL("more memory used than allowed\n");
	if (v[CTR_store_used_bytes] > v[CTR_store_size_bytes])
		FAIL("more of the store used than there is\n");
	if (store && (v[CTR_segments_written_total] == 0 || v[CTR_pages_read_stored_total] == 0))
		FAIL("the store was never used: the test tests nothing\n");
	if (v[CTR_segments_cleaned_total] == 0)
		FAIL("nothing was ever cleaned: the test tests nothing\n");
	printf("reads %" PRIu64 " writes %" PRIu64 " discards %" PRIu64 " rejected %" PRIu64
	       "; written back %" PRIu64 ", cleaned %" PRIu64 " pages, %" PRIu64
	       " store reads, %" PRIu64 " batches overlapped\n",
	       t.reads, t.writes, t.discards, t.rejected, v[CTR_pages_written_back_total],
	       v[CTR_pages_cleaned_total], v[CTR_store_read_requests_total],
	       v[CTR_batches_overlapped_total]);
}

/* To the end of what was begun; then memory must be within the limit, if the store has room. */
static void settle(bool store)
{
	uint64_t v[COUNTER_COUNT], give_up = now_ns() + 60000000000ull;
	struct engine_job job;

	if (!t.max)
		return;
	do {
		uint64_t due = jobs_step(&t.jobs, t.v);

		evictor_wait(t.v, min_u64(due, 1000000));
		mover_round(t.v, false);
		engine_job_status(t.e, &job);
		engine_counters(t.e, v);
		if (now_ns() > give_up)
			FAIL("job %u or the limit (%" PRIu64 " MiB of %" PRIu64 ") has no end\n",
			     job.kind, v[CTR_memory_used_bytes] >> 20,
			     v[CTR_memory_limit_bytes] >> 20);
	} while (job.running || (store && v[CTR_memory_used_bytes] > v[CTR_memory_limit_bytes]));
	printf("limit moved %" PRIu64 " times, refused %" PRIu64 "; jobs: %" PRIu64
	       " writebacks, %" PRIu64 " compactions, %" PRIu64 " checks, %" PRIu64
	       " cancelled, %" PRIu64 " without room\n",
	       t.limits, t.refused, t.ended[ENGINE_JOB_WRITEBACK], t.ended[ENGINE_JOB_COMPACT],
	       t.ended[ENGINE_JOB_CHECK], t.cancelled, t.out_of_room);
	if (t.limits == 0 || t.cancelled == 0 || t.ended[ENGINE_JOB_CHECK] == 0 ||
	    t.ended[ENGINE_JOB_COMPACT] == 0 || (store && !t.ended[ENGINE_JOB_WRITEBACK]))
		FAIL("not every job has been done: the test tests too little\n");
}

static int open_store(uint64_t mib)
{
	const char *dir = getenv("ZSWAPD_TEST_DIR");
	int fd = open(dir ? dir : "/var/tmp", O_TMPFILE | O_RDWR | O_DIRECT | O_CLOEXEC, 0600);

	if (fd < 0 || fallocate(fd, 0, 0, (off_t)MIB(mib)) < 0)
		FAIL("no store file: %s\n", strerror(errno));
	return fd;
}

static void setup(uint64_t memory_mib, uint64_t store_mib)
{
	struct engine_options o = {
		.device_bytes = t.nslots * PAGE_BYTES,
		.memory_limit = MIB(memory_mib),
		.memory_max = t.max,
		.level = 1,
		.overlap = t.rng.state % 2 == 0,
		.nqueues = 1,
		.store = {.fd = -1, .nplaces = (uint32_t)store_mib, .dio_align = 512},
		.state_fd = -1,
		.front_fd = -1,
	};
	struct engine_queue_options qo = {
		.ring = &t.ring, .requests = REQUESTS, .request_pages = REQUEST_PAGES};

	if (store_mib)
		o.store.fd = open_store(store_mib);
	t.seeds = calloc(t.nslots, sizeof(*t.seeds));
	t.busy = calloc(t.nslots, sizeof(*t.busy));
	for (unsigned i = 0; i < REQUESTS; i++)
		t.flights[i].data = aligned_alloc(PAGE_BYTES, REQUEST_PAGES * PAGE_BYTES);
	if (engine_new(&t.e, &o) < 0 || ring_init(&t.ring, 64, o.store.fd, 1) < 0 ||
	    engine_queue_new(&t.q, t.e, &qo) < 0 || evictor_new(&t.v, t.e) < 0)
		FAIL("no engine\n");
	mover_round(t.v, false);
}

static void teardown(void)
{
	engine_queue_free(t.q);
	evictor_free(t.v);
	if (engine_check(t.e) != 0)
		FAIL("the integrity sweep found faults\n");
	ring_deinit(&t.ring);
	engine_free(t.e);
	for (unsigned i = 0; i < REQUESTS; i++)
		free(t.flights[i].data);
	free(t.seeds);
	free(t.busy);
}

int main(int argc, char **argv)
{
	uint64_t ops, memory, store;

	if (argc < 6)
		FAIL("usage: model OPS SEED SLOTS MEMORY_MIB STORE_MIB [MAX_MIB]\n");
	ops = strtoull(argv[1], NULL, 0);
	t.rng.state = strtoull(argv[2], NULL, 0);
	t.nslots = strtoull(argv[3], NULL, 0);
	memory = strtoull(argv[4], NULL, 0);
	store = strtoull(argv[5], NULL, 0);
	t.may_reject = true;
	t.max = argc > 6 ? MIB(strtoull(argv[6], NULL, 0)) : 0;
	setup(memory, store);
	run(ops);
	settle(store > 0);
	read_all();
	log_drain();
	check_counters(store > 0);
	teardown();
	return 0;
}

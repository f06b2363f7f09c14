// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Kills an engine's process at random moments and takes its state over, again and again.
 *
 *	crash KILLS SEED MEMORY_MIB STORE_MIB [MAX_MIB]
 *
 * The parent holds the memfds and, in memory shared with the child, the model: for each slot what
 * it holds, and what a request in flight is about to make of it.  The child takes the state over,
 * runs random operations with a mover thread beside it, and is killed.  The parent then takes the
 * state over itself and reads every slot, which must hold the page of the last answered request, or
 * that of the one that was in flight; the sweep must find nothing.  Then comes the next child.
 *
 * With MAX_MIB the child moves the limit up to that and runs jobs all the time.  The limit that is
 * found after a takeover must be one that the child had set.
 */
#include "common/log.h"
#include "common/util.h"
#include "daemon/engine/engine.h"
#include "daemon/policy/mover.h"
#include "tests/model/pages.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#define SLOTS	      6000u
#define REQUESTS      16u
#define REQUEST_PAGES 8u
#define NO_INTENT     UINT64_MAX

#define FAIL(...)                             \
	do {                                  \
		fprintf(stderr, __VA_ARGS__); \
		exit(1);                      \
	} while (0)

/* Shared with the child, and alive when it is dead. */
struct model {
	struct {
		_Atomic uint64_t seed;
		_Atomic uint64_t intent; /* what a request in flight writes; NO_INTENT: none */
	} slots[SLOTS];
	_Atomic uint64_t answered; /* pages, by all children */
	/* the limit before and after the change that may be under way */
	_Atomic uint64_t limit, next_limit;
	_Atomic uint64_t limits, jobs; /* by all children */
	_Atomic bool failed;
};

struct flight {
	struct engine_request req;
	uint64_t seeds[REQUEST_PAGES];
	uint8_t *data;
	bool busy;
};

static struct {
	struct engine_options o;
	int state_fd, front_fd;
	struct model *model;
	struct rng rng;
	/* the engine of this process */
	struct engine *e;
	struct engine_queue *q;
	struct ring ring;
	struct flight flights[REQUESTS];
	uint64_t max; /* of the limit; 0: it stays */
	/* the parent's sums */
	uint64_t kills, in_flight, found_new, written_back, cleaned;
} t;

static void landed(struct engine_request *r)
{
	struct flight *f = container_of(r, struct flight, req);

	for (uint64_t i = 0; i < r->count; i++) {
		uint64_t slot = r->slot + i;

		if (r->op == ENGINE_READ) {
			if (page_is(t.model->slots[slot].seed, f->data + i * PAGE_BYTES))
				continue;
			atomic_store(&t.model->failed, true);
			FAIL("slot %" PRIu64 ": wrong page while running\n", slot);
		}
		/* The seed first: killed in between, both say the same. */
		if (i < r->done)
			atomic_store(&t.model->slots[slot].seed, f->seeds[i]);
		atomic_store(&t.model->slots[slot].intent, NO_INTENT);
	}
	if (r->error && !(r->error == -ENOSPC && r->op == ENGINE_WRITE)) {
		atomic_store(&t.model->failed, true);
		FAIL("slot %" PRIu64 ", op %d: %s\n", r->slot, r->op, strerror(-r->error));
	}
	atomic_fetch_add(&t.model->answered, r->count);
	f->busy = false;
}

static bool overlaps(const struct engine_request *r)
{
	for (unsigned i = 0; i < REQUESTS; i++) {
		const struct engine_request *o = &t.flights[i].req;

		if (t.flights[i].busy && o->slot < r->slot + r->count &&
		    r->slot < o->slot + o->count)
			return true;
	}
	return false;
}

static bool prepare(struct flight *f)
{
	struct engine_request *r = &f->req;
	uint64_t kind = rng_below(&t.rng, 100);

	*r = (struct engine_request){
		.op = kind < 55	  ? ENGINE_WRITE
		      : kind < 88 ? ENGINE_READ
				  : ENGINE_DISCARD,
		.slot = rng_below(&t.rng, rng_below(&t.rng, 2) ? SLOTS - 8 : SLOTS / 10),
		.count = 1 + rng_below(&t.rng, REQUEST_PAGES),
		.data = f->data,
		.complete = landed,
	};
	if (overlaps(r))
		return false;
	for (uint64_t i = 0; r->op != ENGINE_READ && i < r->count; i++) {
		f->seeds[i] = 0;
		if (r->op == ENGINE_WRITE) {
			f->seeds[i] = rng_next(&t.rng) >> 1 | 1u << 20;
			if (rng_below(&t.rng, 3) == 0)
				f->seeds[i] = (f->seeds[i] & ~(uint64_t)15) | 2;
			page_make(f->seeds[i], f->data + i * PAGE_BYTES);
		}
		atomic_store(&t.model->slots[r->slot + i].intent, f->seeds[i]);
	}
	f->busy = true;
	return true;
}

static void open_engine(void)
{
	struct engine_queue_options qo = {
		.ring = &t.ring, .requests = REQUESTS, .request_pages = REQUEST_PAGES};

	t.o.state_fd = dup(t.state_fd);
	t.o.front_fd = dup(t.front_fd);
	if (engine_new(&t.e, &t.o) < 0 || ring_init(&t.ring, 32, t.o.store.fd, 1) < 0 ||
	    engine_queue_new(&t.q, t.e, &qo) < 0)
		FAIL("no takeover\n");
}

static void close_engine(void)
{
	engine_queue_free(t.q);
	ring_deinit(&t.ring);
	engine_free(t.e);
}

static void meddle(void)
{
	uint64_t min = engine_memory_min(1);
	uint64_t limit = align_down(min + rng_below(&t.rng, t.max - min + 1), MIB(1));

	if (rng_below(&t.rng, 20) == 0) {
		atomic_store(&t.model->next_limit, limit);
		if (engine_set_memory_limit(t.e, limit) == 0) {
			atomic_store(&t.model->limit, limit);
			atomic_fetch_add(&t.model->limits, 1);
		}
	}
	if (rng_below(&t.rng, 50) == 0)
		engine_job_cancel(t.e);
	if (engine_job_start(t.e, ENGINE_JOB_WRITEBACK + rng_below(&t.rng, 3),
			     MIB(rng_below(&t.rng, 32))) == 0)
		atomic_fetch_add(&t.model->jobs, 1);
}

/* Until it is killed. */
_Noreturn static void child(void)
{
	struct mover *mover;

	open_engine();
	if (mover_start(&mover, t.e) < 0)
		FAIL("no mover\n");
	while (true) {
		unsigned want = 1 + (unsigned)rng_below(&t.rng, REQUESTS), n = 0;
		struct engine_request *batch[REQUESTS];

		for (unsigned i = 0; i < REQUESTS && n < want; i++) {
			if (!t.flights[i].busy && prepare(&t.flights[i]))
				batch[n++] = &t.flights[i].req;
		}
		engine_submit(t.q, batch, n);
		while (engine_poll(t.q))
			;
		if (rng_below(&t.rng, 3) == 0)
			ring_wait(&t.ring, 100000);
		else
			ring_reap(&t.ring);
		if (t.max)
			meddle();
		log_drain();
	}
}

static void nothing(struct engine_request *r)
{
	(void)r;
}

static void check_slot(uint64_t slot, const void *page)
{
	uint64_t seed = t.model->slots[slot].seed, intent = t.model->slots[slot].intent;

	t.in_flight += intent != NO_INTENT && intent != seed;
	if (intent != NO_INTENT && page_is(intent, page)) {
		t.found_new += intent != seed;
		t.model->slots[slot].seed = intent;
	} else if (!page_is(seed, page)) {
		FAIL("slot %" PRIu64 ": neither the old page nor the new one after a takeover\n",
		     slot);
	}
	t.model->slots[slot].intent = NO_INTENT;
}

/* Reads REQUESTS requests at a time; returns the first slot behind. */
static uint64_t check_some(uint64_t slot)
{
	uint64_t end = now_ns() + 60000000000ull;
	struct engine_request *batch[REQUESTS];
	unsigned n = 0;

	for (; n < REQUESTS && slot < SLOTS; n++, slot += REQUEST_PAGES) {
		batch[n] = &t.flights[n].req;
		*batch[n] = (struct engine_request){.op = ENGINE_READ,
						    .slot = slot,
						    .count = REQUEST_PAGES,
						    .data = t.flights[n].data,
						    .complete = nothing};
	}
	engine_submit(t.q, batch, n);
	while (engine_queue_inflight(t.q)) {
		ring_wait(&t.ring, 1000000);
		engine_poll(t.q);
		if (now_ns() > end)
			FAIL("a read is not answered within a minute\n");
	}
	log_drain();
	for (unsigned k = 0; k < n; k++) {
		struct engine_request *r = batch[k];

		if (r->error)
			FAIL("slot %" PRIu64 " after a takeover: %s\n", r->slot + r->done,
			     strerror(-r->error));
		for (uint64_t i = 0; i < REQUEST_PAGES; i++)
			check_slot(r->slot + i, t.flights[k].data + i * PAGE_BYTES);
	}
	return slot;
}

static void check_all(void)
{
	for (uint64_t slot = 0; slot < SLOTS;)
		slot = check_some(slot);
}

static void check_sums(void)
{
	uint64_t v[COUNTER_COUNT], used = 0;

	engine_counters(t.e, v);
	for (uint64_t slot = 0; slot < SLOTS; slot++)
		used += t.model->slots[slot].seed != 0;
	if (v[CTR_slots_used] != used || v[CTR_slots_lost] || v[CTR_checksum_failures_total])
		FAIL("%" PRIu64 " slots used, must be %" PRIu64 "; %" PRIu64 " lost\n",
		     v[CTR_slots_used], used, v[CTR_slots_lost]);
	t.written_back += v[CTR_slots_stored] > 0;
	/* The parent's and, unless it was killed before, the child's. */
	if (v[CTR_takeovers_total] < t.kills || v[CTR_takeovers_total] > 2 * t.kills)
		FAIL("%" PRIu64 " takeovers counted after %" PRIu64 " kills\n",
		     v[CTR_takeovers_total], t.kills);
	if (v[CTR_memory_limit_bytes] != t.model->limit &&
	    v[CTR_memory_limit_bytes] != t.model->next_limit)
		FAIL("the limit is %" PRIu64 " after a takeover, was %" PRIu64 " or %" PRIu64 "\n",
		     v[CTR_memory_limit_bytes], t.model->limit, t.model->next_limit);
	t.model->limit = t.model->next_limit = v[CTR_memory_limit_bytes];
}

static void kill_one(void)
{
	struct timespec delay = {.tv_nsec = (long)rng_below(&t.rng, 40000000)};
	uint64_t before = t.model->answered;
	int status;
	pid_t pid;

	t.rng.state += 1000000; /* another sequence for each child */
	pid = fork();
	if (pid < 0)
		FAIL("fork: %s\n", strerror(errno));
	if (pid == 0)
		child();
	/* From a takeover that has hardly begun to a good many operations. */
	if (rng_below(&t.rng, 8)) {
		for (unsigned i = 0; i < 5000 && t.model->answered == before; i++)
			usleep(1000);
	}
	nanosleep(&delay, NULL);
	kill(pid, SIGKILL);
	if (waitpid(pid, &status, 0) != pid || !WIFSIGNALED(status) ||
	    WTERMSIG(status) != SIGKILL || t.model->failed)
		FAIL("the child has failed by itself\n");
	open_engine();
	/* One slot after the other, so not each time. */
	if (t.kills++ % 4 == 0 && engine_check(t.e) != 0)
		FAIL("the integrity sweep found faults after a takeover\n");
	check_all();
	check_sums();
	close_engine();
}

static int open_store(uint64_t mib)
{
	const char *dir = getenv("ZSWAPD_TEST_DIR");
	int fd = open(dir ? dir : "/var/tmp", O_TMPFILE | O_RDWR | O_DIRECT | O_CLOEXEC, 0600);

	if (fd < 0 || fallocate(fd, 0, 0, (off_t)MIB(mib)) < 0)
		FAIL("no store file: %s\n", strerror(errno));
	return fd;
}

static void setup(uint64_t memory, uint64_t store)
{
	t.o = (struct engine_options){
		.device_bytes = (uint64_t)SLOTS * PAGE_BYTES,
		.memory_limit = MIB(memory),
		.memory_max = t.max,
		.level = 1,
		.overlap = true,
		.nqueues = 1,
		.store = {.fd = store ? open_store(store) : -1,
			  .nplaces = (uint32_t)store,
			  .dio_align = 512},
		.state_fd = -1,
		.front_fd = -1,
	};
	t.model = mmap(NULL, sizeof(*t.model), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		       -1, 0);
	if (t.model == MAP_FAILED)
		FAIL("no memory for the model\n");
	for (uint64_t slot = 0; slot < SLOTS; slot++)
		t.model->slots[slot].intent = NO_INTENT;
	for (unsigned i = 0; i < REQUESTS; i++)
		t.flights[i].data = aligned_alloc(PAGE_BYTES, REQUEST_PAGES * PAGE_BYTES);
	if (engine_new(&t.e, &t.o) < 0)
		FAIL("no engine\n");
	t.state_fd = dup(engine_state_fd(t.e));
	t.front_fd = dup(engine_front_fd(t.e));
	engine_free(t.e);
	t.model->limit = t.model->next_limit = t.o.memory_limit;
	t.o.memory_limit = 0; /* from now on as it was */
}

int main(int argc, char **argv)
{
	uint64_t kills, store;

	if (argc != 5 && argc != 6)
		FAIL("usage: crash KILLS SEED MEMORY_MIB STORE_MIB [MAX_MIB]\n");
	kills = strtoull(argv[1], NULL, 0);
	t.rng.state = strtoull(argv[2], NULL, 0) << 40;
	store = strtoull(argv[4], NULL, 0);
	t.max = argc == 6 ? MIB(strtoull(argv[5], NULL, 0)) : 0;
	setup(strtoull(argv[3], NULL, 0), store);
	log_set_level(LOG_LEVEL_WARN);
	for (uint64_t i = 0; i < kills; i++)
		kill_one();
	printf("%" PRIu64 " kills, %" PRIu64 " pages answered, %" PRIu64
	       " in flight when killed, of which %" PRIu64 " had been written; pages were in the "
	       "store after %" PRIu64 " kills\n",
	       kills, t.model->answered, t.in_flight, t.found_new, t.written_back);
	if (t.found_new == 0 || t.found_new == t.in_flight || (store && t.written_back == 0))
		FAIL("no kill came at a moment that tests anything\n");
	if (!t.max)
		return 0;
	printf("limit moved %" PRIu64 " times, %" PRIu64 " jobs started\n", t.model->limits,
	       t.model->jobs);
	if (t.model->limits == 0 || t.model->jobs == 0)
		FAIL("no limit was moved or no job started: the test tests nothing more\n");
	return 0;
}

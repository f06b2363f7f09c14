// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/crash/life.h"
#include "common/log.h"
#include "daemon/policy/mover.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define NO_INTENT UINT64_MAX

struct flight {
	struct engine_request req;
	uint64_t seeds[LIFE_REQUEST_PAGES];
	uint8_t *data;
	bool busy;
};

struct life life;

static struct flight flights[LIFE_REQUESTS];
static struct engine_queue *queue;
static struct ring ring;

static void landed(struct engine_request *r)
{
	struct flight *f = container_of(r, struct flight, req);

	for (uint64_t i = 0; i < r->count; i++) {
		uint64_t slot = r->slot + i;

		if (r->op == ENGINE_READ) {
			if (page_is(life.model->slots[slot].seed, f->data + i * PAGE_BYTES))
				continue;
			FAIL("slot %" PRIu64 ": wrong page while running\n", slot);
		}
		/* The seed first: killed in between, both say the same. */
		if (i < r->done)
			atomic_store(&life.model->slots[slot].seed, f->seeds[i]);
		atomic_store(&life.model->slots[slot].intent, NO_INTENT);
	}
	if (r->error && !(r->error == -ENOSPC && r->op == ENGINE_WRITE))
		FAIL("slot %" PRIu64 ", op %d: %s\n", r->slot, r->op, strerror(-r->error));
	atomic_fetch_add(&life.model->answered, r->count);
	f->busy = false;
}

static bool overlaps(const struct engine_request *r)
{
	for (unsigned i = 0; i < LIFE_REQUESTS; i++) {
		const struct engine_request *o = &flights[i].req;

		if (flights[i].busy && o->slot < r->slot + r->count && r->slot < o->slot + o->count)
			return true;
	}
	return false;
}

static bool prepare(struct flight *f)
{
	struct engine_request *r = &f->req;
	uint64_t kind = rng_below(&life.rng, 100);

	*r = (struct engine_request){
		.op = kind < 55	  ? ENGINE_WRITE
		      : kind < 88 ? ENGINE_READ
				  : ENGINE_DISCARD,
		.slot = rng_below(&life.rng,
				  rng_below(&life.rng, 2) ? LIFE_SLOTS - 8 : LIFE_SLOTS / 10),
		.count = 1 + rng_below(&life.rng, LIFE_REQUEST_PAGES),
		.data = f->data,
		.complete = landed,
	};
	if (overlaps(r))
		return false;
	for (uint64_t i = 0; r->op != ENGINE_READ && i < r->count; i++) {
		f->seeds[i] = 0;
		if (r->op == ENGINE_WRITE) {
			f->seeds[i] = rng_next(&life.rng) >> 1 | 1u << 20;
			if (rng_below(&life.rng, 3) == 0)
				f->seeds[i] = (f->seeds[i] & ~(uint64_t)15) | 2;
			page_make(f->seeds[i], f->data + i * PAGE_BYTES);
		}
		atomic_store(&life.model->slots[r->slot + i].intent, f->seeds[i]);
	}
	f->busy = true;
	return true;
}

static void open_engine(bool standby)
{
	struct engine_queue_options qo = {
		.ring = &ring, .requests = LIFE_REQUESTS, .request_pages = LIFE_REQUEST_PAGES};

	life.o.state_fd = dup(life.state_fd);
	life.o.front_fd = dup(life.front_fd);
	life.o.standby = standby;
	if (engine_new(&life.e, &life.o) < 0 || ring_init(&ring, 32, life.o.store.fd, 1) < 0 ||
	    engine_queue_new(&queue, life.e, &qo) < 0)
		FAIL("no takeover\n");
}

void life_open(void)
{
	open_engine(false);
	atomic_fetch_add(&life.model->takeovers, 1);
}

void life_stand_by(void)
{
	open_engine(true);
}

bool life_hold(void)
{
	return engine_standby_hold(life.e);
}

void life_take_over(void)
{
	if (engine_take_over(life.e) < 0)
		FAIL("no takeover by who stood by\n");
	atomic_fetch_add(&life.model->takeovers, 1);
}

void life_close(void)
{
	engine_queue_free(queue);
	ring_deinit(&ring);
	engine_free(life.e);
	life.e = NULL;
}

static void meddle(void)
{
	uint64_t min = engine_memory_min(1);
	uint64_t limit = align_down(min + rng_below(&life.rng, life.max - min + 1), MIB(1));

	if (rng_below(&life.rng, 20) == 0) {
		atomic_store(&life.model->next_limit, limit);
		if (engine_set_memory_limit(life.e, limit) == 0) {
			atomic_store(&life.model->limit, limit);
			atomic_fetch_add(&life.model->limits, 1);
		}
	}
	if (rng_below(&life.rng, 50) == 0)
		engine_job_cancel(life.e);
	if (engine_job_start(life.e, ENGINE_JOB_WRITEBACK + rng_below(&life.rng, 3),
			     MIB(rng_below(&life.rng, 32))) == 0)
		atomic_fetch_add(&life.model->jobs, 1);
}

_Noreturn void life_run(void)
{
	struct mover *mover;

	if (mover_start(&mover, life.e) < 0)
		FAIL("no mover\n");
	while (true) {
		unsigned want = 1 + (unsigned)rng_below(&life.rng, LIFE_REQUESTS), n = 0;
		struct engine_request *batch[LIFE_REQUESTS];

		for (unsigned i = 0; i < LIFE_REQUESTS && n < want; i++) {
			if (!flights[i].busy && prepare(&flights[i]))
				batch[n++] = &flights[i].req;
		}
		engine_submit(queue, batch, n);
		while (engine_poll(queue))
			;
		if (rng_below(&life.rng, 3) == 0)
			ring_wait(&ring, 100000);
		else
			ring_reap(&ring);
		if (life.max)
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
	uint64_t seed = life.model->slots[slot].seed, intent = life.model->slots[slot].intent;

	life.model->in_flight += intent != NO_INTENT && intent != seed;
	if (intent != NO_INTENT && page_is(intent, page)) {
		life.model->found_new += intent != seed;
		life.model->slots[slot].seed = intent;
	} else if (!page_is(seed, page)) {
		FAIL("slot %" PRIu64 ": neither the old page nor the new one after a takeover\n",
		     slot);
	}
	life.model->slots[slot].intent = NO_INTENT;
}

/* Reads LIFE_REQUESTS requests at a time; returns the first slot behind. */
static uint64_t check_some(uint64_t slot)
{
	uint64_t end = now_ns() + 60000000000ull;
	struct engine_request *batch[LIFE_REQUESTS];
	unsigned n = 0;

	for (; n < LIFE_REQUESTS && slot < LIFE_SLOTS; n++, slot += LIFE_REQUEST_PAGES) {
		batch[n] = &flights[n].req;
		*batch[n] = (struct engine_request){.op = ENGINE_READ,
						    .slot = slot,
						    .count = LIFE_REQUEST_PAGES,
						    .data = flights[n].data,
						    .complete = nothing};
	}
	engine_submit(queue, batch, n);
	while (engine_queue_inflight(queue)) {
		ring_wait(&ring, 1000000);
		engine_poll(queue);
		if (now_ns() > end)
			FAIL("a read is not answered within a minute\n");
	}
	log_drain();
	for (unsigned k = 0; k < n; k++) {
		struct engine_request *r = batch[k];

		if (r->error)
			FAIL("slot %" PRIu64 " after a takeover: %s\n", r->slot + r->done,
			     strerror(-r->error));
		for (uint64_t i = 0; i < LIFE_REQUEST_PAGES; i++)
			check_slot(r->slot + i, flights[k].data + i * PAGE_BYTES);
	}
	return slot;
}

static void check_all(void)
{
	for (uint64_t slot = 0; slot < LIFE_SLOTS;)
		slot = check_some(slot);
}

static void check_sums(void)
{
	uint64_t v[COUNTER_COUNT], used = 0;

	engine_counters(life.e, v);
	for (uint64_t slot = 0; slot < LIFE_SLOTS; slot++)
		used += life.model->slots[slot].seed != 0;
	if (v[CTR_slots_used] != used || v[CTR_slots_lost] || v[CTR_checksum_failures_total])
		FAIL("%" PRIu64 " slots used, must be %" PRIu64 "; %" PRIu64 " lost\n",
		     v[CTR_slots_used], used, v[CTR_slots_lost]);
	atomic_fetch_add(&life.model->written_back, v[CTR_slots_stored] > 0);
	/* One more when who took over died before he could say so. */
	if (v[CTR_takeovers_total] < life.model->takeovers)
		FAIL("%" PRIu64 " takeovers counted, there were %" PRIu64 "\n",
		     v[CTR_takeovers_total], life.model->takeovers);
	if (v[CTR_memory_limit_bytes] != life.model->limit &&
	    v[CTR_memory_limit_bytes] != life.model->next_limit)
		FAIL("the limit is %" PRIu64 " after a takeover, was %" PRIu64 " or %" PRIu64 "\n",
		     v[CTR_memory_limit_bytes], life.model->limit, life.model->next_limit);
	life.model->limit = life.model->next_limit = v[CTR_memory_limit_bytes];
}

void life_check(bool sweep)
{
	if (sweep && engine_check(life.e) != 0)
		FAIL("the integrity sweep found faults after a takeover\n");
	check_all();
	check_sums();
	atomic_fetch_add(&life.model->checks, 1);
}

static int open_store(uint64_t mib)
{
	const char *dir = getenv("ZSWAPD_TEST_DIR");
	int fd = open(dir ? dir : "/var/tmp", O_TMPFILE | O_RDWR | O_DIRECT | O_CLOEXEC, 0600);

	if (fd < 0 || fallocate(fd, 0, 0, (off_t)MIB(mib)) < 0)
		FAIL("no store file: %s\n", strerror(errno));
	return fd;
}

static void map_model(void)
{
	life.model = mmap(NULL, sizeof(*life.model), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (life.model == MAP_FAILED)
		FAIL("no memory for the model\n");
	for (uint64_t slot = 0; slot < LIFE_SLOTS; slot++)
		life.model->slots[slot].intent = NO_INTENT;
	for (unsigned i = 0; i < LIFE_REQUESTS; i++) {
		if (!flights[i].data)
			flights[i].data =
				aligned_alloc(PAGE_BYTES, LIFE_REQUEST_PAGES * PAGE_BYTES);
	}
}

pid_t life_fork(void)
{
	pid_t pid;

	life.rng.state += 1000000; /* another sequence for each child */
	pid = fork();
	if (pid < 0)
		FAIL("fork: %s\n", strerror(errno));
	return pid;
}

void life_setup(uint64_t seed, uint64_t memory, uint64_t store, uint64_t max)
{
	life = (struct life){
		.rng.state = seed << 40,
		.max = MIB(max),
		.o =
			{
				.device_bytes = (uint64_t)LIFE_SLOTS * PAGE_BYTES,
				.memory_limit = MIB(memory),
				.memory_max = MIB(max),
				.level = 1,
				.overlap = true,
				.nqueues = 1,
				.store = {.fd = store ? open_store(store) : -1,
					  .nplaces = (uint32_t)store,
					  .dio_align = 512},
				.state_fd = -1,
				.front_fd = -1,
			},
	};
	map_model();
	if (engine_new(&life.e, &life.o) < 0)
		FAIL("no engine\n");
	life.state_fd = dup(engine_state_fd(life.e));
	life.front_fd = dup(engine_front_fd(life.e));
	engine_free(life.e);
	life.e = NULL;
	life.model->limit = life.model->next_limit = life.o.memory_limit;
	life.o.memory_limit = 0; /* from now on as it was */
}

// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/bench/rig.h"
#include "common/log.h"
#include "common/util.h"
#include "daemon/codec/codec.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <time.h>

#define GIVE_UP_NS 60000000000ull

/* complete() is told the request alone; there is one rig. */
static struct rig *the_rig;
static uint64_t rng_state = 0x9e3779b97f4a7c15ull;

_Noreturn void die(const char *format, ...)
{
	va_list args;

	log_drain();
	va_start(args, format);
	fputs("engine_bench: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	exit(1);
}

/* xorshift64*: G. Marsaglia, S. Vigna. */
static uint64_t random_word(void)
{
	rng_state ^= rng_state >> 12;
	rng_state ^= rng_state << 25;
	rng_state ^= rng_state >> 27;
	return rng_state * 0x2545f4914f6cdd1dull;
}

uint64_t rig_random(uint64_t below)
{
	return (uint64_t)((unsigned __int128)random_word() * below >> 64);
}

uint64_t rig_cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void corpus_alloc(struct corpus *c, uint64_t pages)
{
	*c = (struct corpus){.pages = aligned_alloc(RIG_PAGE, pages * RIG_PAGE)};
	if (!c->pages)
		die("no memory for %" PRIu64 " pages", pages);
}

void corpus_load(struct corpus *c, const char *path)
{
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint64_t value;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		die("%s: %s; make it with tests/corpus/make-corpus.sh", path, strerror(errno));
	if (st.st_size < 1024 * (off_t)RIG_PAGE)
		die("%s: holds fewer than 1024 pages", path);
	corpus_alloc(c, (uint64_t)st.st_size / RIG_PAGE);
	for (uint64_t i = 0; i < (uint64_t)st.st_size / RIG_PAGE; i++) {
		uint8_t *page = c->pages + c->n * RIG_PAGE;

		if (pread(fd, page, RIG_PAGE, (off_t)(i * RIG_PAGE)) != (ssize_t)RIG_PAGE)
			die("%s: cannot be read to its end", path);
		if (page_same_filled(page, &value))
			c->left_out++;
		else
			c->n++;
	}
}

void corpus_random(struct corpus *c, uint64_t n)
{
	corpus_alloc(c, n);
	for (uint64_t i = 0; i < n * RIG_PAGE / sizeof(uint64_t); i++)
		((uint64_t *)c->pages)[i] = random_word();
	c->n = n;
}

void corpus_free(struct corpus *c)
{
	free(c->pages);
	*c = (struct corpus){0};
}

static void woken(struct ring_op *op, int32_t res, uint32_t flags)
{
	struct rig *rig = container_of(op, struct rig, wake);
	eventfd_t n;

	(void)res;
	(void)flags;
	eventfd_read(engine_queue_wake_fd(rig->q), &n);
	rig->wake_armed = false;
}

static void completed(struct engine_request *r)
{
	if (r->error)
		die("slot %" PRIu64 ", operation %d: %s", r->slot, r->op, strerror(-r->error));
	the_rig->pages_done += r->count;
	the_rig->idle[the_rig->nidle++] = container_of(r, struct rig_request, req);
}

/*
 * An io_uring that had the store registered lets go of it some time after its process has ended,
 * and the lock with it; so a store that was used a moment ago gets a few seconds.
 */
static struct store *open_store(const struct store_options *o)
{
	const struct timespec nap = {.tv_nsec = 200000000};
	struct store *s;
	int r;

	for (unsigned tries = 0; tries < 25; tries++) {
		r = store_open(&s, o);
		if (r == 0)
			return s;
		if (r != -EBUSY)
			break;
		nanosleep(&nap, NULL);
	}
	die("no store at %s", o->path);
}

static void open_engine(struct rig *rig, const struct rig_options *o)
{
	struct engine_options eo = {
		.device_bytes = o->slots * RIG_PAGE,
		.memory_limit = max_u64(o->memory, engine_memory_min(1)),
		.level = o->level,
		.overlap = true,
		.nqueues = 1,
		.store = {.fd = -1},
		.state_fd = -1,
		.front_fd = -1,
	};
	struct store_options so = {.path = o->store, .size = o->store_size};

	if (o->store) {
		rig->store = open_store(&so);
		eo.store = (struct engine_store){.fd = rig->store->fd,
						 .nplaces = rig->store->nplaces,
						 .data_offset = rig->store->data_offset,
						 .dio_align = rig->store->dio_align};
	}
	if (engine_new(&rig->e, &eo) < 0)
		die("no engine");
}

void rig_init(struct rig *rig, const struct rig_options *o)
{
	struct engine_queue_options qo = {
		.ring = &rig->ring, .requests = RIG_REQUESTS, .request_pages = RIG_REQUEST_PAGES};

	*rig = (struct rig){.wake.done = woken};
	the_rig = rig;
	open_engine(rig, o);
	if (ring_init(&rig->ring, 256, rig->store ? rig->store->fd : -1, 1) < 0 ||
	    engine_queue_new(&rig->q, rig->e, &qo) < 0)
		die("no queue");
	if ((o->manual ? evictor_new(&rig->evictor, rig->e) : mover_start(&rig->mover, rig->e)) < 0)
		die("no mover");
	for (unsigned i = 0; i < RIG_REQUESTS; i++) {
		struct rig_request *r = &rig->requests[i];

		r->data = aligned_alloc(RIG_PAGE, RIG_REQUEST_PAGES * RIG_PAGE);
		if (!r->data)
			die("no memory");
		memset(r->data, 1, RIG_REQUEST_PAGES * RIG_PAGE);
		rig->idle[rig->nidle++] = r;
	}
}

void rig_deinit(struct rig *rig)
{
	rig_drain(rig);
	mover_stop(rig->mover);
	engine_queue_free(rig->q);
	evictor_free(rig->evictor);
	ring_deinit(&rig->ring);
	engine_free(rig->e);
	store_free(rig->store);
	for (unsigned i = 0; i < RIG_REQUESTS; i++)
		free(rig->requests[i].data);
	log_drain();
}

struct engine_request *rig_prepare(struct rig *rig, enum engine_op op, uint64_t slot,
				   uint64_t count)
{
	struct rig_request *r = rig->idle[--rig->nidle];

	r->req = (struct engine_request){
		.op = op, .slot = slot, .count = count, .data = r->data, .complete = completed};
	return &r->req;
}

/* Sleeps until a completion, or until the mover has an answer. */
static void rig_sleep(struct rig *rig)
{
	if (!rig->wake_armed) {
		ring_poll_in(&rig->ring, &rig->wake, engine_queue_wake_fd(rig->q));
		rig->wake_armed = true;
	}
	ring_wait(&rig->ring, 100000000);
}

void rig_drain(struct rig *rig)
{
	uint64_t give_up = 0;

	while (true) {
		while (engine_poll(rig->q))
			;
		if (engine_queue_inflight(rig->q) == 0)
			return;
		if (give_up == 0)
			give_up = now_ns() + GIVE_UP_NS;
		else if (now_ns() > give_up)
			die("requests are not answered within a minute");
		rig_sleep(rig);
	}
}

void rig_settle(struct rig *rig)
{
	const struct timespec nap = {.tv_nsec = 20000000};
	uint64_t before[COUNTER_COUNT], after[COUNTER_COUNT];

	engine_counters(rig->e, after);
	do {
		memcpy(before, after, sizeof(before));
		nanosleep(&nap, NULL);
		engine_counters(rig->e, after);
	} while (memcmp(before, after, sizeof(before)) != 0);
}

void rig_write(struct rig *rig, const struct corpus *c, uint64_t slot, uint64_t count)
{
	for (uint64_t end = slot + count; slot < end;) {
		uint64_t page = slot % c->n;
		uint64_t n = min_u64(min_u64(end - slot, RIG_REQUEST_PAGES), c->n - page);
		struct engine_request *r = rig_prepare(rig, ENGINE_WRITE, slot, n);

		r->data = c->pages + page * RIG_PAGE;
		engine_submit(rig->q, &r, 1);
		rig_drain(rig);
		slot += n;
	}
}

void rig_verify(struct rig *rig, const struct corpus *c, uint64_t slot, uint64_t count)
{
	struct engine_request *r = rig_prepare(rig, ENGINE_READ, slot, count);
	const uint8_t *data = r->data;

	engine_submit(rig->q, &r, 1);
	rig_drain(rig);
	for (uint64_t i = 0; i < count; i++) {
		if (memcmp(data + i * RIG_PAGE, c->pages + (slot + i) % c->n * RIG_PAGE,
			   RIG_PAGE) != 0)
			die("slot %" PRIu64 ": wrong page", slot + i);
	}
}

void rig_discard(struct rig *rig, uint64_t slot, uint64_t count)
{
	struct engine_request *r = rig_prepare(rig, ENGINE_DISCARD, slot, count);

	engine_submit(rig->q, &r, 1);
	rig_drain(rig);
}

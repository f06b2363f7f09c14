// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/engine/rig.h"
#include "common/log.h"
#include "common/util.h"
#include "daemon/engine/internal.h"
#include "daemon/policy/mover.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MINUTE_NS 60000000000ull

int rig_store_file(uint64_t bytes)
{
	const char *dir = getenv("ZSWAPD_TEST_DIR");
	int fd = open(dir ? dir : "/var/tmp", O_TMPFILE | O_RDWR | O_DIRECT | O_CLOEXEC, 0600);

	if (fd < 0)
		fail_msg("no direct I/O on a file in %s: %s", dir ? dir : "/var/tmp",
			 strerror(errno));
	if (bytes && fallocate(fd, 0, 0, (off_t)bytes) < 0)
		fail_msg("no room for a store of %llu bytes: %s", (unsigned long long)bytes,
			 strerror(errno));
	return fd;
}

static void open_queue(struct rig *r)
{
	struct engine_queue_options qo = {
		.ring = &r->ring, .requests = RIG_REQUESTS, .request_pages = RIG_REQUEST_PAGES};

	assert_int_equal(engine_queue_new(&r->q, r->e, &qo), 0);
}

void rig_adopt(struct rig *r)
{
	assert_int_equal(ring_init(&r->ring, 64, r->o.store.fd, 1), 0);
	open_queue(r);
	assert_int_equal(evictor_new(&r->v, r->e), 0);
	mover_round(r->v, false);
	r->mover = true;
}

void rig_open(struct rig *r)
{
	assert_int_equal(engine_new(&r->e, &r->o), 0);
	rig_adopt(r);
}

void rig_init(struct rig *r, uint64_t slots, uint64_t memory_mib, uint32_t store_mib)
{
	*r = (struct rig){
		.o =
			{
				.device_bytes = slots * PAGE_BYTES,
				.memory_limit = MIB(memory_mib),
				.level = 1,
				.overlap = true,
				.nqueues = 1,
				.store = {.fd = -1, .nplaces = store_mib, .dio_align = 512},
				.state_fd = -1,
				.front_fd = -1,
			},
		.data = aligned_alloc(PAGE_BYTES, RIG_REQUEST_PAGES * PAGE_BYTES),
	};
	assert_non_null(r->data);
	if (store_mib)
		r->o.store.fd = rig_store_file(MIB(store_mib));
	rig_open(r);
}

void rig_close(struct rig *r, int fds[2])
{
	engine_queue_free(r->q);
	evictor_free(r->v);
	ring_deinit(&r->ring);
	if (fds) {
		fds[0] = dup(engine_state_fd(r->e));
		fds[1] = dup(engine_front_fd(r->e));
	}
	engine_free(r->e);
	log_drain();
}

void rig_deinit(struct rig *r)
{
	rig_settle(r);
	engine_queue_free(r->q);
	evictor_free(r->v);
	ring_deinit(&r->ring);
	assert_int_equal(engine_check(r->e), 0);
	engine_free(r->e);
	close_fd(r->o.store.fd);
	free(r->data);
	log_drain();
}

static void nothing(struct engine_request *req)
{
	(void)req;
}

void rig_settle(struct rig *r)
{
	uint64_t end = now_ns() + MINUTE_NS;

	while (engine_queue_inflight(r->q)) {
		if (engine_poll(r->q) || !engine_queue_inflight(r->q))
			continue;
		if (r->mover)
			mover_round(r->v, false);
		ring_wait(&r->ring, 20000);
		if (now_ns() > end)
			fail_msg("a request is not answered within a minute");
	}
}

int rig_do(struct rig *r, enum engine_op op, uint64_t slot, uint64_t count, void *data)
{
	struct engine_request req = {
		.op = op, .slot = slot, .count = count, .data = data, .complete = nothing};
	struct engine_request *batch[] = {&req};

	engine_submit(r->q, batch, 1);
	rig_settle(r);
	if (req.error == 0)
		assert_int_equal(req.done, count);
	return req.error;
}

int rig_write(struct rig *r, uint64_t slot, uint64_t seed)
{
	page_make(seed, r->data);
	return rig_do(r, ENGINE_WRITE, slot, 1, r->data);
}

int rig_discard(struct rig *r, uint64_t slot, uint64_t count)
{
	return rig_do(r, ENGINE_DISCARD, slot, count, NULL);
}

int rig_read(struct rig *r, uint64_t slot, uint64_t seed)
{
	int error;

	memset(r->data, 0xee, PAGE_BYTES);
	error = rig_do(r, ENGINE_READ, slot, 1, r->data);
	if (error == 0 && !page_is(seed, r->data))
		fail_msg("slot %llu reads as another page", (unsigned long long)slot);
	return error;
}

uint64_t rig_counter(struct rig *r, enum counter_id id)
{
	uint64_t v[COUNTER_COUNT];

	engine_counters(r->e, v);
	return v[id];
}

uint32_t rig_segment(struct rig *r, uint64_t slot)
{
	uint64_t word = index_load(&r->e->state->index[slot]);

	assert_int_equal(index_tag(word), INDEX_OBJECT);
	return index_segment(word);
}

void rig_seal(struct rig *r)
{
	engine_queue_free(r->q);
	open_queue(r);
}

void rig_write_back(struct rig *r, uint64_t slot)
{
	uint32_t id = rig_segment(r, slot);

	assert_int_equal(evictor_write(r->v, id), 0);
	for (unsigned i = 0; i < 60000; i++) {
		if (segment_state_load(&r->e->state->segments[id]) != SEGMENT_WRITING)
			break;
		evictor_wait(r->v, 1000000);
	}
	assert_int_not_equal(segment_state_load(&r->e->state->segments[id]), SEGMENT_WRITING);
	evictor_reap(r->v);
}

// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/util.h"
#include "daemon/engine/internal.h"
#include "daemon/policy/mover.h"
#include "tests/engine/rig.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SLOTS 8192u

static void empty_slots_read_as_zeroes(void **state)
{
	struct rig r;

	rig_init(&r, SLOTS, 9, 0);
	for (uint64_t slot = 0; slot < SLOTS; slot += 1000)
		assert_int_equal(rig_read(&r, slot, 0), 0);
	assert_int_equal(rig_read(&r, SLOTS - 1, 0), 0);
	assert_int_equal(rig_discard(&r, 0, SLOTS), 0);
	assert_int_equal(rig_counter(&r, CTR_pages_discarded_total), 0);
	assert_int_equal(rig_counter(&r, CTR_pages_read_empty_total), 10);
	assert_int_equal(rig_counter(&r, CTR_slots_used), 0);
	rig_deinit(&r);
}

static void same_filled_pages_take_no_room(void **state)
{
	struct rig r;

	rig_init(&r, SLOTS, 9, 0);
	for (uint64_t slot = 0; slot < 1000; slot++)
		assert_int_equal(rig_write(&r, slot, rig_seed(slot, KIND_SAME)), 0);
	assert_int_equal(rig_counter(&r, CTR_slots_same_filled), 1000);
	assert_int_equal(rig_counter(&r, CTR_resident_compressed_bytes), 0);
	/* One whose word does not fit into the index is an object as any other. */
	assert_int_equal(rig_write(&r, 1000, rig_seed(1000, KIND_SAME_WIDE)), 0);
	assert_int_equal(rig_counter(&r, CTR_slots_same_filled), 1000);
	assert_int_equal(rig_counter(&r, CTR_slots_resident), 1);
	for (uint64_t slot = 0; slot < 1000; slot++)
		assert_int_equal(rig_read(&r, slot, rig_seed(slot, KIND_SAME)), 0);
	assert_int_equal(rig_read(&r, 1000, rig_seed(1000, KIND_SAME_WIDE)), 0);
	assert_int_equal(rig_counter(&r, CTR_pages_read_same_filled_total), 1000);
	assert_int_equal(rig_counter(&r, CTR_pages_read_resident_total), 1);
	/* Zeroes are written as such: the slot is used. */
	assert_int_equal(rig_write(&r, 5, 0), 0);
	assert_int_equal(rig_read(&r, 5, 0), 0);
	assert_int_equal(rig_counter(&r, CTR_slots_same_filled), 1000);
	rig_deinit(&r);
}

/* Each kind of page over each other, and nothing; what the slot held before is credited. */
static void every_kind_over_every_kind(void **state)
{
	static const unsigned kinds[] = {KIND_SAME, KIND_SAME_WIDE, KIND_RAW, KIND_WORDS};
	uint64_t n = 0;
	struct rig r;

	rig_init(&r, SLOTS, 9, 0);
	for (unsigned a = 0; a < 4; a++) {
		for (unsigned b = 0; b < 4; b++) {
			uint64_t first = rig_seed(n++, kinds[a]), second = rig_seed(n++, kinds[b]);

			assert_int_equal(rig_write(&r, 7, first), 0);
			assert_int_equal(rig_read(&r, 7, first), 0);
			assert_int_equal(rig_write(&r, 7, second), 0);
			assert_int_equal(rig_read(&r, 7, second), 0);
			assert_int_equal(rig_counter(&r, CTR_slots_used), 1);
			assert_int_equal(rig_counter(&r, CTR_slots_same_filled),
					 kinds[b] == KIND_SAME);
		}
		assert_int_equal(rig_discard(&r, 7, 1), 0);
		assert_int_equal(rig_read(&r, 7, 0), 0);
		assert_int_equal(rig_counter(&r, CTR_slots_used), 0);
		assert_int_equal(rig_counter(&r, CTR_resident_compressed_bytes), 0);
	}
	assert_int_equal(rig_counter(&r, CTR_pages_written_total), n);
	assert_int_equal(rig_counter(&r, CTR_pages_discarded_total), 4);
	assert_int_equal(rig_counter(&r, CTR_pages_incompressible_total), 8);
	rig_deinit(&r);
}

static void incompressible_pages_are_apart(void **state)
{
	struct rig r;

	rig_init(&r, SLOTS, 9, 0);
	assert_int_equal(rig_write(&r, 1, rig_seed(1, KIND_RAW)), 0);
	assert_int_equal(rig_write(&r, 2, rig_seed(2, KIND_WORDS)), 0);
	assert_int_equal(r.e->state->segments[rig_segment(&r, 1)].kind, SEGMENT_RAW);
	assert_int_equal(r.e->state->segments[rig_segment(&r, 2)].kind, SEGMENT_PLAIN);
	rig_deinit(&r);
}

static void requests_outside_are_refused(void **state)
{
	static const struct {
		enum engine_op op;
		uint64_t slot, count;
	} bad[] = {
		{ENGINE_READ, SLOTS, 1},
		{ENGINE_WRITE, SLOTS, 1},
		{ENGINE_DISCARD, SLOTS, 1},
		{ENGINE_READ, SLOTS - 1, 2},
		{ENGINE_WRITE, SLOTS - 1, 2},
		{ENGINE_DISCARD, 0, SLOTS + 1},
		{ENGINE_DISCARD, 1, UINT64_MAX},
		{ENGINE_READ, UINT64_MAX, 2},
		{ENGINE_READ, 0, 0},
		{ENGINE_WRITE, SLOTS, 0},
		{ENGINE_READ, 0, RIG_REQUEST_PAGES + 1},
		{ENGINE_WRITE, 0, RIG_REQUEST_PAGES + 1},
	};
	struct rig r;

	rig_init(&r, SLOTS, 9, 0);
	for (unsigned i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(rig_do(&r, bad[i].op, bad[i].slot, bad[i].count, r.data), -EINVAL);
	assert_int_equal(rig_counter(&r, CTR_slots_used), 0);
	assert_int_equal(rig_counter(&r, CTR_pages_read_total), 0);
	assert_int_equal(rig_do(&r, ENGINE_WRITE, SLOTS - 1, 1, r.data), 0);
	rig_deinit(&r);
}

static void write_range(struct rig *r, uint64_t slot, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		page_make(rig_seed(slot + i, KIND_WORDS), r->data + i * PAGE_BYTES);
	assert_int_equal(rig_do(r, ENGINE_WRITE, slot, count, r->data), 0);
}

/* Slots 0-15 stored, 16-31 resident, 32-47 same-filled, 48-63 empty. */
static void mix(struct rig *r)
{
	write_range(r, 0, 16);
	rig_seal(r);
	rig_write_back(r, 0);
	write_range(r, 16, 16);
	for (uint64_t i = 32; i < 48; i++)
		assert_int_equal(rig_write(r, i, rig_seed(i, KIND_SAME)), 0);
}

static void read_mix(struct rig *r)
{
	memset(r->data, 0xee, 64 * PAGE_BYTES);
	assert_int_equal(rig_do(r, ENGINE_READ, 0, 64, r->data), 0);
	for (uint64_t i = 0; i < 64; i++) {
		uint64_t seed = i < 32	 ? rig_seed(i, KIND_WORDS)
				: i < 48 ? rig_seed(i, KIND_SAME)
					 : 0;

		assert_true(page_is(seed, r->data + i * PAGE_BYTES));
	}
}

static void one_batch_over_all_places(void **state)
{
	struct rig r;

	rig_init(&r, SLOTS, 9, 8);
	mix(&r);
	read_mix(&r);
	assert_int_equal(rig_counter(&r, CTR_pages_read_stored_total), 16);
	assert_int_equal(rig_counter(&r, CTR_pages_read_resident_total), 16);
	assert_int_equal(rig_counter(&r, CTR_pages_read_same_filled_total), 16);
	assert_int_equal(rig_counter(&r, CTR_pages_read_empty_total), 16);
	assert_int_equal(rig_counter(&r, CTR_pages_read_total), 64);
	assert_int_equal(rig_counter(&r, CTR_batches_overlapped_total), 1);
	/* 16 neighbours of about 1 KiB are one request to the device. */
	assert_int_equal(rig_counter(&r, CTR_store_read_requests_total), 1);
	assert_in_range(rig_counter(&r, CTR_store_read_bytes_total), 4096, 32768);
	rig_deinit(&r);
}

static void one_after_the_other(void **state)
{
	struct rig r;

	rig_init(&r, SLOTS, 9, 8);
	engine_set_overlap(r.e, false);
	mix(&r);
	read_mix(&r);
	assert_int_equal(rig_counter(&r, CTR_batches_overlapped_total), 0);
	engine_set_overlap(r.e, true);
	read_mix(&r);
	assert_int_equal(rig_counter(&r, CTR_batches_overlapped_total), 1);
	rig_deinit(&r);
}

struct flight {
	struct engine_request req;
	uint8_t *data;
	unsigned *order; /* counts completions */
	unsigned nth;
	bool done;
};

static void landed(struct engine_request *req)
{
	struct flight *f = container_of(req, struct flight, req);

	assert_false(f->done);
	f->done = true;
	f->nth = ++*f->order;
}

static unsigned landings;

static struct flight *take_off(struct rig *r, struct flight *f, enum engine_op op, uint64_t slot,
			       uint64_t count)
{
	*f = (struct flight){.req = {.op = op, .slot = slot, .count = count, .complete = landed},
			     .data = aligned_alloc(PAGE_BYTES, count * PAGE_BYTES),
			     .order = &landings};
	f->req.data = f->data;
	return f;
}

/* Until nothing more can be done without the mover or the device. */
static void poll_all(struct rig *r)
{
	while (engine_poll(r->q))
		;
}

/*
 * Every page of every request far from its neighbours: many more store reads than buffers.  The
 * rest waits, is sent as buffers come back, and nothing is lost.
 */
static void more_store_reads_than_buffers(void **state)
{
	struct engine_request *batch[RIG_REQUESTS];
	struct flight f[RIG_REQUESTS];
	struct rig r;

	rig_init(&r, SLOTS, 9, 16);
	for (uint64_t i = 0; i < 64 * RIG_REQUESTS; i++) {
		uint64_t slot = i % RIG_REQUESTS * 64 + i / RIG_REQUESTS;

		assert_int_equal(rig_write(&r, slot, rig_seed(slot, KIND_RAW)), 0);
	}
	rig_seal(&r);
	for (uint64_t slot = 0; slot < 64 * RIG_REQUESTS; slot++) {
		if (r.e->state->segments[rig_segment(&r, slot)].state == SEGMENT_SEALED)
			rig_write_back(&r, slot);
	}
	for (unsigned i = 0; i < RIG_REQUESTS; i++)
		batch[i] = &take_off(&r, &f[i], ENGINE_READ, i * 64, 64)->req;
	engine_submit(r.q, batch, RIG_REQUESTS);
	assert_non_null(r.q->waiting);
	rig_settle(&r);
	assert_null(r.q->waiting);
	for (unsigned i = 0; i < RIG_REQUESTS; i++) {
		assert_true(f[i].done);
		assert_int_equal(f[i].req.error, 0);
		for (uint64_t p = 0; p < 64; p++)
			assert_true(page_is(rig_seed(i * 64 + p, KIND_RAW),
					    f[i].data + p * PAGE_BYTES));
		free(f[i].data);
	}
	assert_int_equal(rig_counter(&r, CTR_pages_read_stored_total), 64 * RIG_REQUESTS);
	assert_true(rig_counter(&r, CTR_store_read_requests_total) > RIG_REQUESTS);
	rig_deinit(&r);
}

/* Writes raw pages from slot 0 until there is no room; returns how many were taken. */
static uint64_t fill(struct rig *r)
{
	uint64_t n = 0;
	int error;

	while ((error = rig_write(r, n, rig_seed(n, KIND_RAW))) == 0) {
		n++;
		assert_true(n < r->o.device_bytes / PAGE_BYTES);
	}
	assert_int_equal(error, -ENOSPC);
	return n;
}

static void a_full_engine_keeps_what_it_has(void **state)
{
	uint64_t n, rejected;
	struct rig r;

	rig_init(&r, SLOTS, 9, 0);
	n = fill(&r);
	assert_true(n > 1000); /* the better part of 9 MiB */
	rejected = rig_counter(&r, CTR_writes_rejected_total);
	assert_int_equal(rejected, 1);
	assert_true(rig_counter(&r, CTR_writes_stalled_total) >= 1);
	/* The old page stays where a write has failed, over it or elsewhere. */
	assert_int_equal(rig_write(&r, 3, rig_seed(99999, KIND_RAW)), -ENOSPC);
	assert_int_equal(rig_read(&r, n, 0), 0);
	for (uint64_t i = 0; i < n; i++)
		assert_int_equal(rig_read(&r, i, rig_seed(i, KIND_RAW)), 0);
	/* What needs no room still works. */
	assert_int_equal(rig_write(&r, n, rig_seed(n, KIND_SAME)), 0);
	assert_int_equal(rig_discard(&r, 0, 400), 0);
	for (uint64_t i = 0; i < 100; i++)
		assert_int_equal(rig_write(&r, i, rig_seed(i + 50000, KIND_RAW)), 0);
	for (uint64_t i = 0; i < n; i++)
		assert_int_equal(rig_read(&r, i,
					  i < 100   ? rig_seed(i + 50000, KIND_RAW)
					  : i < 400 ? 0
						    : rig_seed(i, KIND_RAW)),
				 0);
	rig_deinit(&r);
}

/* `done` says how far a write has come that then found no room. */
static void a_write_may_fail_in_the_middle(void **state)
{
	struct engine_request *batch[1];
	struct flight f;
	uint64_t n, done;
	struct rig r;

	rig_init(&r, SLOTS, 9, 0);
	n = fill(&r);
	assert_int_equal(rig_discard(&r, n - 20, 20), 0);
	batch[0] = &take_off(&r, &f, ENGINE_WRITE, 4000, 64)->req;
	do {
		f.done = false;
		for (uint64_t i = 0; i < f.req.count; i++)
			page_make(rig_seed(f.req.slot + i, KIND_RAW), f.data + i * PAGE_BYTES);
		engine_submit(r.q, batch, 1);
		rig_settle(&r);
		assert_true(f.done);
		if (f.req.error == 0)
			f.req.slot += f.req.count;
	} while (f.req.error == 0);
	assert_int_equal(f.req.error, -ENOSPC);
	done = f.req.done;
	assert_true(done < f.req.count);
	for (uint64_t i = 0; i < f.req.count; i++)
		assert_int_equal(rig_read(&r, f.req.slot + i,
					  i < done ? rig_seed(f.req.slot + i, KIND_RAW) : 0),
				 0);
	free(f.data);
	rig_deinit(&r);
}

/* While the mover does nothing, writes wait; reads and discards do not. */
static void stalled_writes_hold_up_nobody(void **state)
{
	struct engine_request *batch[RIG_REQUESTS];
	struct flight f[RIG_REQUESTS], other;
	unsigned n = 0;
	struct rig r;

	rig_init(&r, SLOTS, 9, 32);
	assert_int_equal(rig_write(&r, 0, rig_seed(0, KIND_WORDS)), 0);
	landings = 0;
	r.mover = false;
	for (; n < RIG_REQUESTS - 2; n++) {
		batch[0] = &take_off(&r, &f[n], ENGINE_WRITE, 64 * (n + 1), 64)->req;
		for (uint64_t i = 0; i < 64; i++)
			page_make(rig_seed(64 * (n + 1) + i, KIND_RAW), f[n].data + i * PAGE_BYTES);
		engine_submit(r.q, batch, 1);
	}
	poll_all(&r);
	assert_true(engine_queue_inflight(r.q) > 2);
	assert_true(rig_counter(&r, CTR_writes_stalled_total) >= 64);
	batch[0] = &take_off(&r, &other, ENGINE_READ, 0, 1)->req;
	engine_submit(r.q, batch, 1);
	assert_true(other.done);
	assert_true(page_is(rig_seed(0, KIND_WORDS), other.data));
	free(other.data);
	batch[0] = &take_off(&r, &other, ENGINE_DISCARD, 0, 1)->req;
	engine_submit(r.q, batch, 1);
	assert_true(other.done);
	free(other.data);
	/* With the mover back they go on, first come, first served, and none is refused. */
	r.mover = true;
	rig_settle(&r);
	for (unsigned i = 0; i < n; i++) {
		assert_true(f[i].done);
		assert_int_equal(f[i].req.error, 0);
		if (i > 0)
			assert_true(f[i].nth > f[i - 1].nth);
		free(f[i].data);
		for (uint64_t p = 0; p < 64; p++)
			assert_int_equal(rig_read(&r, 64 * (i + 1) + p,
						  rig_seed(64 * (i + 1) + p, KIND_RAW)),
					 0);
	}
	assert_int_equal(rig_counter(&r, CTR_writes_rejected_total), 0);
	rig_deinit(&r);
}

static void wake_up_when_room_comes(void **state)
{
	struct engine_request *batch[1];
	struct flight f, g, *discard;
	uint64_t value;
	struct rig r;

	rig_init(&r, SLOTS, 9, 0);
	fill(&r);
	if (read(engine_queue_wake_fd(r.q), &value, sizeof(value)) < 0)
		assert_int_equal(errno, EAGAIN);
	r.mover = false;
	batch[0] = &take_off(&r, &f, ENGINE_WRITE, 5000, 1)->req;
	page_make(rig_seed(5000, KIND_RAW), f.data);
	engine_submit(r.q, batch, 1);
	poll_all(&r);
	assert_false(f.done);
	assert_int_equal(read(engine_queue_wake_fd(r.q), &value, sizeof(value)), -1);
	/* The mover finds room as soon as something is discarded, and says so. */
	discard = take_off(&r, &g, ENGINE_DISCARD, 0, 600);
	batch[0] = &discard->req;
	engine_submit(r.q, batch, 1);
	assert_true(discard->done);
	mover_round(r.v, false);
	assert_int_equal(read(engine_queue_wake_fd(r.q), &value, sizeof(value)), sizeof(value));
	assert_false(f.done);
	poll_all(&r);
	assert_true(f.done);
	assert_int_equal(f.req.error, 0);
	free(f.data);
	free(g.data);
	rig_deinit(&r);
}

static void the_level_changes_under_way(void **state)
{
	uint64_t bytes[2];
	struct rig r;

	rig_init(&r, SLOTS, 9, 0);
	for (unsigned k = 0; k < 2; k++) {
		engine_set_level(r.e, k ? 19 : -7);
		write_range(&r, k * 64, 64);
		assert_int_equal(rig_write(&r, 200, rig_seed(200, KIND_RAW)), 0);
		assert_int_equal(rig_discard(&r, 200, 1), 0);
		bytes[k] = rig_counter(&r, CTR_resident_compressed_bytes);
	}
	assert_true(bytes[1] - bytes[0] < bytes[0]);
	for (uint64_t i = 0; i < 128; i++)
		assert_int_equal(rig_read(&r, i, rig_seed(i, KIND_WORDS)), 0);
	rig_deinit(&r);
}

static void options_are_checked(void **state)
{
	struct engine_options good = {.device_bytes = MIB(32),
				      .memory_limit = MIB(9),
				      .level = 1,
				      .nqueues = 1,
				      .store = {.fd = -1},
				      .state_fd = -1,
				      .front_fd = -1};
	struct engine_options bad[9];
	struct engine *e = NULL;

	for (unsigned i = 0; i < 9; i++)
		bad[i] = good;
	bad[0].device_bytes = 0;
	bad[1].device_bytes = 4097;
	bad[2].memory_limit = MIB(9) - 1;
	bad[3].level = 20;
	bad[4].nqueues = 0;
	bad[5].nqueues = ENGINE_QUEUES_MAX + 1;
	bad[6].store = (struct engine_store){.fd = 0, .nplaces = 2, .dio_align = 512};
	bad[7].store = (struct engine_store){.fd = 0, .nplaces = 9, .dio_align = 8192};
	bad[8].store =
		(struct engine_store){.fd = 0, .nplaces = 9, .data_offset = 512, .dio_align = 512};
	for (unsigned i = 0; i < 9; i++) {
		assert_int_equal(engine_new(&e, &bad[i]), -EINVAL);
		assert_null(e);
	}
	assert_int_equal(engine_memory_min(1), MIB(9));
	assert_int_equal(engine_new(&e, &good), 0);
	engine_free(e);
	engine_free(NULL);
}

static void queues_are_limited(void **state)
{
	struct engine_queue_options qo = {.requests = 1, .request_pages = 1};
	struct engine_queue *q = NULL;
	struct rig r;

	rig_init(&r, SLOTS, 9, 0);
	qo.ring = &r.ring;
	assert_int_equal(engine_queue_new(&q, r.e, &qo), -EBUSY);
	qo.requests = ENGINE_REQUESTS_MAX + 1;
	assert_int_equal(engine_queue_new(&q, r.e, &qo), -EINVAL);
	qo.requests = 1;
	qo.request_pages = 0;
	assert_int_equal(engine_queue_new(&q, r.e, &qo), -EINVAL);
	assert_null(q);
	rig_deinit(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(empty_slots_read_as_zeroes),
		cmocka_unit_test(same_filled_pages_take_no_room),
		cmocka_unit_test(every_kind_over_every_kind),
		cmocka_unit_test(incompressible_pages_are_apart),
		cmocka_unit_test(requests_outside_are_refused),
		cmocka_unit_test(one_batch_over_all_places),
		cmocka_unit_test(one_after_the_other),
		cmocka_unit_test(more_store_reads_than_buffers),
		cmocka_unit_test(a_full_engine_keeps_what_it_has),
		cmocka_unit_test(a_write_may_fail_in_the_middle),
		cmocka_unit_test(stalled_writes_hold_up_nobody),
		cmocka_unit_test(wake_up_when_room_comes),
		cmocka_unit_test(the_level_changes_under_way),
		cmocka_unit_test(options_are_checked),
		cmocka_unit_test(queues_are_limited),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

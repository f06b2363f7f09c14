// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Faults at a place and a moment of the test's choosing (faulty.h), one behaviour each: places that
 * can't be written are retired, a store that can't be written to is given up and found again,
 * errors of reads stay with their pages, and one that answers nothing holds up nobody but those who
 * need it.
 */
#include "common/log.h"
#include "common/util.h"
#include "daemon/engine/evictor_internal.h"
#include "daemon/policy/jobs.h"
#include "daemon/policy/mover.h"
#include "tests/engine/rig.h"
#include "tests/fault/faulty.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SLOTS	 8192u
#define PLACE	 ((uint64_t)SEGMENT_SIZE)
#define SECOND	 1000000000ull
#define ANYWHERE 0, UINT64_MAX

static int reset(void **state)
{
	faulty_reset();
	return 0;
}

static void write_raw(struct rig *r, uint64_t from, uint64_t to)
{
	for (uint64_t slot = from; slot < to; slot++)
		assert_int_equal(rig_write(r, slot, rig_seed(slot, KIND_RAW)), 0);
}

static void expect_raw(struct rig *r, uint64_t from, uint64_t to)
{
	for (uint64_t slot = from; slot < to; slot++)
		assert_int_equal(rig_read(r, slot, rig_seed(slot, KIND_RAW)), 0);
}

/* Raw pages from @from on until one is refused; returns the first that was. */
static uint64_t fill(struct rig *r, uint64_t from)
{
	uint64_t slot = from;
	int error = 0;

	for (; slot < SLOTS && !error; slot++)
		error = rig_write(r, slot, rig_seed(slot, KIND_RAW));
	if (error)
		assert_int_equal(error, -ENOSPC);
	return error ? slot - 1 : SLOTS;
}

static void rounds_for(struct rig *r, uint64_t ns)
{
	for (uint64_t end = now_ns() + ns; now_ns() < end;) {
		evictor_wait(r->v, 10000000);
		mover_round(r->v, false);
	}
}

/* One sealed and written-back segment of slots @from to @to - 1; returns where it lies. */
static uint64_t stored(struct rig *r, uint64_t from, uint64_t to)
{
	write_raw(r, from, to);
	rig_seal(r);
	rig_write_back(r, from);
	return segment_where_load(&r->e->state->segments[rig_segment(r, from)]).place * PLACE;
}

static bool is_used(struct rig *r, uint32_t place)
{
	for (uint32_t i = 0; i < r->e->state->nsegments; i++) {
		struct segment *s = &r->e->state->segments[i];

		if (segment_state_load(s) == SEGMENT_STORED && segment_where_load(s).place == place)
			return true;
	}
	return false;
}

/* --- writes --- */

static void a_bad_place_is_retired(void **state)
{
	struct rig r;
	int fds[2];

	rig_init(&r, SLOTS, 9, 48);
	faulty_fail(FAULTY_WRITE, 5 * PLACE, 6 * PLACE, -EIO, FAULTY_ALWAYS);
	write_raw(&r, 0, SLOTS);
	expect_raw(&r, 0, SLOTS);
	/* Once, and once more to be sure. */
	assert_int_equal(faulty_hits(), 2);
	assert_int_equal(rig_counter(&r, CTR_store_write_errors_total), 2);
	assert_int_equal(rig_counter(&r, CTR_store_retired_bytes), MIB(1));
	assert_int_equal(rig_counter(&r, CTR_writes_rejected_total), 0);
	assert_int_equal(rig_counter(&r, CTR_store_state), ENGINE_STORE_DEGRADED);
	assert_false(is_used(&r, 5));
	assert_int_equal(r.v->nplaces + rig_counter(&r, CTR_store_used_bytes) / PLACE, 47);

	/* Everything goes, and comes again; and the successor knows. */
	assert_int_equal(rig_discard(&r, 0, SLOTS), 0);
	write_raw(&r, 0, SLOTS);
	assert_int_equal(faulty_hits(), 2);
	rig_seal(&r);
	rig_close(&r, fds);
	r.o.state_fd = fds[0];
	r.o.front_fd = fds[1];
	rig_open(&r);
	assert_int_equal(rig_counter(&r, CTR_store_retired_bytes), MIB(1));
	assert_int_equal(r.v->nplaces + rig_counter(&r, CTR_store_used_bytes) / PLACE, 47);
	expect_raw(&r, 0, SLOTS);
	assert_int_equal(rig_discard(&r, 0, SLOTS), 0);
	write_raw(&r, 0, SLOTS);
	expect_raw(&r, 0, SLOTS);
	assert_int_equal(faulty_hits(), 2);
	rig_deinit(&r);
}

/* One error that does not come again leaves the place in use. */
static void a_moment_s_fault_retires_nothing(void **state)
{
	struct rig r;

	rig_init(&r, SLOTS, 9, 48);
	for (unsigned i = 0; i < 20; i++)
		faulty_fail(FAULTY_WRITE, i * PLACE, (i + 1) * PLACE, -EIO, 1);
	write_raw(&r, 0, 6000);
	assert_true(faulty_hits() > 3);
	faulty_reset();
	write_raw(&r, 6000, 7000);
	/* All of it was away. */
	faulty_fail(FAULTY_WRITE, ANYWHERE, -EIO, 3);
	write_raw(&r, 7000, 8000);
	assert_int_equal(faulty_hits(), 3);
	rounds_for(&r, SECOND / 10);
	assert_int_equal(rig_counter(&r, CTR_store_retired_bytes), 0);
	expect_raw(&r, 0, 8000);
	assert_int_equal(rig_counter(&r, CTR_writes_rejected_total), 0);
	rig_deinit(&r);
}

/* More of them than are written to at once: all are found out, and the store is not given up. */
static void a_bad_region_is_retired(void **state)
{
	uint64_t end = 0, give_up = now_ns() + 60 * SECOND;
	struct rig r;

	rig_init(&r, SLOTS, 9, 64);
	faulty_fail(FAULTY_WRITE, 3 * PLACE, 15 * PLACE, -EIO, FAULTY_ALWAYS);
	while ((end = fill(&r, end)) < SLOTS && now_ns() < give_up)
		rounds_for(&r, SECOND / 10);
	assert_int_equal(end, SLOTS);
	expect_raw(&r, 0, SLOTS);
	assert_int_not_equal(rig_counter(&r, CTR_store_state), ENGINE_STORE_LOST);
	/* All that were tried, and each twice at most. */
	assert_in_range(faulty_hits(), 8, 24);
	assert_in_range(rig_counter(&r, CTR_store_retired_bytes) / PLACE, faulty_hits() / 2 - 2,
			12);
	assert_int_equal(rig_counter(&r, CTR_writes_rejected_total), 0);
	for (uint32_t i = 3; i < 15; i++)
		assert_false(is_used(&r, i));
	rig_deinit(&r);
}

/* A fault that says nothing about the place: it is used again. */
static void a_full_file_system_retires_nothing(void **state)
{
	struct rig r;

	rig_init(&r, SLOTS, 9, 48);
	faulty_fail(FAULTY_WRITE, ANYWHERE, -ENOSPC, 1);
	write_raw(&r, 0, SLOTS);
	assert_int_equal(faulty_hits(), 1);
	assert_int_equal(rig_counter(&r, CTR_store_retired_bytes), 0);
	assert_int_equal(r.v->nplaces + rig_counter(&r, CTR_store_used_bytes) / PLACE, 48);
	expect_raw(&r, 0, SLOTS);
	rig_deinit(&r);
}

static void a_store_that_fails_is_lost_and_found(void **state)
{
	uint64_t end, hits, begin = now_ns();
	struct rig r;

	rig_init(&r, SLOTS, 12, 48);
	faulty_fail(FAULTY_WRITE, ANYWHERE, -EIO, FAULTY_ALWAYS);
	/* A write waits while there is hope, and is then refused. */
	end = fill(&r, 0);
	assert_in_range((now_ns() - begin) / SECOND, 15, 30);
	assert_int_equal(rig_counter(&r, CTR_store_state), ENGINE_STORE_LOST);
	hits = faulty_hits();
	/* What was under way when it began, and then one at a time. */
	assert_in_range(hits, LOST_TRIES + 1, EVICTOR_WRITES + LOST_TRIES);
	assert_int_equal(r.v->nplaces, 48);
	assert_int_equal(rig_counter(&r, CTR_store_retired_bytes), 0);
	assert_int_equal(rig_counter(&r, CTR_store_used_bytes), 0);
	expect_raw(&r, 0, end);

	/* In memory it goes on, and what needs the store is refused. */
	assert_int_equal(rig_write(&r, end, rig_seed(end, KIND_RAW)), -ENOSPC);
	assert_int_equal(engine_job_start(r.e, ENGINE_JOB_WRITEBACK, ENGINE_JOB_ALL), -EIO);
	assert_int_equal(engine_set_memory_limit(r.e, engine_memory_min(1)), -ENOSPC);
	assert_int_equal(rig_discard(&r, 0, 600), 0);
	write_raw(&r, 0, 200);
	expect_raw(&r, 0, 200);
	assert_int_equal(faulty_hits(), hits);

	/* A minute later. */
	faulty_reset();
	r.v->health.next = 0;
	write_raw(&r, 0, SLOTS);
	expect_raw(&r, 0, SLOTS);
	mover_round(r.v, false);
	evictor_wait(r.v, 0);
	assert_int_not_equal(rig_counter(&r, CTR_store_state), ENGINE_STORE_LOST);
	assert_true(rig_counter(&r, CTR_slots_stored) > 4000);
	assert_int_equal(rig_counter(&r, CTR_slots_lost), 0);
	rig_deinit(&r);
}

static void a_device_that_is_gone_is_lost_at_once(void **state)
{
	uint64_t end;
	struct rig r;

	rig_init(&r, SLOTS, 12, 48);
	faulty_fail(FAULTY_WRITE, ANYWHERE, -ENODEV, FAULTY_ALWAYS);
	end = fill(&r, 0);
	assert_true(end > 500 && end < SLOTS);
	assert_in_range(faulty_hits(), 1, EVICTOR_WRITES);
	assert_int_equal(rig_counter(&r, CTR_store_state), ENGINE_STORE_LOST);
	/* Nothing brings it back. */
	faulty_reset();
	faulty_fail(FAULTY_WRITE, ANYWHERE, -ENODEV, FAULTY_ALWAYS);
	r.v->health.next = 0;
	assert_int_equal(fill(&r, end), end);
	rounds_for(&r, SECOND);
	assert_int_equal(faulty_hits(), 0);
	expect_raw(&r, 0, end);
	rig_deinit(&r);
}

/* A job ends well beside a bad place, and with an error where nothing can be written. */
static void a_job_beside_faults(void **state)
{
	struct engine_job job;
	struct jobs jobs = {0};
	struct rig r;

	for (unsigned all = 0; all < 2; all++) {
		uint64_t end = now_ns() + 30 * SECOND;

		faulty_reset();
		rig_init(&r, SLOTS, 40, 48);
		write_raw(&r, 0, 5000);
		faulty_fail(FAULTY_WRITE, all ? 0 : 2 * PLACE, all ? UINT64_MAX : 3 * PLACE, -EIO,
			    FAULTY_ALWAYS);
		assert_int_equal(engine_job_start(r.e, ENGINE_JOB_WRITEBACK, ENGINE_JOB_ALL), 0);
		do {
			evictor_wait(r.v, min_u64(jobs_step(&jobs, r.v), 1000000));
			mover_round(r.v, false);
			engine_job_status(r.e, &job);
			assert_true(now_ns() < end);
		} while (job.running);
		assert_int_equal(job.result, all ? -EIO : 0);
		faulty_reset();
		assert_int_equal(rig_counter(&r, CTR_store_retired_bytes), all ? 0 : MIB(1));
		expect_raw(&r, 0, 5000);
		rig_deinit(&r);
		jobs = (struct jobs){0};
	}
}

/* --- reads --- */

static unsigned answered;

static void answer(struct engine_request *req)
{
	answered++;
}

/* 32 pages of the store in one batch; returns a bit for each that answers EIO. */
static uint32_t read_batch_of(struct rig *r, uint64_t from)
{
	struct engine_request req[RIG_REQUESTS], *batch[RIG_REQUESTS];
	uint32_t bad = 0;

	for (unsigned i = 0; i < RIG_REQUESTS; i++) {
		req[i] = (struct engine_request){.op = ENGINE_READ,
						 .slot = from + i,
						 .count = 1,
						 .data = r->data + i * PAGE_BYTES,
						 .complete = answer};
		batch[i] = &req[i];
	}
	engine_submit(r->q, batch, RIG_REQUESTS);
	rig_settle(r);
	for (unsigned i = 0; i < RIG_REQUESTS; i++) {
		if (req[i].error) {
			assert_int_equal(req[i].error, -EIO);
			bad |= 1u << i;
			continue;
		}
		assert_true(page_is(rig_seed(from + i, KIND_RAW), batch[i]->data));
	}
	return bad;
}

/* Neighbours are read together; an error is its page's alone. */
static void a_bad_sector_is_its_pages_alone(void **state)
{
	uint64_t at, word, errors;
	struct rig r;

	rig_init(&r, SLOTS, 9, 8);
	at = stored(&r, 0, 200);
	assert_int_equal(read_batch_of(&r, 0), 0);
	assert_true(rig_counter(&r, CTR_store_read_requests_total) < 10);
	word = index_load(&r.e->state->index[17]);
	/* One byte of it, in a sector of its own. */
	at += index_offset(word) + 2048;
	faulty_fail(FAULTY_READ, at, at + 1, -EIO, FAULTY_ALWAYS);
	errors = rig_counter(&r, CTR_store_read_errors_total);
	assert_int_equal(read_batch_of(&r, 0), 1u << 17);
	assert_int_equal(rig_counter(&r, CTR_store_read_errors_total), errors + 2);
	assert_int_equal(rig_counter(&r, CTR_checksum_failures_total), 0);
	assert_int_equal(rig_counter(&r, CTR_store_state), ENGINE_STORE_DEGRADED);
	/* It is not given up: the mover can't clean it, and when it can be read it is right. */
	assert_int_equal(evictor_clean_store(r.v, rig_segment(&r, 0)), -EIO);
	assert_int_equal(rig_counter(&r, CTR_slots_lost), 0);
	faulty_reset();
	assert_int_equal(read_batch_of(&r, 0), 0);
	expect_raw(&r, 0, 200);
	rig_deinit(&r);
}

static void a_read_that_is_cut_short(void **state)
{
	struct rig r;

	rig_init(&r, SLOTS, 9, 8);
	stored(&r, 0, 100);
	faulty_fail(FAULTY_READ, ANYWHERE, 512, 1);
	assert_int_equal(read_batch_of(&r, 0), 0);
	assert_int_equal(faulty_hits(), 1);
	faulty_fail(FAULTY_READ, ANYWHERE, 512, 1);
	assert_int_equal(rig_read(&r, 50, 0), -EIO);
	expect_raw(&r, 0, 100);
	rig_deinit(&r);
}

/* Wrong on its way, right on the drive: an error, and the page is still there. */
static void bytes_that_change_on_their_way(void **state)
{
	struct rig r;

	rig_init(&r, SLOTS, 9, 8);
	stored(&r, 0, 100);
	faulty_corrupt(ANYWHERE, 1);
	assert_int_equal(rig_read(&r, 20, 0), -EIO);
	assert_int_equal(rig_counter(&r, CTR_checksum_failures_total), 1);
	assert_int_equal(rig_counter(&r, CTR_store_read_errors_total), 0);
	assert_int_equal(rig_counter(&r, CTR_slots_lost), 0);
	expect_raw(&r, 0, 100);
	rig_deinit(&r);
}

/* --- a store that answers nothing --- */

static void expect_stalled(struct rig *r)
{
	uint64_t end = now_ns() + 3 * STALLED_NS;

	while (rig_counter(r, CTR_store_state) != ENGINE_STORE_STALLED) {
		assert_true(now_ns() < end);
		evictor_wait(r->v, SECOND / 10);
		mover_round(r->v, false);
	}
}

static void run_job(struct rig *r, struct jobs *jobs, uint64_t ns)
{
	for (uint64_t end = now_ns() + ns; now_ns() < end;) {
		evictor_wait(r->v, min_u64(jobs_step(jobs, r->v), SECOND / 100));
		mover_round(r->v, false);
	}
}

/* A request that is answered whatever else waits. */
static void serve_one(struct rig *r, enum engine_op op, uint64_t slot)
{
	struct engine_request req = {
		.op = op, .slot = slot, .count = 1, .data = r->data, .complete = answer};
	struct engine_request *batch[] = {&req};
	unsigned before = answered;

	if (op == ENGINE_WRITE)
		page_make(rig_seed(slot, KIND_RAW), r->data);
	else
		memset(r->data, 0xee, PAGE_BYTES);
	engine_submit(r->q, batch, 1);
	for (unsigned i = 0; i < 10 && answered == before; i++) {
		engine_poll(r->q);
		mover_round(r->v, false);
	}
	assert_int_equal(answered, before + 1);
	assert_int_equal(req.error, 0);
	assert_true(page_is(rig_seed(slot, KIND_RAW), r->data));
}

/* All requests but one wait for it; what does not need it goes on, jobs and the limit too. */
static void a_stall_holds_up_who_needs_the_store(void **state)
{
	struct engine_request req[RIG_REQUESTS - 1], *batch[RIG_REQUESTS - 1];
	uint8_t *data = aligned_alloc(PAGE_BYTES, RIG_REQUESTS * PAGE_BYTES);
	struct engine_job job;
	struct jobs jobs = {0};
	uint64_t begin;
	struct rig r;

	rig_init(&r, SLOTS, 20, 16);
	stored(&r, 0, 200);
	write_raw(&r, 1000, 1100);
	rig_seal(&r);
	answered = 0;
	faulty_hold();
	for (unsigned i = 0; i < RIG_REQUESTS - 1; i++) {
		req[i] = (struct engine_request){.op = ENGINE_READ,
						 .slot = 6 * i,
						 .count = 1,
						 .data = data + i * PAGE_BYTES,
						 .complete = answer};
		batch[i] = &req[i];
		engine_submit(r.q, &batch[i], 1);
	}
	assert_int_equal(engine_queue_inflight(r.q), RIG_REQUESTS - 1);
	expect_stalled(&r);
	assert_int_equal(answered, 0);
	serve_one(&r, ENGINE_WRITE, 2000);
	serve_one(&r, ENGINE_READ, 2000);
	serve_one(&r, ENGINE_READ, 1050);

	/* A check meets it, and can be cancelled. */
	begin = now_ns();
	assert_int_equal(engine_job_start(r.e, ENGINE_JOB_CHECK, 0), 0);
	run_job(&r, &jobs, SECOND);
	engine_job_status(r.e, &job);
	assert_true(job.running);
	assert_int_equal(job.found, 0);
	assert_int_equal(engine_job_cancel(r.e), 0);
	run_job(&r, &jobs, SECOND / 10);
	engine_job_status(r.e, &job);
	assert_false(job.running);
	assert_int_equal(job.result, -ECANCELED);
	/* So does a writeback, and what it has under way is no later job's. */
	assert_int_equal(engine_job_start(r.e, ENGINE_JOB_WRITEBACK, ENGINE_JOB_ALL), 0);
	run_job(&r, &jobs, SECOND / 2);
	assert_int_equal(engine_job_cancel(r.e), 0);
	run_job(&r, &jobs, SECOND / 10);
	engine_job_status(r.e, &job);
	assert_false(job.running);
	/* The limit moves both ways, and nobody has waited. */
	assert_int_equal(engine_set_memory_limit(r.e, MIB(12)), 0);
	assert_int_equal(engine_set_memory_limit(r.e, MIB(20)), 0);
	assert_true(now_ns() - begin < 5 * SECOND);

	faulty_release();
	rig_settle(&r);
	assert_int_equal(answered, RIG_REQUESTS + 2);
	for (unsigned i = 0; i < RIG_REQUESTS - 1; i++) {
		assert_int_equal(req[i].error, 0);
		assert_true(page_is(rig_seed(6 * i, KIND_RAW), req[i].data));
	}
	rounds_for(&r, SECOND / 10);
	assert_int_equal(rig_counter(&r, CTR_store_state), ENGINE_STORE_OK);
	assert_int_equal(engine_job_start(r.e, ENGINE_JOB_CHECK, 0), 0);
	run_job(&r, &jobs, 2 * SECOND);
	engine_job_status(r.e, &job);
	assert_false(job.running);
	assert_int_equal(job.result, 0);
	assert_int_equal(job.found, 0);
	expect_raw(&r, 0, 200);
	expect_raw(&r, 1000, 1100);
	free(data);
	rig_deinit(&r);
}

/* Memory is full and the store silent: a write waits, is not refused, and goes on in the end. */
static void a_stall_refuses_no_write(void **state)
{
	struct engine_request req = {.op = ENGINE_WRITE, .count = 1, .complete = answer};
	struct engine_request *batch[] = {&req};
	uint64_t slot = 0;
	struct rig r;

	rig_init(&r, SLOTS, 9, 48);
	req.data = r.data;
	faulty_hold();
	/* Until one is not answered. */
	for (answered = 0; answered == slot; slot++) {
		assert_true(slot < SLOTS);
		req.slot = slot;
		page_make(rig_seed(slot, KIND_RAW), r.data);
		engine_submit(r.q, batch, 1);
		for (unsigned i = 0; i < 50 && answered == slot; i++) {
			engine_poll(r.q);
			mover_round(r.v, false);
		}
		assert_int_equal(req.error, 0);
	}
	expect_stalled(&r);
	rounds_for(&r, SECOND / 2);
	engine_poll(r.q);
	assert_int_equal(engine_queue_inflight(r.q), 1);
	assert_int_equal(rig_counter(&r, CTR_writes_rejected_total), 0);
	faulty_release();
	rig_settle(&r);
	assert_int_equal(req.error, 0);
	expect_raw(&r, 0, slot);
	write_raw(&r, slot, 4000);
	expect_raw(&r, 0, 4000);
	rig_deinit(&r);
}

/* The end comes while the store is silent: in seconds, and a successor has all pages. */
static void an_end_in_a_stall(void **state)
{
	static struct evictor *left_behind; /* what it was sent is still its */
	uint64_t begin;
	struct rig r;
	int fds[2];

	rig_init(&r, SLOTS, 12, 16);
	stored(&r, 0, 200);
	write_raw(&r, 1000, 1200);
	rig_seal(&r);
	faulty_hold();
	assert_int_equal(evictor_read_segment(r.v, rig_segment(&r, 0)), -EAGAIN);
	assert_int_equal(evictor_write(r.v, rig_segment(&r, 1000)), 0);
	begin = now_ns();
	left_behind = r.v;
	rig_close(&r, fds);
	assert_in_range((now_ns() - begin) / SECOND, 4, 10);
	assert_int_equal(left_behind->writing, 1);
	faulty_reset();
	r.o.state_fd = fds[0];
	r.o.front_fd = fds[1];
	rig_open(&r);
	expect_raw(&r, 0, 200);
	expect_raw(&r, 1000, 1200);
	rig_deinit(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_bad_place_is_retired, reset),
		cmocka_unit_test_setup(a_moment_s_fault_retires_nothing, reset),
		cmocka_unit_test_setup(a_bad_region_is_retired, reset),
		cmocka_unit_test_setup(a_full_file_system_retires_nothing, reset),
		cmocka_unit_test_setup(a_store_that_fails_is_lost_and_found, reset),
		cmocka_unit_test_setup(a_device_that_is_gone_is_lost_at_once, reset),
		cmocka_unit_test_setup(a_job_beside_faults, reset),
		cmocka_unit_test_setup(a_bad_sector_is_its_pages_alone, reset),
		cmocka_unit_test_setup(a_read_that_is_cut_short, reset),
		cmocka_unit_test_setup(bytes_that_change_on_their_way, reset),
		cmocka_unit_test_setup(a_stall_holds_up_who_needs_the_store, reset),
		cmocka_unit_test_setup(a_stall_refuses_no_write, reset),
		cmocka_unit_test_setup(an_end_in_a_stall, reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

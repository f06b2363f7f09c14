// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/util.h"
#include "daemon/engine/evictor_internal.h"
#include "daemon/policy/jobs.h"
#include "daemon/policy/mover.h"
#include "tests/engine/rig.h"
#include "tests/lib/stderr.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define SLOTS 16384u
#define LIMIT 40u /* MiB */

static struct jobs jobs;

static void write_raw(struct rig *r, uint64_t from, uint64_t to)
{
	for (uint64_t slot = from; slot < to; slot++)
		assert_int_equal(rig_write(r, slot, rig_seed(slot, KIND_RAW)), 0);
}

/* Of eight, the first @gone. */
static void thin_out(struct rig *r, uint64_t from, uint64_t to, unsigned gone)
{
	for (uint64_t slot = from; slot < to; slot++) {
		if (slot % 8 < gone)
			assert_int_equal(rig_discard(r, slot, 1), 0);
	}
}

static void expect_raw(struct rig *r, uint64_t from, uint64_t to, unsigned gone)
{
	for (uint64_t slot = from; slot < to; slot++)
		assert_int_equal(rig_read(r, slot, slot % 8 < gone ? 0 : rig_seed(slot, KIND_RAW)),
				 0);
}

/* As the mover's thread does, until the job is over. */
static struct engine_job run(struct rig *r)
{
	uint64_t end = now_ns() + 30000000000ull, last = 0;
	struct engine_job job;

	do {
		uint64_t due = jobs_step(&jobs, r->v);

		engine_job_status(r->e, &job);
		assert_true(job.done <= job.total);
		if (job.running)
			assert_true(job.done >= last);
		last = job.done;
		evictor_wait(r->v, min_u64(due, 1000000));
		mover_round(r->v, false);
		assert_true(now_ns() < end);
	} while (job.running);
	return job;
}

static struct engine_job run_job(struct rig *r, enum engine_job_kind kind, uint64_t amount)
{
	struct engine_job job;

	jobs = (struct jobs){0};
	assert_int_equal(engine_job_start(r->e, kind, amount), 0);
	assert_int_equal(engine_job_start(r->e, kind, amount), -EBUSY);
	job = run(r);
	assert_int_equal(job.kind, kind);
	if (job.result == 0)
		assert_int_equal(job.done, job.total);
	return job;
}

static void who_may_start_what(void **state)
{
	struct engine_job job;
	struct rig r;

	rig_init(&r, SLOTS, LIMIT, 0);
	engine_job_status(r.e, &job);
	assert_int_equal(job.id, 0);
	assert_int_equal(job.kind, ENGINE_JOB_NONE);
	assert_false(job.running);
	assert_int_equal(engine_job_start(r.e, ENGINE_JOB_WRITEBACK, 1), -EOPNOTSUPP);
	assert_int_equal(engine_job_start(r.e, ENGINE_JOB_NONE, 1), -EINVAL);
	assert_int_equal(engine_job_start(r.e, ENGINE_JOB_SHRINK, 1), -EINVAL);
	engine_job_cancel(r.e); /* nothing to cancel */
	job = run_job(&r, ENGINE_JOB_CHECK, 0);
	assert_int_equal(job.id, 1);
	assert_int_equal(job.result, 0);
	job = run_job(&r, ENGINE_JOB_COMPACT, 0);
	assert_int_equal(job.id, 2);
	assert_int_equal(job.result, 0);
	rig_deinit(&r);
}

static void writeback_of_some(void **state)
{
	struct engine_job job;
	uint64_t used;
	struct rig r;

	rig_init(&r, SLOTS, LIMIT, 64);
	write_raw(&r, 0, 7000);
	mover_round(r.v, false);
	used = rig_counter(&r, CTR_memory_used_bytes);
	job = run_job(&r, ENGINE_JOB_WRITEBACK, MIB(10));
	assert_int_equal(job.result, 0);
	assert_int_equal(job.done, MIB(10));
	assert_int_equal(rig_counter(&r, CTR_store_used_bytes), MIB(10));
	/* Back with the system, but for what may be kept for a short while. */
	assert_true(rig_counter(&r, CTR_memory_used_bytes) <= used - MIB(7));
	/* The oldest. */
	for (uint64_t slot = 0; slot < 2000; slot++)
		assert_int_equal(segment_state_load(&r.e->state->segments[rig_segment(&r, slot)]),
				 SEGMENT_STORED);
	expect_raw(&r, 0, 7000, 0);
	rig_deinit(&r);
}

static void writeback_of_all(void **state)
{
	struct engine_job job;
	struct rig r;

	rig_init(&r, SLOTS, LIMIT, 64);
	write_raw(&r, 0, 7000);
	thin_out(&r, 0, 3000, 5); /* these are gathered first */
	job = run_job(&r, ENGINE_JOB_WRITEBACK, ENGINE_JOB_ALL);
	assert_int_equal(job.result, 0);
	/* What is left is what the queue has open. */
	assert_true(rig_counter(&r, CTR_slots_resident) <= 255);
	assert_true(rig_counter(&r, CTR_segments_cleaned_total) > 0);
	assert_true(rig_counter(&r, CTR_store_used_bytes) < MIB(24));
	assert_true(rig_counter(&r, CTR_memory_used_bytes) <= MIB(11));
	expect_raw(&r, 0, 3000, 5);
	expect_raw(&r, 3000, 7000, 0);
	/* Nothing is left to do. */
	job = run_job(&r, ENGINE_JOB_WRITEBACK, ENGINE_JOB_ALL);
	assert_int_equal(job.result, 0);
	assert_int_equal(job.total, 0);
	rig_deinit(&r);
}

static void writeback_to_a_full_store(void **state)
{
	struct engine_job job;
	struct rig r;

	rig_init(&r, SLOTS, LIMIT, 12);
	write_raw(&r, 0, 7000);
	job = run_job(&r, ENGINE_JOB_WRITEBACK, MIB(20));
	assert_int_equal(job.result, -ENOSPC);
	assert_int_equal(job.done, MIB(10));
	assert_int_equal(job.total, MIB(20));
	expect_raw(&r, 0, 7000, 0);
	rig_deinit(&r);
}

static void cancelled(void **state)
{
	struct engine_job job;
	struct rig r;

	rig_init(&r, SLOTS, LIMIT, 64);
	write_raw(&r, 0, 7000);
	thin_out(&r, 0, 7000, 2);
	for (unsigned i = 0; i < 3; i++) {
		static const enum engine_job_kind kinds[] = {ENGINE_JOB_WRITEBACK,
							     ENGINE_JOB_COMPACT, ENGINE_JOB_CHECK};

		jobs = (struct jobs){0};
		assert_int_equal(engine_job_start(r.e, kinds[i], ENGINE_JOB_ALL), 0);
		jobs_step(&jobs, r.v);
		engine_job_cancel(r.e);
		job = run(&r);
		assert_int_equal(job.kind, kinds[i]);
		assert_int_equal(job.result, -ECANCELED);
	}
	assert_int_equal(r.v->job_writes.under_way, 0);
	expect_raw(&r, 0, 7000, 2);
	/* The next one is not. */
	job = run_job(&r, ENGINE_JOB_CHECK, 0);
	assert_int_equal(job.result, 0);
	rig_deinit(&r);
}

static void compact_in_memory(void **state)
{
	uint64_t used, payload;
	struct engine_job job;
	struct rig r;

	rig_init(&r, SLOTS, LIMIT, 0);
	write_raw(&r, 0, 7000);
	thin_out(&r, 0, 7000, 3);
	used = rig_counter(&r, CTR_memory_used_bytes);
	payload = rig_counter(&r, CTR_resident_compressed_bytes);
	assert_true(used > payload + MIB(12));
	job = run_job(&r, ENGINE_JOB_COMPACT, 0);
	assert_int_equal(job.result, 0);
	assert_in_range(job.done, MIB(9), MIB(11)); /* three eighths of 27 */
	assert_int_equal(rig_counter(&r, CTR_resident_compressed_bytes), payload);
	/* Open segments and one and a half times the reserve are what is on top. */
	assert_true(rig_counter(&r, CTR_memory_used_bytes) <= payload + MIB(2 + 1 + 9 + 1));
	expect_raw(&r, 0, 7000, 3);
	/* Done is done. */
	job = run_job(&r, ENGINE_JOB_COMPACT, 0);
	assert_int_equal(job.total, 0);
	rig_deinit(&r);
}

static void compact_the_store(void **state)
{
	uint64_t before, payload, memory;
	struct engine_job job;
	struct rig r;

	rig_init(&r, SLOTS, LIMIT, 64);
	write_raw(&r, 0, 7000);
	assert_int_equal(run_job(&r, ENGINE_JOB_WRITEBACK, ENGINE_JOB_ALL).result, 0);
	thin_out(&r, 0, 7000, 4);
	before = rig_counter(&r, CTR_store_used_bytes);
	memory = rig_counter(&r, CTR_memory_used_bytes);
	assert_true(before >= MIB(26));
	job = run_job(&r, ENGINE_JOB_COMPACT, 0);
	assert_int_equal(job.result, 0);
	payload = rig_counter(&r, CTR_stored_compressed_bytes);
	assert_true(payload > MIB(12));
	assert_true(rig_counter(&r, CTR_store_used_bytes) <= payload + MIB(3));
	/* It has not moved into memory. */
	assert_true(rig_counter(&r, CTR_memory_used_bytes) <= memory + MIB(4));
	assert_true(rig_counter(&r, CTR_slots_resident) < 1000);
	expect_raw(&r, 0, 7000, 4);
	rig_deinit(&r);
}

/* Changes a byte of the slot's object, wherever it lies. */
static void damage(struct rig *r, uint64_t slot, uint32_t byte)
{
	uint64_t word = index_load(&r->e->state->index[slot]);
	struct segment *s = &r->e->state->segments[index_segment(word)];
	struct segment_where where = segment_where_load(s);
	uint32_t at = index_offset(word) + byte;
	char path[64];
	uint8_t value;
	int fd;

	if (where.frame != SEGMENT_NONE) {
		front_frame(r->e->front, where.frame)[at] ^= 0x55;
		return;
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", r->o.store.fd);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(pread(fd, &value, 1, (off_t)where.place * SEGMENT_SIZE + at), 1);
	value ^= 0x55;
	assert_int_equal(pwrite(fd, &value, 1, (off_t)where.place * SEGMENT_SIZE + at), 1);
	assert_int_equal(fsync(fd), 0);
	close(fd);
}

/* In memory, in the store, in an open segment; in the bytes and in the header. */
static void check_finds_what_is_wrong(void **state)
{
	struct engine_job job;
	uint64_t pages;
	struct rig r;

	rig_init(&r, SLOTS, LIMIT, 64);
	write_raw(&r, 0, 3000);
	assert_int_equal(run_job(&r, ENGINE_JOB_WRITEBACK, ENGINE_JOB_ALL).result, 0);
	write_raw(&r, 3000, 6000);
	for (uint64_t slot = 6000; slot < 6050; slot++)
		assert_int_equal(rig_write(&r, slot, rig_seed(slot, KIND_WORDS)), 0);
	assert_int_equal(rig_write(&r, 7000, rig_seed(7000, KIND_SAME)), 0);
	pages = rig_counter(&r, CTR_slots_resident) + rig_counter(&r, CTR_slots_stored);
	job = run_job(&r, ENGINE_JOB_CHECK, 0);
	assert_int_equal(job.result, 0);
	assert_int_equal(job.found, 0);
	assert_int_equal(job.done, pages);
	damage(&r, 100, 40);
	damage(&r, 200, 4); /* which slot */
	damage(&r, 300, 8); /* how long */
	damage(&r, 3100, 40);
	damage(&r, 3200, 5);
	damage(&r, 3300, 9);
	damage(&r, 6001, 40); /* open */
	job = run_job(&r, ENGINE_JOB_CHECK, 0);
	assert_int_equal(job.result, 0);
	assert_int_equal(job.found, 7);
	assert_int_equal(job.done, pages);
	assert_int_equal(rig_counter(&r, CTR_checksum_failures_total), 7);
	/* It has changed nothing: what was damaged still is, what is put right is right. */
	assert_int_equal(rig_read(&r, 100, 0), -EIO);
	damage(&r, 100, 40);
	damage(&r, 200, 4);
	damage(&r, 300, 8);
	damage(&r, 3100, 40);
	damage(&r, 3200, 5);
	damage(&r, 3300, 9);
	damage(&r, 6001, 40);
	job = run_job(&r, ENGINE_JOB_CHECK, 0);
	assert_int_equal(job.found, 0);
	rig_deinit(&r);
}

/* What was found to be lost long ago is not right. */
static void check_finds_lost_pages(void **state)
{
	struct engine_job job;
	struct rig r;

	rig_init(&r, SLOTS, LIMIT, 0);
	write_raw(&r, 0, 300);
	index_publish(&r.e->state->index[1000], INDEX_LOST);
	job = run_job(&r, ENGINE_JOB_CHECK, 0);
	assert_int_equal(job.found, 1);
	assert_int_equal(job.done, 301);
	index_publish(&r.e->state->index[1000], INDEX_EMPTY);
	rig_deinit(&r);
}

/* What was open when its turn came, or was opened since, and is in the store by now. */
static void check_follows_into_the_store(void **state)
{
	struct engine_job job;
	struct rig r;

	rig_init(&r, SLOTS, LIMIT, 64);
	write_raw(&r, 0, 400);
	jobs = (struct jobs){0};
	assert_int_equal(engine_job_start(r.e, ENGINE_JOB_CHECK, 0), 0);
	jobs_step(&jobs, r.v);
	write_raw(&r, 400, 2000);
	rig_seal(&r);
	for (uint64_t slot = 0; slot < 2000; slot++) {
		if (segment_state_load(&r.e->state->segments[rig_segment(&r, slot)]) !=
		    SEGMENT_STORED)
			rig_write_back(&r, slot);
	}
	damage(&r, 390, 40);
	damage(&r, 1500, 40);
	damage(&r, 1501, 8);
	job = run(&r);
	assert_int_equal(job.result, 0);
	assert_int_equal(job.done, 2000);
	assert_int_equal(job.found, 3);
	damage(&r, 390, 40);
	damage(&r, 1500, 40);
	damage(&r, 1501, 8);
	rig_deinit(&r);
}

/* A word that names a record nobody has. */
static void check_finds_dangling_words(void **state)
{
	struct engine_job job;
	struct rig r;

	rig_init(&r, SLOTS, LIMIT, 0);
	write_raw(&r, 0, 10);
	index_publish(&r.e->state->index[50], index_make_object(7, 0, 64));
	index_publish(&r.e->state->index[51], index_make_object(UINT32_MAX, 0, 64));
	job = run_job(&r, ENGINE_JOB_CHECK, 0);
	assert_int_equal(job.found, 2);
	index_publish(&r.e->state->index[50], INDEX_EMPTY);
	index_publish(&r.e->state->index[51], INDEX_EMPTY);
	rig_deinit(&r);
}

static void check_of_an_unreadable_store(void **state)
{
	struct engine_job job;
	uint64_t stored;
	struct rig r;

	rig_init(&r, SLOTS, LIMIT, 64);
	write_raw(&r, 0, 3000);
	assert_int_equal(run_job(&r, ENGINE_JOB_WRITEBACK, MIB(5)).result, 0);
	stored = rig_counter(&r, CTR_slots_stored);
	assert_int_equal(ftruncate(r.o.store.fd, 0), 0);
	job = run_job(&r, ENGINE_JOB_CHECK, 0);
	assert_int_equal(job.result, 0);
	assert_int_equal(job.found, stored);
	assert_true(rig_counter(&r, CTR_store_read_errors_total) > 0);
	rig_discard(&r, 0, SLOTS);
	rig_deinit(&r);
}

/* However often the mover is woken, the CPU is left alone between two slices. */
static void kicks_hasten_no_slice(void **state)
{
	uint64_t due = JOBS_IDLE, kicks = 0;
	struct engine_job before, job;
	struct rig r;

	rig_init(&r, SLOTS, LIMIT, 0);
	write_raw(&r, 0, 7000);
	jobs = (struct jobs){0};
	assert_int_equal(engine_job_start(r.e, ENGINE_JOB_CHECK, 0), 0);
	do {
		uint64_t wait = jobs_turn(&jobs, r.v, &due), end = due;

		engine_job_status(r.e, &before);
		if (wait == JOBS_IDLE)
			break;
		for (;;) {
			wait = jobs_turn(&jobs, r.v, &due);
			if (due != end)
				break;
			engine_job_status(r.e, &job);
			assert_int_equal(job.done, before.done);
			assert_true(wait <= end);
			kicks++;
		}
	} while (before.running);
	assert_false(before.running);
	assert_int_equal(before.done, 7000);
	assert_true(kicks > 100);
	rig_deinit(&r);
}

/* How long it waits for room is a matter of time, not of how often it looks. */
static void compact_waits_for_room(void **state)
{
	uint32_t frames[LIMIT], n = 0;
	struct engine_job job;
	struct rig r;

	rig_init(&r, SLOTS, LIMIT, 0);
	write_raw(&r, 0, 7000);
	thin_out(&r, 0, 7000, 3);
	evictor_reap(r.v);
	while ((frames[n] = front_get(r.e->front, 0)) != FRAME_NONE)
		n++;
	jobs = (struct jobs){0};
	assert_int_equal(engine_job_start(r.e, ENGINE_JOB_COMPACT, 0), 0);
	for (unsigned i = 0; i < 5000; i++) {
		jobs_step(&jobs, r.v);
		engine_job_status(r.e, &job);
		if (!job.running)
			assert_true(now_ns() - jobs.waits_since >= 2000000000ull);
	}
	while (n > 0)
		front_put(r.e->front, frames[--n]);
	job = run(&r);
	assert_int_equal(job.result, 0);
	rig_deinit(&r);
}

/* Writes, discards and evictions between the slices: nothing is taken for damage. */
static void check_beside_everything_else(void **state)
{
	struct rng rng = {5};
	struct engine_job job;
	struct rig r;

	rig_init(&r, SLOTS, 12, 64);
	for (uint64_t slot = 0; slot < 6000; slot++)
		assert_int_equal(rig_write(&r, slot, rig_seed(slot, KIND_WORDS)), 0);
	for (unsigned again = 0; again < 3; again++) {
		jobs = (struct jobs){0};
		assert_int_equal(engine_job_start(r.e, ENGINE_JOB_CHECK, 0), 0);
		do {
			jobs_step(&jobs, r.v);
			for (unsigned i = 0; i < 30; i++) {
				uint64_t slot = rng_below(&rng, 6000);

				if (i % 5 == 0)
					assert_int_equal(rig_discard(&r, slot, 1), 0);
				else
					assert_int_equal(
						rig_write(&r, slot, rig_seed(slot, KIND_RAW)), 0);
			}
			mover_round(r.v, false);
			engine_job_status(r.e, &job);
		} while (job.running);
		assert_int_equal(job.result, 0);
		assert_int_equal(job.found, 0);
		assert_true(job.done > 5000);
	}
	rig_deinit(&r);
}

static void shrink_is_shown(void **state)
{
	struct engine_job job;
	struct rig r;

	rig_init(&r, SLOTS, LIMIT, 64);
	write_raw(&r, 0, 7000);
	assert_int_equal(engine_set_memory_limit(r.e, MIB(12)), 0);
	engine_job_status(r.e, &job);
	assert_int_equal(job.kind, ENGINE_JOB_SHRINK);
	assert_int_equal(job.id, 1);
	assert_true(job.running);
	assert_int_equal(job.done, 0);
	assert_true(job.total > MIB(15));
	job = run(&r);
	assert_int_equal(job.kind, ENGINE_JOB_SHRINK);
	assert_int_equal(job.result, 0);
	assert_int_equal(job.done, job.total);
	/* A job of its own takes precedence. */
	job = run_job(&r, ENGINE_JOB_CHECK, 0);
	assert_int_equal(job.id, 2);
	rig_deinit(&r);
}

static void until_at_rest(struct rig *r)
{
	while (mover_round(r->v, false) || evictor_busy(r->v) || r->v->writing)
		evictor_wait(r->v, 1000000);
}

/* It is what the limit asks for: set the limit up again. */
static void shrink_is_not_cancelled(void **state)
{
	struct engine_job job;
	struct rig r;

	rig_init(&r, SLOTS, LIMIT, 64);
	assert_int_equal(engine_job_cancel(r.e), -ESRCH);
	write_raw(&r, 0, 7000);
	assert_int_equal(engine_set_memory_limit(r.e, MIB(10)), 0);
	assert_int_equal(engine_job_cancel(r.e), -EOPNOTSUPP);
	engine_job_status(r.e, &job);
	assert_true(job.running);
	/* With a job beside it, that is the one that is meant. */
	jobs = (struct jobs){0};
	assert_int_equal(engine_job_start(r.e, ENGINE_JOB_CHECK, 0), 0);
	assert_int_equal(engine_job_cancel(r.e), 0);
	jobs_step(&jobs, r.v);
	until_at_rest(&r);
	assert_true(rig_counter(&r, CTR_memory_used_bytes) <= MIB(10));
	engine_job_status(r.e, &job);
	assert_int_equal(job.kind, ENGINE_JOB_SHRINK);
	assert_int_equal(job.result, 0);
	assert_int_equal(job.done, job.total);
	rig_deinit(&r);
}

/* What was not freed is not said to have been; and it is the same one while it lasts. */
static void shrink_to_a_limit_that_moves(void **state)
{
	struct engine_job job;
	uint64_t used, freed;
	struct rig r;

	rig_init(&r, SLOTS, LIMIT, 64);
	write_raw(&r, 0, 7000);
	used = rig_counter(&r, CTR_memory_used_bytes);
	/* Raised before anything was done. */
	assert_int_equal(engine_set_memory_limit(r.e, MIB(10)), 0);
	assert_int_equal(engine_set_memory_limit(r.e, MIB(40)), 0);
	engine_job_status(r.e, &job);
	assert_int_equal(job.id, 1);
	assert_int_equal(job.kind, ENGINE_JOB_SHRINK);
	assert_false(job.running);
	assert_int_equal(job.result, 0);
	assert_int_equal(job.done, 0);
	assert_int_equal(job.total, 0);
	/* Raised and lowered under way. */
	assert_int_equal(engine_set_memory_limit(r.e, MIB(10)), 0);
	do {
		mover_round(r.v, false);
		evictor_wait(r.v, 1000000);
		engine_job_status(r.e, &job);
		assert_true(job.running);
	} while (job.done < MIB(4));
	freed = used - rig_counter(&r, CTR_memory_used_bytes);
	assert_int_equal(engine_set_memory_limit(r.e, MIB(14)), 0);
	engine_job_status(r.e, &job);
	assert_int_equal(job.id, 2);
	assert_true(job.running);
	assert_int_equal(job.done, freed);
	assert_int_equal(job.total, used - MIB(14));
	assert_int_equal(engine_set_memory_limit(r.e, MIB(12)), 0);
	engine_job_status(r.e, &job);
	assert_int_equal(job.id, 2);
	assert_int_equal(job.total, used - MIB(12));
	assert_int_equal(engine_set_memory_limit(r.e, MIB(40)), 0);
	engine_job_status(r.e, &job);
	assert_int_equal(job.id, 2);
	assert_false(job.running);
	assert_int_equal(job.result, 0);
	assert_int_equal(job.done, freed);
	assert_int_equal(job.total, freed);
	rig_deinit(&r);
}

/* Whichever began first: what ended last is shown, and the other's result is kept. */
static void no_result_is_lost(void **state)
{
	struct engine_job job[ENGINE_JOBS];
	struct rig r;

	rig_init(&r, SLOTS, LIMIT, 64);
	write_raw(&r, 0, 7000);
	damage(&r, 3100, 40);
	jobs = (struct jobs){0};
	assert_int_equal(engine_job_start(r.e, ENGINE_JOB_CHECK, 0), 0);
	assert_int_equal(engine_set_memory_limit(r.e, MIB(12)), 0);
	until_at_rest(&r);
	engine_jobs(r.e, job);
	assert_int_equal(job[0].id, 1);
	assert_true(job[0].running);
	assert_int_equal(job[1].id, 2);
	assert_int_equal(job[1].kind, ENGINE_JOB_SHRINK);
	assert_false(job[1].running);
	run(&r);
	engine_jobs(r.e, job);
	assert_int_equal(job[0].id, 1);
	assert_int_equal(job[0].kind, ENGINE_JOB_CHECK);
	assert_int_equal(job[0].found, 1);
	assert_int_equal(job[1].id, 2);
	/* The other way round. */
	assert_int_equal(engine_set_memory_limit(r.e, MIB(40)), 0);
	write_raw(&r, 7000, 14000);
	assert_int_equal(engine_set_memory_limit(r.e, MIB(12)), 0);
	jobs = (struct jobs){0};
	assert_int_equal(engine_job_start(r.e, ENGINE_JOB_CHECK, 0), 0);
	do {
		jobs_step(&jobs, r.v);
		engine_jobs(r.e, job);
	} while (job[0].kind == ENGINE_JOB_CHECK);
	assert_int_equal(job[0].id, 3);
	assert_true(job[0].running);
	assert_int_equal(job[1].id, 4);
	until_at_rest(&r);
	engine_jobs(r.e, job);
	assert_int_equal(job[0].id, 3);
	assert_false(job[0].running);
	assert_int_equal(job[1].id, 4);
	assert_int_equal(job[1].found, 1);
	damage(&r, 3100, 40);
	rig_deinit(&r);
}

static void every_end_is_logged(void **state)
{
	struct stderr_capture cap;
	struct rig r;

	rig_init(&r, SLOTS, LIMIT, 64);
	write_raw(&r, 0, 7000);
	damage(&r, 100, 40);
	log_drain();
	run_job(&r, ENGINE_JOB_CHECK, 0);
	assert_int_equal(engine_set_memory_limit(r.e, MIB(12)), 0);
	until_at_rest(&r);
	evictor_judge_shrink(r.v);
	assert_int_equal(engine_job_start(r.e, ENGINE_JOB_COMPACT, 0), 0);
	assert_int_equal(engine_job_cancel(r.e), 0);
	run(&r);
	stderr_capture_begin(&cap);
	log_drain();
	stderr_capture_end(&cap);
	assert_non_null(strstr(cap.text, "job 1, check: done; 7000 of 7000 pages, 1 damaged"));
	assert_non_null(strstr(cap.text, "job 2, shrink: done; "));
	assert_non_null(strstr(cap.text, "job 3, compact: Operation canceled; "));
	damage(&r, 100, 40);
	rig_deinit(&r);
}

/* By the mover's own thread. */
static void with_the_mover(void **state)
{
	struct timespec nap = {.tv_nsec = 1000000};
	struct engine_job job;
	struct mover *mover;
	struct rig r;

	rig_init(&r, SLOTS, LIMIT, 64);
	write_raw(&r, 0, 7000);
	evictor_free(r.v);
	r.mover = false;
	assert_int_equal(mover_start(&mover, r.e), 0);
	for (unsigned i = 0; i < 3; i++) {
		static const enum engine_job_kind kinds[] = {ENGINE_JOB_WRITEBACK, ENGINE_JOB_CHECK,
							     ENGINE_JOB_COMPACT};
		uint64_t end = now_ns() + 30000000000ull;

		assert_int_equal(engine_job_start(r.e, kinds[i], ENGINE_JOB_ALL), 0);
		do {
			nanosleep(&nap, NULL);
			engine_job_status(r.e, &job);
			assert_true(now_ns() < end);
		} while (job.running);
		assert_int_equal(job.kind, kinds[i]);
		assert_int_equal(job.result, 0);
		assert_int_equal(job.found, 0);
	}
	expect_raw(&r, 0, 7000, 0);
	/* It ends, and does not wait for a job. */
	assert_int_equal(engine_job_start(r.e, ENGINE_JOB_CHECK, 0), 0);
	mover_stop(mover);
	engine_job_status(r.e, &job);
	assert_int_equal(job.id, 4);
	assert_false(job.running);
	assert_int_equal(job.result, -ECANCELED);
	assert_int_equal(evictor_new(&r.v, r.e), 0);
	rig_deinit(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_may_start_what),
		cmocka_unit_test(writeback_of_some),
		cmocka_unit_test(writeback_of_all),
		cmocka_unit_test(writeback_to_a_full_store),
		cmocka_unit_test(cancelled),
		cmocka_unit_test(compact_in_memory),
		cmocka_unit_test(compact_the_store),
		cmocka_unit_test(check_finds_what_is_wrong),
		cmocka_unit_test(check_finds_lost_pages),
		cmocka_unit_test(check_follows_into_the_store),
		cmocka_unit_test(check_finds_dangling_words),
		cmocka_unit_test(check_of_an_unreadable_store),
		cmocka_unit_test(kicks_hasten_no_slice),
		cmocka_unit_test(compact_waits_for_room),
		cmocka_unit_test(check_beside_everything_else),
		cmocka_unit_test(shrink_is_shown),
		cmocka_unit_test(shrink_is_not_cancelled),
		cmocka_unit_test(shrink_to_a_limit_that_moves),
		cmocka_unit_test(no_result_is_lost),
		cmocka_unit_test(every_end_is_logged),
		cmocka_unit_test(with_the_mover),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A store that fails: it is cut off, read-only, full, or holds other bytes than were written.
 *
 * Whatever it does, a page is right or an I/O error, writers are told that there is no room instead
 * of waiting for ever, errors are counted, what is in memory stays readable, and all goes on when
 * the fault is over.
 */
#include "common/util.h"
#include "daemon/engine/evictor_internal.h"
#include "daemon/policy/jobs.h"
#include "daemon/policy/mover.h"
#include "tests/engine/rig.h"
#include "tests/lib/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>

#define SLOTS 8192u

/* The store's file by another, buffered descriptor: behind the engine's back. */
static int back_door(int fd, int flags)
{
	char path[64];
	int door;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	door = open(path, flags | O_CLOEXEC);
	assert_true(door >= 0);
	return door;
}

/* Raw pages into slots from @from on, until one is refused; returns the first that was. */
static uint64_t fill(struct rig *r, uint64_t from)
{
	uint64_t slot = from;
	int error = 0;

	for (; slot < SLOTS; slot++) {
		error = rig_write(r, slot, rig_seed(slot, KIND_RAW));
		if (error)
			break;
	}
	if (slot < SLOTS)
		assert_int_equal(error, -ENOSPC);
	return slot;
}

static void expect_raw(struct rig *r, uint64_t from, uint64_t to)
{
	for (uint64_t slot = from; slot < to; slot++)
		assert_int_equal(rig_read(r, slot, rig_seed(slot, KIND_RAW)), 0);
}

/* One sealed and written-back segment of slots 0 to n - 1. */
static struct segment *stored(struct rig *r, uint64_t n)
{
	struct segment *s;

	for (uint64_t slot = 0; slot < n; slot++)
		assert_int_equal(rig_write(r, slot, rig_seed(slot, KIND_RAW)), 0);
	rig_seal(r);
	s = &r->e->state->segments[rig_segment(r, 0)];
	rig_write_back(r, 0);
	assert_int_equal(segment_state_load(s), SEGMENT_STORED);
	return s;
}

static void a_store_that_is_cut_off(void **state)
{
	uint8_t *saved = malloc(SEGMENT_SIZE);
	struct survey survey;
	struct segment *s;
	struct rig r;
	off_t pos;
	int door;

	rig_init(&r, SLOTS, 9, 8);
	s = stored(&r, 100);
	assert_int_equal(rig_write(&r, 500, rig_seed(500, KIND_RAW)), 0);
	pos = (off_t)segment_where_load(s).place * SEGMENT_SIZE;
	door = back_door(r.o.store.fd, O_RDWR);
	assert_int_equal(pread(door, saved, SEGMENT_SIZE, pos), SEGMENT_SIZE);
	assert_int_equal(ftruncate(door, pos), 0);

	assert_int_equal(rig_read(&r, 7, 0), -EIO);
	assert_int_equal(rig_do(&r, ENGINE_READ, 0, 64, r.data), -EIO);
	assert_true(rig_counter(&r, CTR_store_read_errors_total) >= 2);
	assert_int_equal(rig_counter(&r, CTR_checksum_failures_total), 0);
	expect_raw(&r, 500, 501);
	/* It can't be cleaned either; its pages are not given up for that. */
	assert_int_equal(evictor_clean_store(r.v, rig_segment(&r, 0)), -EIO);
	assert_int_equal(rig_counter(&r, CTR_slots_lost), 0);
	evictor_survey(r.v, &survey);
	evictor_survey_store(r.v, &survey);
	assert_int_equal(survey.sparsest_stored.id, SEGMENT_NONE);

	assert_int_equal(pwrite(door, saved, SEGMENT_SIZE, pos), SEGMENT_SIZE);
	assert_int_equal(fsync(door), 0);
	expect_raw(&r, 0, 100);
	assert_int_equal(evictor_clean_store(r.v, rig_segment(&r, 0)), 0);
	expect_raw(&r, 0, 100);
	close(door);
	free(saved);
	rig_deinit(&r);
}

static void a_store_that_cannot_be_written(void **state)
{
	uint64_t end;
	struct rig r;
	int writable;

	rig_init(&r, SLOTS, 9, 32);
	rig_close(&r, NULL);
	writable = r.o.store.fd;
	r.o.store.fd = back_door(writable, O_RDONLY | O_DIRECT);
	rig_open(&r);
	end = fill(&r, 0);
	assert_true(end > 1000 && end < SLOTS);
	assert_true(rig_counter(&r, CTR_store_write_errors_total) > 0);
	assert_int_equal(rig_counter(&r, CTR_writes_rejected_total), 1);
	assert_int_equal(rig_counter(&r, CTR_slots_stored), 0);
	expect_raw(&r, 0, end);
	/* Memory alone still serves. */
	assert_int_equal(rig_discard(&r, 0, 600), 0);
	for (uint64_t slot = 0; slot < 100; slot++)
		assert_int_equal(rig_write(&r, slot, rig_seed(slot, KIND_RAW)), 0);
	expect_raw(&r, 0, 100);
	expect_raw(&r, 600, end);
	rig_deinit(&r);
	close(writable);
}

static void limit_file_size(rlim_t bytes)
{
	struct rlimit l;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &l), 0);
	l.rlim_cur = bytes < l.rlim_max ? bytes : l.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &l), 0);
}

/* The store was given up; a minute later it is tried again. */
static uint64_t fill_after_a_minute(struct rig *r, uint64_t from)
{
	assert_int_equal(rig_counter(r, CTR_store_state), ENGINE_STORE_LOST);
	r->v->health.next = 0;
	return fill(r, from);
}

/* Writes behind the first three places fail; later they do not. */
static void a_fault_that_passes(void **state)
{
	uint64_t end;
	struct rig r;

	signal(SIGXFSZ, SIG_IGN);
	rig_init(&r, SLOTS, 9, 48);
	close(r.o.store.fd);
	rig_close(&r, NULL);
	r.o.store.fd = rig_store_file(0);
	rig_open(&r);
	limit_file_size(MIB(3));
	end = fill(&r, 0);
	assert_true(end < SLOTS);
	assert_true(rig_counter(&r, CTR_store_write_errors_total) > 0);
	expect_raw(&r, 0, end);
	assert_true(rig_counter(&r, CTR_store_used_bytes) <= MIB(3));
	/* Again and again for a while. */
	for (unsigned i = 0; i < 3; i++) {
		usleep(1100000);
		mover_round(r.v, false);
		assert_int_equal(fill(&r, end), end);
	}
	/* No place is lost for having been tried in bad times. */
	assert_int_equal(r.v->nplaces + rig_counter(&r, CTR_store_used_bytes) / SEGMENT_SIZE, 48);
	limit_file_size(RLIM_INFINITY);
	assert_int_equal(fill_after_a_minute(&r, end), SLOTS);
	expect_raw(&r, 0, SLOTS);
	assert_true(rig_counter(&r, CTR_store_used_bytes) > MIB(20));
	assert_int_equal(rig_counter(&r, CTR_slots_lost), 0);
	rig_deinit(&r);
}

static void rounds_for(struct rig *r, uint64_t ns)
{
	for (uint64_t end = now_ns() + ns; now_ns() < end;) {
		evictor_wait(r->v, 10000000);
		mover_round(r->v, false);
	}
}

/*
 * The limit is lowered, a job is started, and the store takes hardly anything: memory stays above
 * the limit with every page, the job says so, and when the fault is over the limit is reached.
 */
static void a_fault_while_the_limit_falls(void **state)
{
	struct engine_job job;
	struct jobs jobs = {0};
	uint64_t end;
	struct rig r;

	signal(SIGXFSZ, SIG_IGN);
	rig_init(&r, SLOTS, 40, 48);
	close(r.o.store.fd);
	rig_close(&r, NULL);
	r.o.store.fd = rig_store_file(0);
	rig_open(&r);
	for (uint64_t slot = 0; slot < 6500; slot++)
		assert_int_equal(rig_write(&r, slot, rig_seed(slot, KIND_RAW)), 0);
	limit_file_size(MIB(3));
	assert_int_equal(engine_job_start(r.e, ENGINE_JOB_WRITEBACK, ENGINE_JOB_ALL), 0);
	end = now_ns() + 10000000000ull;
	do {
		evictor_wait(r.v, min_u64(jobs_step(&jobs, r.v), 1000000));
		mover_round(r.v, false);
		engine_job_status(r.e, &job);
		assert_true(now_ns() < end);
	} while (job.running);
	assert_int_equal(job.result, -EIO);
	assert_true(job.done < job.total);
	assert_int_equal(engine_set_memory_limit(r.e, MIB(12)), 0);
	rounds_for(&r, 1500000000ull);
	assert_true(rig_counter(&r, CTR_memory_used_bytes) > MIB(20));
	engine_job_status(r.e, &job);
	assert_int_equal(job.kind, ENGINE_JOB_SHRINK);
	assert_true(job.running);
	expect_raw(&r, 0, 6500);
	limit_file_size(RLIM_INFINITY);
	rounds_for(&r, 9000000000ull);
	assert_true(rig_counter(&r, CTR_memory_used_bytes) <= MIB(12));
	engine_job_status(r.e, &job);
	assert_false(job.running);
	assert_int_equal(job.result, 0);
	expect_raw(&r, 0, 6500);
	assert_int_equal(rig_counter(&r, CTR_slots_lost), 0);
	rig_deinit(&r);
}

/* A sparse file on a file system that has no blocks left. */
static void a_full_file_system(void **state)
{
	const char *why_not = scratch_no_loops();
	struct scratch s;
	const char *dir;
	char path[PATH_MAX], filler[PATH_MAX];
	uint64_t end;
	struct rig r;
	int fd;

	if (why_not || !scratch_has("mkfs.ext4")) {
		print_message("skipped: %s\n", why_not ? why_not : "no mkfs.ext4");
		skip();
	}
	scratch_init(&s);
	dir = scratch_loop(&s, "disk", MIB(80));
	assert_int_equal(scratch_run("mkfs.ext4 -q -m 0 -O ^has_journal %s", dir), 0);
	dir = scratch_mount(&s, dir, "ext4", "mnt");
	snprintf(path, sizeof(path), "%s/store", dir);
	snprintf(filler, sizeof(filler), "%s/filler", dir);
	assert_int_equal(scratch_run("fallocate -l 60M %s", filler), 0);

	rig_init(&r, SLOTS, 9, 48);
	close(r.o.store.fd);
	rig_close(&r, NULL);
	r.o.store.fd = open(path, O_RDWR | O_CREAT | O_DIRECT | O_CLOEXEC, 0600);
	assert_true(r.o.store.fd >= 0);
	r.o.store.dio_align = 4096;
	rig_open(&r);
	end = fill(&r, 0);
	assert_true(end < SLOTS);
	assert_true(rig_counter(&r, CTR_store_write_errors_total) > 0);
	expect_raw(&r, 0, end);
	fd = unlink(filler);
	assert_int_equal(fd, 0);
	assert_int_equal(fill_after_a_minute(&r, end), SLOTS);
	expect_raw(&r, 0, SLOTS);
	rig_deinit(&r);
	scratch_deinit(&s);
}

/* A segment's worth of @bytes over the place, behind the engine's back. */
static void overwrite_place(struct rig *r, const struct segment *s, const void *bytes)
{
	off_t pos = (off_t)segment_where_load((struct segment *)(uintptr_t)s).place * SEGMENT_SIZE;
	int door = back_door(r->o.store.fd, O_RDWR);

	assert_int_equal(pwrite(door, bytes, SEGMENT_SIZE, pos), SEGMENT_SIZE);
	assert_int_equal(fsync(door), 0);
	close(door);
}

static void read_place(struct rig *r, struct segment *s, void *bytes)
{
	off_t pos = (off_t)segment_where_load(s).place * SEGMENT_SIZE;
	int door = back_door(r->o.store.fd, O_RDONLY);

	assert_int_equal(pread(door, bytes, SEGMENT_SIZE, pos), SEGMENT_SIZE);
	close(door);
}

static void expect_all_lost(struct rig *r, uint64_t n)
{
	uint64_t before = rig_counter(r, CTR_checksum_failures_total);

	for (uint64_t slot = 0; slot < n; slot++)
		assert_int_equal(rig_read(r, slot, 0), -EIO);
	assert_int_equal(rig_counter(r, CTR_checksum_failures_total), before + n);
	assert_int_equal(evictor_clean_store(r->v, rig_segment(r, 0)), 0);
	assert_int_equal(rig_counter(r, CTR_slots_lost), n);
	evictor_reap(r->v);
	assert_int_equal(rig_counter(r, CTR_store_used_bytes), 0);
	for (uint64_t slot = 0; slot < n; slot++) {
		assert_int_equal(rig_read(r, slot, 0), -EIO);
		assert_int_equal(rig_write(r, slot, rig_seed(slot, KIND_RAW)), 0);
	}
	expect_raw(r, 0, n);
	assert_int_equal(rig_counter(r, CTR_slots_lost), 0);
}

static void a_store_that_was_wiped(void **state)
{
	uint8_t *bytes = calloc(1, SEGMENT_SIZE);
	struct rig r;

	rig_init(&r, SLOTS, 9, 8);
	overwrite_place(&r, stored(&r, 50), bytes);
	expect_all_lost(&r, 50);
	free(bytes);
	rig_deinit(&r);
}

/*
 * A write that the device has acknowledged and lost: in its place lies what was there before, whole
 * and of the very same slots, only older.
 */
static void a_lost_write(void **state)
{
	uint8_t *bytes = malloc(SEGMENT_SIZE);
	struct segment *s;
	uint32_t place;
	struct rig r;

	rig_init(&r, SLOTS, 9, 8);
	s = stored(&r, 50);
	place = segment_where_load(s).place;
	read_place(&r, s, bytes);
	assert_int_equal(rig_discard(&r, 0, 50), 0);
	evictor_reap(r.v);
	for (uint64_t slot = 0; slot < 50; slot++)
		assert_int_equal(rig_write(&r, slot, rig_seed(slot + 9000, KIND_RAW)), 0);
	rig_seal(&r);
	s = &r.e->state->segments[rig_segment(&r, 0)];
	rig_write_back(&r, 0);
	assert_int_equal(segment_where_load(s).place, place);
	overwrite_place(&r, s, bytes);
	expect_all_lost(&r, 50);
	free(bytes);
	rig_deinit(&r);
}

/* Bytes at random all over the store while it is in use: right or EIO, never anything else. */
static void bytes_that_rot(void **state)
{
	struct rng rng = {99};
	uint64_t bad = 0;
	struct rig r;
	int door;

	rig_init(&r, SLOTS, 9, 48);
	assert_int_equal(fill(&r, 0), SLOTS);
	door = back_door(r.o.store.fd, O_RDWR);
	for (unsigned round = 0; round < 5; round++) {
		for (unsigned i = 0; i < 200; i++) {
			uint8_t byte = (uint8_t)rng_next(&rng);

			assert_int_equal(pwrite(door, &byte, 1, (off_t)rng_below(&rng, MIB(48))),
					 1);
		}
		assert_int_equal(fsync(door), 0);
		for (uint64_t slot = 0; slot < SLOTS; slot++) {
			int error = rig_read(&r, slot, rig_seed(slot, KIND_RAW));

			assert_true(error == 0 || error == -EIO);
			bad += error != 0;
			if (error)
				assert_int_equal(rig_write(&r, slot, rig_seed(slot, KIND_RAW)), 0);
		}
	}
	assert_true(bad > 100);
	assert_true(rig_counter(&r, CTR_checksum_failures_total) >= bad);
	/* All were written again, none in a damaged place since. */
	assert_int_equal(rig_counter(&r, CTR_slots_lost), 0);
	close(door);
	rig_settle(&r);
	expect_raw(&r, 0, SLOTS);
	rig_deinit(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_store_that_is_cut_off),
		cmocka_unit_test(a_store_that_cannot_be_written),
		cmocka_unit_test(a_fault_that_passes),
		cmocka_unit_test(a_fault_while_the_limit_falls),
		cmocka_unit_test(a_full_file_system),
		cmocka_unit_test(a_store_that_was_wiped),
		cmocka_unit_test(a_lost_write),
		cmocka_unit_test(bytes_that_rot),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

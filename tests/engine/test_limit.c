// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/util.h"
#include "daemon/engine/evictor_internal.h"
#include "daemon/policy/mover.h"
#include "tests/engine/rig.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>

#include <cmocka.h>

#define SLOTS 16384u

/* Limit 32 MiB, which can be raised to 64; the store may be none. */
static void start(struct rig *r, uint32_t store_mib)
{
	rig_init(r, SLOTS, 32, 0);
	rig_close(r, NULL);
	r->o.memory_max = MIB(64);
	if (store_mib) {
		r->o.store.nplaces = store_mib;
		r->o.store.fd = rig_store_file(MIB(store_mib));
	}
	rig_open(r);
}

static uint64_t used(struct rig *r)
{
	struct stat st;

	/* What is counted is what the system has given. */
	assert_int_equal(fstat(engine_front_fd(r->e), &st), 0);
	assert_int_equal((uint64_t)st.st_blocks * 512, rig_counter(r, CTR_memory_used_bytes));
	return (uint64_t)st.st_blocks * 512;
}

/* Incompressible pages, 4 KiB and a header each; the error of the first that fails. */
static int fill(struct rig *r, uint64_t from, uint64_t to)
{
	for (uint64_t slot = from; slot < to; slot++) {
		int error = rig_write(r, slot, rig_seed(slot, KIND_RAW));

		if (error)
			return error;
	}
	return 0;
}

static void expect_pages(struct rig *r, uint64_t from, uint64_t to)
{
	for (uint64_t slot = from; slot < to; slot++)
		assert_int_equal(rig_read(r, slot, rig_seed(slot, KIND_RAW)), 0);
}

/* The mover's rounds, until there is nothing to do or a minute has passed. */
static void rounds(struct rig *r)
{
	uint64_t end = now_ns() + 60000000000ull;

	while (mover_round(r->v, false) || r->v->writing || evictor_busy(r->v)) {
		evictor_wait(r->v, 1000000);
		assert_true(now_ns() < end);
	}
}

static void lowered_with_a_store(void **state)
{
	struct rig r;

	start(&r, 64);
	assert_int_equal(fill(&r, 0, 7000), 0); /* 27 MiB */
	assert_true(used(&r) > MIB(27));
	assert_int_equal(rig_counter(&r, CTR_slots_stored), 0);
	assert_int_equal(engine_set_memory_limit(r.e, MIB(12) + 4096), 0);
	assert_int_equal(rig_counter(&r, CTR_memory_limit_bytes), MIB(12));
	rounds(&r);
	assert_true(used(&r) <= MIB(12));
	assert_true(rig_counter(&r, CTR_slots_stored) > 3500);
	assert_int_equal(rig_counter(&r, CTR_slots_used), 7000);
	expect_pages(&r, 0, 7000);
	/* And in use it stays there. */
	assert_int_equal(fill(&r, 3000, 10000), 0);
	rounds(&r);
	assert_true(used(&r) <= MIB(12));
	expect_pages(&r, 0, 10000);
	rig_deinit(&r);
}

static void raised(void **state)
{
	struct rig r;

	start(&r, 0);
	assert_int_equal(engine_set_memory_limit(r.e, MIB(48)), 0);
	assert_int_equal(fill(&r, 0, 9500), 0); /* 37 MiB, without a store */
	assert_true(used(&r) > MIB(37));
	assert_true(used(&r) <= MIB(48));
	assert_int_equal(fill(&r, 9500, SLOTS), -ENOSPC);
	assert_int_equal(used(&r), MIB(48));
	assert_int_equal(engine_set_memory_limit(r.e, MIB(64)), 0);
	assert_int_equal(fill(&r, 12000, 14000), 0);
	expect_pages(&r, 0, 9500);
	expect_pages(&r, 12000, 14000);
	rig_deinit(&r);
}

static void out_of_range(void **state)
{
	uint64_t min, max;
	struct rig r;

	start(&r, 16);
	engine_memory_range(r.e, &min, &max);
	assert_int_equal(min, engine_memory_min(1));
	assert_int_equal(max, MIB(64));
	assert_int_equal(engine_set_memory_limit(r.e, min - 1), -ERANGE);
	assert_int_equal(engine_set_memory_limit(r.e, 0), -ERANGE);
	assert_int_equal(engine_set_memory_limit(r.e, MIB(65)), -ERANGE);
	assert_int_equal(engine_set_memory_limit(r.e, UINT64_MAX), -ERANGE);
	assert_int_equal(rig_counter(&r, CTR_memory_limit_bytes), MIB(32));
	assert_int_equal(engine_set_memory_limit(r.e, MIB(65) - 1), 0);
	assert_int_equal(engine_set_memory_limit(r.e, min), 0);
	rig_deinit(&r);
}

/* What is held and can't go anywhere decides. */
static void too_low_for_what_is_held(void **state)
{
	uint64_t min, max;
	struct rig r;

	for (unsigned store = 0; store < 2; store++) {
		start(&r, store ? 10 : 0);		/* 8 of the places can be used */
		assert_int_equal(fill(&r, 0, 5000), 0); /* 19.6 MiB */
		engine_memory_range(r.e, &min, &max);
		assert_in_range(min, store ? MIB(9 + 12) : MIB(9 + 19),
				store ? MIB(9 + 15) : MIB(9 + 22));
		assert_int_equal(engine_set_memory_limit(r.e, min - 1), -ENOSPC);
		assert_int_equal(rig_counter(&r, CTR_memory_limit_bytes), MIB(32));
		assert_int_equal(engine_set_memory_limit(r.e, min), 0);
		rounds(&r);
		assert_true(used(&r) <= min);
		expect_pages(&r, 0, 5000);
		/* Less is held: less will do. */
		assert_int_equal(rig_discard(&r, 0, 4000), 0);
		rounds(&r);
		assert_int_equal(engine_set_memory_limit(r.e, MIB(14)), 0);
		rounds(&r);
		assert_true(used(&r) <= MIB(14));
		expect_pages(&r, 4000, 5000);
		rig_deinit(&r);
	}
}

/* Without a store: three of eight pages are gone, and cleaning brings memory under the limit. */
static void lowered_by_cleaning(void **state)
{
	struct rig r;

	start(&r, 0);
	assert_int_equal(fill(&r, 0, 6500), 0);
	for (uint64_t slot = 0; slot < 6500; slot++) {
		if (slot % 8 < 3)
			assert_int_equal(rig_discard(&r, slot, 1), 0);
	}
	rounds(&r);
	assert_true(used(&r) > MIB(28));
	assert_int_equal(rig_counter(&r, CTR_segments_cleaned_total), 0);
	assert_int_equal(engine_set_memory_limit(r.e, MIB(26)), 0);
	rounds(&r);
	assert_true(used(&r) <= MIB(26));
	assert_true(rig_counter(&r, CTR_segments_cleaned_total) > 0);
	for (uint64_t slot = 0; slot < 6500; slot++)
		assert_int_equal(rig_read(&r, slot, slot % 8 < 3 ? 0 : rig_seed(slot, KIND_RAW)),
				 0);
	rig_deinit(&r);
}

/*
 * What was accepted can't be reached, since more was written before the mover could act: nothing is
 * lost, memory is given back as far as it goes, writes are refused, and room helps again.
 */
static void beyond_reach(void **state)
{
	uint64_t before;
	struct rig r;

	start(&r, 0);
	r.mover = false;
	assert_int_equal(fill(&r, 0, 200), 0);
	assert_int_equal(engine_set_memory_limit(r.e, MIB(10)), 0);
	r.mover = true;
	atomic_store(&r.e->state->header->limit, 32);
	assert_int_equal(fill(&r, 0, 5000), 0);
	atomic_store(&r.e->state->header->limit, 10);
	rounds(&r);
	before = used(&r);
	assert_true(before > MIB(19));
	assert_int_equal(fill(&r, 5000, 6000), -ENOSPC);
	assert_true(rig_counter(&r, CTR_writes_rejected_total) > 0);
	assert_true(used(&r) <= before);
	expect_pages(&r, 0, 5000);
	/* Not lower, but higher is always possible. */
	assert_int_equal(engine_set_memory_limit(r.e, MIB(11)), 0);
	rounds(&r);
	assert_true(used(&r) <= before);
	assert_int_equal(engine_set_memory_limit(r.e, MIB(10)), -ENOSPC);
	assert_int_equal(rig_discard(&r, 0, 4500), 0);
	rounds(&r);
	assert_true(used(&r) <= MIB(11));
	assert_int_equal(fill(&r, 5000, 5200), 0);
	rig_deinit(&r);
}

/* Writers get one frame of two: they go on, and the limit is reached. */
static void lowered_under_writes(void **state)
{
	uint64_t written = 0;
	struct rig r;

	start(&r, 128);
	assert_int_equal(fill(&r, 0, 7000), 0);
	assert_int_equal(engine_set_memory_limit(r.e, MIB(10)), 0);
	while (rig_counter(&r, CTR_memory_used_bytes) > MIB(10)) {
		assert_int_equal(fill(&r, 7000 + written, 7000 + written + 100), 0);
		mover_round(r.v, false);
		written += 100;
		assert_true(written < 9000);
	}
	assert_true(used(&r) <= MIB(10));
	assert_int_equal(rig_counter(&r, CTR_writes_rejected_total), 0);
	expect_pages(&r, 0, 7000 + written);
	rig_deinit(&r);
}

static uint32_t free_frames(struct rig *r)
{
	return idstack_count(&r->e->front->free);
}

static void watermark(void **state)
{
	struct rig r;

	start(&r, 64);
	assert_int_equal(engine_memory_reserve(r.e), MIB(3 + 1 + 2));
	assert_int_equal(free_frames(&r), 6);
	engine_set_memory_reserve(r.e, MIB(12) - 1);
	assert_int_equal(engine_memory_reserve(r.e), MIB(12));
	rounds(&r);
	assert_int_equal(free_frames(&r), 12);
	/* At the limit it is kept by writing back. */
	assert_int_equal(fill(&r, 0, 9000), 0);
	rounds(&r);
	assert_true(free_frames(&r) >= 12);
	assert_true(used(&r) <= MIB(32));
	/* Never less than the mover needs to make room, never more than the limit has room for. */
	engine_set_memory_reserve(r.e, 1);
	assert_int_equal(engine_memory_reserve(r.e), MIB(4));
	engine_set_memory_reserve(r.e, UINT64_MAX);
	assert_int_equal(engine_memory_reserve(r.e), MIB(32 - 9 + 4));
	assert_int_equal(engine_set_memory_limit(r.e, MIB(11)), 0);
	assert_int_equal(engine_memory_reserve(r.e), MIB(11 - 9 + 4));
	rounds(&r);
	assert_true(free_frames(&r) >= 6);
	engine_set_memory_reserve(r.e, 0);
	assert_int_equal(engine_set_memory_limit(r.e, MIB(32)), 0);
	assert_int_equal(engine_memory_reserve(r.e), MIB(6));
	expect_pages(&r, 0, 9000);
	rig_deinit(&r);
}

static void reopen(struct rig *r, uint64_t limit, uint64_t max)
{
	int fds[2];

	rig_close(r, fds);
	r->o.state_fd = fds[0];
	r->o.front_fd = fds[1];
	r->o.memory_limit = limit;
	r->o.memory_max = max;
	rig_open(r);
	rounds(r);
}

static void taken_over(void **state)
{
	uint64_t min, max;
	struct rig r;

	start(&r, 64);
	assert_int_equal(fill(&r, 0, 7000), 0);
	engine_set_memory_reserve(r.e, MIB(8));
	assert_int_equal(engine_set_memory_limit(r.e, MIB(48)), 0);
	/* As they were, whatever is configured meanwhile. */
	reopen(&r, MIB(12), MIB(100));
	assert_int_equal(rig_counter(&r, CTR_memory_limit_bytes), MIB(48));
	assert_int_equal(engine_memory_reserve(r.e), MIB(8));
	expect_pages(&r, 0, 7000);
	assert_int_equal(engine_memory_reserve_wanted(r.e), MIB(8));
	assert_int_equal(engine_memory_limit(r.e), MIB(48));
	engine_memory_range(r.e, &min, &max);
	assert_int_equal(max, MIB(64));
	/* Killed in the middle of the way down. */
	assert_int_equal(fill(&r, 0, 10000), 0);
	assert_int_equal(engine_set_memory_limit(r.e, MIB(20)), 0);
	reopen(&r, 0, 0);
	assert_int_equal(rig_counter(&r, CTR_memory_limit_bytes), MIB(20));
	assert_true(used(&r) <= MIB(20));
	expect_pages(&r, 0, 10000);
	rig_deinit(&r);
}

/* What a dying process may have left in the header is not believed blindly. */
static void nonsense_taken_over(void **state)
{
	static const uint32_t some[] = {0, 1, 8, 9, 64, 65, UINT32_MAX / 2, UINT32_MAX};
	struct rig r;

	start(&r, 0);
	assert_int_equal(fill(&r, 0, 1000), 0);
	for (unsigned i = 0; i < ARRAY_SIZE(some) * ARRAY_SIZE(some); i++) {
		uint32_t limit = some[i % ARRAY_SIZE(some)];
		uint32_t reserve = some[i / ARRAY_SIZE(some)];
		uint64_t now;

		atomic_store(&r.e->state->header->limit, limit);
		atomic_store(&r.e->state->header->reserve, reserve);
		/* The rig's mover has nothing to do until the next engine. */
		reopen(&r, 0, 0);
		now = rig_counter(&r, CTR_memory_limit_bytes);
		assert_in_range(now, MIB(9), MIB(64));
		if (limit >= 9 && limit <= 64)
			assert_int_equal(now, limit * MIB(1));
		assert_in_range(engine_memory_reserve(r.e), MIB(4), now - MIB(9) + MIB(4));
	}
	expect_pages(&r, 0, 1000);
	rig_deinit(&r);
}

/* The highest limit costs records, not memory for pages. */
static void metadata_is_small(void **state)
{
	uint64_t small, large;
	struct rig r;

	start(&r, 0);
	small = rig_counter(&r, CTR_memory_metadata_bytes);
	rig_deinit(&r);
	rig_init(&r, SLOTS, 32, 0);
	rig_close(&r, NULL);
	r.o.memory_max = GIB(64);
	rig_open(&r);
	large = rig_counter(&r, CTR_memory_metadata_bytes);
	assert_true(large - small <= 68 * (GIB(64) >> 20));
	assert_true(used(&r) <= MIB(16));
	assert_int_equal(fill(&r, 0, 5000), 0);
	expect_pages(&r, 0, 5000);
	rig_deinit(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lowered_with_a_store), cmocka_unit_test(raised),
		cmocka_unit_test(out_of_range),		cmocka_unit_test(too_low_for_what_is_held),
		cmocka_unit_test(lowered_by_cleaning),	cmocka_unit_test(beyond_reach),
		cmocka_unit_test(lowered_under_writes), cmocka_unit_test(watermark),
		cmocka_unit_test(taken_over),		cmocka_unit_test(nonsense_taken_over),
		cmocka_unit_test(metadata_is_small),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

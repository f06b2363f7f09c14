// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/util.h"
#include "daemon/engine/evictor_internal.h"
#include "tests/engine/rig.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define SLOTS 8192u

static struct histogram all[HISTOGRAM_COUNT];

static uint64_t counted(struct rig *r, enum histogram_id id)
{
	engine_histograms(r->e, all);
	return histogram_count(&all[id]);
}

static void write_some(struct rig *r, uint64_t n, unsigned kind)
{
	for (uint64_t slot = 0; slot < n; slot++)
		assert_int_equal(rig_write(r, slot, rig_seed(slot, kind)), 0);
}

/* Each request once, whatever it is made of; discards and reads of nothing at all alike. */
static void requests(void **state)
{
	struct rig r;

	rig_init(&r, SLOTS, 9, 0);
	for (unsigned i = 0; i < HISTOGRAM_COUNT; i++)
		assert_int_equal(counted(&r, i), 0);
	write_some(&r, 100, KIND_WORDS);
	write_some(&r, 10, KIND_SAME);
	assert_int_equal(counted(&r, HIST_write_latency), 110);
	assert_int_equal(counted(&r, HIST_read_latency), 0);
	for (uint64_t slot = 0; slot < 20; slot++)
		assert_int_equal(
			rig_read(&r, slot, rig_seed(slot, slot < 10 ? KIND_SAME : KIND_WORDS)), 0);
	assert_int_equal(rig_do(&r, ENGINE_READ, 0, RIG_REQUEST_PAGES, r.data), 0);
	assert_int_equal(counted(&r, HIST_read_latency), 21);
	assert_int_equal(rig_discard(&r, 0, 50), 0);
	assert_int_equal(counted(&r, HIST_read_latency), 21);
	assert_int_equal(counted(&r, HIST_write_latency), 110);
	rig_deinit(&r);
}

/* However regularly pages from memory and from the store take turns, each counts once. */
static void a_regular_mix(void **state)
{
	struct rig r;

	for (unsigned period = 1; period <= 4; period++) {
		rig_init(&r, SLOTS, 9, 8);
		write_some(&r, 200, KIND_WORDS);
		rig_seal(&r);
		rig_write_back(&r, 0);
		for (uint64_t slot = 1000; slot < 1200; slot++)
			assert_int_equal(rig_write(&r, slot, rig_seed(slot, KIND_WORDS)), 0);
		for (uint64_t i = 0; i < 80; i++) {
			uint64_t slot = i % (period + 1) == 0 ? 1000 + i : i;

			assert_int_equal(rig_read(&r, slot, rig_seed(slot, KIND_WORDS)), 0);
		}
		assert_in_range(counted(&r, HIST_read_latency), 80, 83);
		rig_deinit(&r);
	}
}

static uint64_t mean(enum histogram_id id)
{
	return all[id].sum / histogram_count(&all[id]);
}

/* As its bucket's upper end. */
static uint64_t longest(enum histogram_id id)
{
	for (unsigned i = HISTOGRAM_BUCKETS; i-- > 0;)
		if (all[id].buckets[i])
			return histogram_upper(i);
	return 0;
}

/* One page in sixteen is timed, same-filled ones not at all. */
static void pages(void **state)
{
	struct rig r;

	rig_init(&r, SLOTS, 9, 0);
	write_some(&r, 50, KIND_SAME);
	assert_int_equal(counted(&r, HIST_compress_time), 0);
	write_some(&r, 80, KIND_WORDS);
	assert_int_equal(counted(&r, HIST_compress_time), 5);
	assert_int_equal(rig_do(&r, ENGINE_READ, 0, 64, r.data), 0);
	assert_int_equal(counted(&r, HIST_decompress_time), 4);
	/* No page takes a tenth of a second, nor less than the clock can tell. */
	assert_true(mean(HIST_compress_time) > 100);
	assert_true(mean(HIST_compress_time) < 100000000);
	assert_true(mean(HIST_decompress_time) < mean(HIST_read_latency));
	rig_deinit(&r);
}

static void the_store(void **state)
{
	struct rig r;

	rig_init(&r, SLOTS, 9, 8);
	write_some(&r, 200, KIND_WORDS);
	rig_seal(&r);
	rig_write_back(&r, 0);
	assert_int_equal(counted(&r, HIST_store_write_latency), 1);
	assert_true(all[HIST_store_write_latency].sum > 1000);
	for (uint64_t slot = 0; slot < 40; slot++)
		assert_int_equal(rig_read(&r, slot, rig_seed(slot, KIND_WORDS)), 0);
	assert_int_equal(counted(&r, HIST_store_read_latency), 40);
	assert_int_equal(counted(&r, HIST_read_latency), 40);
	/* The device's share of the way is no longer than the way. */
	assert_true(all[HIST_store_read_latency].sum <= all[HIST_read_latency].sum);
	assert_true(all[HIST_store_read_latency].sum > 40 * 1000);
	rig_deinit(&r);
}

/* A request's time counts from when it was taken, however long the engine leaves it. */
static void waiting_counts(void **state)
{
	struct rig r;

	rig_init(&r, SLOTS, 9, 0);
	/* Full: the next write waits until the mover has had a look. */
	r.mover = true;
	for (uint64_t slot = 0; rig_write(&r, slot, rig_seed(slot, KIND_RAW)) == 0; slot++)
		assert_true(slot < SLOTS - 1);
	assert_true(counted(&r, HIST_write_latency) > 1000);
	assert_int_equal(rig_counter(&r, CTR_writes_rejected_total), 1);
	/* The rejected one slept for 20 us between two rounds of the mover. */
	assert_true(longest(HIST_write_latency) > 20000);
	rig_deinit(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests),	  cmocka_unit_test(a_regular_mix),
		cmocka_unit_test(pages),	  cmocka_unit_test(the_store),
		cmocka_unit_test(waiting_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

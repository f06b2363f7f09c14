// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/histograms.h"
#include "common/util.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void add(struct histogram *h, uint64_t value, uint64_t n)
{
	h->sum += value * n;
	h->buckets[histogram_bucket(value)] += n;
}

/* Every value lies in exactly one bucket, and buckets follow each other without a gap. */
static void buckets_tile_the_line(void **state)
{
	assert_int_equal(histogram_lower(0), 0);
	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
		uint64_t lower = histogram_lower(i), upper = histogram_upper(i);

		assert_int_equal(histogram_bucket(lower), i);
		assert_int_equal(histogram_bucket(upper), i);
		assert_true(lower < upper);
		if (i + 1 < HISTOGRAM_BUCKETS) {
			assert_int_equal(upper + 1, histogram_lower(i + 1));
			assert_int_equal(histogram_bucket(upper + 1), i + 1);
		}
		/* To a quarter of the value, once that is more than the grain. */
		if (i >= HISTOGRAM_SUB && i + 1 < HISTOGRAM_BUCKETS)
			assert_true(upper - lower < lower / HISTOGRAM_SUB + 1);
	}
	assert_true(histogram_lower(HISTOGRAM_BUCKETS - 1) >= 100000000000ull);
	assert_int_equal(histogram_upper(HISTOGRAM_BUCKETS - 1), UINT64_MAX);
}

static void as_the_table_says(void **state)
{
	assert_int_equal(histogram_bucket(63), 0);
	assert_int_equal(histogram_bucket(64), 1);
	assert_int_equal(histogram_bucket(256), 4);
	assert_int_equal(histogram_bucket(383), 5);
	assert_int_equal(histogram_bucket(UINT64_MAX), 119);
	for (unsigned i = 0; i < HISTOGRAM_COUNT; i++) {
		assert_true(strlen(histogram_table[i].name) > 0);
		assert_int_equal(histogram_table[i].unit, COUNTER_UNIT_NANOSECONDS);
		for (unsigned k = 0; k < i; k++)
			assert_string_not_equal(histogram_table[i].name, histogram_table[k].name);
	}
	assert_string_equal(histogram_table[HIST_read_latency].name, "read_latency");
}

static void counts_and_sums(void **state)
{
	struct histogram h = {0};

	assert_int_equal(histogram_count(&h), 0);
	add(&h, 10000, 90);
	add(&h, 100000, 9);
	add(&h, UINT64_MAX / 2, 1);
	assert_int_equal(histogram_count(&h), 100);
	assert_int_equal(h.buckets[histogram_bucket(10000)], 90);
	assert_int_equal(h.buckets[HISTOGRAM_BUCKETS - 1], 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(buckets_tile_the_line),
		cmocka_unit_test(as_the_table_says),
		cmocka_unit_test(counts_and_sums),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

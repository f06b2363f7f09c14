// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/system/latency.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static struct latency a, b;

static void assert_near(uint64_t found, uint64_t expected)
{
	assert_in_range(found, expected, expected + expected / 32 + 1);
}

static void percentiles(void **state)
{
	memset(&a, 0, sizeof(a));
	assert_int_equal(latency_percentile(&a, 0.5), 0);
	for (uint64_t i = 1; i <= 100000; i++)
		latency_add(&a, i);
	assert_near(latency_percentile(&a, 0.5), 50000);
	assert_near(latency_percentile(&a, 0.99), 99000);
	assert_near(latency_percentile(&a, 0.0001), 10);
	assert_int_equal(latency_percentile(&a, 1), 100000);
}

/* A single value is found again wherever it lies, also beyond the last bucket. */
static void magnitudes(void **state)
{
	for (uint64_t v = 1; v < UINT64_C(1) << 60; v = v * 3 + 1) {
		memset(&a, 0, sizeof(a));
		latency_add(&a, v);
		assert_int_equal(latency_percentile(&a, 0.5), v);
	}
}

static void merged(void **state)
{
	memset(&a, 0, sizeof(a));
	memset(&b, 0, sizeof(b));
	for (unsigned i = 0; i < 90; i++)
		latency_add(&a, 1000);
	for (unsigned i = 0; i < 10; i++)
		latency_add(&b, 2000000);
	latency_merge(&a, &b);
	assert_int_equal(a.count, 100);
	assert_near(latency_percentile(&a, 0.9), 1000);
	assert_near(latency_percentile(&a, 0.91), 2000000);
	assert_int_equal(a.max_ns, 2000000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(percentiles),
		cmocka_unit_test(magnitudes),
		cmocka_unit_test(merged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

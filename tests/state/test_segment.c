// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/state/segment.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void where_is_one_word(void **state)
{
	struct segment s = {0};

	segment_where_set(&s, 7, SEGMENT_NONE);
	assert_int_equal(segment_where_load(&s).frame, 7);
	assert_int_equal(segment_where_load(&s).place, SEGMENT_NONE);
	segment_where_set(&s, SEGMENT_NONE, 9);
	assert_int_equal(segment_where_load(&s).frame, SEGMENT_NONE);
	assert_int_equal(segment_where_load(&s).place, 9);
}

static void live_is_added_less_released(void **state)
{
	struct segment s = {0};

	segment_added_set(&s, segment_one(100) + segment_one(4108));
	assert_int_equal(segment_live_objects(&s), 2);
	assert_int_equal(segment_live_bytes(&s), 4208);
	assert_false(segment_release(&s, 4108));
	assert_int_equal(segment_live_objects(&s), 1);
	assert_int_equal(segment_live_bytes(&s), 100);
	assert_true(segment_release(&s, 100));
	assert_int_equal(segment_live_load(&s), 0);
}

/* A full segment of the smallest objects, and of the largest: neither half runs into the other. */
static void counts_hold_a_full_segment(void **state)
{
	static const uint32_t sizes[] = {16, 4108};

	for (unsigned k = 0; k < 2; k++) {
		uint32_t n = SEGMENT_SIZE / sizes[k];
		struct segment s = {0};

		segment_added_set(&s, n * segment_one(sizes[k]));
		for (uint32_t i = 0; i < n; i++) {
			assert_int_equal(segment_live_objects(&s), n - i);
			assert_int_equal(segment_release(&s, sizes[k]), i == n - 1);
		}
		assert_int_equal(segment_live_load(&s), 0);
	}
}

static void pins_count(void **state)
{
	struct segment s = {0};

	assert_false(segment_pinned(&s));
	segment_pin(&s);
	segment_pin(&s);
	segment_store_read_begin(&s);
	segment_unpin(&s);
	assert_true(segment_pinned(&s));
	segment_unpin(&s);
	assert_false(segment_pinned(&s));
	assert_true(segment_store_reading(&s));
	segment_store_read_end(&s);
	assert_false(segment_store_reading(&s));
}

#define THREADS 4
#define EACH	60000u

struct shared {
	struct segment s;
	_Atomic unsigned last;
};

static void *release_all(void *arg)
{
	struct shared *sh = arg;

	for (unsigned i = 0; i < EACH; i++) {
		segment_pin(&sh->s);
		if (segment_release(&sh->s, 4))
			atomic_fetch_add(&sh->last, 1);
		segment_unpin(&sh->s);
	}
	return NULL;
}

static void exactly_one_thread_releases_the_last(void **state)
{
	struct shared sh = {.last = 0};
	pthread_t t[THREADS];

	segment_added_set(&sh.s, THREADS * EACH * segment_one(4));
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&t[i], NULL, release_all, &sh), 0);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	assert_int_equal(sh.last, 1);
	assert_int_equal(segment_live_load(&sh.s), 0);
	assert_false(segment_pinned(&sh.s));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(where_is_one_word),
		cmocka_unit_test(live_is_added_less_released),
		cmocka_unit_test(counts_hold_a_full_segment),
		cmocka_unit_test(pins_count),
		cmocka_unit_test(exactly_one_thread_releases_the_last),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

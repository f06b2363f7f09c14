// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/engine/health.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define SECOND 1000000000ull
#define T0     (1000 * SECOND)

static void silence_is_noticed(void **state)
{
	struct store_watch w = {0};

	assert_false(store_watch_overdue(&w, T0));
	assert_false(store_watch_lively(&w, T0));
	store_watch_sent(&w, T0);
	assert_false(store_watch_overdue(&w, T0 + STALLED_NS - 1));
	assert_true(store_watch_overdue(&w, T0 + STALLED_NS));
	/* A second one makes the first no younger. */
	store_watch_sent(&w, T0 + 4 * SECOND);
	assert_true(store_watch_overdue(&w, T0 + STALLED_NS));
	/* Any answer does, for the others. */
	store_watch_answered(&w, T0 + 6 * SECOND, false);
	assert_false(store_watch_overdue(&w, T0 + 10 * SECOND));
	assert_true(store_watch_lively(&w, T0 + 10 * SECOND));
	assert_true(store_watch_overdue(&w, T0 + 11 * SECOND));
	assert_false(store_watch_lively(&w, T0 + 11 * SECOND));
	store_watch_answered(&w, T0 + 12 * SECOND, false);
	assert_false(store_watch_overdue(&w, T0 + 100 * SECOND));
	/* The time that nothing was asked for does not count. */
	store_watch_sent(&w, T0 + 100 * SECOND);
	assert_false(store_watch_overdue(&w, T0 + 104 * SECOND));
	/* Another thread's clock may have been read earlier. */
	assert_false(store_watch_overdue(&w, T0));
}

static void failures_are_remembered(void **state)
{
	struct store_watch w = {0};

	store_watch_sent(&w, T0);
	store_watch_answered(&w, T0 + 1, true);
	assert_int_equal(w.failed, T0 + 1);
	store_watch_sent(&w, T0 + 2);
	store_watch_answered(&w, T0 + 3, false);
	assert_int_equal(w.failed, T0 + 1);
}

static void one_failure_makes_careful(void **state)
{
	struct write_health h = {0};

	assert_true(write_health_allows(&h, 3, T0));
	write_health_failed(&h, false, T0);
	write_health_failed(&h, false, T0);
	assert_false(write_health_allows(&h, 1, T0));
	assert_true(write_health_allows(&h, 0, T0));
	write_health_succeeded(&h);
	assert_true(write_health_allows(&h, 3, T0));
}

static void pauses_grow_until_it_is_lost(void **state)
{
	struct write_health h = {0};
	uint64_t now = T0, pauses = 0;

	write_health_failed(&h, false, now);
	for (unsigned i = 1; i < LOST_TRIES; i++) {
		uint64_t pause = TRY_PAUSE_NS << (i - 1);

		assert_true(write_health_allows(&h, 0, now));
		write_health_failed(&h, true, now);
		assert_false(h.lost);
		assert_false(write_health_allows(&h, 0, now + pause - 1));
		now += pause;
		pauses += pause;
		assert_false(write_health_allows(&h, 1, now));
	}
	assert_int_equal(pauses, 15 * SECOND);
	write_health_failed(&h, true, now);
	assert_true(h.lost);
	/* Then one a minute, for ever, and with the first success it is there again. */
	for (unsigned i = 0; i < 100; i++) {
		assert_false(write_health_allows(&h, 0, now + LOST_PAUSE_NS - 1));
		now += LOST_PAUSE_NS;
		assert_true(write_health_allows(&h, 0, now));
		write_health_failed(&h, true, now);
	}
	write_health_succeeded(&h);
	assert_false(h.lost);
	assert_true(write_health_allows(&h, 3, now));
}

static void what_is_gone_stays_so(void **state)
{
	struct write_health h = {0};

	write_health_gone(&h);
	assert_true(h.lost);
	assert_false(write_health_allows(&h, 0, UINT64_MAX));
	write_health_failed(&h, true, T0);
	assert_true(h.lost);
	assert_false(write_health_allows(&h, 0, UINT64_MAX));
}

static void errors_of_a_place_and_of_the_whole(void **state)
{
	static const int local[] = {0, 512, -EIO, -ENODATA, -EREMOTEIO, -EILSEQ};
	static const int whole[] = {-ENOSPC, -ENODEV, -ENXIO, -ETIMEDOUT, -ENOLINK, -EBADF, -EFBIG};

	for (size_t i = 0; i < ARRAY_SIZE(local); i++)
		assert_true(store_fault_is_local(local[i]));
	for (size_t i = 0; i < ARRAY_SIZE(whole); i++)
		assert_false(store_fault_is_local(whole[i]));
	assert_true(store_fault_is_gone(-ENODEV) && store_fault_is_gone(-ENXIO));
	assert_false(store_fault_is_gone(-EIO) || store_fault_is_gone(0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(silence_is_noticed),
		cmocka_unit_test(failures_are_remembered),
		cmocka_unit_test(one_failure_makes_careful),
		cmocka_unit_test(pauses_grow_until_it_is_lost),
		cmocka_unit_test(what_is_gone_stays_so),
		cmocka_unit_test(errors_of_a_place_and_of_the_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/util.h"
#include "daemon/store/store.h"
#include "tests/lib/scratch.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <cmocka.h>

static struct scratch scratch;

static int setup(void **state)
{
	scratch_init(&scratch);
	return 0;
}

static int teardown(void **state)
{
	scratch_deinit(&scratch);
	return 0;
}

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static void what_can_be_opened_or_made_is_there(void **state)
{
	assert_int_equal(store_await("/dev/null", 0), 0);
	assert_int_equal(store_await(scratch_file(&scratch, "store", 0), 0), 0);
	/* A file that store_open() will make. */
	assert_int_equal(store_await(scratch_path(&scratch, "new"), 0), 0);
	assert_int_equal(store_await("/new", 0), 0);
	/* Another error is store_open()'s to tell. */
	assert_int_equal(store_await("/dev/null/below", 0), 0);
}

static void what_is_missing_is_waited_for(void **state)
{
	const char *link = scratch_path(&scratch, "by-id");
	uint64_t from = now_ms();

	assert_int_equal(store_await("/dev/no-such-device", 200), -ENOENT);
	assert_true(now_ms() - from >= 200);
	assert_int_equal(store_await(scratch_path(&scratch, "no/such"), 0), -ENOENT);
	/* Nothing is ever made through a link; store_open() says so. */
	assert_int_equal(symlink("/dev/no-such-device", link), 0);
	assert_int_equal(store_await(link, 0), 0);
}

static void *make_later(void *dir)
{
	nanosleep(&(struct timespec){.tv_nsec = 150000000}, NULL);
	return mkdir(dir, 0700) < 0 ? dir : NULL;
}

static void what_comes_late_is_found(void **state)
{
	const char *dir = scratch_path(&scratch, "late");
	char path[256];
	pthread_t thread;
	void *failed;

	snprintf(path, sizeof(path), "%s/store", dir);
	assert_int_equal(store_await(path, 0), -ENOENT);
	assert_int_equal(pthread_create(&thread, NULL, make_later, (void *)dir), 0);
	assert_int_equal(store_await(path, 30000), 0);
	pthread_join(thread, &failed);
	assert_null(failed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_can_be_opened_or_made_is_there, setup,
						teardown),
		cmocka_unit_test_setup_teardown(what_is_missing_is_waited_for, setup, teardown),
		cmocka_unit_test_setup_teardown(what_comes_late_is_found, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

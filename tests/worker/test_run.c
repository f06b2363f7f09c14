// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/util.h"
#include "daemon/worker/run.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static int run(const char *script, int timeout_ms, struct run *ret, int *ret_status)
{
	const char *argv[] = {"sh", "-c", script, NULL};

	assert_int_equal(run_start(ret, argv), 0);
	return run_wait(ret, timeout_ms, ret_status);
}

static void status_and_output(void **state)
{
	struct run r = RUN_NULL;
	int status = 77;

	assert_int_equal(run("echo one; echo two >&2; exit 3", 10000, &r, &status), 0);
	assert_int_equal(status, 3);
	assert_string_equal(r.output, "one;two");
	run_deinit(&r);
	run_deinit(&r);
	assert_int_equal(run(":", 10000, &r, &status), 0);
	assert_int_equal(status, 0);
	assert_string_equal(r.output, "");
	/* SIGKILL cannot be blocked, all else is. */
	assert_int_equal(run("kill -9 $$", 10000, &r, &status), 0);
	assert_int_equal(status, 128 + SIGKILL);
}

/* Far more than a pipe holds. */
static void much_output_does_not_block(void **state)
{
	struct run r = RUN_NULL;
	int status = 77;

	assert_int_equal(run("yes | head -c 1000000", 20000, &r, &status), 0);
	assert_int_equal(status, 0);
	assert_int_equal(strlen(r.output), sizeof(r.output) - 1 - (r.output_len % 2 == 0));
}

static void a_clean_environment(void **state)
{
	struct run r = RUN_NULL;
	int status = 77;

	setenv("ZSWAPD_TEST_SECRET", "x", 1);
	assert_int_equal(run("test -z \"$ZSWAPD_TEST_SECRET\" && test \"$LC_ALL\" = C && ! read x",
			     10000, &r, &status),
			 0);
	assert_int_equal(status, 0);
	unsetenv("ZSWAPD_TEST_SECRET");
}

/* In a process group of its own, and deaf to what a terminal or an init system sends around. */
static void signals_do_not_reach_it(void **state)
{
	struct run r = RUN_NULL;
	int status = 77;

	assert_int_equal(run("kill -INT $$; kill -TERM $$; kill -HUP $$; "
			     "test \"$(ps -o pgid= -p $$ | tr -d ' ')\" = $$ || exit 6; exit 5",
			     10000, &r, &status),
			 0);
	assert_int_equal(status, 5);
}

static void a_program_that_hangs(void **state)
{
	struct run r = RUN_NULL;
	uint64_t start = now_ns();
	int status = 77;
	pid_t pid;

	assert_int_equal(run("exec sleep 100", 200, &r, &status), -ETIMEDOUT);
	assert_int_equal(status, 77);
	assert_int_equal(run_wait(&r, 1, &status), -ETIMEDOUT);
	pid = r.pid;
	run_deinit(&r);
	assert_true(now_ns() - start < UINT64_C(5000000000));
	assert_int_equal(kill(pid, 0), -1); /* reaped, not a zombie */
	assert_int_equal(errno, ESRCH);
	run_deinit(&r);
}

/* A grandchild that holds the pipe open does not hold us up. */
static void an_orphan_with_the_pipe(void **state)
{
	struct run r = RUN_NULL;
	uint64_t start = now_ns();
	int status = 77;

	assert_int_equal(run("sleep 3 & exit 0", 10000, &r, &status), 0);
	assert_int_equal(status, 0);
	assert_true(now_ns() - start < UINT64_C(2500000000));
}

static void a_program_that_is_not_there(void **state)
{
	const char *argv[] = {"zswapd-no-such-program", NULL};
	struct run r = RUN_NULL;

	assert_int_equal(run_start(&r, argv), -ENOENT);
	assert_int_equal(r.pid, -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(status_and_output),
		cmocka_unit_test(much_output_does_not_block),
		cmocka_unit_test(a_clean_environment),
		cmocka_unit_test(signals_do_not_reach_it),
		cmocka_unit_test(a_program_that_hangs),
		cmocka_unit_test(an_orphan_with_the_pipe),
		cmocka_unit_test(a_program_that_is_not_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

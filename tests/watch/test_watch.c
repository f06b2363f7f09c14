// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The page between a process that crashes and one that lives on, each a real one.
 */
#include "common/util.h"
#include "daemon/watch/watch.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <cmocka.h>

static struct watch *w;
static int fd;

static int setup(void **state)
{
	return watch_new(&w, &fd);
}

static int teardown(void **state)
{
	watch_free(w);
	close(fd);
	return 0;
}

/* A worker that does @crash; how it ended. */
static int worker(void (*crash)(void))
{
	const struct rlimit none = {0};
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		setrlimit(RLIMIT_CORE, &none);
		watch_begin(w);
		watch_catch_crashes(w);
		crash();
		_exit(7);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	watch_make_report(w, pid, status, NULL);
	return status;
}

static void write_nowhere(void)
{
	/* Not a null pointer, which compilers know about. */
	*(volatile int *)0x1234560 = 1;
}

static void kill_itself(void)
{
	kill(getpid(), SIGKILL);
}

static void leave(void)
{
	_exit(3);
}

static void a_fault(void **state)
{
	char report[WATCH_REPORT_MAX];
	int status = worker(write_nowhere);

	/* The handler lets the signal do what it does. */
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGSEGV);
	watch_report(w, report);
	assert_non_null(strstr(report, "was ended by SIGSEGV"));
	assert_non_null(strstr(report, "SIGSEGV in "));
	assert_non_null(strstr(report, "at address 0x1234560"));
	assert_non_null(strstr(report, "test_watch_watch+0x"));
	assert_int_equal(atomic_load(&w->deaths), 1);
}

static void an_abort(void **state)
{
	char report[WATCH_REPORT_MAX];
	int status = worker(abort);

	assert_int_equal(WTERMSIG(status), SIGABRT);
	watch_report(w, report);
	assert_non_null(strstr(report, "SIGABRT in "));
}

/* A record is of one worker: the next one's report has nothing of it. */
static void no_record(void **state)
{
	char report[WATCH_REPORT_MAX];

	worker(write_nowhere);
	worker(kill_itself);
	watch_report(w, report);
	assert_non_null(strstr(report, "was ended by SIGKILL"));
	assert_null(strstr(report, "SIGSEGV"));
	worker(leave);
	watch_report(w, report);
	assert_non_null(strstr(report, "ended with status 3"));
	assert_int_equal(atomic_load(&w->deaths), 3);
}

static void counters(void **state)
{
	uint64_t v[COUNTER_COUNT] = {[CTR_slots_used] = 123456};
	char report[WATCH_REPORT_MAX];

	worker(leave);
	watch_report(w, report);
	assert_null(strstr(report, "slots_used"));
	watch_set_counters(w, v);
	worker(leave);
	watch_report(w, report);
	assert_non_null(strstr(report, "slots_used 123456"));
	watch_make_report(w, 1, -1, "a note");
	watch_report(w, report);
	assert_non_null(strstr(report, "worker 1 has ended; a note"));
}

static void configurations(void **state)
{
	struct config c, read;

	assert_false(watch_config(w, &read));
	config_init_defaults(&c, GIB(8));
	for (int level = 1; level < 5; level++) {
		c.memory_level = level;
		watch_set_config(w, &c);
		assert_true(watch_config(w, &read));
		assert_int_equal(read.memory_level, level);
	}
}

static void attaching(void **state)
{
	struct watch *other = NULL;
	int small;

	assert_int_equal(watch_attach(&other, fd), 0);
	beat_turn(&other->beats[3]);
	assert_int_equal(atomic_load(&w->beats[3].turns), 1);
	watch_free(other);

	strcpy(w->version, "0.0.0");
	assert_int_equal(watch_attach(&other, fd), -EBADMSG);
	small = memfd_create("x", MFD_CLOEXEC);
	assert_int_equal(watch_attach(&other, small), -EBADMSG);
	close(small);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_fault, setup, teardown),
		cmocka_unit_test_setup_teardown(an_abort, setup, teardown),
		cmocka_unit_test_setup_teardown(no_record, setup, teardown),
		cmocka_unit_test_setup_teardown(counters, setup, teardown),
		cmocka_unit_test_setup_teardown(configurations, setup, teardown),
		cmocka_unit_test_setup_teardown(attaching, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

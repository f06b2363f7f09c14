// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/worker/supervision.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define SUPERVISOR 4700

static struct watch *watch;
static struct supervision s;

static int set_up(void **state)
{
	int fd;

	assert_int_equal(watch_new(&watch, &fd), 0);
	close(fd);
	supervision_init(&s, watch, SUPERVISOR);
	return 0;
}

static int tear_down(void **state)
{
	watch_free(watch);
	return 0;
}

static struct stats_status status(void)
{
	struct stats_status st = {.pid = 1, .health = 2};

	supervision_status(&s, &st);
	assert_true(st.supervision);
	/* The rest is others'. */
	assert_int_equal(st.pid, 1);
	assert_int_equal(st.health, 2);
	return st;
}

static void the_first_worker_took_over_from_nobody(void **state)
{
	struct stats_status st;

	supervision_begin(&s);
	st = status();
	assert_int_equal(st.supervisor, SUPERVISOR);
	assert_int_equal(st.standby, 0);
	assert_int_equal(st.deaths, 0);
	assert_string_equal(st.report, "");
	assert_string_equal(st.takeover, "");
	assert_int_equal(watch->worker, getpid());
}

static void assert_text(const char *start, const char *word)
{
	char want[128];

	snprintf(want, sizeof(want), "worker %d took over from %s in ", getpid(), start);
	assert_memory_equal(s.text, want, strlen(want));
	assert_non_null(strstr(s.text, word));
	assert_string_equal(status().takeover, s.text);
	assert_true(status().takeover_time > 1500000000ull * 1000000000);
	assert_true(status().takeover_ns < 60ull * 1000000000);
}

/* Of the last death, if that is how the worker's place became free. */
static void a_takeover_says_of_whom_and_why(void **state)
{
	watch->worker = 790;
	watch_make_report(watch, 700, SIGBUS, NULL);
	supervision_begin(&s);
	supervision_took_over(&s);
	assert_text("worker 790", " ms");
	assert_null(strstr(s.text, "SIG"));

	watch->worker = 790;
	watch_make_report(watch, 790, SIGSEGV, NULL);
	supervision_begin(&s);
	supervision_took_over(&s);
	assert_text("worker 790", "; 2");
	assert_non_null(strstr(s.text, "worker 790 was ended by SIGSEGV"));
	assert_int_equal(status().deaths, 2);
	assert_non_null(strstr(status().report, "SIGSEGV"));

	/* Another version's page, which can't be read. */
	watch->worker = 0;
	supervision_begin(&s);
	supervision_took_over(&s);
	assert_text("another worker", " ms");
	assert_null(strstr(s.text, "SIG"));
}

static void a_takeover_lasts_from_the_order_on(void **state)
{
	usleep(50000);
	supervision_took_over(&s);
	assert_true(s.took_ns >= 50000000);
	supervision_ordered(&s);
	supervision_took_over(&s);
	assert_true(s.took_ns < 50000000);
}

static void counters(uint64_t deaths, uint64_t supervisor, uint64_t standby)
{
	uint64_t v[COUNTER_COUNT] = {0};

	supervision_counters(&s, v);
	assert_int_equal(v[CTR_worker_deaths_total], deaths);
	assert_int_equal(v[CTR_supervisor_present], supervisor);
	assert_int_equal(v[CTR_standby_prepared], standby);
}

static void a_supervisor_that_goes_takes_its_standby_with_it(void **state)
{
	counters(0, 1, 0);
	watch->standby = 4720;
	counters(0, 1, 1);
	assert_false(supervision_changed(&s, SUPERVISOR));
	assert_int_equal(status().standby, 4720);
	assert_true(supervision_changed(&s, 0));
	assert_int_equal(status().supervisor, 0);
	assert_int_equal(status().standby, 0);
	watch_make_report(watch, 790, SIGSEGV, NULL);
	counters(1, 0, 0);
	assert_true(supervision_changed(&s, SUPERVISOR + 1));
	assert_int_equal(status().supervisor, SUPERVISOR + 1);
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(the_first_worker_took_over_from_nobody),
		T(a_takeover_says_of_whom_and_why),
		T(a_takeover_lasts_from_the_order_on),
		T(a_supervisor_that_goes_takes_its_standby_with_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

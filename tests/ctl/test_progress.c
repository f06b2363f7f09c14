// SPDX-License-Identifier: GPL-2.0-or-later
/* Jobs as text: the bar at several widths, and every way in which one ends. */
#include "common/util.h"
#include "ctl/progress.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static char text[PROGRESS_MAX];

static struct ctl_num num(uint64_t v)
{
	return (struct ctl_num){true, v};
}

static struct ctl_job job(enum nlproto_job_kind kind, enum nlproto_job_state state, uint64_t done,
			  uint64_t total)
{
	return (struct ctl_job){
		.known = true,
		.id = {true, 1},
		.kind = num(kind),
		.state = num(state),
		.unit = num(kind == NLPROTO_JOB_CHECK ? NLPROTO_UNIT_PAGES : NLPROTO_UNIT_BYTES),
		.done = num(done),
		.total = num(total),
		.found = num(0),
	};
}

static void a_bar_fits_its_line(void **state)
{
	struct ctl_job j = job(NLPROTO_JOB_SHRINK, NLPROTO_JOB_STATE_RUNNING, MIB(48), MIB(192));

	progress_line(text, 79, &j, MIB(16), 2);
	assert_string_equal(
		text,
		"shrink [####               ]  25 %  48.0 MiB of 192.0 MiB  16.0 MiB/s  9 s left");
	progress_line(text, 60, &j, MIB(16), 2);
	assert_string_equal(text, "shrink  48.0 MiB of 192.0 MiB  16.0 MiB/s  9 s left");
	progress_line(text, 20, &j, MIB(16), 2);
	assert_string_equal(text, "shrink  48.0 MiB of ");
	/* Nothing to say about speed at first. */
	progress_line(text, 79, &j, MIB(48), 0);
	assert_string_equal(
		text,
		"shrink [##########                              ]  25 %  48.0 MiB of 192.0 MiB");
	for (int width = 0; width < 200; width++) {
		progress_line(text, width, &j, 0, 1);
		assert_true((int)strlen(text) <= width);
	}
}

static void the_ends_of_a_bar(void **state)
{
	struct ctl_job j = job(NLPROTO_JOB_CHECK, NLPROTO_JOB_STATE_RUNNING, 0, 100);

	progress_line(text, 79, &j, 0, 1);
	assert_string_equal(
		text,
		"check [                                        ]   0 %  0 pages of 100 pages");
	j.done = num(100);
	progress_line(text, 79, &j, 0, 1);
	assert_string_equal(
		text,
		"check [##################] 100 %  100 pages of 100 pages  100 pages/s  0 s left");
	/* The total is an estimate, and may be unknown. */
	j.done = num(120);
	progress_line(text, 79, &j, 120, 1);
	assert_string_equal(text,
			    "check [########################################] 100 %  120 pages");
	j.total.known = false;
	progress_line(text, 79, &j, 120, 1);
	assert_string_equal(text, "check  120 pages");
	j.done.known = j.kind.known = false;
	progress_line(text, 79, &j, 0, 1);
	assert_string_equal(text, "job  ?");
}

static void assert_result(struct ctl_job j, const char *want)
{
	progress_result(text, &j);
	assert_string_equal(text, want);
}

static void every_end_has_its_words(void **state)
{
	struct ctl_job j;

	assert_result(job(NLPROTO_JOB_WRITEBACK, NLPROTO_JOB_STATE_DONE, MIB(3), MIB(3)),
		      "writeback: 3.0 MiB of memory have become free");
	assert_result(job(NLPROTO_JOB_COMPACT, NLPROTO_JOB_STATE_DONE, 0, 0),
		      "compact: 0 B of memory and store have become free");
	j = job(NLPROTO_JOB_CHECK, NLPROTO_JOB_STATE_DONE, 5, 5);
	assert_result(j, "check: 5 pages verified, none damaged");
	j.found = num(2);
	assert_result(j, "check: 5 pages verified, 2 damaged");
	j.found.known = false;
	assert_result(j, "check: 5 pages verified, ? damaged");
	j = job(NLPROTO_JOB_SHRINK, NLPROTO_JOB_STATE_FAILED, MIB(1), MIB(3));
	assert_result(j, "shrink: failed after 1.0 MiB: the reason is not known");
	j.error = num(ENOSPC);
	assert_result(j, "shrink: failed after 1.0 MiB: memory gets no less; is the store full or "
			 "failing? See 'zswapctl status'");
	j.error = num(EIO);
	assert_result(j, "shrink: failed after 1.0 MiB: Input/output error");
	assert_result(job(NLPROTO_JOB_CHECK, NLPROTO_JOB_STATE_CANCELLED, 7, 9),
		      "check: cancelled after 7 pages");
	assert_result(job(NLPROTO_JOB_CHECK, NLPROTO_JOB_STATE_RUNNING, 7, 9),
		      "check: running, 7 pages");
	assert_result(job(NLPROTO_JOB_NONE, NLPROTO_JOB_STATE_NONE, 0, 0), "no job so far");
	/* Of a newer daemon. */
	assert_result(job((enum nlproto_job_kind)99, (enum nlproto_job_state)77, 1, 2),
		      "job of kind 99: in state 77");
	assert_result(job((enum nlproto_job_kind)99, NLPROTO_JOB_STATE_DONE, 1, 2),
		      "job of kind 99: done, 1 B");
	assert_result((struct ctl_job){0}, "no job so far");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_bar_fits_its_line),
		cmocka_unit_test(the_ends_of_a_bar),
		cmocka_unit_test(every_end_has_its_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

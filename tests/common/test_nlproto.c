// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/nlproto.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void names(void **state)
{
	char name[NLPROTO_NAME_MAX + 1];

	assert_true(nlproto_name_ok("zswap0"));
	assert_true(nlproto_name_ok("A.b-c_9"));
	assert_false(nlproto_name_ok(""));
	assert_false(nlproto_name_ok("."));
	assert_false(nlproto_name_ok("-x"));
	assert_false(nlproto_name_ok("a/b"));
	assert_false(nlproto_name_ok("a b"));
	assert_false(nlproto_name_ok("a\"b"));
	assert_false(nlproto_name_ok("\xc3\xa4"));
	memset(name, 'a', sizeof(name));
	name[NLPROTO_NAME_MAX] = '\0';
	assert_false(nlproto_name_ok(name));
	name[NLPROTO_NAME_MAX - 1] = '\0';
	assert_true(nlproto_name_ok(name));
}

/* The values are those of docs/NETLINK.md; other programs compute them too. */
static void ports(void **state)
{
	assert_int_equal(nlproto_port("zswap0"), 0x7a73e4fcu);
	assert_int_equal(nlproto_port(""), 0x7a730000u | (0x811c ^ 0x9dc5));
}

static void texts(void **state)
{
	assert_string_equal(nlproto_state_text(NLPROTO_STATE_STARTING), "starting");
	assert_string_equal(nlproto_state_text(NLPROTO_STATE_FAILED), "failed");
	assert_null(nlproto_state_text(NLPROTO_STATE_FAILED + 1));
	assert_null(nlproto_state_text(UINT64_MAX));
	assert_non_null(strstr(nlproto_health_text(0), "not locked"));
	assert_int_equal(NLPROTO_HEALTH_STORE_FULL, 1u << 4);
	assert_string_equal(nlproto_health_text(4), "store full");
	assert_null(nlproto_health_text(31));
	assert_null(nlproto_health_text(63));
	assert_string_equal(nlproto_job_name(NLPROTO_JOB_WRITEBACK), "writeback");
	assert_null(nlproto_job_name(99));
	assert_string_equal(nlproto_job_state_name(NLPROTO_JOB_STATE_CANCELLED), "cancelled");
	assert_null(nlproto_job_state_name(99));
	assert_string_equal(nlproto_event_name(NLPROTO_EVENT_JOB_FINISHED), "job_finished");
	assert_null(nlproto_event_name(0));
	assert_null(nlproto_event_name(UINT64_MAX));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names),
		cmocka_unit_test(ports),
		cmocka_unit_test(texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/state/state.h"
#include "daemon/super/super.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static char reason[400];

static bool follows(unsigned major, unsigned minor, unsigned patch, unsigned state)
{
	char line[64];

	snprintf(line, sizeof(line), "zswapd %u.%u.%u state %u", major, minor, patch, state);
	return super_can_follow(line, reason, sizeof(reason));
}

static void who_can(void **state)
{
	unsigned a, b, c;

	assert_int_equal(sscanf(ZSWAPD_VERSION, "%u.%u.%u", &a, &b, &c), 3);
	assert_true(follows(a, b, c, STATE_VERSION));
	assert_true(follows(a, b, c + 1, STATE_VERSION));
	assert_true(follows(a, b + 1, 0, STATE_VERSION));
	assert_true(follows(a + 1, 0, 0, STATE_VERSION));
	assert_non_null(strstr(reason, "takes over from " ZSWAPD_VERSION));
}

static void who_can_not(void **state)
{
	unsigned a, b, c;

	sscanf(ZSWAPD_VERSION, "%u.%u.%u", &a, &b, &c);
	assert_false(follows(a, b, c, STATE_VERSION + 1));
	assert_non_null(strstr(reason, "layout"));
	assert_false(follows(a, b, c, STATE_VERSION - 1));
	if (c > 0)
		assert_false(follows(a, b, c - 1, STATE_VERSION));
	if (b > 0)
		assert_false(follows(a, b - 1, c + 9, STATE_VERSION));
	assert_false(follows(0, 0, 0, STATE_VERSION));
	assert_non_null(strstr(reason, "older than what runs"));
}

/* What an older version, or any other program, says to an option that it does not know. */
static void who_does_not_say(void **state)
{
	static const char *const lines[] = {
		"",
		"usage: zswapd [--config FILE]",
		"zswapd 1.2.3",
		"zswapd 1.2 state 4",
		"zswapd 1.2.3 state",
		"zswapd: unrecognized option '--takeover-version'",
	};

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		assert_false(super_can_follow(lines[i], reason, sizeof(reason)));
		assert_non_null(strstr(reason, "does not say that it can take over"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_can),
		cmocka_unit_test(who_can_not),
		cmocka_unit_test(who_does_not_say),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

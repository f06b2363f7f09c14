// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/state/state.h"
#include "daemon/super/super_impl.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* --- what comes from the program before, and where this one is --- */

static struct super super_after(const char *called)
{
	static char *argv[2];
	static struct super_options o = {.argv = argv};
	struct super s = {.o = &o};

	argv[0] = (char *)called;
	upgrade_init(&s);
	return s;
}

static void the_program_is_found_as_it_was_called(void **state)
{
	char path[256] = "", link[] = "/tmp/zswapd-test-link-XXXXXX", other[] = "/proc/self/maps";

	assert_true(readlink("/proc/self/exe", path, sizeof(path) - 1) > 0);
	assert_true(mkdtemp(link) && rmdir(link) == 0);
	assert_int_equal(symlink(path, link), 0);
	assert_string_equal(super_after(path).upgrade.program, path);
	assert_string_equal(super_after(link).upgrade.program, link);
	/* What is no path, or another program's, says nothing. */
	assert_string_equal(super_after("zswapd").upgrade.program, path);
	assert_string_equal(super_after(other).upgrade.program, path);
	assert_string_equal(super_after("/nonexistent/zswapd").upgrade.program, path);
	assert_string_equal(super_after(NULL).upgrade.program, path);
	unlink(link);
}

static void descriptors_are_taken_or_let_go(void **state)
{
	int a = open("/dev/null", O_RDONLY), b = open("/dev/null", O_RDONLY);
	char text[96];

	assert_false(super_after("").upgrade.replace);
	for (int take = 0; take < 2; take++) {
		struct super s;
		int c = dup(a), d = dup(b);

		snprintf(text, sizeof(text), "%d=zswapd-state %d=zswapd-front 999=closed ", c, d);
		setenv("ZSWAPD_UPGRADE", text, 1);
		s = super_after("");
		assert_null(getenv("ZSWAPD_UPGRADE"));
		assert_true(s.upgrade.replace);
		assert_int_equal(fcntl(c, F_GETFD), FD_CLOEXEC);
		upgrade_settle(&s, take);
		/* Another program's worker is replaced, one of our own need not be. */
		assert_int_equal(s.upgrade.replace, !take);
		assert_int_equal(kept_get(&s.kept, KEPT_STATE), take ? c : -1);
		assert_int_equal(kept_get(&s.kept, KEPT_FRONT), take ? d : -1);
		assert_int_equal(kept_get(&s.kept, "closed"), -1);
		assert_int_equal(fcntl(c, F_GETFD), take ? FD_CLOEXEC : -1);
		kept_deinit(&s.kept);
	}
	/* Nonsense is nothing, and the standard ones are not to be touched. */
	setenv("ZSWAPD_UPGRADE", "2=zswapd-state x=y 5", 1);
	assert_int_equal(super_after("").upgrade.left.n, 0);
	assert_int_equal(fcntl(2, F_GETFD), 0);
	close(a);
	close(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_can),
		cmocka_unit_test(who_can_not),
		cmocka_unit_test(who_does_not_say),
		cmocka_unit_test(the_program_is_found_as_it_was_called),
		cmocka_unit_test(descriptors_are_taken_or_let_go),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

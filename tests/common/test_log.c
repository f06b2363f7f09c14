// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/log.h"
#include "tests/lib/stderr.h"

#include <stdio.h>
#include <string.h>

/* The longest that the configuration says, with two paths in it, must not lose its way out. */
static void a_long_line_is_whole(void **state)
{
	struct stderr_capture cap;
	char want[700], text[600];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	snprintf(want, sizeof(want), "<3>zswapd: %s; way out\n", text);
	stderr_capture_begin(&cap);
	log_err("%s; way out", text);
	stderr_capture_end(&cap);
	assert_string_equal(cap.text, want);
}

/* One that is longer still is cut, and stays a line. */
static void a_longer_one_is_cut(void **state)
{
	struct stderr_capture cap;
	char text[2000];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	stderr_capture_begin(&cap);
	log_err("%s", text);
	log_post(LOG_LEVEL_ERR, "%s", text);
	log_drain();
	stderr_capture_end(&cap);
	assert_in_range(strchr(cap.text, '\n') - cap.text, 600, 700);
	assert_memory_equal(strchr(cap.text, '\n'), "\n<3>zswapd: xxx", 15);
	assert_int_equal(cap.text[strlen(cap.text) - 1], '\n');
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_long_line_is_whole),
		cmocka_unit_test(a_longer_one_is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

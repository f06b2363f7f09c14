// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/log.h"
#include "common/util.h"
#include "tests/lib/stderr.h"

#include <fcntl.h>
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

/* Of a reader who is away, one line is waited for, and how many were lost is said afterwards. */
static void a_reader_who_is_away_holds_nobody_up(void **state)
{
	int fds[2], saved = dup(STDERR_FILENO);
	char text[65536], *note;
	uint64_t start, took;
	ssize_t n;

	assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
	memset(text, 'x', sizeof(text));
	while (write(fds[1], text, sizeof(text)) > 0)
		;
	dup2(fds[1], STDERR_FILENO);
	start = now_ns();
	for (int i = 0; i < 100; i++)
		log_post(LOG_LEVEL_ERR, "line");
	log_drain();
	took = now_ns() - start;
	while (read(fds[0], text, sizeof(text)) > 0)
		;
	log_err("he is back");
	n = read(fds[0], text, sizeof(text) - 1);
	dup2(saved, STDERR_FILENO);
	close(saved);
	close(fds[0]);
	close(fds[1]);
	assert_true(n > 0);
	text[n] = '\0';
	assert_true(took < 10000000000u); /* not 50 s */
	note = strstr(text, "he is back\n");
	assert_non_null(note);
	assert_non_null(strstr(note, "100 log lines were lost"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_long_line_is_whole),
		cmocka_unit_test(a_longer_one_is_cut),
		cmocka_unit_test(a_reader_who_is_away_holds_nobody_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

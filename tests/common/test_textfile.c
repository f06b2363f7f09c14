// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/textfile.h"
#include "common/util.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char path[64];

static int setup(void **state)
{
	snprintf(path, sizeof(path), "/tmp/zswapd-test-XXXXXX");
	return close_fd(mkstemp(path)) == -1 ? 0 : -1;
}

static int teardown(void **state)
{
	return unlink(path);
}

static void fill(size_t len, char byte)
{
	cleanup_free char *text = malloc(len + 1);

	assert_non_null(text);
	memset(text, byte, len);
	text[len] = '\0';
	assert_int_equal(truncate(path, 0), 0);
	assert_int_equal(textfile_write(path, text), 0);
}

static void sizes_around_the_buffer(void **state)
{
	static const size_t sizes[] = {0,    1,	   4094,   4095,    4096,   4097,
				       8191, 8192, 100000, 1048575, 1048576};

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		cleanup_free char *text = NULL;

		fill(sizes[i], 'a');
		assert_int_equal(textfile_read(path, &text), 0);
		assert_int_equal(strlen(text), sizes[i]);
		assert_int_equal(strspn(text, "a"), sizes[i]);
	}
}

static void too_large_and_missing(void **state)
{
	char *untouched = (char *)1, *text = untouched;

	fill(MIB(1) + 1, 'a');
	assert_int_equal(textfile_read(path, &text), -EFBIG);
	assert_int_equal(textfile_read("/no/such/file", &text), -ENOENT);
	assert_int_equal(textfile_read("/proc", &text), -EISDIR);
	assert_ptr_equal(text, untouched);
	assert_int_equal(textfile_write("/no/such/file", "x"), -ENOENT);
}

static void lines(void **state)
{
	char line[4] = "???";

	assert_int_equal(textfile_write(path, "abc\ndef\n"), 0);
	assert_int_equal(textfile_read_line(path, line, sizeof(line)), 0);
	assert_string_equal(line, "abc");
	assert_int_equal(textfile_read_line(path, line, 3), -ENOBUFS);
	assert_string_equal(line, "abc");
	assert_int_equal(truncate(path, 0), 0);
	assert_int_equal(textfile_read_line(path, line, sizeof(line)), 0);
	assert_string_equal(line, "");
}

static void numbers(void **state)
{
	static const char *const wrong[] = {"", "\n", "x", "-1", "12 kB", "99999999999999999999"};
	uint64_t v = 7;

	assert_int_equal(textfile_write(path, "18446744073709551615\n2\n"), 0);
	assert_int_equal(textfile_read_u64(path, &v), 0);
	assert_true(v == UINT64_MAX);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		assert_int_equal(truncate(path, 0), 0);
		assert_int_equal(textfile_write(path, wrong[i]), 0);
		assert_int_equal(textfile_read_u64(path, &v), -EBADMSG);
	}
	assert_int_equal(textfile_read_u64("/no/such/file", &v), -ENOENT);
	assert_true(v == UINT64_MAX);
}

static void proc_comes_in_pieces(void **state)
{
	cleanup_free char *text = NULL;

	assert_int_equal(textfile_read("/proc/self/smaps", &text), 0);
	assert_true(strlen(text) > 8192);
	assert_non_null(strstr(text, "[stack]"));
}

static void sizes_in_lines(void **state)
{
	static const char text[] =
		"MemTotalX: 1 kB\nMemTotal:     2048 kB\nHuge: 18446744073709551615 "
		"kB\nPages: 12\nNone:\nName:\tzswapd\nVmLck:\t      16 kB\n";
	static const char *const wrong[] = {"Mem", "Huge", "Pages", "None", "Name", "VmSwap", ""};
	uint64_t bytes = 7;

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_int_equal(textfile_size(text, wrong[i], &bytes), -EBADMSG);
	assert_int_equal(bytes, 7);
	assert_int_equal(textfile_size(text, "MemTotal", &bytes), 0);
	assert_int_equal(bytes, MIB(2));
	assert_int_equal(textfile_size(text, "VmLck", &bytes), 0);
	assert_int_equal(bytes, KIB(16));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(sizes_around_the_buffer, setup, teardown),
		cmocka_unit_test_setup_teardown(too_large_and_missing, setup, teardown),
		cmocka_unit_test_setup_teardown(lines, setup, teardown),
		cmocka_unit_test_setup_teardown(numbers, setup, teardown),
		cmocka_unit_test(proc_comes_in_pieces),
		cmocka_unit_test(sizes_in_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

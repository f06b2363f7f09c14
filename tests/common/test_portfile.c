// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/portfile.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char top[] = "/tmp/zswapd-test-XXXXXX";
static char dir[64];

static void put(const char *file, const char *text)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void drop(const char *file)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	assert_int_equal(unlink(path), 0);
}

/* Whatever the umask, everybody can read it. */
static void written_and_read(void **state)
{
	mode_t old = umask(077);
	uint32_t port = 0;
	char path[128];
	struct stat st;

	assert_int_equal(mkdir(dir, 0755), 0);
	assert_int_equal(portfile_write(dir, "one", UINT32_MAX), 0);
	umask(old);
	assert_int_equal(portfile_read(dir, "one", &port), 0);
	assert_int_equal(port, UINT32_MAX);
	snprintf(path, sizeof(path), "%s/one.port", dir);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0644);
	assert_int_equal(portfile_write(dir, "one", 5), 0);
	assert_int_equal(portfile_read(dir, "one", &port), 0);
	assert_int_equal(port, 5);
	portfile_remove(dir, "one", 6); /* a successor's */
	assert_int_equal(portfile_read(dir, "one", &port), 0);
	portfile_remove(dir, "one", 5);
	assert_int_equal(portfile_read(dir, "one", &port), -ENOENT);
	assert_int_equal(rmdir(dir), 0); /* no temporary file was left */
}

static void the_directory_is_made(void **state)
{
	assert_int_equal(portfile_write(dir, "one", 5), 0);
	portfile_remove(dir, "one", 5);
	assert_int_equal(rmdir(dir), 0);
	assert_int_equal(portfile_write("/nonexistent/zswapd", "one", 5), -ENOENT);
}

static void other_content_is_no_port(void **state)
{
	static const char *const bad[] = {"",
					  "\n",
					  "0\n",
					  "-1\n",
					  " 1\n",
					  "+1\n",
					  "1",
					  "1 \n",
					  "x\n",
					  "4294967296\n",
					  "99999999999999999\n"};
	uint32_t port = 77;

	assert_int_equal(mkdir(dir, 0755), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		put("bad.port", bad[i]);
		assert_int_equal(portfile_read(dir, "bad", &port), -EINVAL);
	}
	assert_int_equal(portfile_read(dir, "../bad", &port), -EINVAL);
	assert_int_equal(port, 77);
	drop("bad.port");
	assert_int_equal(rmdir(dir), 0);
}

static void names_are_listed(void **state)
{
	char names[2][NLPROTO_NAME_MAX];

	assert_int_equal(portfile_list(dir, names, 2), 0);
	assert_int_equal(portfile_write(dir, "one", 1), 0);
	put(".hidden.port", "1\n");
	put("bad name.port", "1\n");
	put(".port", "1\n");
	put("one.port.new", "1\n");
	put("other", "1\n");
	assert_int_equal(portfile_list(dir, names, 2), 1);
	assert_string_equal(names[0], "one");
	assert_int_equal(portfile_write(dir, "two", 2), 0);
	assert_int_equal(portfile_list(dir, names, 2), 2);
	assert_int_equal(portfile_list(dir, names, 1), 2);
	drop(".hidden.port");
	drop("bad name.port");
	drop(".port");
	drop("one.port.new");
	drop("other");
	portfile_remove(dir, "one", 1);
	portfile_remove(dir, "two", 2);
	assert_int_equal(rmdir(dir), 0);
}

static int set_up(void **state)
{
	if (!mkdtemp(top))
		return -1;
	snprintf(dir, sizeof(dir), "%s/run", top);
	return 0;
}

static int tear_down(void **state)
{
	return rmdir(top);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(written_and_read),
		cmocka_unit_test(the_directory_is_made),
		cmocka_unit_test(other_content_is_no_port),
		cmocka_unit_test(names_are_listed),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}

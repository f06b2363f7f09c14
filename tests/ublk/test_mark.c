// SPDX-License-Identifier: GPL-2.0-or-later
/* The mark's file.  That a device is found by it is tested in the guest. */
#include "daemon/ublk/internal.h"
#include "tests/lib/stderr.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static char dir[] = "/var/tmp/zswapd-mark-XXXXXX";
static char path[64];
static struct transport_options o = {.name = "name", .run_dir = dir};

static int setup(void **state)
{
	strcpy(dir + strlen(dir) - 6, "XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/name.ublk", dir);
	return 0;
}

static int teardown(void **state)
{
	unlink(path);
	rmdir(dir);
	return 0;
}

static uint64_t in_file(void)
{
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	char text[32] = "";

	assert_true(fd >= 0);
	assert_int_equal(read(fd, text, sizeof(text) - 1), 17);
	assert_int_equal(text[16], '\n');
	return strtoull(text, NULL, 16);
}

static void every_device_has_its_own(void **state)
{
	uint64_t first = ublk_mark_new(&o), second;
	struct stat st;

	assert_true(first != 0);
	assert_true(in_file() == first);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	second = ublk_mark_new(&o);
	assert_true(second != 0 && second != first);
	assert_true(in_file() == second);
	ublk_mark_remove(&o);
	assert_int_equal(access(path, F_OK), -1);
	ublk_mark_remove(&o);
}

static void without_a_file_there_is_no_mark(void **state)
{
	struct stderr_capture cap;

	/* What is in the way is not followed. */
	assert_int_equal(symlink("/var/tmp/zswapd-elsewhere", path), 0);
	stderr_capture_begin(&cap);
	assert_true(ublk_mark_new(&o) == 0);
	stderr_capture_end(&cap);
	assert_non_null(strstr(cap.text, path));
	assert_int_equal(access("/var/tmp/zswapd-elsewhere", F_OK), -1);
}

/* Nobody is asked then: there is no driver behind this control. */
static void no_mark_finds_nothing(void **state)
{
	struct ublk_dev_info info;
	cleanup_fd int fd = -1;

	assert_false(ublk_mark_find(NULL, &o, &info));
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(write(fd, "0000000000000000\n", 17), 17);
	assert_false(ublk_mark_find(NULL, &o, &info));
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_false(ublk_mark_find(NULL, &o, &info));
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(every_device_has_its_own),
		T(without_a_file_there_is_no_mark),
		T(no_mark_finds_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

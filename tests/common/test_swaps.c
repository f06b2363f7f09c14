// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/swaps.h"
#include "common/util.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HEADING "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"

static void entries_in_order(void **state)
{
	const char *text =
		HEADING "/dev/sda2                               partition\t8388604\t\t1024\t\t-2\n"
			"/swap\\040file\\011a\\134b\\012            file\t\t4\t\t0\t\t32767\n"
			"/dev/loop0\\040(deleted) partition 0 0 0"; /* no newline at the end */
	struct swaps_entry e;

	assert_int_equal(swaps_next(&text, &e), 1);
	assert_string_equal(e.path, "/dev/sda2");
	assert_int_equal(e.total, KIB(8388604));
	assert_int_equal(e.used, MIB(1));
	assert_int_equal(e.priority, -2);
	assert_int_equal(swaps_next(&text, &e), 1);
	assert_string_equal(e.path, "/swap file\ta\\b\n");
	assert_int_equal(e.total, 4096);
	assert_int_equal(e.priority, 32767);
	assert_int_equal(swaps_next(&text, &e), 1);
	assert_string_equal(e.path, "/dev/loop0 (deleted)");
	assert_int_equal(swaps_next(&text, &e), 0);
	assert_int_equal(swaps_next(&text, &e), 0);
}

static void nothing(void **state)
{
	static const char *const texts[] = {"", HEADING, "Filename"};
	struct swaps_entry e;

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		const char *text = texts[i];

		assert_int_equal(swaps_next(&text, &e), 0);
	}
}

static void malformed(void **state)
{
	static const char *const lines[] = {
		"/dev/a\n",
		"/dev/a partition\n",
		"/dev/a partition 1\n",
		"/dev/a partition 1 2\n",
		"/dev/a partition 1 2\n3\n", /* a line is a line */
		"/dev/a partition x 2 3\n",
		"/dev/a partition 1x 2 3\n",
		"/dev/a partition -1 2 3\n",
		"/dev/a partition 1 -2 3\n",
		"/dev/a partition 99999999999999999999 2 3\n",
		"/dev/a partition 9223372036854775807 2 3\n", /* no bytes */
		"/dev/a partition 1 2 99999999999\n",
		"/dev\\000/a partition 1 2 3\n",
		"\n",
	};
	struct swaps_entry e = {.total = 77};

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		const char *text = lines[i];

		if (swaps_next(&text, &e) != -EBADMSG)
			fail_msg("accepted: %s", lines[i]);
		assert_ptr_equal(text, lines[i]);
		assert_int_equal(e.total, 77);
	}
}

static void a_path_too_long(void **state)
{
	cleanup_free char *line = malloc(PATH_MAX + 64);
	struct swaps_entry e;
	const char *text = line;

	assert_non_null(line);
	memset(line, 'a', PATH_MAX);
	snprintf(line + PATH_MAX - 1, 64, " file 1 2 3\n");
	assert_int_equal(swaps_next(&text, &e), 1);
	assert_int_equal(strlen(e.path), PATH_MAX - 1);
	snprintf(line + PATH_MAX, 64, " file 1 2 3\n");
	line[PATH_MAX - 1] = 'a';
	text = line;
	assert_int_equal(swaps_next(&text, &e), -EBADMSG);
}

static void broken_escapes_are_plain(void **state)
{
	const char *text = "/a\\04 f 1 2 3\n/a\\ f 1 2 3\n/a\\089 f 1 2 3\n";
	struct swaps_entry e;

	assert_int_equal(swaps_next(&text, &e), 1);
	assert_string_equal(e.path, "/a\\04");
	assert_int_equal(swaps_next(&text, &e), 1);
	assert_string_equal(e.path, "/a\\");
	assert_int_equal(swaps_next(&text, &e), 1);
	assert_string_equal(e.path, "/a\\089");
}

/* By inode, whatever the name; a name that is gone is nobody's. */
static void found_by_inode(void **state)
{
	char dir[] = "/tmp/zswapd-test-XXXXXX", a[64], b[64], text[512];
	struct swaps_entry e = {.total = 77};
	struct stat st;

	assert_non_null(mkdtemp(dir));
	snprintf(a, sizeof(a), "%s/a", dir);
	snprintf(b, sizeof(b), "%s/b", dir);
	close_fd(open(a, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	assert_int_equal(link(a, b), 0);
	assert_int_equal(stat(b, &st), 0);
	snprintf(text, sizeof(text),
		 HEADING "/gone file 5 5 5\n/etc/passwd file 6 6 6\n%s f 7 1 0\n", a);
	assert_int_equal(swaps_find(text, &st, &e), 1);
	assert_int_equal(e.total, KIB(7));
	assert_int_equal(swaps_find(text, &st, NULL), 1);
	assert_int_equal(stat("/etc/group", &st), 0);
	e.total = 77;
	assert_int_equal(swaps_find(text, &st, &e), 0);
	assert_int_equal(e.total, 77);
	assert_int_equal(swaps_find("junk\n", &st, &e), -EBADMSG);
	unlink(a);
	unlink(b);
	rmdir(dir);
}

/* As one is listed whose /dev went with the mount namespace that it was swapped on in. */
static void a_device_without_its_dev(void **state)
{
	struct swaps_entry e;
	struct dirent *d;
	struct stat st;
	DIR *dev = opendir("/dev");

	assert_non_null(dev);
	while ((d = readdir(dev))) {
		if (fstatat(dirfd(dev), d->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    S_ISBLK(st.st_mode))
			break;
	}
	if (!d) {
		closedir(dev);
		skip();
	}
	snprintf(e.path, sizeof(e.path), "/%s", d->d_name);
	closedir(dev);
	assert_true(swaps_entry_is(&e, &st));
	strcat(e.path, "-gone");
	assert_false(swaps_entry_is(&e, &st));
	/* Neither another device nor a file. */
	strcpy(e.path, "/null");
	assert_false(swaps_entry_is(&e, &st));
	assert_int_equal(stat("/dev/null", &st), 0);
	assert_false(swaps_entry_is(&e, &st));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(entries_in_order),
		cmocka_unit_test(nothing),
		cmocka_unit_test(malformed),
		cmocka_unit_test(a_path_too_long),
		cmocka_unit_test(broken_escapes_are_plain),
		cmocka_unit_test(found_by_inode),
		cmocka_unit_test(a_device_without_its_dev),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/util.h"
#include "daemon/link/kept.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

static int some_fd(void)
{
	return memfd_create("x", MFD_CLOEXEC);
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static void put_get_drop(void **state)
{
	struct kept k = {0};
	int a = some_fd(), b = some_fd();

	assert_int_equal(kept_put(&k, "a", a), 0);
	assert_int_equal(kept_put(&k, "b", b), 0);
	assert_int_equal(kept_get(&k, "a"), a);
	assert_int_equal(kept_get(&k, "b"), b);
	assert_int_equal(kept_get(&k, "c"), -1);
	kept_drop(&k, "a");
	assert_false(is_open(a));
	assert_int_equal(kept_get(&k, "a"), -1);
	assert_int_equal(kept_get(&k, "b"), b);
	kept_drop(&k, "a");
	kept_deinit(&k);
	assert_false(is_open(b));
	assert_int_equal(k.n, 0);
}

static void the_later_one_counts(void **state)
{
	struct kept k = {0};
	int a = some_fd(), b = some_fd();

	kept_put(&k, "a", a);
	assert_int_equal(kept_put(&k, "a", b), 0);
	assert_int_equal(k.n, 1);
	assert_int_equal(kept_get(&k, "a"), b);
	assert_false(is_open(a));
	kept_deinit(&k);
}

static void copies(void **state)
{
	struct kept k = {0};
	int fd;

	kept_put(&k, "a", some_fd());
	fd = kept_copy(&k, "a");
	assert_true(fd >= 0 && fd != kept_get(&k, "a"));
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	close(fd);
	assert_int_equal(kept_copy(&k, "b"), -ENOENT);
	kept_deinit(&k);
}

static void what_does_not_fit(void **state)
{
	struct kept k = {0};
	char name[KEPT_NAME_MAX + 1];
	int fd;

	memset(name, 'n', KEPT_NAME_MAX);
	name[KEPT_NAME_MAX] = '\0';
	fd = some_fd();
	assert_int_equal(kept_put(&k, name, fd), -ENAMETOOLONG);
	assert_false(is_open(fd));
	for (unsigned i = 0; i < KEPT_MAX; i++) {
		snprintf(name, sizeof(name), "%u", i);
		assert_int_equal(kept_put(&k, name, some_fd()), 0);
	}
	fd = some_fd();
	assert_int_equal(kept_put(&k, "more", fd), -ENOSPC);
	assert_false(is_open(fd));
	/* In place of one that is there it fits. */
	fd = some_fd();
	assert_int_equal(kept_put(&k, "3", fd), 0);
	assert_int_equal(kept_get(&k, "3"), fd);
	kept_deinit(&k);
}

static void privacy(void **state)
{
	assert_true(kept_is_private(KEPT_LOCK));
	assert_true(kept_is_private(KEPT_LISTENER));
	assert_true(kept_is_private(KEPT_WATCH));
	assert_false(kept_is_private(KEPT_STATE));
	assert_false(kept_is_private(KEPT_FRONT));
	assert_false(kept_is_private(KEPT_STORE));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(put_get_drop), cmocka_unit_test(the_later_one_counts),
		cmocka_unit_test(copies),	cmocka_unit_test(what_does_not_fit),
		cmocka_unit_test(privacy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/* On files that stand for the setting; that the kernel has it is seen by reading it. */
#include "common/textfile.h"
#include "common/util.h"
#include "daemon/worker/reclaim.h"
#include "tests/lib/scratch.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

struct fixture {
	struct scratch scratch;
	char boost[PATH_MAX], file[PATH_MAX];
};

static void set(const char *path, const char *value)
{
	FILE *f = fopen(path, "we");

	assert_non_null(f);
	fprintf(f, "%s\n", value);
	assert_int_equal(fclose(f), 0);
}

static void assert_value(const char *path, const char *value)
{
	char line[64];

	assert_int_equal(textfile_read_line(path, line, sizeof(line)), 0);
	assert_string_equal(line, value);
}

static void begin(struct fixture *f, const char *value)
{
	scratch_init(&f->scratch);
	snprintf(f->boost, sizeof(f->boost), "%s", scratch_path(&f->scratch, "boost"));
	snprintf(f->file, sizeof(f->file), "%s", scratch_path(&f->scratch, "former"));
	if (value)
		set(f->boost, value);
}

static void end(struct fixture *f)
{
	scratch_deinit(&f->scratch);
}

static void set_and_put_back(void **state)
{
	struct fixture f;
	struct reclaim r;

	/* One digit: nobody truncates a file of /proc. */
	begin(&f, "7");
	reclaim_adapt(&r, f.boost, f.file);
	assert_value(f.boost, "0");
	assert_value(f.file, "7");
	reclaim_restore(&r);
	assert_value(f.boost, "7");
	assert_int_equal(access(f.file, F_OK), -1);
	reclaim_restore(&r);
	end(&f);
}

static void the_last_puts_it_back(void **state)
{
	struct reclaim first, second;
	struct fixture f;

	begin(&f, "7");
	reclaim_adapt(&first, f.boost, f.file);
	reclaim_adapt(&second, f.boost, f.file);
	assert_value(f.boost, "0");
	reclaim_restore(&first);
	assert_value(f.boost, "0");
	reclaim_restore(&second);
	assert_value(f.boost, "7");
	assert_int_equal(access(f.file, F_OK), -1);
	end(&f);
}

/* Its descriptor goes with it, the file stays. */
static void killed_before(void **state)
{
	struct reclaim killed, successor;
	struct fixture f;

	begin(&f, "7");
	reclaim_adapt(&killed, f.boost, f.file);
	close_fd(killed.fd);
	reclaim_adapt(&successor, f.boost, f.file);
	reclaim_restore(&successor);
	assert_value(f.boost, "7");
	end(&f);
}

static void left_alone(void **state)
{
	struct fixture f;
	struct reclaim r;

	/* It is off already, and stays so. */
	begin(&f, "0");
	reclaim_adapt(&r, f.boost, f.file);
	reclaim_restore(&r);
	assert_value(f.boost, "0");
	assert_int_equal(access(f.file, F_OK), -1);
	/* Somebody has set it to what he wants since. */
	set(f.boost, "7");
	reclaim_adapt(&r, f.boost, f.file);
	set(f.boost, "9");
	reclaim_restore(&r);
	assert_value(f.boost, "9");
	assert_int_equal(access(f.file, F_OK), -1);
	/* And a later daemon puts that back. */
	reclaim_adapt(&r, f.boost, f.file);
	reclaim_restore(&r);
	assert_value(f.boost, "9");
	end(&f);
}

static void not_there(void **state)
{
	struct fixture f;
	struct reclaim r;

	begin(&f, NULL);
	reclaim_adapt(&r, f.boost, f.file);
	assert_int_equal(r.fd, -1);
	assert_int_equal(access(f.file, F_OK), -1);
	reclaim_restore(&r);
	/* No place for the file: the setting is not touched, since it could not be put back. */
	set(f.boost, "7");
	reclaim_adapt(&r, f.boost, "/proc/nowhere/file");
	assert_value(f.boost, "7");
	reclaim_restore(&r);
	assert_value(f.boost, "7");
	end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(set_and_put_back), cmocka_unit_test(the_last_puts_it_back),
		cmocka_unit_test(killed_before),    cmocka_unit_test(left_alone),
		cmocka_unit_test(not_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

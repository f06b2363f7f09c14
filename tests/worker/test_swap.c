// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/swaps.h"
#include "common/textfile.h"
#include "common/util.h"
#include "daemon/worker/swap.h"
#include "tests/lib/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/swap.h>

#include <cmocka.h>

#define HEADING "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"

static void meminfo(void **state)
{
	struct swap_meminfo mem = {77, 77};

	assert_int_equal(swap_parse_meminfo("MemTotal:       24684000 kB\n"
					    "MemFree:          111111 kB\n"
					    "MemAvailable:   1048576 kB\n"
					    "SwapTotal: 5 kB\n",
					    &mem),
			 0);
	assert_int_equal(mem.total, KIB(24684000));
	assert_int_equal(mem.available, GIB(1));
}

static void meminfo_malformed(void **state)
{
	static const char *const texts[] = {
		"",
		"MemTotal: 5 kB\n",
		"MemAvailable: 5 kB\n",
		"MemTotal: 5 kB\nXMemAvailable: 5 kB\n",
		"MemTotal: 5 kB\nMemAvailable: x kB\n",
		"MemTotal: 5 kB\nMemAvailable: -5 kB\n",
		"MemTotal: 5 kB\nMemAvailable: 5\n",
		"MemTotal: 5 kB\nMemAvailable: 5 MB\n",
		"MemTotal: 5 kB\nMemAvailable: 99999999999999999999 kB\n",
		"MemTotal: 5 kB\nMemAvailable: 18446744073709551615 kB\n",
		"MemTotal: 5 kB\nMemAvailable:",
	};
	struct swap_meminfo mem = {77, 77};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		if (swap_parse_meminfo(texts[i], &mem) != -EBADMSG)
			fail_msg("accepted: %s", texts[i]);
		assert_int_equal(mem.total, 77);
		assert_int_equal(mem.available, 77);
	}
}

static void the_others_free_space(void **state)
{
	uint64_t total = 77, used = 77, other = 77;
	struct stat st;

	/* Any two inodes will do. */
	assert_int_equal(stat("/etc/passwd", &st), 0);
	assert_int_equal(swap_parse_swaps(HEADING "/dev/gone partition 1000 100 5\n"
						  "/etc/passwd file 500 50 5\n"
						  "/etc/group file 8 8 5\n"
						  "/dev/odd partition 1 2 5\n",
					  &st, &total, &used, &other),
			 0);
	assert_int_equal(total, KIB(500));
	assert_int_equal(used, KIB(50));
	assert_int_equal(other, KIB(900));

	total = used = other = 77;
	assert_int_equal(swap_parse_swaps(HEADING "/dev/gone partition 1000 100 5\n", &st, &total,
					  &used, &other),
			 -ENOENT);
	assert_int_equal(
		swap_parse_swaps(HEADING "/etc/passwd file 5 x 5\n", &st, &total, &used, &other),
		-EBADMSG);
	assert_int_equal(total + used + other, 3 * 77);
}

static void the_margin(void **state)
{
	static const struct {
		uint64_t ram, available, other, want;
	} rows[] = {
		{GIB(1), MIB(100), 0, MIB(68)},	       /* 1/32 of RAM */
		{GIB(2), MIB(100), 0, MIB(36)},	       /* 64 MiB */
		{GIB(64), MIB(100), 0, MIB(36)},       /* still */
		{GIB(64), MIB(100), MIB(50), MIB(86)}, /* with another device */
		{GIB(64), MIB(64), 0, 0},
		{GIB(64), MIB(63), 0, 0},
		{GIB(64), 0, 0, 0},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct swap_meminfo mem = {rows[i].ram, rows[i].available};

		assert_int_equal(swap_available(&mem, rows[i].other), rows[i].want);
	}
}

/* --- a real, tiny device that nothing is swapped to --- */

static struct scratch scratch;

static int setup(void **state)
{
	scratch_init(&scratch);
	return 0;
}

static int teardown(void **state)
{
	scratch_deinit(&scratch);
	return 0;
}

static bool cannot_run(void)
{
	const char *why = scratch_no_loops();

	if (why)
		print_message("skipped: %s\n", why);
	return why != NULL;
}

static int priority_of(const char *dev)
{
	cleanup_free char *text = NULL;
	struct swaps_entry e;
	struct stat st;

	assert_int_equal(stat(dev, &st), 0);
	assert_int_equal(textfile_read(SWAPS_PATH, &text), 0);
	assert_int_equal(swaps_find(text, &st, &e), 1);
	return e.priority;
}

static void on_and_off(void **state)
{
	uint64_t total = 77, used = 77, needed = 77, available = 77;
	const char *dev, *link;

	if (cannot_run())
		skip();
	dev = scratch_loop(&scratch, "disk", MIB(8));
	link = scratch_path(&scratch, "by-name");
	assert_int_equal(symlink(dev, link), 0);

	assert_int_equal(swap_usage(dev, &total, &used), -ENOENT);
	assert_int_equal(swap_off_check(dev, &needed, &available), -ENOENT);
	assert_int_equal(swap_off(dev, NULL, NULL), -ENOENT);
	assert_int_equal(swap_usage("/dev/no-such-device", &total, &used), -ENOENT);
	assert_int_equal(total + used + needed + available, 4 * 77);
	/* Without a signature there is nothing to switch on. */
	assert_int_equal(swap_on(dev, 0, false), -EINVAL);

	assert_int_equal(swap_format(dev, "zswapd-test"), 0);
	assert_int_equal(
		scratch_run("test \"$(blkid -p -o value -s LABEL %s)\" = zswapd-test", dev), 0);
	assert_int_equal(swap_on(link, 3, true), 0);
	assert_int_equal(priority_of(dev), 3);
	assert_int_equal(swap_on(dev, 3, true), -EBUSY);
	/* One page is the header. */
	assert_int_equal(swap_usage(link, &total, &used), 0);
	assert_int_equal(total, MIB(8) - 4096);
	assert_true(used <= total);
	assert_int_equal(swap_off_check(link, &needed, &available), 0);
	assert_int_equal(needed, used);
	assert_true(available > 0);
	/* Nothing of it while it is on. */
	assert_int_equal(swap_format(dev, NULL), -EIO);
	assert_int_equal(swap_off(link, NULL, NULL), 0);
	assert_int_equal(swap_usage(dev, &total, &used), -ENOENT);

	assert_int_equal(swap_format(dev, NULL), 0);
	assert_int_equal(swap_on(dev, SWAP_PRIORITY_DEFAULT, false), 0);
	assert_true(priority_of(dev) < 0);
	assert_int_equal(swap_off(dev, NULL, NULL), 0);
}

static void wrong_arguments(void **state)
{
	assert_int_equal(swap_on("/dev/no-such-device", -2, false), -EINVAL);
	assert_int_equal(swap_on("/dev/no-such-device", 32768, false), -EINVAL);
	if (cannot_run())
		skip();
	assert_int_equal(swap_on("/dev/no-such-device", 5, false), -ENOENT);
	assert_int_equal(swap_format("/dev/no-such-device", NULL), -EIO);
	assert_int_equal(swap_format(scratch_loop(&scratch, "small", KIB(8)), NULL), -EIO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(meminfo),
		cmocka_unit_test(meminfo_malformed),
		cmocka_unit_test(the_others_free_space),
		cmocka_unit_test(the_margin),
		cmocka_unit_test_setup_teardown(on_and_off, setup, teardown),
		cmocka_unit_test_setup_teardown(wrong_arguments, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

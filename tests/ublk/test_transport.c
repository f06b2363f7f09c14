// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/ublk/internal.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void numbers_of_devices(void **state)
{
	static const struct {
		const char *path;
		uint32_t number;
	} right[] = {
		{"/dev/ublkb0", 0},
		{"/dev/ublkb7", 7},
		{"/dev/ublkb1048575", 1048575},
		{"/dev/ublkb2147483646", 2147483646},
	};
	static const char *const wrong[] = {
		"",
		"/dev/ublkb",
		"/dev/ublkb-1",
		"/dev/ublkb+1",
		"/dev/ublkb 1",
		"/dev/ublkb1 ",
		"/dev/ublkb1p1",
		"/dev/ublkc1",
		"/dev/ublkb0x1",
		"ublkb1",
		"/dev/zswap/ublkb1",
		"/dev/loop1",
		"//dev/ublkb1",
		"/dev/ublkb2147483647",
		"/dev/ublkb4294967296",
		"/dev/ublkb1/../x",
		"/dev/ublkb99999999999999999999",
	};

	for (size_t i = 0; i < ARRAY_SIZE(right); i++) {
		uint32_t n = 77;

		assert_true(ublk_device_number(right[i].path, &n));
		assert_int_equal(n, right[i].number);
	}
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		uint32_t n = 77;

		if (ublk_device_number(wrong[i], &n))
			fail_msg("'%s' is taken for device %u", wrong[i], n);
		assert_int_equal(n, 77);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_of_devices),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

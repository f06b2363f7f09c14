// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/size.h"
#include "common/util.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define RAM (GIB(8) + 1234567)

static void assert_parses(const char *text, uint64_t expected)
{
	uint64_t bytes = 77;

	assert_int_equal(size_parse(text, RAM, &bytes), 0);
	assert_int_equal(bytes, expected);
}

static void assert_refused(const char *text, int error)
{
	uint64_t bytes = 77;

	assert_int_equal(size_parse(text, RAM, &bytes), error);
	assert_int_equal(bytes, 77); /* untouched on failure */
}

static void plain_and_units(void **state)
{
	assert_parses("0", 0);
	assert_parses("4096", 4096);
	assert_parses("0064", 64);
	assert_parses("64K", KIB(64));
	assert_parses("64k", KIB(64));
	assert_parses("64KiB", KIB(64));
	assert_parses("64kib", KIB(64));
	assert_parses("2M", MIB(2));
	assert_parses("2MiB", MIB(2));
	assert_parses("1G", GIB(1));
	assert_parses("3gib", GIB(3));
	assert_parses("1T", GIB(1024));
	assert_parses("16t", GIB(16384));
	assert_parses("1TiB", GIB(1024));
	assert_parses("18446744073709551615", UINT64_MAX);
	assert_parses("16777215T", UINT64_C(16777215) << 40);
}

static void shares(void **state)
{
	uint64_t bytes = 77;

	assert_parses("0%", 0);
	assert_parses("1%", RAM / 100);
	assert_parses("25%", RAM / 4);
	assert_parses("50%", RAM / 2);
	assert_parses("100%", RAM);
	assert_parses("250%", RAM * 5 / 2);
	assert_int_equal(size_parse("33%", 1000, &bytes), 0);
	assert_int_equal(bytes, 330);
	/* Where 100 times the RAM no longer fits 64 bits. */
	assert_int_equal(size_parse("50%", UINT64_MAX, &bytes), 0);
	assert_int_equal(bytes, UINT64_MAX / 2);
	assert_int_equal(size_parse("100%", UINT64_MAX, &bytes), 0);
	assert_int_equal(bytes, UINT64_MAX);
}

static void share_without_ram(void **state)
{
	uint64_t bytes = 77;

	assert_int_equal(size_parse("50%", 0, &bytes), -EINVAL);
	assert_int_equal(bytes, 77);
	assert_int_equal(size_parse("50M", 0, &bytes), 0);
	assert_int_equal(bytes, MIB(50));
}

static void garbage(void **state)
{
	static const char *const bad[] = {
		"",	" ",	" 64K", "64K ",	 "64 K",      "-1",    "-1K",  "+1",
		"K",	"%",	"1.5G", "1,5G",	 ".5G",	      "12.5%", "0x10", "1e6",
		"64KB", "64B",	"64Ki", "64KK",	 "64P",	      "64E",   "25%%", "25 %",
		"%25",	"25%K", "64M;", "64M\n", "\xc2\xbdG",
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_refused(bad[i], -EINVAL);
}

static void overflow(void **state)
{
	static const char *const bad[] = {
		"18446744073709551616",	 "99999999999999999999999999",
		"18014398509481984K",	 "17592186044416M",
		"17179869184G",		 "16777216T",
		"18446744073709551615%", "18446744073709551616%",
		"300000000000%",
	};
	uint64_t bytes = 77;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_refused(bad[i], -ERANGE);
	assert_int_equal(size_parse("101%", UINT64_MAX, &bytes), -ERANGE);
	assert_int_equal(bytes, 77);
}

static void format(void **state)
{
	static const struct {
		uint64_t bytes;
		const char *text;
	} t[] = {
		{0, "0 B"},
		{1, "1 B"},
		{1023, "1023 B"},
		{1024, "1.0 KiB"},
		{1536, "1.5 KiB"},
		{4096, "4.0 KiB"},
		{MIB(1) - 52, "1023.9 KiB"},
		{MIB(1) - 1, "1.0 MiB"},
		{MIB(256), "256.0 MiB"},
		{GIB(1) - 1, "1.0 GiB"},
		{GIB(2) + MIB(256), "2.3 GiB"},
		{GIB(16384), "16.0 TiB"},
		{UINT64_C(1) << 50, "1.0 PiB"},
		{UINT64_C(1) << 60, "1.0 EiB"},
		{UINT64_MAX, "16.0 EiB"},
	};
	char buf[SIZE_TEXT_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(t); i++)
		assert_string_equal(size_format(buf, t[i].bytes), t[i].text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_and_units),   cmocka_unit_test(shares),
		cmocka_unit_test(share_without_ram), cmocka_unit_test(garbage),
		cmocka_unit_test(overflow),	     cmocka_unit_test(format),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/util.h"
#include "ctl/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void strings_are_valid_json(void **state)
{
	static const struct {
		const char *text, *json;
	} t[] = {
		{"", "\"\""},
		{"a \"b\" \\ \n\x7f", "\"a \\\"b\\\" \\\\ \\u000a\\u007f\""},
		{"/store/M\xc3\xbcll", "\"/store/M\\u00fcll\""},
		{"\xe2\x82\xac", "\"\\u20ac\""},
		{"\xf0\x9f\x98\x80", "\"\\ud83d\\ude00\""},
		/* cut off, out of place, too long, half of a pair, beyond the last */
		{"a\xc3", "\"a\\ufffd\""},
		{"\xe2\x82", "\"\\ufffd\\ufffd\""},
		{"\xc3(", "\"\\ufffd(\""},
		{"\xbc", "\"\\ufffd\""},
		{"\xfc", "\"\\ufffd\""},
		{"\xc0\x80", "\"\\ufffd\\ufffd\""},
		{"\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\""},
		{"\xf4\x90\x80\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\""},
		{"\xf5\x80\x80\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\""},
	};

	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		char buf[64] = "";
		FILE *f = fmemopen(buf, sizeof(buf), "w");

		assert_non_null(f);
		json_string(f, t[i].text);
		fclose(f);
		assert_string_equal(buf, t[i].json);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(strings_are_valid_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

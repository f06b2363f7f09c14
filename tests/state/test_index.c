// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/state/index.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void object_fields_are_kept_apart(void **state)
{
	static const uint32_t segments[] = {0, 1, 0x80000000u, UINT32_MAX - 1, UINT32_MAX};
	static const uint32_t offsets[] = {0, 4, 4096, (1u << 20) - 4};
	static const uint32_t sizes[] = {12, 16, 4108, 8188};

	for (unsigned i = 0; i < 5; i++) {
		for (unsigned j = 0; j < 4; j++) {
			for (unsigned k = 0; k < 4; k++) {
				uint64_t w = index_make_object(segments[i], offsets[j], sizes[k]);

				assert_int_equal(index_tag(w), INDEX_OBJECT);
				assert_int_equal(w & INDEX_REF, 0);
				assert_int_equal(index_segment(w), segments[i]);
				assert_int_equal(index_offset(w), offsets[j]);
				assert_int_equal(index_size(w), sizes[k]);
				assert_int_equal(index_offset(w | INDEX_REF), offsets[j]);
				assert_true(index_same_object(w, w | INDEX_REF));
				assert_false(index_same_object(
					w,
					index_make_object(segments[i], offsets[j] ^ 8, sizes[k])));
			}
		}
	}
}

static void same_filled_values_fit_or_not(void **state)
{
	static const uint64_t fit[] = {
		0, 1, 0x1fffffffffffffffull, UINT64_MAX, 0xe000000000000000ull, 42};
	static const uint64_t wide[] = {0x2000000000000000ull, 0x4141414141414141ull,
					0xdfffffffffffffffull, 0xa5a5a5a5a5a5a5a5ull};

	for (unsigned i = 0; i < 6; i++) {
		uint64_t w = index_make_same(fit[i]);

		assert_true(index_same_fits(fit[i]));
		assert_int_equal(index_tag(w), INDEX_SAME);
		assert_true(index_same_value(w) == fit[i]);
	}
	for (unsigned i = 0; i < 4; i++)
		assert_false(index_same_fits(wide[i]));
}

static void replace_needs_the_same_object(void **state)
{
	uint64_t a = index_make_object(1, 8, 16), b = index_make_object(2, 8, 16);
	index_word w = a | INDEX_REF;

	assert_true(index_replace(&w, a, b));
	assert_true(index_load(&w) == b);
	assert_false(index_replace(&w, a, b));
	assert_true(index_load(&w) == b);
	assert_true(index_exchange(&w, INDEX_EMPTY) == b);
	assert_true(index_is_empty(&w));
	assert_false(index_replace(&w, a, b));
	assert_true(index_claim(&w, a));
	assert_false(index_claim(&w, b));
	assert_false(index_is_empty(&w));
	assert_true(index_reload(&w) == a);
}

static void marks_touch_their_object_only(void **state)
{
	uint64_t a = index_make_object(1, 8, 16), b = index_make_object(2, 8, 16);
	index_word w = a;

	index_set_ref(&w, a);
	assert_true(index_load(&w) == (a | INDEX_REF));
	index_set_ref(&w, b); /* replaced since it was loaded */
	assert_true(index_load(&w) == (a | INDEX_REF));
	index_clear_ref(&w, b | INDEX_REF);
	assert_true(index_load(&w) == (a | INDEX_REF));
	index_clear_ref(&w, a | INDEX_REF);
	assert_true(index_load(&w) == a);
	index_clear_ref(&w, a);
	assert_true(index_load(&w) == a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(object_fields_are_kept_apart),
		cmocka_unit_test(same_filled_values_fit_or_not),
		cmocka_unit_test(replace_needs_the_same_object),
		cmocka_unit_test(marks_touch_their_object_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/system/pagegen.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "common/util.h"

#define CORPUS 37u
#define PAGES  600u

static uint64_t corpus[CORPUS * PAGEGEN_WORDS];

/* Page 5 is zero, page 6 filled with a word, the others differ in every word. */
static int set_up(void **state)
{
	for (unsigned i = 0; i < ARRAY_SIZE(corpus); i++) {
		unsigned page = i / PAGEGEN_WORDS;

		corpus[i] = page == 5 ? 0 : page == 6 ? 0x1111 : pagegen_mix(i);
	}
	return 0;
}

static struct pagegen make(enum pagegen_same same, uint32_t seed)
{
	return (struct pagegen){.corpus = corpus, .nr = CORPUS, .seed = seed, .same = same};
}

static bool same_filled(const uint64_t *p)
{
	return !memcmp(p, p + 1, PAGEGEN_PAGE - 8);
}

static unsigned count_same_filled(const struct pagegen *g)
{
	uint64_t page[PAGEGEN_WORDS];
	unsigned n = 0;

	for (uint32_t i = 0; i < PAGES; i++) {
		pagegen_make(g, i, 0, page);
		n += same_filled(page);
	}
	return n;
}

static void distinct(void **state)
{
	static const enum pagegen_same modes[] = {SAME_WORD, SAME_STAMP};
	static uint64_t pages[PAGES * 2][PAGEGEN_WORDS];

	for (unsigned m = 0; m < ARRAY_SIZE(modes); m++) {
		struct pagegen g = make(modes[m], 3);

		for (uint32_t i = 0; i < PAGES; i++) {
			pagegen_make(&g, i, 0, pages[2 * i]);
			pagegen_make(&g, i, CORPUS, pages[2 * i + 1]); /* same corpus page */
		}
		for (unsigned i = 0; i < ARRAY_SIZE(pages); i++)
			for (unsigned k = 0; k < i; k++)
				assert_memory_not_equal(pages[i], pages[k], PAGEGEN_PAGE);
	}
}

static void made_again(void **state)
{
	struct pagegen g = make(SAME_WORD, 9), other = make(SAME_WORD, 10);
	uint64_t a[PAGEGEN_WORDS], b[PAGEGEN_WORDS], scratch[PAGEGEN_WORDS];
	size_t at;

	for (uint32_t i = 0; i < PAGES; i++) {
		pagegen_make(&g, i, i % 5, a);
		pagegen_make(&g, i, i % 5, b);
		assert_memory_equal(a, b, PAGEGEN_PAGE);
		assert_true(pagegen_check(&g, i, i % 5, a, scratch, &at));
		assert_false(pagegen_check(&g, i, i % 5 + 1, a, scratch, &at));
		assert_false(pagegen_check(&g, i + 1, i % 5, a, scratch, &at));
		assert_false(pagegen_check(&other, i, i % 5, a, scratch, &at));
	}
}

static void every_byte_is_checked(void **state)
{
	struct pagegen g = make(SAME_WORD, 1);
	uint64_t a[PAGEGEN_WORDS], scratch[PAGEGEN_WORDS];
	uint8_t *bytes = (uint8_t *)a;
	size_t at;

	pagegen_make(&g, 77, 2, a);
	for (size_t i = 0; i < PAGEGEN_PAGE; i++) {
		bytes[i] ^= 0x10;
		at = SIZE_MAX;
		assert_false(pagegen_check(&g, 77, 2, a, scratch, &at));
		assert_int_equal(at, i);
		bytes[i] ^= 0x10;
	}
	assert_true(pagegen_check(&g, 77, 2, a, scratch, &at));
}

static void word_lies_in_page(void **state)
{
	static const enum pagegen_same modes[] = {SAME_WORD, SAME_KEEP, SAME_STAMP};
	uint64_t page[PAGEGEN_WORDS];

	for (unsigned m = 0; m < ARRAY_SIZE(modes); m++) {
		struct pagegen g = make(modes[m], 4);

		for (uint32_t i = 0; i < PAGES; i++) {
			unsigned at = PAGEGEN_WORDS;
			uint64_t word = pagegen_word(&g, i, i % 3, &at);

			pagegen_make(&g, i, i % 3, page);
			assert_in_range(at, 0, PAGEGEN_WORDS - 1);
			assert_int_equal(page[at], word);
		}
	}
}

static void same_filled_modes(void **state)
{
	struct pagegen word = make(SAME_WORD, 4), keep = make(SAME_KEEP, 4);
	struct pagegen stamp = make(SAME_STAMP, 4);
	uint64_t page[PAGEGEN_WORDS];

	/* About 2 of 37, as in the corpus. */
	assert_in_range(count_same_filled(&word), PAGES / 40, PAGES / 10);
	assert_int_equal(count_same_filled(&keep), count_same_filled(&word));
	assert_int_equal(count_same_filled(&stamp), 0);
	for (uint32_t i = 0; i < PAGES; i++) {
		pagegen_make(&word, i, 0, page);
		assert_true(page[0] || !same_filled(page));
		pagegen_make(&keep, i, 0, page);
		assert_true(!same_filled(page) || page[0] == 0 || page[0] == 0x1111);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(distinct),
		cmocka_unit_test(made_again),
		cmocka_unit_test(every_byte_is_checked),
		cmocka_unit_test(word_lies_in_page),
		cmocka_unit_test(same_filled_modes),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}

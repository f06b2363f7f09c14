// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/codec/codec.h"
#include "tests/lib/allocs.h"
#include "tests/model/pages.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static uint8_t page[CODEC_PAGE_SIZE], out[CODEC_PAGE_SIZE], packed[2 * CODEC_PAGE_SIZE];

static struct codec *codec_at(int level)
{
	struct codec *c = NULL;

	assert_int_equal(codec_new(&c, level), 0);
	return c;
}

static size_t round_trip(struct codec *c, uint64_t seed)
{
	size_t n;

	page_make(seed, page);
	n = codec_compress(c, packed, sizeof(packed), page);
	assert_true(n > 0);
	memset(out, 0xee, sizeof(out));
	assert_int_equal(codec_decompress(c, out, packed, n), 0);
	assert_memory_equal(out, page, sizeof(page));
	return n;
}

static void levels_are_limited(void **state)
{
	struct codec *c = (struct codec *)page;

	assert_int_equal(codec_new(&c, CODEC_LEVEL_MIN - 1), -EINVAL);
	assert_int_equal(codec_new(&c, CODEC_LEVEL_MAX + 1), -EINVAL);
	assert_ptr_equal(c, page);
	codec_free(NULL);
}

static void every_level(void **state)
{
	size_t sizes[CODEC_LEVEL_MAX - CODEC_LEVEL_MIN + 1] = {0};

	for (int level = CODEC_LEVEL_MIN; level <= CODEC_LEVEL_MAX; level++) {
		struct codec *c = codec_at(level);

		for (uint64_t seed = 0; seed < 64; seed++)
			sizes[level - CODEC_LEVEL_MIN] += round_trip(c, seed);
		codec_free(c);
	}
	/* The level does something. */
	assert_true(sizes[CODEC_LEVEL_MAX - CODEC_LEVEL_MIN] < sizes[0]);
}

/* From each level to each other, since a workspace is made once for all of them. */
static void every_change_of_level(void **state)
{
	struct codec *c = codec_at(1);

	for (int a = CODEC_LEVEL_MIN; a <= CODEC_LEVEL_MAX; a++) {
		for (int b = CODEC_LEVEL_MIN; b <= CODEC_LEVEL_MAX; b++) {
			codec_set_level(c, a);
			round_trip(c, 4);
			codec_set_level(c, b);
			round_trip(c, 5);
		}
	}
	codec_free(c);
}

/* zstd shrinks a workspace that was too large for many pages in a row; a static one it can't. */
static void many_small_after_a_large_level(void **state)
{
	struct codec *c = codec_at(CODEC_LEVEL_MAX);

	round_trip(c, 5);
	codec_set_level(c, CODEC_LEVEL_MIN);
	for (uint64_t i = 0; i < 3000; i++)
		round_trip(c, i);
	codec_free(c);
}

/* A codec whose level was changed makes what a codec of that level makes. */
static void changed_level_is_the_level(void **state)
{
	struct codec *a = codec_at(-7), *b = codec_at(12);
	uint8_t other[CODEC_PAGE_SIZE];
	size_t n;

	round_trip(a, 5);
	codec_set_level(a, 12);
	page_make(6, page);
	n = codec_compress(a, packed, sizeof(packed), page);
	assert_int_equal(codec_compress(b, other, sizeof(other), page), n);
	assert_memory_equal(packed, other, n);
	codec_free(a);
	codec_free(b);
}

static void what_does_not_fit_is_told(void **state)
{
	struct codec *c = codec_at(3);
	size_t n = round_trip(c, 5);

	page_make(5, page);
	memset(packed, 0xcc, sizeof(packed));
	for (size_t cap = 0; cap < n; cap++) {
		assert_int_equal(codec_compress(c, packed, cap, page), 0);
		assert_int_equal(packed[cap], 0xcc); /* not written behind */
	}
	assert_int_equal(codec_compress(c, packed, n + 16, page), n);
	page_make(2, page); /* random bytes */
	assert_int_equal(codec_compress(c, packed, CODEC_PAGE_SIZE - CODEC_PAGE_SIZE / 8, page), 0);
	/* A failure leaves no trace, nor does it keep the level from being changed. */
	round_trip(c, 5);
	page_make(2, page);
	assert_int_equal(codec_compress(c, packed, 100, page), 0);
	codec_set_level(c, -3);
	round_trip(c, 5);
	codec_free(c);
}

static void damaged_frames_never_crash(void **state)
{
	struct codec *c = codec_at(3);
	struct rng r = {42};
	uint8_t *exact;

	for (unsigned i = 0; i < 20000; i++) {
		uint64_t seed = rng_next(&r);
		size_t n, len;

		page_make(seed, page);
		n = codec_compress(c, packed, sizeof(packed), page);
		len = rng_below(&r, 3) ? n : rng_below(&r, n + 1);
		/* Of its very size, so that a sanitizer sees reads behind it. */
		exact = malloc(len + 1);
		memcpy(exact, packed, len);
		for (uint64_t k = rng_below(&r, 4); k > 0 && len > 0; k--)
			exact[rng_below(&r, len)] ^= (uint8_t)rng_next(&r);
		(void)codec_decompress(c, out, exact, len);
		free(exact);
	}
	for (size_t len = 0; len < 200; len++) {
		for (size_t i = 0; i < len; i++)
			packed[i] = (uint8_t)rng_next(&r);
		(void)codec_decompress(c, out, packed, len);
	}
	round_trip(c, 5);
	codec_free(c);
}

static void short_and_long_frames_are_errors(void **state)
{
	struct codec *c = codec_at(3);
	size_t n = round_trip(c, 5);

	assert_int_equal(codec_decompress(c, out, packed, 0), -EIO);
	for (size_t len = 1; len < n; len++)
		assert_int_equal(codec_decompress(c, out, packed, len), -EIO);
	memcpy(packed + n, packed, n); /* two pages */
	assert_int_equal(codec_decompress(c, out, packed, 2 * n), -EIO);
	assert_int_equal(codec_decompress(c, out, packed, n + 1), -EIO);
	assert_int_equal(codec_decompress(c, out, packed, n), 0);
	codec_free(c);
}

static void same_filled(void **state)
{
	static const uint64_t values[] = {0, 1, UINT64_MAX, 0x4141414141414141ull};
	uint64_t value;

	for (unsigned i = 0; i < 4; i++) {
		page_fill(page, values[i]);
		assert_true(page_same_filled(page, &value));
		assert_true(value == values[i]);
	}
	/* Any byte that differs, at every position. */
	for (size_t i = 0; i < CODEC_PAGE_SIZE; i++) {
		page_fill(page, 0x4141414141414141ull);
		page[i] ^= 1;
		value = 77;
		assert_false(page_same_filled(page, &value));
		assert_int_equal(value, 77);
	}
	/* A period of 16 bytes is not one of 8. */
	for (size_t i = 0; i < CODEC_PAGE_SIZE / 8; i++)
		((uint64_t *)page)[i] = i % 2;
	assert_false(page_same_filled(page, &value));
}

static void nothing_is_allocated(void **state)
{
	struct codec *c;
	unsigned long before;

	if (!allocs_counted())
		skip();
	before = allocs_of_thread();
	c = codec_at(1);
	assert_true(allocs_of_thread() > before); /* the counter counts */
	before = allocs_of_thread();
	for (int level = CODEC_LEVEL_MIN; level <= CODEC_LEVEL_MAX; level++) {
		codec_set_level(c, level);
		for (uint64_t seed = 0; seed < 16; seed++) {
			round_trip(c, seed);
			packed[3] ^= 0x55;
			(void)codec_decompress(c, out, packed, 20);
			(void)codec_compress(c, packed, 10, page);
		}
	}
	assert_int_equal(allocs_of_thread(), before);
	codec_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(levels_are_limited),
		cmocka_unit_test(every_level),
		cmocka_unit_test(every_change_of_level),
		cmocka_unit_test(many_small_after_a_large_level),
		cmocka_unit_test(changed_level_is_the_level),
		cmocka_unit_test(what_does_not_fit_is_told),
		cmocka_unit_test(damaged_frames_never_crash),
		cmocka_unit_test(short_and_long_frames_are_errors),
		cmocka_unit_test(same_filled),
		cmocka_unit_test(nothing_is_allocated),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

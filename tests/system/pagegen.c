// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/system/pagegen.h"

#include <string.h>

/* Neighbours that stay together; the default window of swap readahead is 8. */
#define RUN_PAGES 16u

/* Prime and far from any power of two, so that generations walk over the whole corpus. */
#define GENERATION_STEP 7919u

uint64_t pagegen_mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

static const uint64_t *corpus_page(const struct pagegen *g, uint32_t index, uint32_t gen)
{
	uint64_t run = pagegen_mix((uint64_t)g->seed << 32 | index / RUN_PAGES);
	uint64_t n = run % g->nr + index % RUN_PAGES + (uint64_t)gen * GENERATION_STEP;

	return g->corpus + n % g->nr * PAGEGEN_WORDS;
}

/* First looks at two words that nearly always tell. */
static bool is_same_filled(const uint64_t *p)
{
	return p[0] == p[PAGEGEN_WORDS - 1] && !memcmp(p, p + 1, PAGEGEN_PAGE - 8);
}

static unsigned stamp_word(const struct pagegen *g, uint32_t index, uint32_t gen)
{
	uint64_t h = pagegen_mix(pagegen_mix((uint64_t)g->seed << 32 | index) + gen);

	return (unsigned)(h % (PAGEGEN_PAGE / 16)) * 2;
}

/* 32 bits of index, 24 of generation, 7 of seed, one that keeps it from being zero. */
static uint64_t fill_word(const struct pagegen *g, uint32_t index, uint32_t gen)
{
	return (uint64_t)(g->seed | 0x80) << 56 | (uint64_t)(gen & 0xffffff) << 32 | index;
}

static uint64_t first_stamp(const struct pagegen *g, uint32_t index)
{
	return (uint64_t)g->seed << 32 | index;
}

void pagegen_make(const struct pagegen *g, uint32_t index, uint32_t gen, uint64_t *out)
{
	const uint64_t *p = corpus_page(g, index, gen);
	unsigned at;

	if (g->same == SAME_WORD && is_same_filled(p)) {
		for (unsigned i = 0; i < PAGEGEN_WORDS; i++)
			out[i] = fill_word(g, index, gen);
		return;
	}
	memcpy(out, p, PAGEGEN_PAGE);
	if (g->same == SAME_KEEP && is_same_filled(p))
		return;
	at = stamp_word(g, index, gen);
	out[at] = first_stamp(g, index);
	out[at + 1] = gen;
}

uint64_t pagegen_word(const struct pagegen *g, uint32_t index, uint32_t gen, unsigned *ret_word)
{
	const uint64_t *p = corpus_page(g, index, gen);

	*ret_word = stamp_word(g, index, gen);
	if (g->same == SAME_STAMP || !is_same_filled(p))
		return first_stamp(g, index);
	return g->same == SAME_WORD ? fill_word(g, index, gen) : p[0];
}

bool pagegen_check(const struct pagegen *g, uint32_t index, uint32_t gen, const void *page,
		   uint64_t *scratch, size_t *ret_offset)
{
	const uint8_t *found = page, *expected = (const uint8_t *)scratch;
	size_t i = 0;

	pagegen_make(g, index, gen, scratch);
	if (!memcmp(found, expected, PAGEGEN_PAGE))
		return true;
	while (i < PAGEGEN_PAGE - 1 && found[i] == expected[i])
		i++;
	*ret_offset = i;
	return false;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The pages of the swap workload: any page of any generation can be made again from (seed, index,
 * generation), so that every byte can be checked, and yet it compresses as real memory does.
 *
 * A page is a page of the corpus with 16 bytes replaced:
 *
 *   corpus page   (hash(seed, index / 16) + index % 16 + generation * 7919) mod corpus size.
 *                 Sixteen neighbours in the workload are sixteen neighbours in the corpus, since
 *                 dictionaries and readahead live from what real neighbours share.
 *   stamp         two words at 16 * (hash(seed, index, generation) mod 256): seed and index, then
 *                 the generation.  No two pages are equal, whatever the corpus holds.
 *
 * A stamp would spoil same-filled pages of the corpus.  What becomes of them is a choice:
 *
 *   SAME_WORD     same-filled still, with a word made from seed, index and generation: distinct
 *                 and checkable.  Never zero, so the swap core does not keep it to itself.
 *   SAME_KEEP     as in the corpus, that is nearly always zero.  Not distinct, but what a machine
 *                 really swaps; for benchmarks.
 *   SAME_STAMP    stamped like any other page; for swap that has no same-filled pages.
 *
 * No state but the corpus; callable from any thread.
 */
#ifndef ZSWAPD_TESTS_SYSTEM_PAGEGEN_H
#define ZSWAPD_TESTS_SYSTEM_PAGEGEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PAGEGEN_PAGE  4096u
#define PAGEGEN_WORDS (PAGEGEN_PAGE / 8)

enum pagegen_same {
	SAME_WORD,
	SAME_KEEP,
	SAME_STAMP,
};

struct pagegen {
	const uint64_t *corpus; /* nr pages */
	uint64_t nr;
	uint32_t seed;
	enum pagegen_same same;
};

/* A hash of a number, every bit of which depends on all of @x. */
uint64_t pagegen_mix(uint64_t x);

/* Makes page @index of generation @gen in @out, which is 4096 bytes, 8-aligned. */
void pagegen_make(const struct pagegen *g, uint32_t index, uint32_t gen, uint64_t *out);

/* One word that tells this page from others, and where it lies (*ret_word < PAGEGEN_WORDS). */
uint64_t pagegen_word(const struct pagegen *g, uint32_t index, uint32_t gen, unsigned *ret_word);

/*
 * Compares every byte of @page with what it must be; @scratch is 4096 bytes, 8-aligned, and
 * afterwards holds what was expected.  On a difference returns false and the first byte's offset.
 */
bool pagegen_check(const struct pagegen *g, uint32_t index, uint32_t gen, const void *page,
		   uint64_t *scratch, size_t *ret_offset);

#endif

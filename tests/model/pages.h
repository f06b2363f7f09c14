/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Pages made from a 64-bit seed, so that a model need only remember the seed.  The kinds are mixed
 * as in the memory of real programs: some same-filled, a few that do not compress, most that shrink
 * to between a third and a tenth.
 */
#ifndef ZSWAPD_TESTS_MODEL_PAGES_H
#define ZSWAPD_TESTS_MODEL_PAGES_H

#include <stdbool.h>
#include <stdint.h>

#define PAGE_BYTES 4096u

static inline uint64_t mix64(uint64_t x)
{
	/* splitmix64 (S. Vigna), the finaliser */
	x += 0x9e3779b97f4a7c15ull;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

struct rng {
	uint64_t state;
};

static inline uint64_t rng_next(struct rng *r)
{
	return mix64(r->state++);
}

/* Below @n. */
static inline uint64_t rng_below(struct rng *r, uint64_t n)
{
	return rng_next(r) % n;
}

/* Seed 0 is the page of zeroes, what an empty slot reads as. */
void page_make(uint64_t seed, void *page);

/* True if @page is what page_make(@seed) makes. */
bool page_is(uint64_t seed, const void *page);

#endif

// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/model/pages.h"

#include <string.h>

static void fill_words(struct rng *r, uint64_t *w)
{
	uint64_t base = rng_next(r), table[32];
	unsigned n = 4 + (unsigned)rng_below(r, 28);

	for (unsigned i = 0; i < n; i++)
		table[i] = i % 3 ? base + rng_below(r, 1 << 20) : rng_below(r, 256);
	for (unsigned i = 0; i < PAGE_BYTES / 8; i++)
		w[i] = table[rng_below(r, n)];
}

void page_make(uint64_t seed, void *page)
{
	struct rng r = {mix64(seed)};
	uint64_t *w = page;

	if (seed == 0) {
		memset(page, 0, PAGE_BYTES);
		return;
	}
	switch (seed % 16) {
	case 0: /* same-filled, a value that fits into the index */
		for (unsigned i = 0; i < PAGE_BYTES / 8; i++)
			w[i] = (seed >> 8) & 0xffff;
		break;
	case 1: /* same-filled, one that does not */
		for (unsigned i = 0; i < PAGE_BYTES / 8; i++)
			w[i] = 0xa5a5000000000000ull + (seed >> 8);
		break;
	case 2: /* incompressible */
		for (unsigned i = 0; i < PAGE_BYTES / 8; i++)
			w[i] = rng_next(&r);
		break;
	case 3: /* a few bytes in a page of zeroes */
		memset(page, 0, PAGE_BYTES);
		w[rng_below(&r, PAGE_BYTES / 8)] = rng_next(&r);
		break;
	default:
		fill_words(&r, w);
	}
}

bool page_is(uint64_t seed, const void *page)
{
	uint64_t want[PAGE_BYTES / 8];

	page_make(seed, want);
	return memcmp(want, page, PAGE_BYTES) == 0;
}

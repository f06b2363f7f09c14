// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/histograms.h"

const struct histogram_info histogram_table[HISTOGRAM_COUNT] = {
#define X(n, u, t) [HIST_##n] = {#n, COUNTER_UNIT_##u, t},
	ZSWAPD_HISTOGRAMS(X)
#undef X
};

uint64_t histogram_lower(unsigned bucket)
{
	unsigned octave = bucket / HISTOGRAM_SUB + 1, sub = bucket % HISTOGRAM_SUB;

	if (bucket < HISTOGRAM_SUB)
		return (uint64_t)bucket * HISTOGRAM_GRAIN;
	return ((uint64_t)(HISTOGRAM_SUB + sub) << (octave - 2)) * HISTOGRAM_GRAIN;
}

uint64_t histogram_upper(unsigned bucket)
{
	return bucket + 1 < HISTOGRAM_BUCKETS ? histogram_lower(bucket + 1) - 1 : UINT64_MAX;
}

uint64_t histogram_count(const struct histogram *h)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
		n += h->buckets[i];
	return n;
}

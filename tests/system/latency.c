// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/system/latency.h"

/* Values below 32 have a bucket each; above, the five bits after the leading one choose it. */
static unsigned bucket(uint64_t ns)
{
	unsigned shift, b;

	if (ns < LATENCY_STEPS)
		return (unsigned)ns;
	shift = 63 - (unsigned)__builtin_clzll(ns) - 5;
	b = (shift + 1) * LATENCY_STEPS + (unsigned)(ns >> shift) - LATENCY_STEPS;
	return b < LATENCY_BUCKETS ? b : LATENCY_BUCKETS - 1;
}

/* The largest value that falls into bucket @b; the last one takes all that is larger. */
static uint64_t upper(unsigned b)
{
	unsigned shift;

	if (b < LATENCY_STEPS)
		return b;
	if (b == LATENCY_BUCKETS - 1)
		return UINT64_MAX;
	shift = b / LATENCY_STEPS - 1;
	return ((uint64_t)(LATENCY_STEPS + b % LATENCY_STEPS + 1) << shift) - 1;
}

void latency_add(struct latency *l, uint64_t ns)
{
	l->count++;
	l->buckets[bucket(ns)]++;
	if (ns > l->max_ns)
		l->max_ns = ns;
}

void latency_merge(struct latency *into, const struct latency *l)
{
	into->count += l->count;
	if (l->max_ns > into->max_ns)
		into->max_ns = l->max_ns;
	for (unsigned i = 0; i < LATENCY_BUCKETS; i++)
		into->buckets[i] += l->buckets[i];
}

uint64_t latency_percentile(const struct latency *l, double share)
{
	double want = share * (double)l->count;
	uint64_t sum = 0;

	for (unsigned i = 0; i < LATENCY_BUCKETS; i++) {
		sum += l->buckets[i];
		if (l->buckets[i] && (double)sum >= want)
			return upper(i) < l->max_ns ? upper(i) : l->max_ns;
	}
	return l->max_ns;
}

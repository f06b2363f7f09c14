/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A histogram of latencies in fixed memory: 32 steps to each power of two, so a percentile is at
 * most 3 % too high.  One thread adds; reading is for when it has ended.
 */
#ifndef ZSWAPD_TESTS_SYSTEM_LATENCY_H
#define ZSWAPD_TESTS_SYSTEM_LATENCY_H

#include <stdint.h>

#define LATENCY_STEPS	32u
#define LATENCY_BUCKETS (LATENCY_STEPS * 40u)

struct latency {
	uint64_t count;
	uint64_t max_ns;
	uint64_t buckets[LATENCY_BUCKETS];
};

void latency_add(struct latency *l, uint64_t ns);

void latency_merge(struct latency *into, const struct latency *l);

/* The latency that @share (0..1) of all stay within, in ns; 0 if there are none. */
uint64_t latency_percentile(const struct latency *l, double share);

#endif

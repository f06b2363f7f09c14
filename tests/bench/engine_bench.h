/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the parts of engine_bench share. */
#ifndef ZSWAPD_TESTS_BENCH_ENGINE_BENCH_H
#define ZSWAPD_TESTS_BENCH_ENGINE_BENCH_H

#include "tests/bench/rig.h"

struct bench_options {
	const char *pages; /* NULL: random bytes */
	const char *store;
	uint64_t store_size; /* bytes */
	uint64_t slots;
	uint64_t memory; /* bytes */
	int level;
	unsigned rounds;
	unsigned ms; /* of one measurement */
};

void bench_resident(const struct bench_options *o);
void bench_overlap(const struct bench_options *o);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Every distribution of times that zswapd publishes, declared once: name, unit, text.
 *
 * Buckets are log-linear, the idea of HdrHistogram (G. Tene): each power of two is cut into
 * HISTOGRAM_SUB equal parts, so that a value is known to a quarter of itself wherever it lies,
 * while finding its bucket takes a count of leading zeroes and a shift.  The first buckets are
 * HISTOGRAM_GRAIN wide; what is longer than the last one's end (some 137 s) is counted there.
 *
 *	bucket   0       1         2          3          4          5          ...  119
 *	ns       0-63    64-127    128-191    192-255    256-319    320-383         120 s and more
 *
 * Taking a time costs some 25 ns, and as much again for what the CPU does not do meanwhile.  So of
 * what takes a few us one in so many is timed, as the texts say, which gives the same distribution.
 * A latency that stands for several requests is counted so often: those counts are of requests.
 * So does one that several share: up to 8 pages that are answered in one go are timed when the last
 * of them is, which makes the first ones' latency up to some 50 us too long.
 */
#ifndef ZSWAPD_COMMON_HISTOGRAMS_H
#define ZSWAPD_COMMON_HISTOGRAMS_H

#include "common/counters.h"

#include <stdint.h>

/* clang-format off */
#define ZSWAPD_HISTOGRAMS(X)                                                                                          \
	X(read_latency,        NANOSECONDS, "read requests, from taken to answered")                                  \
	X(write_latency,       NANOSECONDS, "write requests, from taken to answered")                                 \
	X(store_read_latency,  NANOSECONDS, "reads of the store for pages, from sent to done")                        \
	X(store_write_latency, NANOSECONDS, "writes of a segment to the store, from sent to done")                    \
	X(compress_time,       NANOSECONDS, "compressing a page; one in 16")                                          \
	X(decompress_time,     NANOSECONDS, "checking and decompressing a page; one in 16")
/* clang-format on */

enum histogram_id {
#define X(name, unit, text) HIST_##name,
	ZSWAPD_HISTOGRAMS(X)
#undef X
	HISTOGRAM_COUNT
};

struct histogram_info {
	const char *name;
	enum counter_unit unit; /* of the values */
	const char *text;
};

/* Indexed by enum histogram_id. */
extern const struct histogram_info histogram_table[HISTOGRAM_COUNT];

#define HISTOGRAM_GRAIN	  64u /* ns, a power of two */
#define HISTOGRAM_SUB	  4u  /* parts of a power of two, itself one */
#define HISTOGRAM_BUCKETS 120u

struct histogram {
	uint64_t sum; /* of all values */
	uint64_t buckets[HISTOGRAM_BUCKETS];
};

/* All below: any thread, no state. */

static inline unsigned histogram_bucket(uint64_t value)
{
	uint64_t v = value / HISTOGRAM_GRAIN;
	unsigned bucket, octave;

	if (v < HISTOGRAM_SUB)
		return (unsigned)v;
	octave = 63u - (unsigned)__builtin_clzll(v); /* at least 2 */
	bucket = (octave - 1) * HISTOGRAM_SUB +
		 ((unsigned)(v >> (octave - 2)) & (HISTOGRAM_SUB - 1));
	return bucket < HISTOGRAM_BUCKETS ? bucket : HISTOGRAM_BUCKETS - 1;
}

/* The least value that is counted in @bucket; for HISTOGRAM_BUCKETS what would come next. */
uint64_t histogram_lower(unsigned bucket);

/* The greatest; UINT64_MAX for the last bucket. */
uint64_t histogram_upper(unsigned bucket);

uint64_t histogram_count(const struct histogram *h);

#endif

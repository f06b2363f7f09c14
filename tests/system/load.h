/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The phases of the swap workload, run by the process whose memory is swapped.
 *
 * All that is not the data under test (corpus, generations, histograms, thread stacks) lies in
 * shared memory that the parent process filled and locked.  The child writes its results there,
 * and the parent still has them when the child was killed.
 *
 * In the touching phases a page belongs to the thread whose number is its index modulo the number
 * of threads, so generations need no lock; swap readahead crosses these borders all the time.
 */
#ifndef ZSWAPD_TESTS_SYSTEM_LOAD_H
#define ZSWAPD_TESTS_SYSTEM_LOAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "tests/system/latency.h"
#include "tests/system/pagegen.h"
#include "tests/system/stalls.h"

#define LOAD_MAX_THREADS 64u
#define LOAD_STACK	 (2u << 20) /* ThreadSanitizer alone takes nearly 1 MiB of it */

enum load_phase {
	PHASE_FILL,
	PHASE_SEQ,    /* reads one word of every page, in order */
	PHASE_RANDOM, /* reads one word of random pages */
	PHASE_RW,     /* the same, and gives write_share % of them a new generation */
	PHASE_VERIFY, /* compares every byte */
	PHASE_COUNT
};

enum load_exit {
	LOAD_OK = 0,
	LOAD_WRONG = 1,
	LOAD_USAGE = 2,
	LOAD_LOST = 3,	 /* SIGBUS: swap could not bring the page back */
	LOAD_FAILED = 4, /* could not set up, timed out, killed */
};

/* Set before the child is started. */
struct load_options {
	uint64_t pages;
	unsigned phases; /* bit per enum load_phase */
	unsigned threads;
	uint64_t touches; /* per thread and phase */
	uint64_t seconds; /* per touching phase */
	unsigned write_share;
	unsigned hot_percent; /* 90 % of the touches go to so many % of the pages; 0: evenly */
	bool progress;
	const char *cgroup; /* NULL, or the directory of a cgroup to run in */
};

struct phase_result {
	uint64_t pages; /* or touches */
	uint64_t ns;
	uint64_t major_faults;
	struct latency latency; /* of single touches, hits in memory included */
};

struct load_wrong {
	_Atomic uint64_t pages;
	/* The first one found; valid once pages is not 0 and the child has ended. */
	uint32_t index;
	uint32_t gen;
	uint32_t offset;
	uint8_t expected;
	uint8_t found;
};

struct load_thread {
	uint64_t done;
	struct latency latency;
};

/* The shared memory. */
struct load {
	struct load_options o;
	struct pagegen gen;
	uint32_t *generations; /* one a page */
	char *stacks;
	_Atomic int phase;
	_Atomic bool enough;	       /* touches: the phases random and rw end */
	_Atomic uint64_t lost_address; /* 0, or what SIGBUS was about */
	_Atomic uint64_t lost_index;   /* its page, UINT64_MAX if it is not of the data */
	struct load_wrong wrong;
	struct phase_result results[PHASE_COUNT];
	struct load_thread threads[LOAD_MAX_THREADS];
	struct stalls stalls; /* touches */
};

extern const char *const load_phase_names[PHASE_COUNT];

/* Runs all phases in the calling process, which does nothing else.  Returns an enum load_exit. */
int load_run(struct load *l);

#endif

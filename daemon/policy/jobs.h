/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Jobs, a slice at a time: what engine_job_start() asks for, carried out by the mover between two
 * of its rounds.  A slice is about one segment's work, some milliseconds at most, but for a read of
 * a segment from a slow store.  What is bound by the CPU takes half of one.
 */
#ifndef ZSWAPD_POLICY_JOBS_H
#define ZSWAPD_POLICY_JOBS_H

#include "daemon/engine/evictor.h"

/* The job at hand; all zero at first. */
struct jobs {
	uint32_t id;	 /* 0: none */
	uint64_t before; /* only segments opened before that are touched */
	bool sealed;	 /* by a writeback: what the mover had open */
	uint32_t frame;	 /* how far a compaction has come */
	uint32_t record;
	/* bytes */
	uint64_t gained; /* by cleaning */
	uint64_t total;	 /* expected */
	uint64_t goal;	 /* enough */
	int failed;
	uint64_t waits_since; /* without any progress; CLOCK_MONOTONIC, ns; 0: it doesn't wait */
	struct check check;
};

/* When the next slice is due. */
#define JOBS_IDLE UINT64_MAX /* no job, or it waits for the store, whose answer wakes the mover */

/* One slice.  Returns in how many ns the next one is due: 0 is at once. */
uint64_t jobs_step(struct jobs *j, struct evictor *v);

/* The mover ends, and a job that is under way with it. */
void jobs_stop(struct evictor *v);

/*
 * A slice if one is due, however often it is called.  *due belongs to the call, JOBS_IDLE at first.
 * Returns in how many ns to call again at the latest.
 */
uint64_t jobs_turn(struct jobs *j, struct evictor *v, uint64_t *due);

#endif

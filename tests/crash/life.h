/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The life of an engine that is killed, and the proof that nothing was lost by that.
 *
 * In memory that all processes of a test share stands the model: for each slot what it holds, and
 * what a request in flight is about to make of it.  life_run() runs random operations with a mover
 * thread beside it until the process is killed.  The next one takes the engine over and calls
 * life_check(): every slot must hold the page of the last answered request, or that of the one that
 * was in flight.
 *
 * One engine a process at a time, in `life`.
 */
#ifndef ZSWAPD_TESTS_CRASH_LIFE_H
#define ZSWAPD_TESTS_CRASH_LIFE_H

#include "common/util.h"
#include "daemon/engine/engine.h"
#include "tests/model/pages.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>

#define LIFE_SLOTS	   6000u
#define LIFE_REQUESTS	   16u
#define LIFE_REQUEST_PAGES 8u

/* Ends the process; its parent takes that for the failure that it is. */
#define FAIL(...)                             \
	do {                                  \
		fprintf(stderr, __VA_ARGS__); \
		exit(1);                      \
	} while (0)

/* Alive when a child is dead. */
struct life_model {
	struct {
		_Atomic uint64_t seed;
		_Atomic uint64_t intent; /* what a request in flight writes; or none */
	} slots[LIFE_SLOTS];
	/* the limit before and after the change that may be under way */
	_Atomic uint64_t limit, next_limit;
	/* sums, by all processes */
	_Atomic uint64_t answered; /* pages */
	_Atomic uint64_t limits, jobs;
	_Atomic uint64_t in_flight, found_new; /* slots at a death, and those that were written */
	_Atomic uint64_t written_back;	       /* checks that found pages in the store */
	_Atomic uint64_t checks;
	_Atomic uint64_t takeovers; /* that ended */
};

struct life {
	struct engine_options o;
	int state_fd, front_fd;
	uint64_t max; /* of the limit; 0: it stays, and there are no jobs */
	struct life_model *model;
	struct rng rng;
	/* of this process; NULL: none yet */
	struct engine *e;
};

extern struct life life;

/* A new engine, which nobody works on.  @store 0: none.  @max: as above.  In MiB. */
void life_setup(uint64_t seed, uint64_t memory, uint64_t store, uint64_t max);

/* Takes the engine over from a process that is dead. */
void life_open(void);
/* The same in two steps, of which the first may be taken while another process works. */
void life_stand_by(void);
bool life_hold(void);
void life_take_over(void);
void life_close(void);

/* A child that goes on with other random numbers than those before it. */
pid_t life_fork(void);

/* Works until it is killed. */
_Noreturn void life_run(void);

/* After a takeover, before life_run().  @sweep: the integrity sweep as well. */
void life_check(bool sweep);

#endif

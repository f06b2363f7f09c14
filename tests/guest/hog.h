/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Processes that want memory, and know what they have put into it.
 *
 * Each runs until it is killed, but for a keeper, which compares everything at the end.  What they
 * find lies in memory that all share and that is locked, so it outlives them.
 */
#ifndef ZSWAPD_TESTS_GUEST_HOG_H
#define ZSWAPD_TESTS_GUEST_HOG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define KEEPER_PAGES_MAX 65536u

struct findings {
	_Atomic uint64_t wrong;	   /* pages */
	_Atomic uint64_t lost;	   /* SIGBUS */
	_Atomic uint64_t compared; /* pages */
	_Atomic uint64_t forks;
	_Atomic uint64_t answers;	 /* of a pulse */
	_Atomic uint64_t slowest_answer; /* ns */
	_Atomic bool stop;		 /* for keepers and pulse */
};

/* What each of these starts is a child of the caller; negative errno of fork(2). */

/* Fills memory without end, OOM score @score, and compares what it has filled. */
pid_t hog_fork(struct findings *f, uint32_t seed, int score);

/*
 * Keeps @pages (of KEEPER_PAGES_MAX at most) filled, rewrites and compares them at random; told to
 * stop, compares all and exits with 0 if all were right.
 */
pid_t keeper_fork(struct findings *f, uint32_t seed, uint32_t pages);

/* Starts a program twice a second, as a shell would, and notes how long that takes. */
pid_t pulse_fork(struct findings *f);

/*
 * A fork bomb of another user: @most processes at a time, each of which fills some memory,
 * compares it and forks.  bomb_end() ends all of it: 0, or -ETIMEDOUT after @ms.
 */
pid_t bomb_fork(struct findings *f, uint32_t seed, unsigned most);
int bomb_end(unsigned ms);

#endif

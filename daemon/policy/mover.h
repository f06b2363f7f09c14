/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The mover: one thread that carries the policy's decisions out, so that data threads find free
 * frames and never have to make them.
 *
 * It sleeps until a data thread kicks it (free frames below the reserve, a dead segment, a write
 * without room), a store write completes, somebody starts a job (jobs.h), or a second has passed.
 */
#ifndef ZSWAPD_POLICY_MOVER_H
#define ZSWAPD_POLICY_MOVER_H

#include "daemon/engine/evictor.h"

struct mover;

/* Starts the thread and waits until the first frames are free. */
int mover_start(struct mover **ret, struct engine *e);
/*
 * The same in two parts: the thread is there and has all it needs, while the engine may be standing
 * by; then it goes.  The second part allocates nothing.
 */
int mover_prepare(struct mover **ret, struct engine *e);
void mover_go(struct mover *m);
/*
 * Ends the thread, after writes in flight; a job is cancelled.  In the thread that drains the log.
 * NULL is fine.
 */
void mover_stop(struct mover *m);

/*
 * One round in the calling thread: frees, decides, acts, until there is nothing to do but wait.
 * True if it ended before, so as not to take for ever.  For tests that are their own mover.
 */
bool mover_round(struct evictor *v, bool idle);

#endif

// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/policy/mover.h"
#include "common/log.h"
#include "common/thread.h"
#include "common/util.h"
#include "daemon/policy/jobs.h"
#include "daemon/policy/policy.h"
#include "daemon/state/segment.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define IDLE_NS	      1000000000ull
#define RETRY_NS      1000000ull /* a reader holds up a free frame, or the system has no memory */
#define ROUND_ACTIONS 64	 /* then completions and the stop flag are looked at again */

struct mover {
	struct engine *e;
	pthread_t thread;
	sem_t ready; /* posted when it is prepared, when it goes, and when it is about to end */
	sem_t go;
	int result; /* set by the thread before it posts ready */
	bool gone;  /* the starter's: mover_go() was called */
	_Atomic bool stop;
};

/* The segment leaves memory: what was read again moves up, the rest is moved or written. */
static int evict(struct evictor *v, uint32_t segment)
{
	int live = evictor_spare_referenced(v, segment);

	if (live == 0)
		return 0;
	if (live > 0 && policy_clean_instead((uint32_t)live) &&
	    evictor_clean_memory(v, segment) == 0)
		return 0;
	return evictor_write(v, segment);
}

/*
 * 0: something has changed, so that the next look decides anew.  That may be a failure that the
 * survey takes into account: no new frame or no use of that segment for a while.
 * Negative errno: this way does not lead on now.
 */
static int act(struct evictor *v, enum policy_action action, const struct survey *s)
{
	int r;

	switch (action) {
	case POLICY_GROW:
		r = evictor_grow(v);
		if (r == -ENOMEM)
			log_post(LOG_LEVEL_DEBUG,
				 "mover: the system has no memory for another frame");
		return 0;
	case POLICY_SHRINK:
		evictor_shrink(v, policy_shrink_keep(s));
		return 0;
	case POLICY_EVICT:
		return evict(v, s->next.id);
	case POLICY_CLEAN_MEMORY:
		return evictor_clean_memory(v, s->sparsest.id);
	case POLICY_CLEAN_STORE:
		r = evictor_clean_store(v, s->sparsest_stored.id);
		return r == -EIO || r == -EAGAIN ? 0 : r;
	case POLICY_NONE:
	case POLICY_DENY:
		break;
	}
	return -EAGAIN;
}

bool mover_round(struct evictor *v, bool idle)
{
	enum policy_action action = POLICY_NONE;
	struct survey s;
	unsigned i;

	for (i = 0; i < ROUND_ACTIONS; i++) {
		int r;

		evictor_reap(v);
		evictor_survey(v, &s);
		if (policy_store_is_short(&s))
			evictor_survey_store(v, &s);
		action = policy_decide(&s, idle);
		if (action == POLICY_NONE || action == POLICY_DENY)
			break;
		r = act(v, action, &s);
		if (r < 0) {
			/* A failed way must not hold up a writer for ever: with nothing coming, it
			 * is told. */
			if (s.waiting && s.frames_coming == 0 && !s.store_owes)
				action = POLICY_DENY;
			break;
		}
	}
	evictor_reap(v);
	if (s.waiting)
		evictor_answer(v, action == POLICY_DENY ? s.ticket : 0);
	return i == ROUND_ACTIONS;
}

static void await(sem_t *sem)
{
	while (sem_wait(sem) < 0 && errno == EINTR)
		;
}

static void *mover_main(void *arg)
{
	struct mover *m = arg;
	uint64_t kicked = 0, wait = JOBS_IDLE, due = JOBS_IDLE;
	struct jobs jobs = {0};
	struct evictor *v;
	bool more = false, holding = true;

	m->result = evictor_prepare(&v, m->e);
	sem_post(&m->ready);
	if (m->result < 0)
		return NULL;
	await(&m->go);
	if (!atomic_load(&m->stop)) {
		evictor_begin(v);
		more = mover_round(v, false);
	}
	sem_post(&m->ready);
	while (!atomic_load_explicit(&m->stop, memory_order_relaxed)) {
		uint64_t timeout = more ? 0 : evictor_busy(v) ? RETRY_NS : IDLE_NS;

		if (evictor_wait(v, min_u64(timeout, wait)))
			kicked = now_ns();
		more = mover_round(v, now_ns() - kicked >= IDLE_NS);
		/* What is not in our page tables is not locked, though it may be there. */
		holding = holding && engine_hold(m->e);
		more |= holding;
		wait = jobs_turn(&jobs, v, &due);
		evictor_judge_shrink(v);
	}
	jobs_stop(v);
	evictor_free(v);
	sem_post(&m->ready);
	return NULL;
}

int mover_prepare(struct mover **ret, struct engine *e)
{
	struct mover *m = calloc(1, sizeof(*m));
	int r;

	if (!m)
		return -ENOMEM;
	m->e = e;
	sem_init(&m->ready, 0, 0);
	sem_init(&m->go, 0, 0);
	r = thread_start(&m->thread, "mover", mover_main, m);
	if (r == 0) {
		await(&m->ready);
		r = m->result;
		if (r < 0)
			pthread_join(m->thread, NULL);
	}
	if (r < 0) {
		log_err("mover: cannot start: %s", strerror(-r));
		sem_destroy(&m->ready);
		sem_destroy(&m->go);
		free(m);
		return r;
	}
	*ret = m;
	return 0;
}

void mover_go(struct mover *m)
{
	m->gone = true;
	sem_post(&m->go);
	await(&m->ready);
}

int mover_start(struct mover **ret, struct engine *e)
{
	int r = mover_prepare(ret, e);

	if (r == 0)
		mover_go(*ret);
	return r;
}

void mover_stop(struct mover *m)
{
	struct timespec until;
	int r;

	if (!m)
		return;
	atomic_store(&m->stop, true);
	if (!m->gone)
		mover_go(m);
	evictor_wake(m->e);
	do {
		/* While it waits for the store it may say so, and nobody else writes that. */
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_sec += 1;
		r = sem_clockwait(&m->ready, CLOCK_MONOTONIC, &until);
		log_drain();
	} while (r < 0);
	pthread_join(m->thread, NULL);
	sem_destroy(&m->ready);
	sem_destroy(&m->go);
	free(m);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Jobs: handed over to the mover, and looked at from outside.
 *
 * Who starts one fills in the words of struct job and raises `running` last; the mover works,
 * counts, and lowers it last.  While it is up only the mover writes, while it is down only a
 * starter does, under the lock.
 *
 * The way down to a lowered limit is shown as a job as well, but is none: the mover goes it anyway,
 * also beside a job.  It is kept in struct shrink and judged whenever somebody looks.
 *
 * The lock is for those outside among themselves; neither the mover nor a data thread takes it.
 */
#include "daemon/engine/evictor_internal.h"

#include <errno.h>

/* Without a step down for so long, the limit is taken for one that can't be reached. */
#define SHRINK_STUCK_NS 10000000000ull

/* acquire: what the mover wrote before it lowered the flag is seen. */
static bool job_runs(struct job *j)
{
	return atomic_load_explicit(&j->running, memory_order_acquire);
}

int engine_job_start(struct engine *e, enum engine_job_kind kind, uint64_t amount)
{
	struct job *j = &e->job;
	int r = 0;

	if (kind != ENGINE_JOB_WRITEBACK && kind != ENGINE_JOB_COMPACT && kind != ENGINE_JOB_CHECK)
		return -EINVAL;
	if (kind == ENGINE_JOB_WRITEBACK && e->store.fd < 0)
		return -EOPNOTSUPP;
	pthread_mutex_lock(&e->job_lock);
	if (job_runs(j)) {
		r = -EBUSY;
	} else {
		j->id = ++e->job_ids;
		j->kind = kind;
		j->amount = amount;
		atomic_store(&j->cancel, false);
		atomic_store(&j->done, 0);
		atomic_store(&j->total, 0);
		atomic_store(&j->found, 0);
		atomic_store(&j->result, 0);
		/* release: the mover finds all of this. */
		atomic_store_explicit(&j->running, true, memory_order_release);
		engine_kick_mover(e);
	}
	pthread_mutex_unlock(&e->job_lock);
	return r;
}

/* Bytes above the limit. */
static uint64_t excess(struct engine *e)
{
	uint32_t present = front_present(e->front), limit = engine_limit_frames(e);

	return present > limit ? (uint64_t)(present - limit) * SEGMENT_SIZE : 0;
}

/* Under the lock. */
static void judge_shrink(struct engine *e)
{
	struct shrink *s = &e->shrink;
	uint64_t left, now = now_ns();

	if (!s->running)
		return;
	left = excess(e);
	if (left != s->left) {
		s->left = left;
		s->moved = now;
	}
	if (left == 0)
		s->running = false;
	else if (now - s->moved > SHRINK_STUCK_NS) {
		s->running = false;
		s->result = -ENOSPC;
	}
}

void job_limit_set(struct engine *e)
{
	struct shrink *s = &e->shrink;
	uint64_t left;

	pthread_mutex_lock(&e->job_lock);
	judge_shrink(e);
	left = excess(e);
	if (left > 0)
		*s = (struct shrink){.id = ++e->job_ids,
				     .running = true,
				     .total = left,
				     .left = left,
				     .moved = now_ns()};
	pthread_mutex_unlock(&e->job_lock);
}

static void show_job(struct job *j, bool running, struct engine_job *ret)
{
	*ret = (struct engine_job){
		.id = j->id,
		.kind = j->kind,
		.running = running,
		.result = atomic_load(&j->result),
		.total = atomic_load(&j->total),
		.found = atomic_load(&j->found),
	};
	ret->done = min_u64(atomic_load(&j->done), ret->total);
}

void engine_job_status(struct engine *e, struct engine_job *ret)
{
	const struct shrink *s = &e->shrink;
	bool running;

	pthread_mutex_lock(&e->job_lock);
	judge_shrink(e);
	running = job_runs(&e->job);
	if (!running && (s->running || s->id > e->job.id))
		*ret = (struct engine_job){.id = s->id,
					   .kind = ENGINE_JOB_SHRINK,
					   .running = s->running,
					   .result = s->result,
					   .done = s->total - min_u64(s->left, s->total),
					   .total = s->total};
	else
		show_job(&e->job, running, ret);
	pthread_mutex_unlock(&e->job_lock);
}

void engine_job_cancel(struct engine *e)
{
	pthread_mutex_lock(&e->job_lock);
	judge_shrink(e);
	if (job_runs(&e->job)) {
		atomic_store(&e->job.cancel, true);
		engine_kick_mover(e);
	} else if (e->shrink.running) {
		e->shrink.running = false;
		e->shrink.result = -ECANCELED;
	}
	pthread_mutex_unlock(&e->job_lock);
}

/* --- the mover's side --- */

bool evictor_job(struct evictor *v, struct evictor_job *ret)
{
	struct job *j = &v->e->job;

	if (!job_runs(j))
		return false;
	*ret = (struct evictor_job){.id = j->id,
				    .kind = j->kind,
				    .amount = j->amount,
				    .cancelled = atomic_load(&j->cancel)};
	return true;
}

void evictor_job_total(struct evictor *v, uint64_t total)
{
	atomic_store(&v->e->job.total, total);
}

void evictor_job_progress(struct evictor *v, uint64_t done, uint64_t found)
{
	atomic_store(&v->e->job.done, done);
	atomic_store(&v->e->job.found, found);
}

void evictor_job_end(struct evictor *v, int result)
{
	struct job *j = &v->e->job;

	/* What was done is all there was. */
	if (result == 0)
		atomic_store(&j->total, atomic_load(&j->done));
	atomic_store(&j->result, result);
	/* release: pairs with job_runs(). */
	atomic_store_explicit(&j->running, false, memory_order_release);
}

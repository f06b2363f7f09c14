// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Jobs: handed over to the mover, and looked at from outside.
 *
 * Who starts one fills in the words of struct job and raises `running` last; the mover works,
 * counts, and lowers it last.  While it is up only the mover writes, while it is down only a
 * starter does, under the lock.
 *
 * The way down to a lowered limit is shown as a job as well, but is none: the mover goes it anyway,
 * also beside a job, and for as long as the limit stands.  It is kept in struct shrink, and judged
 * by whoever looks and by the mover between its rounds.  Setting the limit anew moves its aim; it
 * stays the same one until memory is within the limit.
 *
 * Of either sort the last one's result is kept until the next begins, and every end is logged.
 *
 * The lock is for those outside among themselves, and for the limit with them.  A data thread never
 * takes it; the mover only tries to.
 */
#include "daemon/engine/evictor_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

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
	} else if (kind == ENGINE_JOB_WRITEBACK && engine_store_state(e) == ENGINE_STORE_LOST) {
		r = -EIO;
	} else {
		j->id = ++e->job_ids;
		j->kind = kind;
		j->amount = amount;
		atomic_store(&j->cancel, false);
		atomic_store(&j->done, 0);
		atomic_store(&j->total, 0);
		atomic_store(&j->found, 0);
		atomic_store(&j->result, 0);
		CRASH_POINT(job_filled_in);
		/* release: the mover finds all of this. */
		atomic_store_explicit(&j->running, true, memory_order_release);
		CRASH_POINT(job_started);
		engine_kick_mover(e);
	}
	pthread_mutex_unlock(&e->job_lock);
	return r;
}

/* Never blocks: the mover comes here, too. */
static void log_end(const struct engine_job *j)
{
	static const char *const names[] = {
		[ENGINE_JOB_NONE] = "none",	  [ENGINE_JOB_WRITEBACK] = "writeback",
		[ENGINE_JOB_COMPACT] = "compact", [ENGINE_JOB_CHECK] = "check",
		[ENGINE_JOB_SHRINK] = "shrink",
	};
	bool check = j->kind == ENGINE_JOB_CHECK;
	unsigned shift = check ? 0 : 20;
	enum log_level level = j->found || (j->result < 0 && j->result != -ECANCELED)
				       ? LOG_LEVEL_WARN
				       : LOG_LEVEL_INFO;
	char found[48] = "";

	if (check)
		snprintf(found, sizeof(found), ", %" PRIu64 " damaged or lost", j->found);
	log_post(level, "job %" PRIu32 ", %s: %s; %" PRIu64 " of %" PRIu64 " %s%s", j->id,
		 names[j->kind], j->result < 0 ? strerror(-j->result) : "done", j->done >> shift,
		 j->total >> shift, check ? "pages" : "MiB", found);
}

static uint32_t next_end(struct engine *e)
{
	return atomic_fetch_add(&e->job_ends, 1) + 1;
}

/* Bytes above the limit. */
static uint64_t excess(struct engine *e)
{
	uint32_t present = front_present(e->front), limit = engine_limit_frames(e);

	return present > limit ? (uint64_t)(present - limit) * SEGMENT_SIZE : 0;
}

static void show_shrink(const struct shrink *s, struct engine_job *ret)
{
	*ret = (struct engine_job){.id = s->id,
				   .kind = s->id ? ENGINE_JOB_SHRINK : ENGINE_JOB_NONE,
				   .running = s->running,
				   .result = s->result,
				   .done = s->freed,
				   .total = s->freed + s->left};
}

static void end_shrink(struct engine *e, int result)
{
	struct shrink *s = &e->shrink;
	struct engine_job shown;

	s->running = false;
	s->result = result;
	s->ended = next_end(e);
	show_shrink(s, &shown);
	log_end(&shown);
}

/* Under the lock, with the limit as it was at the last look. */
static void judge_shrink(struct engine *e)
{
	struct shrink *s = &e->shrink;
	uint64_t left, now = now_ns();

	if (!s->running)
		return;
	left = excess(e);
	if (left != s->left) {
		s->freed += s->left - min_u64(left, s->left);
		s->left = left;
		s->moved = now;
	}
	if (left == 0)
		end_shrink(e, 0);
	else if (now - s->moved > SHRINK_STUCK_NS)
		end_shrink(e, -ENOSPC);
}

void job_limit_set(struct engine *e, uint32_t frames)
{
	struct shrink *s = &e->shrink;
	uint64_t left;

	pthread_mutex_lock(&e->job_lock);
	judge_shrink(e);
	CRASH_POINT(limit_judged);
	atomic_store(&e->state->header->limit, frames);
	CRASH_POINT(limit_set);
	left = excess(e);
	if (s->running) {
		s->left = left;
		s->moved = now_ns();
		if (left == 0)
			end_shrink(e, 0);
	} else if (left > 0) {
		*s = (struct shrink){
			.id = ++e->job_ids, .running = true, .left = left, .moved = now_ns()};
	}
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

void engine_jobs(struct engine *e, struct engine_job ret[ENGINE_JOBS])
{
	struct shrink *s = &e->shrink;
	unsigned job = 0;
	bool running;

	pthread_mutex_lock(&e->job_lock);
	judge_shrink(e);
	running = job_runs(&e->job);
	if (!running && (s->running || s->ended > e->job.ended))
		job = 1;
	show_job(&e->job, running, &ret[job]);
	show_shrink(s, &ret[!job]);
	pthread_mutex_unlock(&e->job_lock);
}

void engine_job_status(struct engine *e, struct engine_job *ret)
{
	struct engine_job jobs[ENGINE_JOBS];

	engine_jobs(e, jobs);
	*ret = jobs[0];
}

int engine_job_cancel(struct engine *e)
{
	int r = 0;

	pthread_mutex_lock(&e->job_lock);
	judge_shrink(e);
	if (job_runs(&e->job)) {
		atomic_store(&e->job.cancel, true);
		engine_kick_mover(e);
	} else {
		r = e->shrink.running ? -EOPNOTSUPP : -ESRCH;
	}
	pthread_mutex_unlock(&e->job_lock);
	return r;
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
	CRASH_POINT(job_progress);
}

void evictor_job_end(struct evictor *v, int result)
{
	struct job *j = &v->e->job;
	struct engine_job shown;

	/* What was done is all there was. */
	if (result == 0)
		atomic_store(&j->total, atomic_load(&j->done));
	atomic_store(&j->result, result);
	show_job(j, false, &shown);
	log_end(&shown);
	j->ended = next_end(v->e);
	/* release: pairs with job_runs(). */
	atomic_store_explicit(&j->running, false, memory_order_release);
	CRASH_POINT(job_ended);
}

void evictor_judge_shrink(struct evictor *v)
{
	/* Who has it looks as well, or will be followed by another round. */
	if (pthread_mutex_trylock(&v->e->job_lock) != 0)
		return;
	judge_shrink(v->e);
	pthread_mutex_unlock(&v->e->job_lock);
}

void evictor_job_writes_reset(struct evictor *v)
{
	v->job++;
	v->job_writes = (struct evictor_job_writes){0};
}

void evictor_job_writes(const struct evictor *v, struct evictor_job_writes *ret)
{
	*ret = v->job_writes;
}

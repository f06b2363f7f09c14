// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/policy/jobs.h"
#include "common/util.h"
#include "daemon/policy/policy.h"
#include "daemon/state/segment.h"

#include <errno.h>
#include <string.h>

#define LATER_NS    1000000ull	  /* a reader holds a frame, or room is being made */
#define PATIENCE_NS 2000000000ull /* without any progress */
#define REST_MAX_NS 50000000ull	  /* a slice that took longer waited for the store */

/* Compacting takes what has more than an eighth to gain. */
#define SPARSE (SEGMENT_SIZE - SEGMENT_SIZE / 8)

/* What a slice says: over with this result, or go on. */
enum verdict {
	GO_ON,
	LATER,	   /* look again in a moment */
	FOR_STORE, /* a write under way must end first */
	OVER,
};

/* Frames that are not needed go back, whoever would take them later. */
static void give_back(struct evictor *v)
{
	struct survey s;

	evictor_survey(v, &s);
	while (evictor_shrink(v, policy_shrink_keep(&s)))
		;
}

/* With what passes by itself. */
static bool patient(struct jobs *j)
{
	uint64_t now = now_ns();

	if (!j->waits_since)
		j->waits_since = now;
	return now - j->waits_since < PATIENCE_NS;
}

static enum verdict wait_or(struct jobs *j, int result)
{
	if (patient(j))
		return LATER;
	j->failed = result;
	return OVER;
}

static void gain(struct jobs *j, uint64_t bytes)
{
	j->gained += bytes;
	j->waits_since = 0;
}

/* --- writeback --- */

static void begin_writeback(struct jobs *j, struct evictor *v, uint64_t amount)
{
	uint32_t segments;
	uint64_t live;

	evictor_sum(v, EVICTOR_FIND_SPARSE, UINT64_MAX, SEGMENT_SIZE, &segments, &live);
	j->total = min_u64(amount, (uint64_t)segments * SEGMENT_SIZE);
	/* All is what there is now, not what writers go on to seal. */
	j->goal = amount == j->total ? amount : UINT64_MAX;
	evictor_job_total(v, j->total);
}

static bool store_is_full(struct evictor *v)
{
	struct survey s;

	evictor_survey(v, &s);
	return s.places_free <= s.places_kept;
}

/* The next segment on its way out. */
static enum verdict write_next(struct jobs *j, struct evictor *v, unsigned under_way)
{
	struct survey_victim w = evictor_find(v, EVICTOR_FIND_NEXT, j->before);
	int r;

	if (w.id == SEGMENT_NONE) {
		/* What cleaning has gathered can go, too. */
		if (!j->sealed) {
			j->sealed = true;
			evictor_seal(v);
			j->before = evictor_seq(v);
			return GO_ON;
		}
		if (under_way)
			return FOR_STORE;
		j->failed = store_is_full(v) ? -ENOSPC : 0;
		return OVER;
	}
	if (!j->sealed && policy_clean_instead(w.live) && evictor_clean_memory(v, w.id) == 0) {
		gain(j, SEGMENT_SIZE - w.live);
		return GO_ON;
	}
	r = evictor_job_write(v, w.id);
	if (r == 0)
		return GO_ON;
	if (under_way)
		return FOR_STORE;
	if (r == -EAGAIN)
		return LATER; /* all write slots are the mover's own */
	j->failed = r;
	return OVER;
}

static enum verdict writeback(struct jobs *j, struct evictor *v)
{
	struct evictor_job_writes w;
	enum verdict verdict;

	evictor_job_writes(v, &w);
	give_back(v);
	evictor_job_progress(v, min_u64(j->gained + w.done * SEGMENT_SIZE, j->total), 0);
	if (w.failed) {
		j->failed = -EIO;
		return w.under_way ? FOR_STORE : OVER;
	}
	if (j->gained + (w.done + w.under_way) * SEGMENT_SIZE < j->goal) {
		verdict = write_next(j, v, w.under_way);
		if (verdict != OVER || j->failed)
			return verdict;
	} else if (w.under_way) {
		return FOR_STORE;
	}
	/* The last frames are free once no reader has them pinned. */
	return evictor_busy(v) && patient(j) ? LATER : OVER;
}

/* --- compact --- */

static void begin_compact(struct jobs *j, struct evictor *v)
{
	static const enum evictor_find tiers[] = {EVICTOR_FIND_SPARSE, EVICTOR_FIND_SPARSE_STORED};

	for (size_t i = 0; i < ARRAY_SIZE(tiers); i++) {
		uint32_t segments;
		uint64_t live;

		evictor_sum(v, tiers[i], j->before, SPARSE, &segments, &live);
		j->total += (uint64_t)segments * SEGMENT_SIZE - live;
	}
	evictor_job_total(v, j->total);
}

/* What was gathered from the store goes back to it, so that memory does not fill with it. */
static bool return_survivors(struct evictor *v)
{
	struct survey_victim w = evictor_find(v, EVICTOR_FIND_SURVIVOR, UINT64_MAX);

	return w.id != SEGMENT_NONE && evictor_job_write(v, w.id) == 0;
}

static enum verdict clean_one(struct jobs *j, struct evictor *v)
{
	struct survey_victim w =
		evictor_find_sparse(v, EVICTOR_FIND_SPARSE, j->before, SPARSE, &j->frame);
	bool stored = w.id == SEGMENT_NONE;
	struct survey s;
	int r;

	if (stored)
		w = evictor_find_sparse(v, EVICTOR_FIND_SPARSE_STORED, j->before, SPARSE,
					&j->record);
	if (w.id == SEGMENT_NONE)
		return OVER;
	/* Writers come first: the mover's next rounds make room. */
	evictor_survey(v, &s);
	if (s.frames_free < 2 || (s.waiting && s.frames_free <= s.frames_kept))
		return wait_or(j, -ENOSPC);
	r = stored ? evictor_clean_store(v, w.id) : evictor_clean_memory(v, w.id);
	if (r == -ENOSPC)
		return wait_or(j, r);
	if (r == -EAGAIN)
		return FOR_STORE;
	if (r < 0)
		j->failed = r; /* left out from now on: the others can be cleaned */
	else
		gain(j, SEGMENT_SIZE - w.live);
	return GO_ON;
}

static enum verdict compact(struct jobs *j, struct evictor *v)
{
	struct evictor_job_writes w;
	enum verdict verdict;

	evictor_job_writes(v, &w);
	evictor_job_progress(v, min_u64(j->gained, j->total), 0);
	if (w.failed)
		j->failed = -EIO;
	else if (return_survivors(v))
		return GO_ON;
	verdict = clean_one(j, v);
	if (verdict != OVER)
		return verdict;
	give_back(v);
	if (w.under_way)
		return FOR_STORE;
	return evictor_busy(v) && patient(j) ? LATER : OVER;
}

/* --- check --- */

static enum verdict check(struct jobs *j, struct evictor *v)
{
	int more = evictor_check(v, &j->check);

	evictor_job_total(v, max_u64(j->check.total, j->check.done));
	evictor_job_progress(v, j->check.done, j->check.found);
	return more < 0 ? FOR_STORE : more ? GO_ON : OVER;
}

static void begin(struct jobs *j, struct evictor *v, const struct evictor_job *job)
{
	*j = (struct jobs){.id = job->id, .before = evictor_seq(v)};
	evictor_job_writes_reset(v);
	if (job->kind == ENGINE_JOB_WRITEBACK)
		begin_writeback(j, v, job->amount);
	else if (job->kind == ENGINE_JOB_COMPACT)
		begin_compact(j, v);
	else
		evictor_check_begin(v, &j->check);
}

static enum verdict slice(struct jobs *j, struct evictor *v, enum engine_job_kind kind)
{
	switch (kind) {
	case ENGINE_JOB_WRITEBACK:
		return writeback(j, v);
	case ENGINE_JOB_COMPACT:
		return compact(j, v);
	case ENGINE_JOB_CHECK:
		return check(j, v);
	case ENGINE_JOB_NONE:
	case ENGINE_JOB_SHRINK:
		break;
	}
	j->failed = -EINVAL;
	return OVER;
}

uint64_t jobs_step(struct jobs *j, struct evictor *v)
{
	uint64_t start = now_ns();
	enum verdict verdict;
	struct evictor_job job;

	if (!evictor_job(v, &job))
		return JOBS_IDLE;
	if (j->id != job.id)
		begin(j, v, &job);
	if (job.cancelled) {
		/* What it has under way to the store ends when it does. */
		j->failed = -ECANCELED;
		verdict = OVER;
	} else {
		verdict = slice(j, v, job.kind);
	}
	switch (verdict) {
	case GO_ON:
		/* What takes the CPU leaves it alone for as long as it had it: others are waiting.
		 */
		return job.kind == ENGINE_JOB_WRITEBACK ? 0
							: min_u64(now_ns() - start, REST_MAX_NS);
	case LATER:
		return LATER_NS;
	case FOR_STORE:
		return JOBS_IDLE;
	case OVER:
		break;
	}
	evictor_job_end(v, j->failed);
	return JOBS_IDLE;
}

uint64_t jobs_turn(struct jobs *j, struct evictor *v, uint64_t *due)
{
	uint64_t now = now_ns(), wait;

	/* Without one that is due, anything that has come may be what is waited for. */
	if (*due != JOBS_IDLE && now < *due)
		return *due - now;
	wait = jobs_step(j, v);
	*due = wait == JOBS_IDLE ? JOBS_IDLE : now_ns() + wait;
	return wait;
}

void jobs_stop(struct evictor *v)
{
	struct evictor_job job;

	if (evictor_job(v, &job))
		evictor_job_end(v, -ECANCELED);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The mover's hands: everything that happens to whole segments.  What to do when is decided
 * elsewhere (daemon/policy); each call here does one thing that leaves the state whole.
 *
 * One evictor an engine, one thread at a time: the mover's.  It alone grows and shrinks the front
 * tier, hands out places of the store, and frees segments.
 */
#ifndef ZSWAPD_ENGINE_EVICTOR_H
#define ZSWAPD_ENGINE_EVICTOR_H

#include "daemon/engine/engine.h"

#define EVICTOR_WRITES 4u /* segments on their way to the store at once */

struct evictor;

/* A sealed segment that could be moved. SEGMENT_NONE as id: there is none. */
struct survey_victim {
	uint32_t id;
	uint32_t used; /* bytes */
	uint32_t live; /* bytes */
};

/* The tiers in plain numbers. */
struct survey {
	/* front tier, in frames */
	uint32_t frames_max;
	uint32_t frames_present; /* more than frames_max after the limit was lowered */
	uint32_t frames_free;
	uint32_t frames_coming;	 /* in segments being written or waiting for a reader to leave */
	uint32_t frames_reserve; /* to be kept free */
	uint32_t frames_kept;	 /* of these, what writers may not take */
	bool shrink_due;	 /* two have come free since one was given back to the system */
	bool shrink_ready;	 /* giving back has not just failed */
	/* store, in places; all 0 without one */
	uint32_t places_max;
	uint32_t places_free;
	uint32_t places_kept; /* only for survivors */
	bool store_ready;     /* a write may be started: there is a store, a slot and no pause */
	bool store_pauses;    /* writes failed, and another will be tried within seconds */
	bool store_owes;      /* it has not answered for long; room may come when it does */
	/* how much a writer is held up */
	bool waiting;	 /* a write waits for room */
	uint64_t ticket; /* the youngest ticket when the survey began */
	/* victims among sealed segments in memory */
	struct survey_victim
		next; /* to be written: raw ones first, then survivors, then the oldest */
	bool next_is_survivor;
	struct survey_victim sparsest; /* in memory: smallest share of live bytes */
	struct survey_victim sparsest_stored;
};

/* Sets up a ring of its own.  In the thread that will use it. */
int evictor_new(struct evictor **ret, struct engine *e);
/*
 * The same in two parts, the first of which may be done while the engine is standing by.  Between
 * them nothing else may be done with it but evictor_free(). The second allocates nothing.
 */
int evictor_prepare(struct evictor **ret, struct engine *e);
void evictor_begin(struct evictor *v);
/* Waits (bounded by the device) for writes in flight, seals what is open. */
void evictor_free(struct evictor *v);

/* Waits for a kick, a completion or @timeout_ns; handles what has come, false if nothing has. */
bool evictor_wait(struct evictor *v, uint64_t timeout_ns);

/* Ends the evictor's wait.  Any thread. */
void evictor_wake(struct engine *e);

/* True if something only waits for readers to leave: look again soon. */
bool evictor_busy(const struct evictor *v);

/* Frees what is dead and no longer pinned, and handles completions; true if anything was freed. */
bool evictor_reap(struct evictor *v);

/* All but sparsest_stored, which is left as none. */
void evictor_survey(struct evictor *v, struct survey *ret);

/* Adds sparsest_stored: a walk over all records. */
void evictor_survey_store(struct evictor *v, struct survey *ret);

/*
 * One more free frame.  -ENOSPC: limit reached; -ENOMEM.  After a failure the survey reports the
 * present frames as the most there can be, for a second.
 */
int evictor_grow(struct evictor *v);
/*
 * One free frame back to the system; false if fewer than @keep + 1 are free, or if the system does
 * not take it: then the survey says so for a second.
 */
bool evictor_shrink(struct evictor *v, uint32_t keep);

/* Starts writing the sealed segment to the store.  -EAGAIN: no write slot; -ENOSPC: no place. */
int evictor_write(struct evictor *v, uint32_t segment);

/*
 * Second chance: moves the objects that were read since the last look to a younger segment, unless
 * that is most of them.  Returns the live bytes left behind, or -ENOSPC.
 */
int evictor_spare_referenced(struct evictor *v, uint32_t segment);

/* Moves all that is live in a sealed segment elsewhere in memory.  -ENOSPC: no frame for it. */
int evictor_clean_memory(struct evictor *v, uint32_t segment);

/*
 * The same for a stored segment, which is read first.  -EIO: it could not be read, and is left out
 * of the survey for a minute.  -EAGAIN: the store owes an answer, to this or another request.
 */
int evictor_clean_store(struct evictor *v, uint32_t segment);

/* The job to be done, and how far it is; see engine_job_start(). */
struct evictor_job {
	uint32_t id;
	enum engine_job_kind kind;
	uint64_t amount;
	bool cancelled;
};

/* Store writes of this job, by segments. */
struct evictor_job_writes {
	unsigned under_way;
	uint64_t done;
	uint64_t failed; /* also when tried again elsewhere */
};

/* False: there is none. */
bool evictor_job(struct evictor *v, struct evictor_job *ret);
void evictor_job_total(struct evictor *v, uint64_t total);
void evictor_job_progress(struct evictor *v, uint64_t done, uint64_t found);
/* @result: 0, -ECANCELED or why it can't go on. */
void evictor_job_end(struct evictor *v, int result);

/* Notes whether memory has come down to a lowered limit. */
void evictor_judge_shrink(struct evictor *v);

/* evictor_write(), counted below. */
int evictor_job_write(struct evictor *v, uint32_t segment);
/* Counts from 0 again; what is still under way for a former job counts no more. */
void evictor_job_writes_reset(struct evictor *v);
void evictor_job_writes(const struct evictor *v, struct evictor_job_writes *ret);

/* Sealed segments in memory, or stored ones, with anything live. */
enum evictor_find {
	EVICTOR_FIND_NEXT,     /* in memory, that may go to the store */
	EVICTOR_FIND_SURVIVOR, /* in memory, of what came back from the store */
	EVICTOR_FIND_SPARSE,   /* in memory */
	EVICTOR_FIND_SPARSE_STORED,
};

/*
 * Of those that were opened before @before, the one that would leave first.  SEGMENT_NONE as id:
 * there is none.
 */
struct survey_victim evictor_find(struct evictor *v, enum evictor_find what, uint64_t before);
/*
 * Of those that were opened before @before and have at most @live_max live bytes, any from *cursor
 * (0 at first) on, which it is then at: once it is dealt with, it is found no more.
 */
struct survey_victim evictor_find_sparse(struct evictor *v, enum evictor_find what, uint64_t before,
					 uint32_t live_max, uint32_t *cursor);
/* The sum of all that would be found. */
void evictor_sum(struct evictor *v, enum evictor_find what, uint64_t before, uint32_t live_max,
		 uint32_t *ret_segments, uint64_t *ret_live);
/* Segments opened from now on are not before this. */
uint64_t evictor_seq(const struct evictor *v);

/* Seals what the mover itself has open; false if nothing was. */
bool evictor_seal(struct evictor *v);

/* A check of everything that is held, in slices; see check.c. */
struct check {
	/* pages: an estimate of all, verified so far, found damaged */
	uint64_t total;
	uint64_t done;
	uint64_t found;
	/* the segment at hand */
	uint32_t segment;
	uint32_t offset;
	uint64_t seq; /* 0: none yet */
	uint64_t seen;
	uint64_t wrong;
	/* what the walk over segments leaves to that over slots */
	uint64_t before;			  /* segments opened since */
	uint64_t open[2 * ENGINE_QUEUES_MAX + 2]; /* open when their turn came, by seq */
	unsigned nopen;
	uint64_t slot;
};

void evictor_check_begin(struct evictor *v, struct check *ret);
/* One slice.  1: there are more, 0: that was the last, -EAGAIN: the store owes what is next. */
int evictor_check(struct evictor *v, struct check *c);

/* Tells waiting writers to try again; @denied: there is no room for tickets up to this (0: there
 * is). */
void evictor_answer(struct evictor *v, uint64_t denied);

#endif

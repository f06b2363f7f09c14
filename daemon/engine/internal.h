/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the engine's files share.
 *
 *   writer.c   open segments: reserve, commit, seal
 *   read.c     the two-phase read of a batch
 *   queue.c    a data thread's entry points; write and discard
 *   evictor.c  the mover's hands: grow, write back, free
 *   clean.c    moving objects
 *   writeback.c  segments to the store, and a store that fails
 *   survey.c   what the policy decides on
 *   health.c   what the store's answers say about it
 *   limit.c    the front tier's limit and watermark
 *   job.c      what the mover is asked to do, and how far it is
 *   check.c    a check of everything that is held, while it runs
 *   recover.c  what a process that died has left
 *   engine.c   making, counting
 *   sweep.c    a check of an engine that stands still, for tests
 */
#ifndef ZSWAPD_ENGINE_INTERNAL_H
#define ZSWAPD_ENGINE_INTERNAL_H

#include "common/crashpoint.h"
#include "common/log.h"
#include "common/util.h"
#include "daemon/engine/engine.h"
#include "daemon/engine/health.h"
#include "daemon/engine/object.h"
#include "daemon/front/front.h"
#include "daemon/state/state.h"

#include <pthread.h>

/* Frames that data threads leave to the mover: without them cleaning could not free any. */
#define FRAMES_KEPT 3u
/* Places that only survivors of store cleaning may use, for the same reason. */
#define PLACES_KEPT  2u

#define WRITE_SLICE  2u /* pages */
#define READ_BUFFER  (32u << 10)
#define DEAD_END     SEGMENT_NONE

#define ANSWER_PAGES 8u	   /* expanded between two submits: some 50 us */
#define READ_GAP     4096u /* bytes worth reading for nothing rather than sending another request */

/* One writer each (the owning thread), any reader.  relaxed: numbers order nothing. */
struct counter_set {
	_Alignas(CACHE_LINE) _Atomic uint64_t v[COUNTER_COUNT];
};

static inline void counter_add(struct counter_set *c, enum counter_id id, uint64_t n)
{
	uint64_t v = atomic_load_explicit(&c->v[id], memory_order_relaxed);

	atomic_store_explicit(&c->v[id], v + n, memory_order_relaxed);
}

/* The same for distributions. */
struct histogram_set {
	_Alignas(CACHE_LINE) _Atomic uint64_t sum[HISTOGRAM_COUNT];
	_Atomic uint64_t buckets[HISTOGRAM_COUNT][HISTOGRAM_BUCKETS];
};

static inline void histogram_add(struct histogram_set *h, enum histogram_id id, uint64_t value,
				 unsigned n)
{
	_Atomic uint64_t *b = &h->buckets[id][histogram_bucket(value)];

	atomic_store_explicit(&h->sum[id],
			      atomic_load_explicit(&h->sum[id], memory_order_relaxed) + value * n,
			      memory_order_relaxed);
	atomic_store_explicit(b, atomic_load_explicit(b, memory_order_relaxed) + n,
			      memory_order_relaxed);
}

/*
 * One in so many is timed, a power of two: of pages that are compressed or expanded, and of
 * requests for one page that are read alone and from memory.
 */
#define TIMED_PAGES 16u
#define TIMED_READS 4u

/* Latencies are collected for two histograms, which are the first. */
#define UNCOUNTED 2u
_Static_assert(HIST_read_latency < UNCOUNTED && HIST_write_latency < UNCOUNTED, "");

/*
 * An open segment and the one thread that appends to it.  Reserve, fill, commit; not committing
 * leaves the segment as it was.
 */
struct writer {
	struct engine *e;
	enum segment_kind kind;
	uint32_t keep; /* frames to leave free */
	/* SEGMENT_NONE: nothing open */
	uint32_t segment;
	struct segment *record;
	uint8_t *base;
	uint32_t used;
	uint64_t added;
};

/* What other threads may see of a queue; outlives it. */
struct queue_slot {
	/* set at start */
	int wake_fd;
	/* atomic */
	_Atomic bool taken;
	_Atomic bool wants_wake;   /* by the owner while a write waits; read by the mover */
	_Atomic unsigned inflight; /* by the owner, for display */
	_Atomic uint64_t turn;	   /* by the owner: odd while it may replace index words */
	struct store_watch watch;  /* its store reads */
	struct counter_set counters;
};

/* See job.c for who writes when. */
struct job {
	/* by a starter, under the lock */
	uint32_t id;
	enum engine_job_kind kind;
	uint64_t amount;
	/* atomic */
	_Atomic bool running, cancel;
	_Atomic int result;
	_Atomic uint64_t done, total, found;
	/* by the mover, before it lowers `running` */
	uint32_t ended; /* counts the ends of jobs and shrinks; 0: none has */
};

/* The way down to a lowered limit; under the lock. */
struct shrink {
	uint32_t id;
	bool running;
	int result;
	uint64_t freed, left; /* bytes: so far, and above the limit when somebody last looked */
	uint64_t moved;	      /* when that was last seen to change; CLOCK_MONOTONIC, ns */
	uint32_t ended;	      /* as struct job's */
};

struct recovery;

struct engine {
	/* set at start */
	struct state *state;
	struct front *front;
	struct engine_store store;
	unsigned nqueues;
	_Atomic uint32_t
		*frame_segment; /* which segment a frame belongs to; atomic, by the owner */
	uint32_t *dead_next;
	int mover_fd;			  /* eventfd */
	struct recovery *recovery;	  /* until the takeover is done */
	struct histogram_set *histograms; /* a queue, then the mover's */

	/* atomic, any thread */
	_Atomic int level;
	_Atomic bool overlap;
	_Atomic bool poll_works; /* false, once and for all, by a store that refuses */
	_Atomic enum engine_poll poll;
	struct idstack records;
	_Atomic uint32_t records_top; /* records from here on were never used */
	_Atomic uint32_t
		dead_head; /* segments of which nothing is live: a stack, emptied as a whole */
	_Atomic bool mover_kicked;
	/*
	 * A write without room takes a ticket and wakes the mover.  The mover frees room, or
	 * answers that there is none for all tickets up to `denied`.
	 */
	_Atomic uint64_t tickets;
	_Atomic uint64_t denied;
	_Atomic uint32_t places_used;	 /* and those that are retired */
	_Atomic uint32_t places_retired; /* for a write that failed */
	/* atomic, by the mover */
	_Atomic bool store_failing; /* the last write failed, or none is tried any more */
	_Atomic bool store_lost;
	struct queue_slot queues[ENGINE_QUEUES_MAX];

	/* the mover's */
	struct counter_set mover_counters;
	struct store_watch mover_watch;

	/* never waited for by the mover or a data thread */
	pthread_mutex_t job_lock;
	uint32_t job_ids;
	_Atomic uint32_t job_ends;
	struct shrink shrink;
	struct job job;
};

struct store_read;
struct read_page;

/* A resident or trivial slot of the batch at hand, between the two passes. */
struct local_page {
	struct engine_request *req;
	uint64_t word;
	uint32_t page;	/* within the request */
	uint32_t frame; /* pinned */
};

struct engine_queue {
	/* set at start */
	struct engine *e;
	struct ring *ring;
	struct codec *codec;
	struct queue_slot *slot;
	struct counter_set *counters;
	struct histogram_set *histograms;
	unsigned requests;
	unsigned request_pages;
	unsigned max_pages;
	/* owner thread only */
	struct writer plain;
	struct writer raw;
	unsigned inflight;
	unsigned compressed, expanded; /* for choosing those that are timed */
	unsigned single_local;	       /* reads of one page alone and from memory; likewise */
	struct uncounted {
		uint64_t taken;
		unsigned n;
	} uncounted[UNCOUNTED]; /* requests that were answered since the clock was looked at */
	unsigned stands_for;	/* of this batch, what is answered from memory: requests */
	struct engine_request *writes; /* oldest first; `pending` says how far each has come */
	struct engine_request **writes_tail;
	uint64_t ticket; /* of the oldest write, which waits for room; 0: none taken */
	uint64_t denied; /* the answer as it was before the last try */
	struct local_page *local;
	unsigned nlocal;
	struct read_page *pages; /* pool */
	struct read_page *free_page;
	struct read_page **order; /* of this batch, sorted for merging */
	unsigned norder;
	struct read_page *waiting; /* for a read buffer */
	struct store_read *reads;  /* pool */
	struct store_read *free_read;
	uint8_t *buffers;
	size_t buffers_size;
	bool buffers_registered;
};

/* limit.c */
/* Frames that may be present; more are only while the limit has just been lowered. */
uint32_t engine_limit_frames(const struct engine *e);
/* Free frames the mover keeps ready. */
uint32_t engine_reserve_frames(const struct engine *e);
/* -EINVAL: less than the threads need; logged. */
int limit_check(uint64_t limit, unsigned nqueues);
/* At the start, of a new state. */
void limit_init(struct engine *e, const struct engine_options *o);
/* Of a state that is taken over: as it was, as far as it can be. */
void limit_keep(struct engine *e);

/* job.c */
/* Sets the limit; what is above it is shown as a shrink. */
void job_limit_set(struct engine *e, uint32_t frames);

/* recover.c */
/* All memory that recover() needs.  -ENOMEM. */
int recovery_new(struct recovery **ret, const struct state *s);
void recovery_free(struct recovery *r);
/* A takeover, before any thread runs: makes records and index whole. */
void recover(struct engine *e);
/* Of new records and of recovered ones: finds what is free and what is dead. */
void recover_sort_out(struct engine *e);

/* engine.c */
void engine_kick_mover(struct engine *e);
/* Credits the segment of an object word that was replaced. */
void engine_release_word(struct engine *e, uint64_t word);
void engine_push_dead(struct engine *e, uint32_t segment);
/* Objects and bytes of all segments, by where they are. */
struct holdings {
	uint64_t resident, resident_bytes;
	uint64_t stored, stored_bytes;
};
void engine_count_objects(struct engine *e, struct holdings *ret);
void engine_report_damage(struct counter_set *c, uint64_t slot, uint32_t segment,
			  const char *where);

/* writer.c */
void writer_init(struct writer *w, struct engine *e, enum segment_kind kind, uint32_t keep);
/* Room for an object of OBJECT_SIZE_MAX; NULL: no frame to be had. */
struct object *writer_reserve(struct writer *w);
/* The reserved object takes @size bytes; returns its index word, to be published by the caller. */
uint64_t writer_commit(struct writer *w, uint32_t size);
/* Takes the last commit back; its word must not have been published. */
void writer_uncommit(struct writer *w, uint32_t size);
void writer_seal(struct writer *w);

/* read.c */
int read_init(struct engine_queue *q);
void read_deinit(struct engine_queue *q);
void read_batch(struct engine_queue *q, struct engine_request *const *batch, unsigned n);
void read_poll(struct engine_queue *q);

/* queue.c */
void request_page_done(struct engine_queue *q, struct engine_request *r, uint64_t page, int error);
/* Takes the time for what was answered since, at most a few pages ago. */
void count_answered(struct engine_queue *q, enum histogram_id id);

#endif

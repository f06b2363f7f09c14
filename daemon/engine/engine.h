/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The engine: 4 KiB slots, kept compressed in the front tier and in the store.
 *
 * Threads.  Each data thread has a struct engine_queue of its own, with its own ring, codec and
 * open segments, and calls the queue's functions; queues share nothing but the state, by atomic
 * words.  One further thread, the mover, drives the evictor (evictor.h).  What is asked or changed
 * while it runs (the limit, jobs, counters, histograms) may be called by any thread at any time,
 * and takes no lock that the mover or a data thread takes.
 *
 * A transport hands over all requests that are ready as one batch:
 *
 *	engine_submit(q, batch, n);    store reads go out, then what is resident is served
 *	ring_wait() or ring_reap()     completes store reads
 *	engine_poll(q)                 writes a few pages; while it returns true there is more to do
 *
 * and gets each request back through its complete(), from inside one of these calls, in any order.
 * complete() may keep, answer or recycle the request, but not submit.
 * As on any block device, requests in flight at the same time are not ordered among themselves.
 */
#ifndef ZSWAPD_ENGINE_ENGINE_H
#define ZSWAPD_ENGINE_ENGINE_H

#include "common/counters.h"
#include "common/histograms.h"
#include "daemon/store/ring.h"

#include <stdbool.h>
#include <stdint.h>

#define ENGINE_QUEUES_MAX   64u
#define ENGINE_REQUESTS_MAX 256u /* in flight, a queue */

enum engine_op {
	ENGINE_READ,
	ENGINE_WRITE,
	ENGINE_DISCARD, /* the slots read as zeroes afterwards; also serves to write zeroes */
};

struct engine_request {
	/* set by the transport; @data is count pages, 8-byte aligned, unused by a discard */
	enum engine_op op;
	uint64_t slot;
	uint64_t count; /* slots; for reads and writes at most the queue's request_pages */
	void *data;
	void (*complete)(struct engine_request *r);
	/*
	 * Set when complete() is called.  error: 0, or a negative errno of the first slot that
	 * failed: -EIO lost or damaged, -ENOSPC no room, -EINVAL outside the device.  done: slots
	 * from the start for which all is right; equals count if error is 0.
	 */
	int error;
	uint64_t done;
	/* the engine's */
	uint64_t pending;
	uint64_t taken; /* when it was submitted; CLOCK_MONOTONIC, ns */
	struct engine_request *next;
};

/* How the read of a single page waits for the store. */
enum engine_poll {
	ENGINE_POLL_OFF,    /* for the drive's interrupt */
	ENGINE_POLL_SPIN,   /* looks until it is there: least time, most CPU */
	ENGINE_POLL_HYBRID, /* sleeps for half of the usual time, then looks */
};

/* What the engine needs to know of an open store. */
struct engine_store {
	int fd;		      /* O_DIRECT; not owned; -1: no store */
	uint32_t nplaces;     /* 1 MiB each */
	uint64_t data_offset; /* bytes, of place 0 */
	uint32_t dio_align;   /* bytes, a power of two, at most 4096 */
	bool polls;	      /* its reads can be polled: see polled_probe() */
	uint8_t id[16];	      /* tells it from other stores */
};

struct engine_options {
	uint64_t device_bytes; /* a multiple of 4096 */
	/*
	 * Bytes, rounded down to whole MiB; see engine_memory_min().  Of no effect at a takeover,
	 * as is memory_reserve: both stay as they were when the former engine died, since what is
	 * held may not fit into others.
	 */
	uint64_t memory_limit;
	/*
	 * What the limit can be raised to while the engine runs; 0 or less than the limit: the
	 * limit itself.  Room for records of this many MiB is taken (and locked) at the start, some
	 * 110 bytes each: a hundredth of a percent.  A takeover keeps what the former engine had.
	 */
	uint64_t memory_max;
	uint64_t memory_reserve; /* see engine_set_memory_reserve() */
	int level;		 /* zstd, see codec.h */
	bool overlap; /* reads in two phases; false: resident slots first, then the store */
	enum engine_poll poll; /* without effect on a store that can't be polled */
	unsigned nqueues;      /* 1 to ENGINE_QUEUES_MAX */
	struct engine_store store;
	/*
	 * memfds of an engine that died, or -1; taken over on success.  Device and store must be
	 * the same.
	 */
	int state_fd;
	int front_fd;
	/*
	 * With both memfds, of an engine that may still be at work in another process: only map
	 * and allocate, until engine_take_over().
	 */
	bool standby;
};

struct engine;
struct engine_queue;

/* Bytes below which @nqueues data threads and the mover can't all have what they hold open. */
uint64_t engine_memory_min(unsigned nqueues);

/* -EINVAL: an option is out of range; -EBADMSG: the memfds do not fit; -ENOMEM.  Logged. */
int engine_new(struct engine **ret, const struct engine_options *o);
/* After all queues and the evictor are freed. */
void engine_free(struct engine *e);

/*
 * Standing by.  An engine made with `standby` writes nothing to the memfds, and needs no memory for
 * its takeover.  Call mlockall(MCL_CURRENT | MCL_FUTURE) before it is made: then what it maps and
 * allocates is present and stays.  Until it has taken over nothing else may be called but
 * engine_queue_new() and engine_queue_free(), the setters of level, overlap and poll, and
 * engine_free().
 *
 * engine_standby_hold() maps frames of the front tier that became present since the last call, so
 * that they are locked here as well.  It does a bounded part of it, some 2 ms; true: there is more.
 * With nothing new it costs a load.  Call it some 50 times a second.
 *
 * engine_take_over() when the other process is dead: waited for, not only killed.  Cannot fail for
 * want of anything.  -EINVAL: not standing by.
 */
bool engine_standby_hold(struct engine *e);
int engine_take_over(struct engine *e);

/*
 * The same for frames that came between the last look and the death of the other process, once this
 * one has taken over: the mover's, until it returns false.
 */
bool engine_hold(struct engine *e);

/* The memfds, for a successor.  Owned by the engine. */
int engine_state_fd(const struct engine *e);
int engine_front_fd(const struct engine *e);
/* Notes in the state that it belongs to this device and to the store: see struct state_owner. */
void engine_set_device(struct engine *e, const char *path, uint64_t diskseq);

/* Atomic; take effect with the next batch.  Any thread. */
void engine_set_level(struct engine *e, int level);
void engine_set_overlap(struct engine *e, bool overlap);
/* -EOPNOTSUPP: there is no store, or its reads can't be polled; it stays off. */
int engine_set_poll(struct engine *e, enum engine_poll poll);

/*
 * The front tier's limit, which may move both ways while the device is in use.  The new limit is in
 * force at once: memory_limit_bytes shows it, and no frame beyond it is asked of the system.  What
 * is in memory above it is cleaned or written to the store by the mover, and memory_used_bytes
 * falls until it is at most the limit; one frame of two that come free meanwhile is left to
 * writers.  Raising it lets memory grow as it is needed.
 *
 * Nothing is ever dropped for a limit.  One that what is held cannot be brought under, by the
 * store's free places, is refused; if it turns out later that it can't be reached (the store fails,
 * more was written meanwhile), memory stays above it, and writes that find no room are rejected.
 *
 * @bytes is rounded down to whole MiB.  -ERANGE: less than the threads need or more than
 * memory_max; -ENOSPC: what is held would not fit.  engine_memory_range() has the figures; they
 * move with what is written.
 */
int engine_set_memory_limit(struct engine *e, uint64_t bytes);
void engine_memory_range(struct engine *e, uint64_t *ret_min, uint64_t *ret_max);
uint64_t engine_memory_limit(const struct engine *e);

/*
 * The watermark: how much of the limit is kept free ahead of need.  The mover starts to make room
 * when less is free, and stops when this much is.  0: two segments for each queue, beside three for
 * the mover itself.  More takes a burst of writes without waiting and holds fewer pages.  Rounded
 * up to whole MiB.  What the limit has no room for is not kept: engine_memory_reserve() says how
 * much is in force, and that moves with the limit.
 */
void engine_set_memory_reserve(struct engine *e, uint64_t bytes);
uint64_t engine_memory_reserve(const struct engine *e);
/* As it was set; 0: the default. */
uint64_t engine_memory_reserve_wanted(const struct engine *e);

struct engine_queue_options {
	struct ring *ring;	/* the thread's; its buffer slot 0 is the engine's */
	unsigned requests;	/* most requests in flight, at most ENGINE_REQUESTS_MAX */
	unsigned request_pages; /* most pages of a read or write request */
};

/* In the thread that will use it.  -ENOMEM, -EBUSY: more than nqueues. */
int engine_queue_new(struct engine_queue **ret, struct engine *e,
		     const struct engine_queue_options *o);
/* Seals what is open.  No request may be in flight. */
void engine_queue_free(struct engine_queue *q);

void engine_submit(struct engine_queue *q, struct engine_request *const *batch, unsigned n);

/*
 * Goes on with writes, two pages at a time, and with reads that waited for a buffer.  True: call
 * again before you sleep.  False: there is nothing to do until a request, a completion or the wake
 * descriptor.
 */
bool engine_poll(struct engine_queue *q);

/* An eventfd that becomes readable when engine_poll() may get further.  The engine's; reset it by
 * reading. */
int engine_queue_wake_fd(const struct engine_queue *q);

/* Requests submitted and not completed. */
unsigned engine_queue_inflight(const struct engine_queue *q);

/* What is known of the store.  The numbers are those of the counter store_state. */
enum engine_store_state {
	ENGINE_STORE_NONE, /* there is none */
	ENGINE_STORE_OK,
	ENGINE_STORE_DEGRADED, /* requests to it failed within the last minute, or fail */
	ENGINE_STORE_STALLED,  /* it owes answers and has given none for five seconds */
	ENGINE_STORE_LOST,     /* nothing is written to it any more: see health.h */
};

/* Any thread. */
enum engine_store_state engine_store_state(struct engine *e);

/* Fills in all counters; gauges are consistent among themselves.  Any thread. */
void engine_counters(struct engine *e, uint64_t values[COUNTER_COUNT]);

/* Adds all threads' up; each is consistent in itself, its count being the sum of its buckets. */
void engine_histograms(struct engine *e, struct histogram ret[HISTOGRAM_COUNT]);

/*
 * Jobs: work on everything that is held, done by the mover in slices, between which it makes room
 * for writers as ever.  One at a time.
 */
enum engine_job_kind {
	ENGINE_JOB_NONE,
	/*
	 * Resident segments go to the store, in the order in which they would leave anyway, until
	 * @amount bytes of memory have become free or no sealed segment is left.  Segments that are
	 * open stay: two for each queue.  The memory goes back to the system.
	 */
	ENGINE_JOB_WRITEBACK,
	/*
	 * Segments of which more than an eighth is dead, in memory and in the store, are emptied
	 * into others.  The memory goes back to the system.  @amount is not used.
	 */
	ENGINE_JOB_COMPACT,
	/*
	 * Every page is read, from memory or store, and verified; damage counts as a checksum
	 * failure.  @amount is not used.
	 */
	ENGINE_JOB_CHECK,
	/*
	 * The way down to a limit that was lowered, which goes on beside a job.  It is begun and
	 * ended by setting the limit, and neither started nor cancelled.  -ENOSPC: memory has not
	 * become less for ten seconds.
	 */
	ENGINE_JOB_SHRINK,
};

struct engine_job {
	uint32_t id; /* the first is 1; 0: there was none */
	enum engine_job_kind kind;
	bool running;
	int result; /* once over: 0, -ECANCELED, or the errno that ended it */
	/* pages for a check, else bytes; done <= total, equal when it ended well */
	uint64_t done;
	uint64_t total;
	uint64_t found; /* a check's damaged and lost pages */
};

#define ENGINE_JOBS    2u

#define ENGINE_JOB_ALL UINT64_MAX

/*
 * -EBUSY: one is running; -EOPNOTSUPP: there is no store to write to; -EIO: it is lost; -EINVAL.  A
 * job that ends with -ENOSPC found no room to go on: no free place in the store, or no frame to
 * move pages to.
 */
int engine_job_start(struct engine *e, enum engine_job_kind kind, uint64_t amount);
/*
 * The last job and the last shrink, id 0 for one that never was.  First the one under way (the job,
 * if both are), else the one that ended last.
 */
void engine_jobs(struct engine *e, struct engine_job ret[ENGINE_JOBS]);
/* The first of them. */
void engine_job_status(struct engine *e, struct engine_job *ret);
/*
 * Ends the job under way soon, between two slices.  What it has done stays done.  -ESRCH: there is
 * none; -EOPNOTSUPP: only a shrink is under way, which ends when the limit is set up again.
 */
int engine_job_cancel(struct engine *e);

/*
 * Sweep: decodes every used slot and counts what is wrong (0 is right), records included.  Slow,
 * for tests; no data thread and no mover may run.  See ENGINE_JOB_CHECK for an engine that runs.
 */
uint64_t engine_check(struct engine *e);

#endif

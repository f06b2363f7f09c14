/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The engine: 4 KiB slots, kept compressed in the front tier and in the store.
 *
 * Threads.  Each data thread has a struct engine_queue of its own, with its own ring, codec and
 *open segments, and calls the queue's functions; queues share nothing but the state, by atomic
 *words. One further thread, the mover, drives the evictor (evictor.h).  engine_counters() may be
 *called by any thread at any time and takes no lock.
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
	struct engine_request *next;
};

/* What the engine needs to know of an open store. */
struct engine_store {
	int fd;		      /* O_DIRECT; not owned; -1: no store */
	uint32_t nplaces;     /* 1 MiB each */
	uint64_t data_offset; /* bytes, of place 0 */
	uint32_t dio_align;   /* bytes, a power of two, at most 4096 */
};

struct engine_options {
	uint64_t device_bytes; /* a multiple of 4096 */
	uint64_t memory_limit; /* bytes; rounded down to whole MiB; see engine_memory_min() */
	int level;	       /* zstd, see codec.h */
	bool overlap;	  /* reads in two phases; false: resident slots first, then the store */
	unsigned nqueues; /* 1 to ENGINE_QUEUES_MAX */
	struct engine_store store;
	/* memfds of an engine that died, or -1; taken over on success.  Geometry must be the same.
	 */
	int state_fd;
	int front_fd;
};

struct engine;
struct engine_queue;

/* Bytes below which @nqueues data threads and the mover can't all have what they hold open. */
uint64_t engine_memory_min(unsigned nqueues);

/* -EINVAL: an option is out of range; -EBADMSG: the memfds do not fit; -ENOMEM.  Logged. */
int engine_new(struct engine **ret, const struct engine_options *o);
/* After all queues and the evictor are freed. */
void engine_free(struct engine *e);

/* The memfds, for a successor.  Owned by the engine. */
int engine_state_fd(const struct engine *e);
int engine_front_fd(const struct engine *e);

/* Atomic; take effect with the next batch.  Any thread. */
void engine_set_level(struct engine *e, int level);
void engine_set_overlap(struct engine *e, bool overlap);

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

/* Fills in all counters; gauges are consistent among themselves.  Any thread. */
void engine_counters(struct engine *e, uint64_t values[COUNTER_COUNT]);

/*
 * Sweep: decodes every used slot and counts what is wrong (0 is right).  Slow, for tests and
 * `check`; no data thread and no mover may run.
 */
uint64_t engine_check(struct engine *e);

#endif

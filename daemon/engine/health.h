/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the store's answers, and their absence, say about it.  Numbers and times only, no I/O.
 *
 * Reads and writes are watched for each thread (struct store_watch): a store that owes answers and
 * gives none is stalled.  Nothing is done about that but to say so: what was sent is the store's
 * until it answers.
 *
 * Writes are the mover's, and it can do without: what is not written stays in memory.  So the first
 * failure makes it careful (struct write_health):
 *
 *   well     several writes at a time
 *   failing  one write at a time, a try; after each that fails a longer pause
 *   lost     after LOST_TRIES of them, or when the device is gone: a try a minute, or none
 *
 * A write that succeeds ends either.  Then the faults were those of the places that were written
 * to, if they were few; the store's own if they were more than can have been under way at once.
 */
#ifndef ZSWAPD_ENGINE_HEALTH_H
#define ZSWAPD_ENGINE_HEALTH_H

#include "common/util.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define STALLED_NS    5000000000ull  /* without any answer */
#define DEGRADED_NS   60000000000ull /* after the last request that failed */
#define TRY_PAUSE_NS  1000000000ull  /* after the first try that failed; then twice as long */
#define LOST_TRIES    5u	     /* which takes 15 s of pauses */
#define LOST_PAUSE_NS 60000000000ull

/* One thread's requests to the store.  Atomic; written by the owner, read by anyone; ns. */
struct store_watch {
	_Atomic unsigned waiting;  /* sent and not answered */
	_Atomic uint64_t since;	   /* the last answer, or when the first of them was sent */
	_Atomic uint64_t answered; /* the last answer */
	_Atomic uint64_t failed;   /* the last answer that was a failure; 0: none */
};

/* relaxed throughout: what is concluded is about seconds. */
static inline void store_watch_sent(struct store_watch *w, uint64_t now)
{
	unsigned n = atomic_load_explicit(&w->waiting, memory_order_relaxed);

	if (n == 0)
		atomic_store_explicit(&w->since, now, memory_order_relaxed);
	atomic_store_explicit(&w->waiting, n + 1, memory_order_relaxed);
}

static inline void store_watch_answered(struct store_watch *w, uint64_t now, bool failed)
{
	unsigned n = atomic_load_explicit(&w->waiting, memory_order_relaxed);

	z_assert(n > 0);
	atomic_store_explicit(&w->since, now, memory_order_relaxed);
	atomic_store_explicit(&w->answered, now, memory_order_relaxed);
	if (unlikely(failed))
		atomic_store_explicit(&w->failed, now, memory_order_relaxed);
	atomic_store_explicit(&w->waiting, n - 1, memory_order_relaxed);
}

/* True: no answer for so long that another thread's answer would not excuse it. */
bool store_watch_overdue(const struct store_watch *w, uint64_t now);
/* True: an answer has come lately. */
bool store_watch_lively(const struct store_watch *w, uint64_t now);

/*
 * An error that may be one place's alone.  Others speak of the whole: the device is gone or does
 * not answer, the file system is full, writing is not allowed.  @res: as in a completion.
 */
bool store_fault_is_local(int32_t res);
/* An error that only a device gives which is not there any more. */
bool store_fault_is_gone(int32_t res);

/* Zero at first. */
struct write_health {
	unsigned failures; /* since the last write that succeeded */
	unsigned tries;	   /* those among them that were tries */
	uint64_t next;	   /* no try before that; ns */
	bool lost;
	bool gone; /* and nothing brings it back */
};

/* Whether a write may be started now, with @writing of them under way. */
bool write_health_allows(const struct write_health *h, unsigned writing, uint64_t now);
/* @try: it was sent while the last one before had failed. */
void write_health_failed(struct write_health *h, bool try, uint64_t now);
void write_health_succeeded(struct write_health *h);
/* The device is not there any more. */
void write_health_gone(struct write_health *h);

#endif

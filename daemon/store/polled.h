/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Store reads that are polled for.
 *
 * The drive raises no interrupt for a polled read.  Its owner looks until it is there, which saves
 * the interrupt and the wake-up of a sleeping thread, and costs CPU time.  io_uring knows polling
 * as a property of a ring (IORING_SETUP_IOPOLL) that can then hold nothing else; so a struct polled
 * is a second ring, beside the one its owner waits in.  ring.h has the two together.
 *
 * The pace says when to look: all the time, or (a nap allowed) after sleeping for half of what such
 * reads have lately taken.  Where the system wakes a sleeper late, the nap is that much shorter, or
 * left out.  A read that takes out of all proportion is looked for now and then, so that a drive in
 * trouble does not cost a CPU.
 *
 * The ideas are those of "add block io poll in swapin path" (S. Li) and of the block layer's hybrid
 * polling.
 *
 * Everything but polled_probe() is for the owner's thread only.
 */
#ifndef ZSWAPD_STORE_POLLED_H
#define ZSWAPD_STORE_POLLED_H

#include <liburing.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ring_op;

#define POLLED_MAX	   8u /* in flight; with more than that, waiting for one is no loss */
#define POLLED_PATIENCE_NS 10000000u /* from here on it is looked for now and then */
#define POLLED_REST_NS	   200000u   /* between two such looks */
#define POLLED_NAP_MIN_NS  4000u     /* a shorter sleep costs what it saves */

/* Times of now_ns(). */
struct polled_pace {
	uint64_t sent;	  /* the last read */
	uint64_t mean_ns; /* what a read takes; 0: not known yet */
	uint64_t late_ns; /* how much longer than asked for a sleep lasts */
	bool nap;	  /* allowed, for the reads in flight */
	bool alone;	  /* one read has been in flight since it was sent */
	bool slept;	  /* and nobody has looked since: it may have been there for long */
};

void polled_pace_sent(struct polled_pace *p, uint64_t now, bool alone, bool nap);
/* How long the owner should sleep before it looks; 0: it should look now. */
uint64_t polled_pace_sleep(const struct polled_pace *p, uint64_t now);
/* It has slept, as long as it was asked to, or less when something else came. */
void polled_pace_slept(struct polled_pace *p, uint64_t asked, uint64_t took);
/* It has looked: nothing was there, or a read. */
void polled_pace_missed(struct polled_pace *p);
void polled_pace_found(struct polled_pace *p, uint64_t now);

struct polled {
	struct io_uring u;
	bool open;
	unsigned inflight;
	struct polled_pace pace;
};

/*
 * @fd: as with ring_init().  Errors are io_uring_setup(2)'s and io_uring_register(2)'s.  Also
 * makes the calling thread's short sleeps exact (PR_SET_TIMERSLACK).
 */
int polled_init(struct polled *p, int fd);
void polled_deinit(struct polled *p);

/* Registers @base as the one buffer. */
int polled_set_buffer(struct polled *p, void *base, size_t len);

/*
 * Sends a read; @op->done is called for it by polled_reap().  @fixed: @buf lies in the registered
 * buffer.  @nap: see above.  False: not now, use the other ring.
 */
bool polled_read(struct polled *p, struct ring_op *op, void *buf, unsigned len, uint64_t off,
		 bool fixed, bool nap);

/* Looks once, without waiting; returns how many reads it has handled, 0 or 1. */
unsigned polled_reap(struct polled *p);

/*
 * 0 if reads of @fd, an open store, can be polled, else -EOPNOTSUPP, or -ETIMEDOUT of a drive that
 * does not answer within a second.  @wanted: the configuration asks for it, so that a failure is
 * worth a warning.  At start-up, any thread.
 */
int polled_probe(int fd, const char *path, bool wanted);

#endif

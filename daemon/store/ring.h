/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One io_uring and whoever waits on it.
 *
 * A ring belongs to the thread that made it.  An operation in flight is a struct ring_op inside its
 * owner's structure; when the kernel has answered, ring_reap() calls op->done.  So the engine's
 * store reads, the transport's commands and wake-ups from other threads share one ring and one
 * wait.
 *
 * The submission queue never overflows for the caller: a full one is submitted first.  The store is
 * registered file 0 where there is one.
 *
 * Store reads can be polled for instead (polled.h).  Nothing wakes the owner for them, so while one
 * is in flight ring_reap() looks at both rings, and ring_wait() turns between the two rather than
 * sleep: what else the ring waits for still ends the wait.
 */
#ifndef ZSWAPD_STORE_RING_H
#define ZSWAPD_STORE_RING_H

#include "daemon/store/polled.h"

#include <liburing.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ring_op {
	/* @res as in io_uring's cqe->res; @flags as in cqe->flags (IORING_CQE_F_MORE: not the last)
	 */
	void (*done)(struct ring_op *op, int32_t res, uint32_t flags);
	bool transfer; /* the ring's: moves bytes of the store, which then are expanded */
};

struct ring {
	struct io_uring u;
	unsigned inflight;  /* operations whose last completion has not been reaped */
	unsigned transfers; /* those among them that move bytes of the store */
	bool has_store;
	struct polled polled; /* closed unless ring_open_polled() was called */
};

/*
 * @entries: submission queue size; the completion queue is four times that.  @store_fd: registered
 * as file 0, or -1.  @nbuffers: slots for registered buffers, empty at first.
 * Errors are io_uring_setup(2)'s and io_uring_register(2)'s.
 */
int ring_init(struct ring *r, unsigned entries, int store_fd, unsigned nbuffers);
void ring_deinit(struct ring *r);

/*
 * Makes polled reads of the store @store_fd possible, with @base (NULL: none) as their registered
 * buffer.  Errors as above; without it the ring works as before.
 */
int ring_open_polled(struct ring *r, int store_fd, void *base, size_t len);
/* When none is in flight; ring_deinit() does it as well. */
void ring_close_polled(struct ring *r);

/* Puts @base (NULL: nothing) into buffer slot @index. */
int ring_set_buffer(struct ring *r, unsigned index, void *base, size_t len);

/* An entry to be filled; @op->done is called for it.  Never NULL. */
struct io_uring_sqe *ring_sqe(struct ring *r, struct ring_op *op);

/* Queues a transfer between @buf and offset @off of the store; @buf_index < 0: not registered. */
void ring_store_read(struct ring *r, struct ring_op *op, void *buf, unsigned len, uint64_t off,
		     int buf_index);
void ring_store_write(struct ring *r, struct ring_op *op, const void *buf, unsigned len,
		      uint64_t off, int buf_index);

/*
 * Sends a read that is polled for; @fixed: @buf lies in the buffer of ring_open_polled().  With
 * @nap the owner may sleep for a part of the time.  False: not possible now, or at all.
 */
static inline bool ring_store_read_polled(struct ring *r, struct ring_op *op, void *buf,
					  unsigned len, uint64_t off, bool fixed, bool nap)
{
	return polled_read(&r->polled, op, buf, len, off, fixed, nap);
}

/* Whether a polled read is in flight: the owner should not spin by itself, but in ring_wait(). */
static inline bool ring_is_polling(const struct ring *r)
{
	return r->polled.inflight > 0;
}

/* Queues one wait for @fd to become readable. */
void ring_poll_in(struct ring *r, struct ring_op *op, int fd);

/* Hands what is queued to the kernel; 0 or a negative errno that leaves the entries queued. */
int ring_submit(struct ring *r);

/*
 * Handles completions that are there, without waiting; returns how many.  Of transfers only some
 * are handled at once: the owner looks for new requests and calls again, until the answer is 0.
 * What costs next to nothing, commands and wake-ups, is not held back.
 */
unsigned ring_reap(struct ring *r);

/* An operation whose answer is waited for on the spot. */
struct ring_answer {
	struct ring_op op;
	int32_t res; /* as in struct ring_op */
	bool done;
};

void ring_answer_init(struct ring_answer *a);

/*
 * Waits up to @timeout_ns for the answer to @a, while other completions are handled as they come.
 * False: it has not come; the operation, @a and its buffer are still the kernel's.
 */
bool ring_await(struct ring *r, struct ring_answer *a, uint64_t timeout_ns);

/* Submits, waits up to @timeout_ns for one completion, reaps.  Returns how many were handled. */
unsigned ring_wait(struct ring *r, uint64_t timeout_ns);

#endif

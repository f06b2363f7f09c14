// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/store/ring.h"
#include "common/log.h"
#include "common/util.h"
#include "daemon/store/restrict.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <time.h>

#define STORE_FILE	0
#define REAP_MAX	4
#define SUBMIT_PAUSE_NS 1000000
#define SUBMIT_TRIES	30000 /* half a minute */

static int enable(struct ring *r)
{
	static const uint8_t ops[] = {IORING_OP_READ,	  IORING_OP_READ_FIXED,
				      IORING_OP_WRITE,	  IORING_OP_WRITE_FIXED,
				      IORING_OP_POLL_ADD, IORING_OP_URING_CMD};
	static const uint8_t registers[] = {IORING_REGISTER_BUFFERS_UPDATE,
					    IORING_UNREGISTER_FILES};

	return restrict_enable(&r->u, &(struct restrict_lists){ops, ARRAY_SIZE(ops), registers,
							       ARRAY_SIZE(registers)});
}

int ring_init(struct ring *r, unsigned entries, int store_fd, unsigned nbuffers)
{
	struct io_uring_params p = {
		/*
		 * COOP_TASKRUN: completions are delivered when the thread enters the kernel anyway
		 * (it does so all the time) instead of by an interrupt to its CPU.
		 */
		.flags = IORING_SETUP_CQSIZE | IORING_SETUP_COOP_TASKRUN |
			 IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_R_DISABLED,
		.cq_entries = entries * 4,
	};
	int ret;

	memset(r, 0, sizeof(*r));
	ret = io_uring_queue_init_params(entries, &r->u, &p);
	if (ret < 0) {
		log_err("io_uring: cannot set up a ring: %s; the kernel must be 6.1 or later and "
			"kernel.io_uring_disabled must be 0",
			strerror(-ret));
		return ret;
	}
	if (store_fd >= 0) {
		ret = io_uring_register_files(&r->u, &store_fd, 1);
		if (ret < 0)
			goto fail;
		r->has_store = true;
	}
	if (nbuffers) {
		ret = io_uring_register_buffers_sparse(&r->u, nbuffers);
		if (ret < 0)
			goto fail;
	}
	ret = enable(r);
	if (ret < 0)
		goto fail;
	return 0;
fail:
	log_err("io_uring: cannot register the store, %u buffers or what is allowed: %s", nbuffers,
		strerror(-ret));
	io_uring_queue_exit(&r->u);
	return ret;
}

void ring_deinit(struct ring *r)
{
	/*
	 * The kernel tears a ring down in its own time.  The store is let go here and now, since
	 * its lock lasts as long as any reference to it.
	 */
	polled_deinit(&r->polled);
	if (r->has_store)
		io_uring_unregister_files(&r->u);
	if (r->u.ring_fd > 0)
		io_uring_queue_exit(&r->u);
	memset(r, 0, sizeof(*r));
}

int ring_open_polled(struct ring *r, int store_fd, void *base, size_t len)
{
	int ret = polled_init(&r->polled, store_fd);

	if (ret == 0 && base)
		ret = polled_set_buffer(&r->polled, base, len);
	if (ret < 0)
		polled_deinit(&r->polled);
	return ret;
}

void ring_close_polled(struct ring *r)
{
	z_assert(r->polled.inflight == 0);
	polled_deinit(&r->polled);
}

int ring_set_buffer(struct ring *r, unsigned index, void *base, size_t len)
{
	struct iovec iov = {.iov_base = base, .iov_len = base ? len : 0};
	__u64 tag = 0;
	int ret = io_uring_register_buffers_update_tag(&r->u, index, &iov, &tag, 1);

	return ret < 0 ? ret : 0;
}

struct io_uring_sqe *ring_sqe(struct ring *r, struct ring_op *op)
{
	const struct timespec pause = {.tv_nsec = SUBMIT_PAUSE_NS};
	struct io_uring_sqe *sqe = io_uring_get_sqe(&r->u);

	/*
	 * Without SQPOLL a submit takes all entries over, so the second try finds room, unless the
	 * kernel is short of memory for them (-EAGAIN), which passes.
	 */
	for (unsigned tries = 0; !sqe; tries++) {
		z_assert(tries < SUBMIT_TRIES);
		if (ring_submit(r) < 0)
			nanosleep(&pause, NULL);
		sqe = io_uring_get_sqe(&r->u);
	}
	r->inflight++;
	op->transfer = false;
	io_uring_sqe_set_data(sqe, op);
	return sqe;
}

/* The prep calls clear user_data in no version, but they write most other fields: prep, then data.
 */
static void prep_store(struct ring *r, struct ring_op *op, int opcode, const void *buf,
		       unsigned len, uint64_t off, int buf_index)
{
	struct io_uring_sqe *sqe = ring_sqe(r, op);

	io_uring_prep_rw(opcode, sqe, STORE_FILE, buf, len, off);
	sqe->flags |= IOSQE_FIXED_FILE;
	if (buf_index >= 0)
		sqe->buf_index = (uint16_t)buf_index;
	io_uring_sqe_set_data(sqe, op);
	op->transfer = true;
	r->transfers++;
}

void ring_store_read(struct ring *r, struct ring_op *op, void *buf, unsigned len, uint64_t off,
		     int buf_index)
{
	prep_store(r, op, buf_index >= 0 ? IORING_OP_READ_FIXED : IORING_OP_READ, buf, len, off,
		   buf_index);
}

void ring_store_write(struct ring *r, struct ring_op *op, const void *buf, unsigned len,
		      uint64_t off, int buf_index)
{
	prep_store(r, op, buf_index >= 0 ? IORING_OP_WRITE_FIXED : IORING_OP_WRITE, buf, len, off,
		   buf_index);
}

void ring_poll_in(struct ring *r, struct ring_op *op, int fd)
{
	struct io_uring_sqe *sqe = ring_sqe(r, op);

	io_uring_prep_poll_add(sqe, fd, POLLIN);
	io_uring_sqe_set_data(sqe, op);
}

int ring_submit(struct ring *r)
{
	int ret = io_uring_submit(&r->u);

	return ret < 0 ? ret : 0;
}

/*
 * How many transfers are handled before the owner can send the next requests.  To expand all that
 * there are would leave the device idle meanwhile; one at a time would cost a look at the queue
 * each.
 */
static unsigned reap_limit(const struct ring *r)
{
	unsigned n = r->transfers / 8;

	return n < 1 ? 1 : n > REAP_MAX ? REAP_MAX : n;
}

unsigned ring_reap(struct ring *r)
{
	unsigned limit = reap_limit(r), transfers = 0, n = polled_reap(&r->polled);
	struct io_uring_cqe *cqe;

	while (transfers < limit && io_uring_peek_cqe(&r->u, &cqe) == 0 && cqe) {
		struct ring_op *op = io_uring_cqe_get_data(cqe);
		int32_t res = cqe->res;
		uint32_t flags = cqe->flags;

		/* Seen before it is handled: done() may queue, and even wait. */
		io_uring_cqe_seen(&r->u, cqe);
		n++;
		if (!op)
			continue;
		if (!(flags & IORING_CQE_F_MORE)) {
			z_assert(r->inflight > 0);
			r->inflight--;
		}
		if (op->transfer) {
			z_assert(r->transfers > 0);
			r->transfers--;
			transfers++;
			/* It takes a while to expand; what was answered before shall not wait for
			 * it. */
			ring_submit(r);
		}
		op->done(op, res, flags);
	}
	return n;
}

/* Submits and sleeps until there is a completion, for @timeout_ns at most. */
static void sleep_for_one(struct ring *r, uint64_t timeout_ns)
{
	struct __kernel_timespec ts = {
		.tv_sec = (int64_t)(timeout_ns / 1000000000u),
		.tv_nsec = (long long)(timeout_ns % 1000000000u),
	};
	struct io_uring_cqe *cqe;

	if (io_uring_cq_ready(&r->u) == 0)
		/* -ETIME and -EINTR: nothing has come, which is an answer. */
		io_uring_submit_and_wait_timeout(&r->u, &cqe, 1, &ts, NULL);
	else
		ring_submit(r);
}

/*
 * Both rings by turns.  A look at the polled one is a system call, and on its way out of the kernel
 * the thread also delivers what has become ready for the main one.
 */
static unsigned wait_polling(struct ring *r, uint64_t timeout_ns)
{
	uint64_t start = now_ns(), now = start;
	unsigned n;

	ring_submit(r);
	do {
		uint64_t pause = polled_pace_sleep(&r->polled.pace, now);

		if (pause) {
			pause = min_u64(pause, timeout_ns - (now - start));
			sleep_for_one(r, pause);
			polled_pace_slept(&r->polled.pace, pause, now_ns() - now);
		}
		n = ring_reap(r);
		now = now_ns();
	} while (n == 0 && now - start < timeout_ns);
	return n;
}

unsigned ring_wait(struct ring *r, uint64_t timeout_ns)
{
	if (ring_is_polling(r))
		return wait_polling(r, timeout_ns);
	sleep_for_one(r, timeout_ns);
	return ring_reap(r);
}

static void answered(struct ring_op *op, int32_t res, uint32_t flags)
{
	struct ring_answer *a = container_of(op, struct ring_answer, op);

	(void)flags;
	a->res = res;
	a->done = true;
}

void ring_answer_init(struct ring_answer *a)
{
	*a = (struct ring_answer){.op.done = answered};
}

bool ring_await(struct ring *r, struct ring_answer *a, uint64_t timeout_ns)
{
	uint64_t start = now_ns(), waited = 0;

	while (!a->done && waited < timeout_ns) {
		ring_wait(r, timeout_ns - waited);
		waited = now_ns() - start;
	}
	return a->done;
}

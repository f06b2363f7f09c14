// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A queue's requests: one command for each tag is always with the kernel or being served.
 *
 * The thread is made with all it needs before the device is opened, and fetches when it is told
 * that the device can be served.  At a takeover swap stands still meanwhile, and there may be no
 * memory.
 *
 * The kernel completes a tag's command when it has a request for it, described in the mapped
 * descriptors, with the data of a write in the tag's buffer already.  The answer, with the data of
 * a read in that buffer, is the next command for the tag.  Commands and the store's I/O share the
 * thread's ring, so one wait covers both, and an answer costs no system call of its own: it goes
 * with the next submit, which often is that wait.
 */
#include "common/log.h"
#include "daemon/ublk/internal.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

#define COMMAND_TRIES 1000u

static void send_command(struct ublk_io *io, uint32_t op, int32_t result)
{
	struct ublk_queue *q = io->q;
	const struct ublk_io_cmd cmd = {.q_id = q->id,
					.tag = io->tag,
					.result = result,
					.addr = (uint64_t)(uintptr_t)io->buffer};
	struct io_uring_sqe *sqe = ring_sqe(&q->base.ring, &io->op);

	io_uring_prep_rw(IORING_OP_URING_CMD, sqe, q->t->fd, NULL, 0, 0);
	sqe->cmd_op = op;
	memcpy(sqe->cmd, &cmd, sizeof(cmd));
	io_uring_sqe_set_data(sqe, &io->op);
}

static void answer(struct ublk_io *io, int32_t result)
{
	io->result = result;
	io->asked = false;
	send_command(io, io->q->commit_op, result);
}

/*
 * What is right up to a bad slot is answered short: the kernel then asks for the rest again, which
 * fails on its own.  Operations that move no data are answered with 0, never with a length.
 */
static void complete(struct engine_request *r)
{
	struct ublk_io *io = container_of(r, struct ublk_io, req);

	if (r->op == ENGINE_DISCARD || r->done == 0)
		answer(io, r->error);
	else
		answer(io, (int32_t)(r->done * SLOT_BYTES));
}

static void device_lost(struct ublk_queue *q, int error)
{
	struct ublk_transport *t = q->t;

	if (!atomic_exchange(&t->closing, true)) {
		log_post(LOG_LEVEL_ERR, "ublk: the kernel does not serve %s any more: %s",
			 t->device, strerror(error));
		eventfd_write(t->failed_fd, 1);
	}
}

/*
 * A tag's command is done: a request has come, or the device goes.  What passes is tried again: the
 * driver has not seen the command then, so the tag is as it was.
 */
static void command_done(struct ring_op *op, int32_t res, uint32_t flags)
{
	struct ublk_io *io = container_of(op, struct ublk_io, op);
	struct ublk_queue *q = io->q;

	(void)flags;
	if (likely(res == 0)) {
		io->started = true;
		io->asked = true;
		io->tries = 0;
		q->ready[q->nready++] = io;
	} else if ((res == -EAGAIN || res == -ENOMEM || res == -EINTR) &&
		   io->tries++ < COMMAND_TRIES) {
		send_command(io, io->started ? q->commit_op : q->fetch_op, io->result);
	} else {
		device_lost(q,
			    -res); /* UBLK_IO_ABORTED, mostly; and no more commands for this tag */
	}
}

/* True if @io is now a request for the engine; else it was answered. */
static bool decode(struct ublk_io *io)
{
	/*
	 * The driver wrote the descriptor before it completed the command, and the ring's tail was
	 * loaded with acquire order.
	 */
	const struct ublk_io_desc d = io->q->descs[io->tag];
	uint64_t offset = d.start_sector * SECTOR_BYTES;
	uint64_t size = (uint64_t)d.nr_sectors * SECTOR_BYTES;

	switch (d.op_flags & UBLK_OP_MASK) {
	case UBLK_OP_READ:
		io->req.op = ENGINE_READ;
		break;
	case UBLK_OP_WRITE:
		io->req.op = ENGINE_WRITE;
		break;
	case UBLK_OP_DISCARD:
	case UBLK_OP_WRITE_ZEROES:
		io->req.op = ENGINE_DISCARD;
		break;
	case UBLK_OP_FLUSH: /* a write that was answered is complete */
		answer(io, 0);
		return false;
	default:
		answer(io, -EOPNOTSUPP);
		return false;
	}
	if (offset % SLOT_BYTES || size % SLOT_BYTES || size == 0) {
		answer(io, -EINVAL);
		return false;
	}
	io->req.slot = offset / SLOT_BYTES;
	io->req.count = size / SLOT_BYTES;
	return true;
}

/*
 * From here on the queue can be asked; all it needs is there.  In the thread that serves it, which
 * alone may fetch.
 */
static void fetch_all(struct ublk_queue *q)
{
	void *p = mmap(NULL, q->descs_size, PROT_READ, MAP_SHARED | MAP_POPULATE, q->t->fd,
		       (off_t)(q->id * UBLK_DESC_STRIDE));

	if (p == MAP_FAILED) {
		device_lost(q, errno);
		return;
	}
	q->descs = p;
	for (unsigned tag = 0; tag < q->t->info.queue_depth; tag++)
		send_command(&q->ios[tag], q->fetch_op, 0);
	q->fetched = true;
}

static unsigned gather(struct data_thread *dt, struct engine_request **batch)
{
	struct ublk_queue *q = container_of(dt, struct ublk_queue, base);
	unsigned n = 0;

	/* Once: the descriptor that it fetches by was stored before the thread was let go. */
	if (unlikely(!q->fetched) && !atomic_load_explicit(&q->t->closing, memory_order_relaxed))
		fetch_all(q);
	for (unsigned i = 0; i < q->nready; i++) {
		if (decode(q->ready[i]))
			batch[n++] = &q->ready[i]->req;
	}
	q->nready = 0;
	return n;
}

static int begin(struct data_thread *dt)
{
	struct ublk_queue *q = container_of(dt, struct ublk_queue, base);
	bool encoded = ublk_control_encoded(q->t->control);
	int r = data_thread_buffers(&q->buffers, q->t->o.buffers_fd, q->id,
				    (size_t)UBLK_DEPTH * UBLK_IO_MAX);

	if (r < 0)
		return r;
	q->descs_size = align_up(q->t->info.queue_depth * sizeof(struct ublk_io_desc), SLOT_BYTES);
	q->fetch_op = ublk_io_op(UBLK_IO_FETCH_REQ, encoded);
	q->commit_op = ublk_io_op(UBLK_IO_COMMIT_AND_FETCH_REQ, encoded);
	for (uint16_t tag = 0; tag < UBLK_DEPTH; tag++) {
		struct ublk_io *io = &q->ios[tag];

		io->q = q;
		io->tag = tag;
		io->buffer = q->buffers + (size_t)tag * UBLK_IO_MAX;
		io->op.done = command_done;
		io->req.data = io->buffer;
		io->req.complete = complete;
	}
	return 0;
}

/*
 * A process that exits takes its rings down only after its threads' commands, and STOP_DEV, which
 * is one of them, waits for these requests: without answers it would never end.
 */
static void abandon(struct data_thread *dt)
{
	struct ublk_queue *q = container_of(dt, struct ublk_queue, base);

	for (unsigned tag = 0; tag < UBLK_DEPTH; tag++) {
		if (q->ios[tag].asked)
			answer(&q->ios[tag], -EIO);
	}
	ring_submit(&dt->ring);
}

static void end(struct data_thread *dt)
{
	struct ublk_queue *q = container_of(dt, struct ublk_queue, base);

	if (q->buffers)
		munmap(q->buffers, (size_t)UBLK_DEPTH * UBLK_IO_MAX);
	if (q->descs)
		munmap((void *)(uintptr_t)q->descs, q->descs_size);
}

int ublk_queue_start(struct ublk_queue *q, struct ublk_transport *t, unsigned index)
{
	static const struct data_thread_ops ops = {
		.begin = begin, .gather = gather, .end = end, .abandon = abandon};
	struct data_thread_options o = {
		.ops = &ops,
		.transport = "ublk",
		.index = index,
		/* It shares its CPU with whom it serves, and would only keep it from them. */
		.spin = false,
		.requests = UBLK_DEPTH,
		.request_pages = UBLK_IO_PAGES,
		.store_fd = t->o.store_fd,
		.engine = t->o.engine,
		.beat = &t->o.beats[index],
		.go = &t->go,
		.stop = &t->stop,
	};

	memset(q, 0, sizeof(*q));
	q->t = t;
	q->id = (uint16_t)index;
	if (ublk_queue_cpus(t->control, t->info.dev_id, index, &q->cpus) == 0)
		o.cpus = &q->cpus;
	return data_thread_start(&q->base, &o);
}

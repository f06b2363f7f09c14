// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Where a data thread's requests come from: /dev/fuse, read without blocking until there are none
 * left.  The thread sleeps on a poll of it.
 */
#include "common/log.h"
#include "fuse/internal.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

static void became_readable(struct ring_op *op, int32_t res, uint32_t flags)
{
	(void)res;
	(void)flags;
	container_of(op, struct fuse_thread, readable)->armed = false;
}

/* The kernel has ended the connection: nothing can come any more. */
static void connection_lost(struct fuse_thread *th, int error)
{
	struct fuse_transport *t = th->t;

	if (!atomic_exchange(&t->stop, true) && !atomic_load(&t->closing)) {
		log_post(LOG_LEVEL_ERR, "fuse: the kernel has ended the connection: %s",
			 strerror(error));
		eventfd_write(t->failed_fd, 1);
	}
}

/* Reads requests until none is left, or there is no place for one more. */
static unsigned gather(struct data_thread *dt, struct engine_request **batch)
{
	struct fuse_thread *th = container_of(dt, struct fuse_thread, base);
	unsigned n = 0;

	while (th->free_io) {
		struct fuse_io *io = th->free_io;
		ssize_t len = read(th->t->fd, io->payload - FUSE_WRITE_HEADER,
				   FUSE_WRITE_HEADER + FUSE_IO_MAX);

		if (len < 0) {
			if (errno == EINTR ||
			    errno == ENOENT) /* ENOENT: interrupted before we got it */
				continue;
			if (errno != EAGAIN)
				connection_lost(th, errno);
			break;
		}
		if ((size_t)len < sizeof(struct fuse_in_header))
			continue;
		th->free_io = io->next;
		if (fuse_request_decode(io, (size_t)len)) {
			io->req.data = io->payload;
			io->req.complete = fuse_request_answer;
			batch[n++] = &io->req;
		} else {
			io->next = th->free_io;
			th->free_io = io;
		}
	}
	return n;
}

static void arm(struct data_thread *dt)
{
	struct fuse_thread *th = container_of(dt, struct fuse_thread, base);

	/* Without a place for a request there is no use in hearing of one. */
	if (th->armed || !th->free_io)
		return;
	ring_poll_in(&dt->ring, &th->readable, th->t->fd);
	th->armed = true;
}

static int begin(struct data_thread *dt)
{
	struct fuse_thread *th = container_of(dt, struct fuse_thread, base);
	/* A page in front of each payload, of which the header takes the last bytes. */
	size_t stride = SLOT_BYTES + FUSE_IO_MAX;
	int r;

	th->readable.done = became_readable;
	th->buffers_size = FUSE_REQUESTS * stride;
	r = data_thread_buffers(&th->buffers, th->t->o.buffers_fd, dt->o.index, th->buffers_size);
	if (r < 0)
		return r;
	for (unsigned i = 0; i < FUSE_REQUESTS; i++) {
		struct fuse_io *io = &th->ios[i];

		io->thread = th;
		io->payload = th->buffers + i * stride + SLOT_BYTES;
		io->next = th->free_io;
		th->free_io = io;
	}
	return 0;
}

static void end(struct data_thread *dt)
{
	struct fuse_thread *th = container_of(dt, struct fuse_thread, base);

	if (th->buffers)
		munmap(th->buffers, th->buffers_size);
}

int fuse_thread_start(struct fuse_thread *th, struct fuse_transport *t, unsigned index)
{
	static const struct data_thread_ops ops = {
		.begin = begin, .gather = gather, .arm = arm, .end = end};
	const struct data_thread_options o = {
		.ops = &ops,
		.transport = "fuse",
		.index = index,
		/* The thread is on whatever CPU; to wake it costs more than a page. */
		.spin = true,
		.requests = FUSE_REQUESTS,
		.request_pages = FUSE_IO_PAGES,
		.store_fd = t->o.store_fd,
		.engine = t->o.engine,
		.beat = &t->o.beats[index],
		.go = &t->go,
		.stop = &t->stop,
	};

	memset(th, 0, sizeof(*th));
	th->t = t;
	return data_thread_start(&th->base, &o);
}

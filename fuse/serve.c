// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A data thread: requests in, answers out.
 *
 * All requests that are ready are read without blocking and form one batch.  When there are none
 * left, store completions and other wake-ups are looked for; when there is nothing at all, the
 * thread spins for a moment and then sleeps in its ring, where requests (a poll on /dev/fuse),
 * store completions and the engine's wake-ups all arrive.
 *
 * Spinning pays where waking a sleeping thread costs more than the time to the next request, which
 * in a virtual machine it often does.  Whether it pays is learnt: each spin that a request ended
 * earns a credit, as does each sleep that a longer spin would have saved; each spin in vain costs
 * some.  Without credit the thread sleeps at once.  One long pause between requests, as direct
 * reclaim makes them, does not end the spinning; silence does, after eight spins.
 */
#include "common/log.h"
#include "common/thread.h"
#include "fuse/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

#define SPIN_NS	    100000u /* about a read from an NVMe drive */
#define CREDIT_MAX  16u
#define CREDIT_HIT  1u
#define CREDIT_NEAR 4u
#define CREDIT_MISS 2u
#define SLEEP_NS    1000000000ull
#define STOP_NS	    5000000000ull /* for store reads in flight when the thread is to end */

static void cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

static void fuse_became_ready(struct ring_op *op, int32_t res, uint32_t flags)
{
	(void)res;
	(void)flags;
	container_of(op, struct fuse_thread, fuse_ready)->fuse_armed = false;
}

static void woken(struct ring_op *op, int32_t res, uint32_t flags)
{
	struct fuse_thread *th = container_of(op, struct fuse_thread, wake);
	eventfd_t n;

	(void)res;
	(void)flags;
	eventfd_read(th->wake_fd, &n);
	th->wake_armed = false;
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
static unsigned gather(struct fuse_thread *th, struct engine_request **batch)
{
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

/* True if anything was done. */
static bool turn(struct fuse_thread *th)
{
	struct engine_request *batch[FUSE_REQUESTS];
	unsigned n = gather(th, batch);

	if (n)
		engine_submit(th->queue, batch, n);
	n += ring_reap(&th->ring);
	return engine_poll(th->queue) || n > 0;
}

static void earn(struct fuse_thread *th, unsigned credit)
{
	th->credit = (unsigned)min_u64(th->credit + credit, CREDIT_MAX);
}

static void sleep_in_ring(struct fuse_thread *th)
{
	uint64_t start = now_ns();

	/* Without a place for a request there is no use in hearing of one. */
	if (!th->fuse_armed && th->free_io) {
		ring_poll_in(&th->ring, &th->fuse_ready, th->t->fd);
		th->fuse_armed = true;
	}
	if (!th->wake_armed) {
		ring_poll_in(&th->ring, &th->wake, th->wake_fd);
		th->wake_armed = true;
	}
	ring_wait(&th->ring, SLEEP_NS);
	if (now_ns() - start < SPIN_NS)
		earn(th, CREDIT_NEAR);
}

static void serve(struct fuse_thread *th)
{
	uint64_t idle_since = 0; /* 0: not idle */

	while (!atomic_load_explicit(&th->t->stop, memory_order_relaxed)) {
		if (turn(th)) {
			if (idle_since)
				earn(th, CREDIT_HIT);
			idle_since = 0;
			continue;
		}
		if (!idle_since)
			idle_since = now_ns();
		if (th->credit > 0 && now_ns() - idle_since < SPIN_NS) {
			cpu_relax();
			continue;
		}
		th->credit -= th->credit < CREDIT_MISS ? th->credit : CREDIT_MISS;
		sleep_in_ring(th);
		idle_since = 0;
	}
}

/* The engine's buffers must not be freed under a device that still writes to them. */
static void finish(struct fuse_thread *th)
{
	uint64_t give_up = now_ns() + STOP_NS;

	while (engine_queue_inflight(th->queue) && now_ns() < give_up) {
		if (!engine_poll(th->queue))
			ring_wait(&th->ring, 10000000);
	}
	if (engine_queue_inflight(th->queue) == 0) {
		engine_queue_free(th->queue);
		ring_deinit(&th->ring);
		munmap(th->buffers, th->buffers_size);
	} else {
		log_err("fuse: %u requests wait for the store and are left behind",
			engine_queue_inflight(th->queue));
	}
}

static int prepare_buffers(struct fuse_thread *th)
{
	/* A page in front of each payload, of which the header takes the last bytes. */
	size_t stride = SLOT_BYTES + FUSE_IO_MAX;

	th->buffers_size = FUSE_REQUESTS * stride;
	th->buffers = mmap(NULL, th->buffers_size, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (th->buffers == MAP_FAILED) {
		th->buffers = NULL;
		return -ENOMEM;
	}
	for (unsigned i = 0; i < FUSE_REQUESTS; i++) {
		struct fuse_io *io = &th->ios[i];

		io->thread = th;
		io->payload = th->buffers + i * stride + SLOT_BYTES;
		io->next = th->free_io;
		th->free_io = io;
	}
	return 0;
}

static int prepare(struct fuse_thread *th)
{
	struct engine_queue_options qo = {
		.ring = &th->ring, .requests = FUSE_REQUESTS, .request_pages = FUSE_IO_PAGES};
	int r;

	th->fuse_ready.done = fuse_became_ready;
	th->wake.done = woken;
	r = prepare_buffers(th);
	if (r == 0)
		r = ring_init(&th->ring, 128, th->t->o.store_fd, 1);
	if (r == 0) {
		r = engine_queue_new(&th->queue, th->t->o.engine, &qo);
		if (r < 0)
			ring_deinit(&th->ring);
	}
	if (r < 0) {
		log_err("fuse: a data thread cannot start: %s", strerror(-r));
		if (th->buffers)
			munmap(th->buffers, th->buffers_size);
	}
	return r;
}

static void *thread_main(void *arg)
{
	struct fuse_thread *th = arg;

	int r = prepare(th);

	if (r == 0)
		th->wake_fd = engine_queue_wake_fd(th->queue);
	th->result = r;
	sem_post(&th->ready);
	if (r < 0)
		return NULL;
	serve(th);
	finish(th);
	return NULL;
}

int fuse_thread_start(struct fuse_thread *th, struct fuse_transport *t, unsigned index)
{
	char name[8] = "data0";
	int r;

	memset(th, 0, sizeof(*th));
	th->t = t;
	name[4] = (char)('0' + index % 10);
	sem_init(&th->ready, 0, 0);
	r = thread_start(&th->thread, name, thread_main, th);
	if (r < 0) {
		log_err("fuse: cannot start a data thread: %s", strerror(-r));
		sem_destroy(&th->ready);
		return r;
	}
	while (sem_wait(&th->ready) < 0 && errno == EINTR)
		;
	if (th->result < 0)
		fuse_thread_join(th);
	return th->result;
}

void fuse_thread_join(struct fuse_thread *th)
{
	pthread_join(th->thread, NULL);
	sem_destroy(&th->ready);
}

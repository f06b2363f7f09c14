// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Spinning pays where waking a sleeping thread costs more than the time to the next request, which
 * in a virtual machine it often does, and where the thread does not keep the CPU from whom it
 * serves.  Whether it pays is learnt: each spin that a request ended earns a credit, as does each
 * sleep that a longer spin would have saved; each spin in vain costs some.  Without credit the
 * thread sleeps at once.  One long pause between requests, as direct reclaim makes them, does not
 * end the spinning; silence does, after eight spins.
 */
#include "daemon/transport/data_thread.h"
#include "common/log.h"
#include "common/thread.h"
#include "common/util.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

#define SPIN_NS	     100000u /* about a read from an NVMe drive */
#define CREDIT_MAX   16u
#define CREDIT_HIT   1u
#define CREDIT_NEAR  4u
#define CREDIT_MISS  2u
#define SLEEP_NS     1000000000ull
#define STOP_NS	     5000000000ull /* for store reads in flight when the thread is to end */
#define RING_ENTRIES 128u	   /* beside the requests */

static void cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

static void woken(struct ring_op *op, int32_t res, uint32_t flags)
{
	struct data_thread *dt = container_of(op, struct data_thread, wake);
	eventfd_t n;

	(void)res;
	(void)flags;
	eventfd_read(dt->wake_fd, &n);
	dt->wake_armed = false;
}

/* True if anything was done. */
static bool turn(struct data_thread *dt)
{
	struct engine_request *batch[DATA_THREAD_BATCH];
	unsigned n = dt->o.ops->gather(dt, batch);
	bool more;

	if (n)
		engine_submit(dt->queue, batch, n);
	n += ring_reap(&dt->ring);
	more = engine_poll(dt->queue);
	/*
	 * Answers that travel by the ring must not wait for what is done next.  When there is
	 * nothing next, the sleep sends them along.
	 */
	if (more || n > 0)
		ring_submit(&dt->ring);
	return more || n > 0;
}

static void earn(struct data_thread *dt, unsigned credit)
{
	dt->credit = (unsigned)min_u64(dt->credit + credit, CREDIT_MAX);
}

/* Until anything arrives, or a polled read is there. */
static void wait_in_ring(struct data_thread *dt)
{
	if (dt->o.ops->arm)
		dt->o.ops->arm(dt);
	if (!dt->wake_armed) {
		ring_poll_in(&dt->ring, &dt->wake, dt->wake_fd);
		dt->wake_armed = true;
	}
	ring_wait(&dt->ring, SLEEP_NS);
}

static void sleep_in_ring(struct data_thread *dt)
{
	uint64_t start = now_ns();

	wait_in_ring(dt);
	if (dt->o.spin && now_ns() - start < SPIN_NS)
		earn(dt, CREDIT_NEAR);
}

/* A wake-up that comes between the two is not lost: the flag was set before it. */
static void await_go(struct data_thread *dt)
{
	struct pollfd wake = {.fd = dt->wake_fd, .events = POLLIN};

	/* acquire: what was made ready before the flag was set. */
	while (dt->o.go && !atomic_load_explicit(dt->o.go, memory_order_acquire) &&
	       !atomic_load_explicit(dt->o.stop, memory_order_relaxed)) {
		eventfd_t n;

		if (poll(&wake, 1, -1) == 1)
			eventfd_read(dt->wake_fd, &n);
	}
}

static void serve(struct data_thread *dt)
{
	uint64_t idle_since = 0; /* 0: not idle */

	/* relaxed: the flag orders nothing, and whoever sets it wakes the thread by a system call.
	 */
	while (!atomic_load_explicit(dt->o.stop, memory_order_relaxed)) {
		beat_turn(dt->o.beat);
		if (turn(dt)) {
			if (idle_since)
				earn(dt, CREDIT_HIT);
			idle_since = 0;
			continue;
		}
		/* The ring looks for the read and for requests by turns, or sleeps in between. */
		if (ring_is_polling(&dt->ring)) {
			wait_in_ring(dt);
			idle_since = 0;
			continue;
		}
		if (dt->credit > 0) {
			if (!idle_since)
				idle_since = now_ns();
			if (now_ns() - idle_since < SPIN_NS) {
				cpu_relax();
				continue;
			}
		}
		dt->credit -= dt->credit < CREDIT_MISS ? dt->credit : CREDIT_MISS;
		sleep_in_ring(dt);
		idle_since = 0;
	}
}

/* The engine's buffers must not be freed under a device that still writes to them. */
static void finish(struct data_thread *dt)
{
	uint64_t give_up = now_ns() + STOP_NS;

	while (engine_queue_inflight(dt->queue) && now_ns() < give_up) {
		if (!engine_poll(dt->queue))
			ring_wait(&dt->ring, 10000000);
	}
	if (engine_queue_inflight(dt->queue) > 0) {
		log_err("%s: %u requests wait for the store and are left behind", dt->o.transport,
			engine_queue_inflight(dt->queue));
		if (dt->o.ops->abandon)
			dt->o.ops->abandon(dt);
		return;
	}
	engine_queue_free(dt->queue);
	ring_deinit(&dt->ring);
	dt->o.ops->end(dt);
}

static int prepare(struct data_thread *dt)
{
	struct engine_queue_options qo = {.ring = &dt->ring,
					  .requests = dt->o.requests,
					  .request_pages = dt->o.request_pages};
	int r;

	/* A queue whose CPUs are all offline is served from anywhere. */
	if (dt->o.cpus)
		sched_setaffinity(0, sizeof(*dt->o.cpus), dt->o.cpus);
	dt->wake.done = woken;
	r = ring_init(&dt->ring, dt->o.requests + RING_ENTRIES, dt->o.store_fd, 1);
	if (r < 0)
		return r;
	r = engine_queue_new(&dt->queue, dt->o.engine, &qo);
	if (r < 0) {
		ring_deinit(&dt->ring);
		return r;
	}
	dt->wake_fd = engine_queue_wake_fd(dt->queue);
	r = dt->o.ops->begin(dt);
	if (r < 0) {
		engine_queue_free(dt->queue);
		ring_deinit(&dt->ring);
		dt->o.ops->end(dt);
	}
	return r;
}

static void *thread_main(void *arg)
{
	struct data_thread *dt = arg;
	int r = prepare(dt);

	dt->result = r;
	sem_post(&dt->ready);
	if (r < 0)
		return NULL;
	await_go(dt);
	beat_begin(dt->o.beat);
	serve(dt);
	beat_end(dt->o.beat);
	finish(dt);
	return NULL;
}

int data_thread_start(struct data_thread *dt, const struct data_thread_options *o)
{
	char name[8] = "data0";
	int r;

	memset(dt, 0, sizeof(*dt));
	dt->o = *o;
	dt->wake_fd = -1;
	snprintf(name, sizeof(name), "data%u", o->index % 100);
	sem_init(&dt->ready, 0, 0);
	r = thread_start(&dt->thread, name, thread_main, dt);
	if (r == 0) {
		while (sem_wait(&dt->ready) < 0 && errno == EINTR)
			;
		r = dt->result;
		if (r < 0)
			pthread_join(dt->thread, NULL);
	}
	if (r < 0) {
		log_err("%s: data thread %u cannot start: %s", o->transport, o->index,
			strerror(-r));
		sem_destroy(&dt->ready);
	}
	return r;
}

int data_thread_buffers(uint8_t **ret, int fd, unsigned index, size_t size)
{
	int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
	off_t offset = fd < 0 ? 0 : (off_t)(index * size);
	void *p;

	/* Not only mapped: want of memory is found here and not by a SIGBUS later. */
	if (fd >= 0 && fallocate(fd, 0, offset, (off_t)size) < 0)
		return -errno;
	p = mmap(NULL, size, PROT_READ | PROT_WRITE, flags | MAP_POPULATE, fd, offset);
	if (p == MAP_FAILED)
		return -errno;
	*ret = p;
	return 0;
}

void data_thread_wake(struct data_thread *dt)
{
	eventfd_write(dt->wake_fd, 1);
}

void data_thread_join(struct data_thread *dt)
{
	data_thread_wake(dt);
	pthread_join(dt->thread, NULL);
	sem_destroy(&dt->ready);
}

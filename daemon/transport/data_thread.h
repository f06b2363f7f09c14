/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A data thread: what every transport's thread does between "requests are ready" and "sleep".
 *
 * It owns a ring and an engine queue.  In turns it gathers all requests that are ready into one
 * batch, submits them, reaps store completions and lets the engine go on with writes; when there is
 * nothing left to do it sleeps in its ring, where requests, completions and the engine's wake-ups
 * all arrive.  A transport adds where requests come from and where answers go.
 *
 * start, join: the thread that makes the transport.  Everything else: the data thread itself.
 */
#ifndef ZSWAPD_TRANSPORT_DATA_THREAD_H
#define ZSWAPD_TRANSPORT_DATA_THREAD_H

#include "common/beat.h"
#include "daemon/engine/engine.h"
#include "daemon/store/ring.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>

struct data_thread;

struct data_thread_ops {
	/* In the new thread, with ring and queue in place.  A negative errno ends it; logged. */
	int (*begin)(struct data_thread *dt);
	/*
	 * All requests that are ready, at most DATA_THREAD_BATCH; returns how many.  Their
	 * complete() is set.
	 */
	unsigned (*gather)(struct data_thread *dt, struct engine_request **batch);
	/* Before the thread sleeps: makes sure that a request ends the sleep.  May be NULL. */
	void (*arm)(struct data_thread *dt);
	/*
	 * Last thing in the thread, unless requests had to be left behind in the engine; also after
	 * a failed begin().  Frees what begin() made; the ring is gone.
	 */
	void (*end)(struct data_thread *dt);
	/*
	 * Instead of end(), when requests had to be left behind in the engine, which may still use
	 * their memory: answers them with an error, so that nobody waits for them for ever.  May be
	 * NULL.
	 */
	void (*abandon)(struct data_thread *dt);
};

#define DATA_THREAD_BATCH ENGINE_REQUESTS_MAX

struct data_thread_options {
	const struct data_thread_ops *ops;
	const char *transport;	/* for messages */
	unsigned index;		/* among its transport's threads */
	const cpu_set_t *cpus;	/* to stay on; NULL: any */
	bool spin;		/* for a moment before each sleep, where that pays */
	unsigned requests;	/* most in flight, at most ENGINE_REQUESTS_MAX */
	unsigned request_pages; /* most pages of one */
	int store_fd;		/* or -1 */
	struct engine *engine;
	struct beat *beat; /* of this thread, which turns at least once a second */
	/*
	 * The thread serves after this is set and it is woken; NULL: at once.  Until then it does
	 * nothing with its queue, so that the engine may still be standing by.
	 */
	const _Atomic bool *go;
	const _Atomic bool *stop; /* the thread ends after this is set and it is woken */
};

/* A transport's own structure holds this one; set by data_thread_start(). */
struct data_thread {
	struct data_thread_options o;
	pthread_t thread;
	sem_t ready;
	int result;  /* set before ready is posted */
	int wake_fd; /* the engine's; outlives the queue */
	/* the thread's own */
	struct ring ring;
	struct engine_queue *queue;
	struct ring_op wake;
	bool wake_armed;
	unsigned credit; /* what spinning has lately saved; see data_thread.c */
};

/*
 * Starts the thread and waits until begin() has returned.  On failure, which is logged, nothing is
 * left of it.
 */
int data_thread_start(struct data_thread *dt, const struct data_thread_options *o);

/*
 * Memory for the data of requests, present, as part number @index of @fd, a memfd that a standby
 * maps as well: so its threads need none of their own while they wait, and none when they go.  What
 * is in it when a thread begins is of no use to anybody.  @fd < 0: memory of the process's own. All
 * parts are of the same @size, a multiple of 4096.  -ENOMEM.
 */
int data_thread_buffers(uint8_t **ret, int fd, unsigned index, size_t size);

/* Makes it look at the flags.  Any thread. */
void data_thread_wake(struct data_thread *dt);

/* After the stop flag was set: wakes the thread and waits for its end, which is bounded. */
void data_thread_join(struct data_thread *dt);

#endif

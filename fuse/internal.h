/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the FUSE transport's files share.
 *
 *   transport.c  mount, loop device, threads: making and taking away
 *   takeover.c   what outlives this process, and going on with what a former one left
 *   note.c       the part of that which is no descriptor of the kernel's
 *   session.c    everything that is not a data request, by libfuse
 *   serve.c      a data thread's requests
 *   request.c    decoding and answering data requests
 */
#ifndef ZSWAPD_FUSE_INTERNAL_H
#define ZSWAPD_FUSE_INTERNAL_H

#include "common/util.h"
#include "daemon/transport/data_thread.h"
#include "daemon/transport/transport.h"
#include "fuse/loopdev.h"
#include "fuse/note.h"

#include <linux/fuse.h>
#include <stdatomic.h>
#include <stdbool.h>

#define SLOT_BYTES 4096u
/*
 * The most a request carries.  Swap clusters its writes by 32 pages and reads ahead by at most 32,
 * so larger buffers would only lie around locked.
 */
#define FUSE_IO_MAX   (128u << 10)
#define FUSE_IO_PAGES (FUSE_IO_MAX / SLOT_BYTES)
/* Requests that the kernel sends before it waits for an answer. */
#define FUSE_REQUESTS  64u
#define FUSE_FILE_NODE 2u
#define FUSE_FILE_NAME "device"

/* A WRITE's payload follows these; they are read right in front of a page boundary. */
#define FUSE_WRITE_HEADER (sizeof(struct fuse_in_header) + sizeof(struct fuse_write_in))

struct fuse_thread;
struct fuse_session;

/* A data request from its arrival to its answer. */
struct fuse_io {
	struct engine_request req;
	struct fuse_thread *thread;
	struct fuse_io *next;
	uint64_t unique;  /* the kernel's name for it */
	uint8_t *payload; /* FUSE_IO_MAX bytes, page-aligned; FUSE_WRITE_HEADER bytes in front are
			     ours */
};

struct fuse_transport {
	struct transport base;
	/* set at start */
	struct transport_options o;
	int fd; /* /dev/fuse, non-blocking; closed by the session */
	struct fuse_session *session;
	int mount_fd; /* until the loop device has the file */
	char device[LOOPDEV_PATH_MAX];
	int failed_fd; /* eventfd */
	int loop_fd;   /* keeps the loop device; -1: this one can't be taken over */
	int note_fd;   /* likewise */
	bool replaying;
	bool replayed;
	struct fuse_thread *threads; /* nqueues of them */
	unsigned nthreads;	     /* that were started */
	/* written by a data thread, once, before the file can be opened */
	struct fuse_note note;
	/* atomic */
	_Atomic bool closing; /* the end of the connection is ours */
	_Atomic bool go;      /* threads read requests */
	_Atomic bool stop;
	_Atomic bool noted; /* the note has INIT */
};

struct fuse_thread {
	struct data_thread base;
	struct fuse_transport *t;
	/* the thread's own */
	struct ring_op readable;
	bool armed;
	struct fuse_io ios[FUSE_REQUESTS];
	struct fuse_io *free_io;
	uint8_t *buffers;
	size_t buffers_size;
};

/* session.c */
int session_open(struct fuse_transport *t);
void session_close(struct fuse_transport *t);
/* Hands a request that is not for the engine to libfuse, which answers it. */
void session_handle(struct fuse_transport *t, void *msg, size_t len);
/*
 * Hands a former session's INIT, from the note, to this one; the kernel had its answer long ago and
 * gets none.  Before there are threads.  Logged.
 */
int session_replay(struct fuse_transport *t);

/* request.c */
/* True if @io is now a request for the engine; else it was answered and may be used again. */
bool fuse_request_decode(struct fuse_io *io, size_t len);
void fuse_request_answer(struct engine_request *r);

/* serve.c */
/* It has all it serves with, and waits for fuse_go(). */
int fuse_thread_start(struct fuse_thread *th, struct fuse_transport *t, unsigned index);

/* transport.c */
int fuse_start_threads(struct fuse_transport *t);
void fuse_go(struct fuse_transport *t);

/* takeover.c */
/* For the device that was just made: what keep() will say.  A warning if it can't be kept. */
void fuse_hold(struct fuse_transport *t);
int fuse_keep(const struct transport *base, struct transport_kept *ret);
int fuse_queues_of(const char *device, const struct transport_kept *kept);
bool fuse_gone(const struct transport *base);
/*
 * Taking over in two parts.  The first reads nothing from the connection and needs no more of the
 * engine than its queues, so the former server may still be serving.  The second, after its death
 * and the engine's takeover, allocates nothing and waits for nothing.
 */
int fuse_adopt(struct fuse_transport *t);
int fuse_resume(struct fuse_transport *t);

#endif

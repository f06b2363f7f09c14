/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the ublk transport's files share.
 *
 *   abi.h        the kernel's interface
 *   control.c    commands to the driver
 *   mark.c       which device is the one of a name
 *   transport.c  making, taking over and taking away the device
 *   queue.c      a data thread's requests
 */
#ifndef ZSWAPD_UBLK_INTERNAL_H
#define ZSWAPD_UBLK_INTERNAL_H

#include "common/util.h"
#include "daemon/transport/data_thread.h"
#include "daemon/transport/transport.h"
#include "daemon/ublk/control.h"

#include <stdatomic.h>
#include <stdbool.h>

#define SLOT_BYTES   4096u
#define SECTOR_BYTES 512u
/*
 * A tag has a buffer of its own, locked in memory, for as long as the device lives, so depth and
 * size are chosen together: 4 MiB a queue.  Swap clusters its writes by 32 pages and reads ahead by
 * at most 32; only huge pages would come in larger requests, and cost as much to compress.
 */
#define UBLK_DEPTH    32u
#define UBLK_IO_MAX   (128u << 10)
#define UBLK_IO_PAGES (UBLK_IO_MAX / SLOT_BYTES)
/*
 * A tag of each queue stays unused.  The kernel is told of a server's death by a command that still
 * waits for a request; when there is none, up to 6.15, it finds out half a minute later, when
 * requests time out, and everybody waits as long.
 */
#define UBLK_REQUESTS_MAX (UBLK_DEPTH - 1)
/* A discard is carried out at one go: so much takes a millisecond or two. */
#define UBLK_DISCARD_MAX (64u << 20)

struct ublk_queue;

/* A tag. */
struct ublk_io {
	struct engine_request req;
	struct ring_op op;
	struct ublk_queue *q;
	uint8_t *buffer; /* UBLK_IO_MAX bytes, page-aligned */
	int32_t result;	 /* of the last answer */
	uint16_t tag;
	uint16_t tries; /* of the same command */
	bool started;	/* it has been fetched once */
	bool asked;	/* there is a request that was not answered */
};

struct ublk_transport {
	struct transport base;
	/* set at start */
	struct transport_options o;
	struct ublk_control *control;
	struct ublk_dev_info info;
	bool added;   /* there is a device, */
	bool started; /* with a disk */
	int fd;	      /* /dev/ublkcN */
	char device[TRANSPORT_DEVICE_MAX];
	int failed_fd; /* eventfd */
	struct ublk_queue *queues;
	unsigned nthreads;
	/* atomic */
	_Atomic bool go;      /* the device is open: fetch */
	_Atomic bool closing; /* the end of the device is ours */
	_Atomic bool stop;
};

struct ublk_queue {
	struct data_thread base;
	struct ublk_transport *t;
	/* set at start */
	uint16_t id;
	cpu_set_t cpus;
	uint8_t *buffers;
	size_t descs_size;
	uint32_t fetch_op, commit_op;
	/* the thread's own */
	bool fetched;
	const struct ublk_io_desc *descs;
	struct ublk_io *ready[UBLK_DEPTH]; /* requests that have come and were not gathered yet */
	unsigned nready;
	struct ublk_io ios[UBLK_DEPTH];
};

/* mark.c; 0, logged: it could not be kept. */
uint64_t ublk_mark_new(const struct transport_options *o);
void ublk_mark_remove(const struct transport_options *o);
/* The device that carries the name's mark. */
bool ublk_mark_find(struct ublk_control *c, const struct transport_options *o,
		    struct ublk_dev_info *ret);

/* transport.c; the number of /dev/ublkbN, false for any other path. */
bool ublk_device_number(const char *path, uint32_t *ret);

/* queue.c */
int ublk_queue_start(struct ublk_queue *q, struct ublk_transport *t, unsigned index);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What carries block requests between the kernel and the engine.
 *
 * A transport makes a block device, runs the data threads that serve it, and takes it away again.
 * Each data thread owns a ring and an engine queue and turns what the kernel asks into batches of
 * struct engine_request; the engine knows nothing of where they come from.
 *
 * open, close: the main thread.  failed_fd: any.
 */
#ifndef ZSWAPD_TRANSPORT_TRANSPORT_H
#define ZSWAPD_TRANSPORT_TRANSPORT_H

#include "daemon/engine/engine.h"

#include <stdbool.h>
#include <stdint.h>

#define TRANSPORT_DEVICE_MAX 32u /* bytes of a device's path, with its NUL */

struct transport_ops;

/* A transport's own structure begins with this. */
struct transport {
	const struct transport_ops *ops;
};

struct transport_options {
	const char *name;      /* of the device, [a-z0-9_-] */
	const char *run_dir;   /* where mounts and the like may go; exists */
	uint64_t device_bytes; /* a multiple of 4096 */
	unsigned nqueues;      /* data threads; at most as many as the engine has queues */
	int store_fd;	       /* to be registered with each ring, or -1 */
	struct engine *engine;
	/*
	 * A device that the engine's pages belong to and whose server died: it is taken over
	 * instead of a new one made.  Or NULL.
	 */
	const char *takeover;
};

struct transport_ops {
	const char *name;
	const char *const *modules; /* of the kernel, that it needs; ends with NULL */
	/* NULL, or why it can't work on this system, as text; touches nothing. */
	const char *(*unusable)(void);
	/* Data threads that serve best when the configuration says 0. */
	unsigned (*default_queues)(void);
	/*
	 * Of a transport whose devices outlive their server, so that a successor can take them
	 * over; else NULL.  The queues that @device has; a negative errno.
	 */
	int (*queues_of)(const char *device);
	/* With queues_of: the kernel has taken the device away, so that nothing is left to serve.
	 */
	bool (*gone)(const struct transport *t);
	/*
	 * The device answers when this returns.  Logged; nothing is left behind on failure, but for
	 * a device that was to be taken over.
	 */
	int (*open)(struct transport **ret, const struct transport_options *o);
	/*
	 * Removes the device and ends the threads, within some seconds.  -EBUSY: somebody still had
	 * it open; it is gone all the same, and what they do with it fails.
	 */
	int (*close)(struct transport *t);
	/* "/dev/loop0" */
	const char *(*device)(const struct transport *t);
	/* Becomes readable if the device can't be served any more. */
	int (*failed_fd)(const struct transport *t);
};

#endif

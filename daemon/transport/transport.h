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

#include "common/beat.h"
#include "daemon/engine/engine.h"

#include <stdbool.h>
#include <stdint.h>

#define TRANSPORT_DEVICE_MAX 32u /* bytes of a device's path, with its NUL */
#define TRANSPORT_KEPT_MAX   4u
#define TRANSPORT_KEPT_NAME  24u /* bytes of a kept descriptor's name, with its NUL */

struct transport_ops;

/*
 * Descriptors that keep a device alive while nobody serves it, or that a successor can't do
 * without, beside the engine's.  Each has a name of its own, "zswapd-fuse" for example.
 */
struct transport_kept {
	unsigned n;
	struct {
		char name[TRANSPORT_KEPT_NAME];
		int fd;
	} fds[TRANSPORT_KEPT_MAX];
};

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
	struct beat *beats; /* one for each data thread */
	int buffers_fd;	    /* for data_thread_buffers(); -1: none */
	/*
	 * For prepare(): the device that the engine's pages belong to, and what its server's
	 * keep() had said, from which is taken what is needed, also on failure; -1 is left.
	 */
	const char *takeover;
	struct transport_kept *kept;
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
	 * over; else NULL.  The queues that @device has, 0 if that is for its server to choose.
	 * -ENODEV: it is no device of this transport.  -ESTALE, logged: one that nobody can bring
	 * back, and whose remains go when nobody uses them any more.
	 */
	int (*queues_of)(const char *device, const struct transport_kept *kept);
	/*
	 * With queues_of: the descriptors that are to be kept for a successor, valid until close().
	 * NULL: there are none.  -EOPNOTSUPP, logged: this device can't be taken over after all.
	 */
	int (*keep)(const struct transport *t, struct transport_kept *ret);
	/* With queues_of: the kernel has taken the device away, so that nothing is left to serve.
	 */
	bool (*gone)(const struct transport *t);
	/*
	 * Makes a device, which answers when this returns.  Logged; nothing is left behind on
	 * failure.
	 */
	int (*open)(struct transport **ret, const struct transport_options *o);
	/*
	 * With queues_of: takes a device over, in two parts, so that the second has little to do.
	 * The first may be done while the former server still serves, asks nothing of the device
	 * and no more of the engine than its queues, which may be standing by.  The second, when
	 * that server is dead and the engine has taken over, allocates nothing that is large.
	 * Logged; on failure of either the device is left as it is, and the transport is to be
	 * closed by nobody.
	 */
	int (*prepare)(struct transport **ret, const struct transport_options *o);
	int (*resume)(struct transport *t);
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

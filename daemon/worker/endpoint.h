/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the netlink endpoint (daemon/stats/server.h) shows of a worker, and does to it.
 *
 * Reading never waits for a change: the options that are shown are a copy, which the main thread
 * renews after each change, since control.h holds its lock while it reads files.
 *
 * Main thread only, but for endpoint_changed() and endpoint_post().
 */
#ifndef ZSWAPD_WORKER_ENDPOINT_H
#define ZSWAPD_WORKER_ENDPOINT_H

#include "common/nlproto.h"
#include "daemon/engine/engine.h"
#include "daemon/worker/control.h"
#include "daemon/worker/supervision.h"
#include "daemon/worker/system.h"

/* All of it outlives the endpoint. */
struct endpoint_source {
	const struct config *config; /* as it was at the start */
	const char *transport;	     /* its name */
	struct engine *engine;
	struct control *control;
	const struct system_grants *grants;
	const _Atomic enum nlproto_state *state;
	bool store_missing;		       /* one is configured, and the engine is without it */
	const struct supervision *supervision; /* NULL: nothing is known of it */
	/* As supervised_upgrade(), on the main thread; NULL: there is no such thing. */
	int (*upgrade)(void *ctx, char *text, size_t size);
	void *ctx;
};

struct endpoint;

/*
 * Without its statistics a device serves as well: what failed has been logged, and *ret may be
 * NULL, which all the others take.
 */
void endpoint_start(struct endpoint **ret, const struct endpoint_source *src);

/*
 * -ETIMEDOUT: the thread is in a callback and does not come back.  Then nothing of what it was
 * given at the start may be freed: the process has to end with it.
 */
int endpoint_stop(struct endpoint *ep);

/* Readable when endpoint_work() has something to do; -1 without an endpoint. */
int endpoint_fd(const struct endpoint *ep);

/* Makes the change that a client asks for, if there is one. */
void endpoint_work(struct endpoint *ep);

/* After a change that no client asked for. */
void endpoint_refresh(struct endpoint *ep);

/* Tells followers @text. */
void endpoint_post(struct endpoint *ep, enum nlproto_event kind, const char *text);

/* Tells followers that option @key has changed, as @text says.  Any thread but data threads. */
void endpoint_changed(struct endpoint *ep, const char *key, const char *text);

#endif

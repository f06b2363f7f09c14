/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What is known of the processes beside a worker: its supervisor, the standby, those that died, and
 * how this one came.
 *
 * The main thread finds out and writes; the endpoint's thread reads.  What is not atomic is written
 * before there is an endpoint.
 */
#ifndef ZSWAPD_WORKER_SUPERVISION_H
#define ZSWAPD_WORKER_SUPERVISION_H

#include "common/counters.h"
#include "common/nlproto.h"
#include "daemon/stats/server.h"
#include "daemon/watch/watch.h"

#include <stdatomic.h>
#include <stdint.h>

struct supervision {
	struct watch *watch;
	_Atomic int32_t supervisor; /* its pid; 0: there is none */
	int32_t predecessor;	    /* pid of the worker before this one; 0: not known */
	uint64_t ordered;	    /* when this one was to serve; now_ns() */
	/* of a takeover; the text is empty if this is the first worker */
	uint64_t took_ns;
	uint64_t time; /* CLOCK_REALTIME, ns */
	char text[NLPROTO_LINE_MAX];
};

/* At the start of the process. */
void supervision_init(struct supervision *s, struct watch *watch, int supervisor);

/* A standby has been ordered to go. */
void supervision_ordered(struct supervision *s);

/* From now on the page is this worker's.  Finds out whom it follows. */
void supervision_begin(struct supervision *s);

/* The device is served, which another worker did before. */
void supervision_took_over(struct supervision *s);

/* The supervisor, 0 for none.  True if it was another before. */
bool supervision_changed(struct supervision *s, int supervisor);

/* For the endpoint; @ret's other fields are left alone. */
void supervision_status(const struct supervision *s, struct stats_status *ret);
void supervision_counters(const struct supervision *s, uint64_t values[COUNTER_COUNT]);

#endif

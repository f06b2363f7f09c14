/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The worker: one device from configuration to swap, and back.
 *
 * Start-up is a table of steps, each with the step that undoes it; a failure undoes what was done,
 * in the opposite order, and so does the end.  All of it runs on the main thread, with the signals
 * that end the daemon blocked and read from a descriptor.
 *
 * A standby takes the steps up to where the pages of the worker that serves would be touched, and
 * waits there for its supervisor's order.
 */
#ifndef ZSWAPD_WORKER_WORKER_H
#define ZSWAPD_WORKER_WORKER_H

#include "daemon/config/config.h"
#include "daemon/link/kept.h"
#include "daemon/watch/watch.h"

#include <stdbool.h>

struct worker_start {
	const struct config *config;
	const struct config_source *source; /* where it came from: a reload reads it again */
	/* What a former worker left; the worker's own from now on. */
	struct kept *kept;
	struct watch *watch;
	int link; /* to the supervisor; the worker's own from now on */
	bool standby;
};

#define WORKER_COMM  "zswapd-worker"
#define STANDBY_COMM "zswapd-standby"

/* Exit status of a worker's process. */
enum worker_exit {
	WORKER_STOPPED = 0, /* in order, and nothing is swapped to the device any more */
	WORKER_FAILED = 1,  /* could not start, or the kernel took the device away */
	WORKER_AGAIN = 3,   /* the device and its pages wait for a successor */
};

/*
 * Serves until SIGTERM or SIGINT; SIGHUP reads the configuration again.  What goes wrong is logged.
 * When told to stop while swapped pages would not fit into memory, the worker says so and goes on.
 * So it does when its supervisor dies, and a new one may adopt it.
 */
enum worker_exit worker_run(const struct worker_start *start);

#endif

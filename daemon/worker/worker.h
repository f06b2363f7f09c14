/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The worker: one device from configuration to swap, and back.
 *
 * Start-up is a table of steps, each with the step that undoes it; a failure undoes what was done,
 * in the opposite order, and so does the end.  All of it runs on the main thread, with the signals
 * that end the daemon blocked and read from a descriptor.
 */
#ifndef ZSWAPD_WORKER_WORKER_H
#define ZSWAPD_WORKER_WORKER_H

#include "daemon/config/config.h"

/*
 * Serves until SIGTERM or SIGINT; SIGHUP reads @source, where @config came from, again.  0: stopped
 * in order.  Negative errno: could not start, or had to stop since the kernel took the device away;
 * logged.
 *
 * When told to stop while swapped pages would not fit into memory, the worker says so and goes on.
 */
int worker_run(const struct config *config, const struct config_source *source);

#endif

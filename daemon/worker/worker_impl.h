/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the worker's files share.
 *
 *   steps.c   from the configuration to a device that is swapped to, and back
 *   worker.c  what happens in between
 */
#ifndef ZSWAPD_WORKER_WORKER_IMPL_H
#define ZSWAPD_WORKER_WORKER_IMPL_H

#include "daemon/worker/carrier.h"
#include "daemon/worker/control.h"
#include "daemon/worker/device.h"
#include "daemon/worker/endpoint.h"
#include "daemon/worker/handover.h"
#include "daemon/worker/reclaim.h"
#include "daemon/worker/supervised.h"
#include "daemon/worker/supervision.h"
#include "daemon/worker/system.h"
#include "daemon/worker/worker.h"

#include <stdbool.h>

struct worker {
	const struct worker_start *start;
	struct config config; /* as it was at the start; struct control has what runs */
	int signal_fd;
	struct supervised supervised;
	struct supervision supervision;
	struct handover handover;
	struct system_grants grants;
	struct reclaim reclaim;
	struct store *store;
	bool store_polls;
	struct engine *engine;
	struct mover *mover;
	struct carrier carrier;
	int buffers_fd;
	struct transport *transport;
	struct device_disk disk;
	struct transport_kept kept; /* the transport's, for a successor */
	bool left;		    /* the pages and these, with whoever keeps them */
	struct control *control;
	struct endpoint *endpoint;
	uint64_t counted; /* when the supervisor was last shown the counters */
	bool left_behind; /* the stats thread, which still uses this and the engine */
	/* read by the stats thread */
	_Atomic enum nlproto_state state;
};

/*
 * Takes all steps; at the first that fails, undoes those before it, and returns its error.
 * -ECANCELED: a standby is not needed any more.
 */
int steps_run(struct worker *w);

/* After nothing is swapped to the device any more. */
void steps_undo(struct worker *w);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From one worker to the next: the memfds that hold the pages, and what else a device needs to go
 * on.
 *
 * A worker asks its supervisor to keep them once there is a device they belong to, and to drop them
 * when it leaves in order.  If it dies, its successor finds them and takes the device over with
 * every page.  What there is beside the two memfds is the transport's to say; it passes through
 * here unread.
 *
 * Main thread only.
 */
#ifndef ZSWAPD_WORKER_HANDOVER_H
#define ZSWAPD_WORKER_HANDOVER_H

#include "daemon/engine/engine.h"
#include "daemon/state/state.h"
#include "daemon/transport/transport.h"
#include "daemon/worker/supervised.h"

#include <stdbool.h>

struct handover {
	int state_fd; /* of a predecessor, or -1 */
	int front_fd;
	struct state_owner
		owner; /* to what they belong; no device: there is nothing to take over */
	struct transport_kept kept; /* the predecessor's transport's */
};

#define HANDOVER_NULL ((struct handover){.state_fd = -1, .front_fd = -1})

/*
 * Takes copies of what was kept; of both, or of none.  What is incomplete, or belongs to no device,
 * is given up with a warning.  -EBADMSG, logged: a state that this version can't read, whose pages
 * another one still can.
 */
int handover_receive(struct handover *h, struct supervised *s);

/* Whether the device that it belongs to is still there. */
bool handover_device_there(const struct handover *h);

/* What was received is of no use to anybody: as if nothing had been, and so for a successor. */
void handover_give_up(struct handover *h, struct supervised *s);

/* Closes what has not become the engine's or the transport's. */
void handover_deinit(struct handover *h);

/* @kept: the transport's. */
int handover_deposit(struct supervised *s, const struct engine *e,
		     const struct transport_kept *kept);
/* All that was kept. */
void handover_withdraw(struct supervised *s);

#endif

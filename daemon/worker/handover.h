/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From one worker to the next: the memfds that hold the pages, and what the transport needs beside
 * them, by way of whoever starts both.
 *
 * A worker deposits its descriptors with its service manager (sd_notify's FDSTORE) once there is a
 * device they belong to, and takes them back when it leaves in order.  If it dies, the manager
 * gives them to its successor (LISTEN_FDS and LISTEN_FDNAMES, sd_listen_fds(3)), which takes the
 * device over with every page.  Without a manager nothing is kept.
 *
 * All names begin with "zswapd-".  Which there are beside the two memfds is the transport's to say;
 * they pass through here unread.
 *
 * Main thread only.
 */
#ifndef ZSWAPD_WORKER_HANDOVER_H
#define ZSWAPD_WORKER_HANDOVER_H

#include "daemon/engine/engine.h"
#include "daemon/state/state.h"
#include "daemon/transport/transport.h"

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
 * Takes what the manager passed on; both memfds, or nothing.  What is incomplete, or belongs to no
 * device, is given up with a warning.  -EBADMSG, logged: a state that this version can't read,
 * whose pages another one still can.
 */
int handover_receive(struct handover *h);

/* What was received is of no use to anybody: as if nothing had been, and so for a successor. */
void handover_give_up(struct handover *h);

/* Closes what has not become the engine's or the transport's. */
void handover_deinit(struct handover *h);

/* @kept: the transport's, and the same for both. */
void handover_deposit(const struct engine *e, const struct transport_kept *kept);
void handover_withdraw(const struct transport_kept *kept);

#endif

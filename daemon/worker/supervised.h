/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A worker's side of its supervision (daemon/link/link.h): what it asks to be kept, the order that
 * a standby waits for, and how a worker whose supervisor has died gets another.
 *
 * Main thread only.
 */
#ifndef ZSWAPD_WORKER_SUPERVISED_H
#define ZSWAPD_WORKER_SUPERVISED_H

#include "daemon/link/kept.h"

#include <stdbool.h>
#include <stddef.h>

struct supervised {
	int link;	/* -1: there is no supervisor */
	bool upgrading; /* it has said that it executes another program */
	/* What a successor needs.  The supervisor has the same. */
	struct kept *kept;
};

/* Keeps a copy of @fd for a successor.  Negative errno, logged: it can't be. */
int supervised_keep(struct supervised *s, const char *name, int fd);
void supervised_drop(struct supervised *s, const char *name);

/* Tells the service manager @state, as for sd_notify(3), by way of the supervisor. */
void supervised_notify(struct supervised *s, const char *state);

/*
 * Says that the standby is prepared and waits for the order to take over, calling @idle meanwhile,
 * which returns whether there is more to do at once.  False: the supervisor is gone.
 */
bool supervised_await_order(struct supervised *s, bool (*idle)(void *ctx), void *ctx);

/* The supervisor's pid; 0: there is none. */
int supervised_by(const struct supervised *s);

/* After the link or the listener, KEPT_LISTENER, has become readable. */
void supervised_work(struct supervised *s);

/*
 * Asks the supervisor to go on with the program as it is installed now.  0: it does, so that this
 * process will be replaced; else a negative errno.  @text, of @size bytes, says what happens or why
 * nothing does.
 */
int supervised_upgrade(struct supervised *s, char *text, size_t size);

#endif

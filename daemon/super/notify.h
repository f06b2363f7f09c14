/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Telling the service manager (sd_notify(3)), without ever waiting for it: the manager itself may
 * be swapped out, to the device whose worker has just died.  What it does not take now is offered
 * again, of texts the last one.
 */
#ifndef ZSWAPD_SUPER_NOTIFY_H
#define ZSWAPD_SUPER_NOTIFY_H

#include "daemon/link/kept.h"
#include "daemon/link/link.h"

#include <stdbool.h>

struct notify {
	int socket; /* -1: there is no manager */
	char text[LINK_TEXT_MAX];
	bool pending;
	struct {
		char name[KEPT_NAME_MAX];
		bool pending;
		bool drop; /* else to be stored */
	} fds[KEPT_MAX];
};

/* Connects to $NOTIFY_SOCKET. */
void notify_init(struct notify *n);
void notify_deinit(struct notify *n);

void notify_text(struct notify *n, const char *text);
/* The manager is to keep, or not to keep any longer, @k's descriptor of that name. */
void notify_fd(struct notify *n, const struct kept *k, const char *name, bool drop);

/* Offers again what was not taken.  True: nothing is left. */
bool notify_retry(struct notify *n, const struct kept *k);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The server's fields, shared by server.c (socket and thread) and handle.c (messages). */
#ifndef ZSWAPD_DAEMON_STATS_SERVER_IMPL_H
#define ZSWAPD_DAEMON_STATS_SERVER_IMPL_H

#include <limits.h>
#include <pthread.h>

#include "common/log.h"
#include "daemon/stats/server.h"

struct nl_sock;

struct stats_server {
	/* Set by new, read by all. */
	char name[NLPROTO_NAME_MAX];
	const struct stats_server_ops *ops;
	void *ctx;

	/* The owner's only; start and stop are not called at the same time. */
	char run_dir[PATH_MAX];
	pthread_t thread;
	bool running;
	bool abandoned; /* stop timed out; the thread may still use everything here */

	/* Set by start before the thread exists, read by both. */
	struct nl_sock *sk;
	int stop_fd; /* eventfd; readable: the thread leaves */
	int done_fd; /* eventfd; readable: it has left */
	uint32_t port;
};

#endif

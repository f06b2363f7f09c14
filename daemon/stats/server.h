/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The netlink endpoint: answers what common/nlproto.h describes.
 *
 * A thread of its own, under SCHED_OTHER, that no other thread ever waits for except in
 * stats_server_stop(), and that never waits for a client: an answer for which the asker's receive
 * buffer has no room is dropped, with the rest of its parts.  The kernel drops or holds back
 * requests that come faster than they are answered.  One request makes one answer, so nobody can
 * have more sent than he asks for.
 *
 * Every user may ask.  Who asks is known from the port and the credentials that the kernel stamped
 * on the datagram; what a message says about its sender is not looked at.
 */
#ifndef ZSWAPD_DAEMON_STATS_SERVER_H
#define ZSWAPD_DAEMON_STATS_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/counters.h"
#include "common/nlproto.h"

struct nlmsghdr;
struct stats_server;

/* Strings end in a NUL and may be empty: an empty one is left out of the reply. */
struct stats_status {
	char path[NLPROTO_TEXT_MAX];	  /* the device node, /dev/zswap/NAME */
	char transport[NLPROTO_NAME_MAX]; /* "fuse", "ublk" */
	uint32_t pid;			  /* of the worker */
	enum nlproto_state state;
	uint32_t health; /* bits of enum nlproto_health */
	char last_error[NLPROTO_TEXT_MAX];
};

/*
 * Called on the server's thread, with 64 KiB of stack to spare.  They may not wait for anything
 * that a data thread holds, nor call back into the server.  @values and @ret are zeroed before.
 */
struct stats_server_ops {
	/* One consistent snapshot, indexed by enum counter_id. */
	void (*counters)(void *ctx, uint64_t values[COUNTER_COUNT]);
	void (*status)(void *ctx, struct stats_status *ret);
};

/* @ops and @ctx must outlive the server.  -EINVAL: @name is no device name, see nlproto_name_ok().
 */
int stats_server_new(struct stats_server **ret, const char *name,
		     const struct stats_server_ops *ops, void *ctx);

/* Where the port file goes, instead of PORTFILE_DIR.  Before start; -ENAMETOOLONG. */
int stats_server_set_run_dir(struct stats_server *s, const char *dir);

/*
 * Binds the port, writes the port file, starts the thread.  Failure is logged and leaves the server
 * as it was.  A daemon can serve swap without this endpoint.
 */
int stats_server_start(struct stats_server *s);

/*
 * Ends the thread, closes the socket, removes the port file.  Waits for two seconds at most:
 * -ETIMEDOUT if a callback has not returned by then; the thread is then left behind with all that
 * it uses, and stats_server_free() leaks it.  0 if it was not running.
 */
int stats_server_stop(struct stats_server *s);

/* Stops first if needed.  @s may be NULL. */
void stats_server_free(struct stats_server *s);

/* The port that is bound, 0 when not running. */
uint32_t stats_server_port(const struct stats_server *s);

/* Who asks, as stamped by the kernel. */
struct stats_peer {
	uint32_t port;
	uint32_t uid; /* in the daemon's user namespace; meaningless without has_creds */
	bool has_creds;
};

/* Takes one message of an answer, good for the time of the call.  False: could not be delivered,
 * the rest of this answer is not wanted.
 */
typedef bool (*stats_reply_fn)(void *ctx, const struct nlmsghdr *reply);

/*
 * Answers one datagram, without sockets or any state but what the ops return: the messages of the
 * answer go to @reply.  What is no request is passed over in silence.
 *
 * @msg is aligned to 4 bytes.  @len is the datagram's length; if it is above NLPROTO_REQUEST_MAX
 * only the first NLPROTO_REQUEST_MAX bytes are looked at.  Returns the negative errno that was
 * answered, or 0: a reply was given or nothing was said.
 */
int stats_server_handle(struct stats_server *s, const struct stats_peer *peer, const void *msg,
			size_t len, stats_reply_fn reply, void *reply_ctx);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Messages under construction.  What always fits is put with an assertion; what may not is put by
 * a function that says so and leaves the message as it was.
 */
#ifndef ZSWAPD_DAEMON_STATS_MESSAGE_H
#define ZSWAPD_DAEMON_STATS_MESSAGE_H

#include <stdint.h>

#include "common/util.h"
#include "daemon/stats/server_impl.h"

#include <netlink/attr.h>
#include <netlink/msg.h>

/* With header and device name; NULL without memory. */
struct nl_msg *message_new(const struct stats_server *s, uint32_t port, uint32_t seq, uint8_t cmd,
			   int flags);

/* The same as an answer to @rq. */
struct nl_msg *reply_new(const struct request *rq, int flags);

/* Sends and frees it.  As stats_reply_fn. */
int reply_put_out(const struct request *rq, struct nl_msg *msg);

/* Answers with NLMSG_ERROR.  Returns @error, which is negative. */
__attribute__((format(printf, 3, 4))) int refuse(const struct request *rq, int error,
						 const char *fmt, ...);

int refuse_without_memory(const struct request *rq);

/* Left out if it is empty.  At most @size - 1 characters of @text are looked at. */
void put_text(struct nl_msg *msg, int attr, const char *text, size_t size);

void put_job(struct nl_msg *msg, const struct stats_job *job);

/*
 * Puts member @index of a list.  False: no room; the message is then as it was.  A member always
 * fits into an empty list.
 */
typedef bool (*put_member_fn)(struct nl_msg *msg, unsigned index, const void *from);

/*
 * As many messages as the @n members of the list @attr take.  0: they are out, and NLMSG_DONE is
 * due.  1: the asker does not read, and nothing more is due.  -ENOMEM.
 */
int put_list(const struct request *rq, int attr, unsigned n, put_member_fn put, const void *from);

/* The end of an answer of several messages. */
int put_done(const struct request *rq);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A client's fields, shared by client.c and events.c. */
#ifndef ZSWAPD_CTL_CLIENT_IMPL_H
#define ZSWAPD_CTL_CLIENT_IMPL_H

#include "ctl/client.h"

struct nl_sock;

struct ctl_client {
	struct nl_sock *sk;
	uint32_t port;
	uid_t uid;
	uint32_t seq; /* of the last request */
};

/*
 * Sends @rq and makes @r ready to take the answer.  -EINVAL: a text does not fit; else as
 * ctl_client_request().
 */
int ctl_client_send(struct ctl_client *c, const struct ctl_request *rq, struct ctl_reply *r);

#endif

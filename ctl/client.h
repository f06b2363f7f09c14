/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Asking the daemon.  An answer counts if it comes from the port that was asked and if the kernel
 * says that a process of the expected uid sent it.  Messages from other ports are anybody's and are
 * passed over; the asked port being held by another uid is an error, since that process is in the
 * daemon's place.
 */
#ifndef ZSWAPD_CTL_CLIENT_H
#define ZSWAPD_CTL_CLIENT_H

#include <stdint.h>
#include <sys/types.h>

#include "ctl/reply.h"

/* For one question from first to last message, if it has no time of its own. */
#define CTL_TIMEOUT_MS 2000

struct ctl_client;

/* @uid: of the daemon, 0 outside of tests.  Negative errno. */
int ctl_client_new(struct ctl_client **ret, uint32_t port, uid_t uid);
void ctl_client_free(struct ctl_client *c);

/* What to send.  Fields that the command does not take stay NULL and not known. */
struct ctl_request {
	enum nlproto_cmd cmd;
	const char *device;	/* NULL or empty: whatever this port serves */
	const char *key;	/* GET (NULL: all options), SET */
	const char *value;	/* SET */
	struct ctl_num bytes;	/* WRITEBACK; not known: all */
	struct ctl_num job;	/* JOB; not known: the one under way or the last one */
	struct ctl_num seconds; /* SUBSCRIBE; not known: NLPROTO_SUBSCRIBE_SECONDS */
	int timeout_ms;		/* for the whole answer; 0: CTL_TIMEOUT_MS */
};

/*
 * Sends @rq and collects the answer.
 *
 *  0              answered, in @r
 *  1              the daemon refused; @r->error and @r->error_text say why
 *  -ECONNREFUSED  nobody has this port
 *  -ETIMEDOUT     no answer, or not all of it, within its time
 *  -EPERM         the port is held by another uid; @r->error_text says so
 *  -EPROTO        not understood; @r->error_text says why
 *  -EINVAL        a text of @rq is longer than a request can carry
 *  other negative errnos of the socket
 */
int ctl_client_request(struct ctl_client *c, const struct ctl_request *rq, struct ctl_reply *r);

/* The same for commands that need nothing but a device, which may be empty. */
int ctl_client_ask(struct ctl_client *c, enum nlproto_cmd cmd, const char *device,
		   struct ctl_reply *r);

#endif

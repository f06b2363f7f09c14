/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Following the daemon's events.  Who may (CAP_NET_ADMIN) joins the multicast group; everybody else
 * subscribes for a minute at a time.  Either way the daemon is asked now and then for the number of
 * its last event, which renews the subscription, shows events that were lost, and shows that the
 * daemon is still there.
 *
 * As with answers, an event counts only if it comes from the port that was asked and from a process
 * of the expected uid: every user may send to the group.
 *
 * One thread.
 */
#ifndef ZSWAPD_CTL_EVENTS_H
#define ZSWAPD_CTL_EVENTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "ctl/reply.h"

struct ctl_events;

/*
 * Follows the daemon at @port, of which @uid is expected (0 outside of tests).  @device may be
 * empty: whatever this port serves.  Returns as ctl_client_request() does (0: events come from now
 * on; 1: refused, and @error_text, which holds NLPROTO_LINE_MAX bytes, says why).
 */
int ctl_events_new(struct ctl_events **ret, uint32_t port, uid_t uid, const char *device,
		   char *error_text);
void ctl_events_free(struct ctl_events *e);

/* Readable when ctl_events_next() has something to do. */
int ctl_events_fd(const struct ctl_events *e);

/*
 * Waits up to @timeout_ms for the next event.  Must be called at least every two seconds, for that
 * is when it renews.
 *
 *  1              an event in *ret; *ret_lost is how many were lost just before it
 *  0              none came; *ret_lost is how many were lost so far
 *  -ECONNREFUSED  the daemon is gone
 *  -ETIMEDOUT     the daemon does not answer any more
 *  -EINTR         a signal came
 *  -EPERM         another uid holds the port
 *  -EPROTO        an event or an answer cannot be read; the next call goes on
 */
int ctl_events_next(struct ctl_events *e, int timeout_ms, struct ctl_event *ret,
		    uint64_t *ret_lost);

/* Whether the numbers have begun anew since the last call: the daemon was restarted meanwhile. */
bool ctl_events_restarted(struct ctl_events *e);

#endif

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Events and the answers to renewals come to one socket, in the order in which the daemon sent
 * them.  So an answer that names a later event than the last one seen tells of lost ones, and a
 * number that falls back, or that began at another time, tells that the daemon has started anew.
 */
#include "ctl/events.h"
#include "common/util.h"
#include "ctl/client_impl.h"
#include "ctl/datagram.h"

#include <errno.h>
#include <netlink/socket.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#define SECOND	      1000000000ull
#define RENEW_SECONDS 2

struct ctl_events {
	struct ctl_client *client;
	char device[NLPROTO_NAME_MAX];
	bool group;
	uint64_t seen;	      /* number of the last event, come or lost */
	uint64_t lost;	      /* not yet told */
	struct ctl_num began; /* when the numbers did, as far as it is known */
	bool restarted;	      /* not yet told */
	uint64_t renew_at;    /* ns */
	uint64_t answer_by;   /* ns; 0: no renewal is under way */
	struct ctl_reply reply;
};

static struct ctl_request renewal(const struct ctl_events *e)
{
	/* In the group no subscription is needed, only the answer. */
	return (struct ctl_request){
		.cmd = NLPROTO_CMD_SUBSCRIBE,
		.device = e->device,
		.seconds = {true, e->group ? 0 : NLPROTO_SUBSCRIBE_SECONDS},
	};
}

static void note_answer(struct ctl_events *e)
{
	uint64_t last = e->reply.event_seq.v;

	e->answer_by = 0;
	e->renew_at = now_ns() + RENEW_SECONDS * SECOND;
	if (!e->reply.event_seq.known)
		return;
	if (last < e->seen || (e->began.known && e->began.v != e->reply.began.v)) {
		e->restarted = true;
		e->seen = 0;
	}
	e->began = e->reply.began;
	e->lost += last - e->seen;
	e->seen = last;
}

int ctl_events_new(struct ctl_events **ret, uint32_t port, uid_t uid, const char *device,
		   char *error_text)
{
	struct ctl_events *e = calloc(1, sizeof(*e));
	struct ctl_request rq;
	int r;

	if (!e)
		return -ENOMEM;
	error_text[0] = '\0';
	r = strlen(device) < sizeof(e->device) ? ctl_client_new(&e->client, port, uid) : -EINVAL;
	if (r < 0)
		goto fail;
	strcpy(e->device, device);
	e->group = nl_socket_add_membership(e->client->sk, NLPROTO_GROUP) == 0;
	rq = renewal(e);
	r = ctl_client_request(e->client, &rq, &e->reply);
	if (r) {
		strcpy(error_text, e->reply.error_text);
		goto fail;
	}
	note_answer(e);
	e->lost = 0;
	*ret = e;
	return 0;
fail:
	ctl_events_free(e);
	return r;
}

void ctl_events_free(struct ctl_events *e)
{
	if (!e)
		return;
	ctl_client_free(e->client);
	free(e);
}

int ctl_events_fd(const struct ctl_events *e)
{
	return nl_socket_get_fd(e->client->sk);
}

static int renew(struct ctl_events *e, uint64_t now)
{
	struct ctl_request rq = renewal(e);
	int r;

	if (e->answer_by)
		return now < e->answer_by ? 0 : -ETIMEDOUT;
	if (now < e->renew_at)
		return 0;
	r = ctl_client_send(e->client, &rq, &e->reply);
	if (r == 0)
		e->answer_by = now + CTL_TIMEOUT_MS * 1000000ull;
	return r;
}

/* 1: an event; 0: look again; -EAGAIN: nothing there; others as ctl_events_next(). */
static int take_one(struct ctl_events *e, struct ctl_event *ret)
{
	struct pollfd pfd = {.fd = ctl_events_fd(e), .events = POLLIN};
	struct ctl_datagram d;
	int r;

	if (poll(&pfd, 1, 0) <= 0)
		return -EAGAIN;
	r = ctl_receive(pfd.fd, e->client->port, e->client->uid, &d, e->reply.error_text);
	if (r <= 0)
		return r == -ENOBUFS ? 0 : r; /* what was lost shows by the numbers */
	r = ctl_event_take(ret, e->device, d.bytes, d.len);
	if (r != 0 || d.group || !e->answer_by)
		return r;
	r = ctl_reply_take(&e->reply, d.bytes, d.len);
	if (r == CTL_TAKE_REFUSED)
		return e->reply.error;
	if (r == CTL_TAKE_DONE)
		note_answer(e);
	return r < 0 ? r : 0;
}

static void count_lost(struct ctl_events *e, uint64_t seq)
{
	if (seq <= e->seen) {
		e->restarted = true;
		e->began.known = false;
	}
	e->lost += seq > e->seen ? seq - e->seen - 1 : seq - 1;
	e->seen = seq;
}

static int give(struct ctl_events *e, int r, uint64_t *ret_lost)
{
	*ret_lost = e->lost;
	e->lost = 0;
	return r;
}

int ctl_events_next(struct ctl_events *e, int timeout_ms, struct ctl_event *ret, uint64_t *ret_lost)
{
	uint64_t deadline = now_ns() + (uint64_t)timeout_ms * 1000000ull, now, until;
	struct pollfd pfd = {.fd = ctl_events_fd(e), .events = POLLIN};
	int r;

	while (true) {
		while ((r = take_one(e, ret)) == 0)
			;
		if (r == 1)
			count_lost(e, ret->seq.v);
		now = now_ns();
		if (r == -EAGAIN)
			r = renew(e, now);
		if (r)
			return r > 0 ? give(e, r, ret_lost) : r;
		if (now >= deadline)
			return give(e, 0, ret_lost);
		until = min_u64(deadline, e->answer_by ? e->answer_by : e->renew_at);
		if (until > now && poll(&pfd, 1, (int)((until - now + 999999) / 1000000)) < 0)
			return -errno;
	}
}

bool ctl_events_restarted(struct ctl_events *e)
{
	bool r = e->restarted;

	e->restarted = false;
	return r;
}

// SPDX-License-Identifier: GPL-2.0-or-later
#include "ctl/client.h"
#include "common/util.h"
#include "ctl/client_impl.h"
#include "ctl/datagram.h"

#include <errno.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <netlink/socket.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

/* Room for a whole answer, since the daemon drops what does not fit. */
#define RCVBUF_BYTES ((int)KIB(208))

int ctl_client_new(struct ctl_client **ret, uint32_t port, uid_t uid)
{
	struct timeval tv = {.tv_sec = CTL_TIMEOUT_MS / 1000};
	struct ctl_client *c = calloc(1, sizeof(*c));
	int r = -ENOMEM;

	if (!c)
		return r;
	c->port = port;
	c->uid = uid;
	c->seq = (uint32_t)now_ns();
	c->sk = nl_socket_alloc();
	if (!c->sk)
		goto fail;
	r = -EIO;
	if (nl_connect(c->sk, NETLINK_USERSOCK) < 0 || nl_socket_set_passcred(c->sk, 1) < 0 ||
	    nl_socket_set_buffer_size(c->sk, RCVBUF_BYTES, RCVBUF_BYTES) < 0)
		goto fail;
	/* A full receive buffer of the daemon makes the sender wait. */
	if (setsockopt(nl_socket_get_fd(c->sk), SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv)) < 0) {
		r = -errno;
		goto fail;
	}
	*ret = c;
	return 0;
fail:
	ctl_client_free(c);
	return r;
}

void ctl_client_free(struct ctl_client *c)
{
	if (!c)
		return;
	nl_socket_free(c->sk); /* takes NULL */
	free(c);
}

/* -EINVAL: longer than the protocol has room for. */
static int put_text(struct nl_msg *msg, int attr, const char *text, size_t max)
{
	if (!text || !text[0])
		return 0;
	return strlen(text) < max && nla_put_string(msg, attr, text) == 0 ? 0 : -EINVAL;
}

static int put_job_id(struct nl_msg *msg, uint64_t id)
{
	struct nlattr *job = nla_nest_start(msg, NLPROTO_A_JOB);

	if (!job || nla_put_u32(msg, NLPROTO_J_ID, (uint32_t)id) < 0)
		return -EINVAL;
	return nla_nest_end(msg, job);
}

static int put_request(struct nl_msg *msg, const struct ctl_request *rq)
{
	/* An empty value is one that was given, and for the daemon to judge. */
	bool empty_value = rq->value && !rq->value[0];
	int r = put_text(msg, NLPROTO_A_DEVICE, rq->device, NLPROTO_NAME_MAX);

	if (r == 0)
		r = put_text(msg, NLPROTO_A_KEY, rq->key, NLPROTO_NAME_MAX);
	if (r == 0)
		r = put_text(msg, NLPROTO_A_VALUE, rq->value, NLPROTO_TEXT_MAX);
	if (r == 0 && empty_value)
		r = nla_put_string(msg, NLPROTO_A_VALUE, "");
	if (r == 0 && rq->bytes.known)
		r = nla_put_u64(msg, NLPROTO_A_BYTES, rq->bytes.v);
	if (r == 0 && rq->job.known)
		r = put_job_id(msg, rq->job.v);
	if (r == 0 && rq->seconds.known)
		r = nla_put_u32(msg, NLPROTO_A_SECONDS,
				(uint32_t)min_u64(rq->seconds.v, UINT32_MAX));
	return r < 0 ? -EINVAL : 0;
}

int ctl_client_send(struct ctl_client *c, const struct ctl_request *rq, struct ctl_reply *r)
{
	struct sockaddr_nl to = {.nl_family = AF_NETLINK, .nl_pid = c->port};
	struct nl_msg *msg = nlmsg_alloc_size(NLPROTO_REQUEST_MAX);
	struct nlproto_hdr *hdr;
	struct nlmsghdr *nlh;
	int err;

	if (!msg)
		return -ENOMEM;
	if (++c->seq == 0)
		c->seq = 1; /* 0 is the events' */
	err = ctl_reply_init(r, (uint8_t)rq->cmd, c->seq, rq->device);
	nlh = nlmsg_put(msg, nl_socket_get_local_port(c->sk), r->seq, NLPROTO_MSG_TYPE,
			sizeof(*hdr), NLM_F_REQUEST);
	z_assert(nlh);
	hdr = nlmsg_data(nlh);
	*hdr = (struct nlproto_hdr){.cmd = (uint8_t)rq->cmd, .version = NLPROTO_VERSION};
	if (err == 0)
		err = put_request(msg, rq);
	if (err == 0 && sendto(nl_socket_get_fd(c->sk), nlh, nlh->nlmsg_len, MSG_NOSIGNAL,
			       (struct sockaddr *)&to, sizeof(to)) < 0)
		err = errno == EAGAIN ? -ETIMEDOUT : -errno;
	nlmsg_free(msg);
	return err;
}

/* One datagram: an enum ctl_take or a negative errno. */
static int receive_one(struct ctl_client *c, struct ctl_reply *r)
{
	struct ctl_datagram d;
	int err = ctl_receive(nl_socket_get_fd(c->sk), c->port, c->uid, &d, r->error_text);

	if (err <= 0)
		return err < 0 ? err : CTL_TAKE_MORE;
	return d.group ? CTL_TAKE_MORE : ctl_reply_take(r, d.bytes, d.len);
}

int ctl_client_request(struct ctl_client *c, const struct ctl_request *rq, struct ctl_reply *r)
{
	struct pollfd pfd = {.fd = nl_socket_get_fd(c->sk), .events = POLLIN};
	int timeout_ms = rq->timeout_ms ? rq->timeout_ms : CTL_TIMEOUT_MS;
	uint64_t deadline = now_ns() + (uint64_t)timeout_ms * 1000000ull, now;
	int err;

	err = ctl_client_send(c, rq, r);
	if (err < 0)
		return err;
	while ((now = now_ns()) < deadline) {
		/* Rounded up, so that the last wait does not spin. */
		err = poll(&pfd, 1, (int)((deadline - now + 999999) / 1000000));
		if (err < 0 && errno != EINTR)
			return -errno;
		if (err <= 0)
			continue;
		err = receive_one(c, r);
		if (err < 0)
			return err;
		if (err == CTL_TAKE_DONE)
			return 0;
		if (err == CTL_TAKE_REFUSED)
			return 1;
	}
	return -ETIMEDOUT;
}

int ctl_client_ask(struct ctl_client *c, enum nlproto_cmd cmd, const char *device,
		   struct ctl_reply *r)
{
	struct ctl_request rq = {.cmd = cmd, .device = device};

	return ctl_client_request(c, &rq, r);
}

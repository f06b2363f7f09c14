// SPDX-License-Identifier: GPL-2.0-or-later
#include "ctl/client.h"
#include "common/util.h"

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

struct ctl_client {
	struct nl_sock *sk;
	uint32_t port;
	uid_t uid;
	uint32_t seq;
};

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

static int send_request(struct ctl_client *c, const struct ctl_reply *r)
{
	struct sockaddr_nl to = {.nl_family = AF_NETLINK, .nl_pid = c->port};
	struct nl_msg *msg = nlmsg_alloc_size(NLPROTO_REQUEST_MAX);
	struct nlproto_hdr *hdr;
	struct nlmsghdr *nlh;
	int err = 0;

	if (!msg)
		return -ENOMEM;
	nlh = nlmsg_put(msg, nl_socket_get_local_port(c->sk), r->seq, NLPROTO_MSG_TYPE,
			sizeof(*hdr), NLM_F_REQUEST);
	z_assert(nlh);
	hdr = nlmsg_data(nlh);
	*hdr = (struct nlproto_hdr){.cmd = r->cmd, .version = NLPROTO_VERSION};
	if (r->want_device[0])
		z_assert(nla_put_string(msg, NLPROTO_A_DEVICE, r->want_device) == 0);
	if (sendto(nl_socket_get_fd(c->sk), nlh, nlh->nlmsg_len, MSG_NOSIGNAL,
		   (struct sockaddr *)&to, sizeof(to)) < 0)
		err = errno == EAGAIN ? -ETIMEDOUT : -errno;
	nlmsg_free(msg);
	return err;
}

static bool creds_uid(struct msghdr *mh, uid_t *ret)
{
	for (struct cmsghdr *cm = CMSG_FIRSTHDR(mh); cm; cm = CMSG_NXTHDR(mh, cm)) {
		struct ucred uc;

		if (cm->cmsg_level != SOL_SOCKET || cm->cmsg_type != SCM_CREDENTIALS ||
		    cm->cmsg_len < CMSG_LEN(sizeof(uc)))
			continue;
		memcpy(&uc, CMSG_DATA(cm), sizeof(uc));
		*ret = uc.uid;
		return true;
	}
	return false;
}

/* One datagram: an enum ctl_take or a negative errno. */
static int receive_one(struct ctl_client *c, struct ctl_reply *r)
{
	union {
		struct nlmsghdr align;
		char bytes[KIB(8)];
	} buf;
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(struct ucred))];
	} control;
	struct sockaddr_nl from = {0};
	struct iovec iov = {buf.bytes, sizeof(buf.bytes)};
	struct msghdr mh = {
		.msg_name = &from,
		.msg_namelen = sizeof(from),
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes),
	};
	uid_t uid = (uid_t)-1;
	ssize_t n;

	n = recvmsg(nl_socket_get_fd(c->sk), &mh, MSG_DONTWAIT);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? CTL_TAKE_MORE : -errno;
	if (mh.msg_namelen != sizeof(from) || from.nl_pid != c->port || from.nl_groups)
		return CTL_TAKE_MORE;
	if (!creds_uid(&mh, &uid) || uid != c->uid) {
		snprintf(r->error_text, sizeof(r->error_text),
			 "netlink port %u is held by a process of uid %u, not by zswapd", c->port,
			 uid);
		return -EPERM;
	}
	if (mh.msg_flags & MSG_TRUNC) {
		snprintf(r->error_text, sizeof(r->error_text), "message longer than %zu bytes",
			 sizeof(buf.bytes));
		return -EPROTO;
	}
	return ctl_reply_take(r, buf.bytes, (size_t)n);
}

int ctl_client_ask(struct ctl_client *c, enum nlproto_cmd cmd, const char *device,
		   struct ctl_reply *r)
{
	struct pollfd pfd = {.fd = nl_socket_get_fd(c->sk), .events = POLLIN};
	uint64_t deadline = now_ns() + CTL_TIMEOUT_MS * 1000000ull, now;
	int err;

	memset(r, 0, sizeof(*r));
	if (strlen(device) >= sizeof(r->want_device))
		return -EINVAL;
	strcpy(r->want_device, device);
	r->cmd = cmd;
	r->seq = ++c->seq;
	err = send_request(c, r);
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

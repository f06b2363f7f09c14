// SPDX-License-Identifier: GPL-2.0-or-later
#include "ctl/datagram.h"
#include "common/creds.h"
#include "common/nlproto.h"

#include <errno.h>
#include <linux/netlink.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

int ctl_receive(int fd, uint32_t port, uid_t uid, struct ctl_datagram *ret, char *error_text)
{
	union creds_buffer control;
	struct sockaddr_nl from = {0};
	struct iovec iov = {ret->bytes, sizeof(ret->bytes)};
	struct msghdr mh = {
		.msg_name = &from,
		.msg_namelen = sizeof(from),
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes),
	};
	uid_t sender = (uid_t)-1;
	ssize_t n;

	n = recvmsg(fd, &mh, MSG_DONTWAIT);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (mh.msg_namelen != sizeof(from) || from.nl_pid != port)
		return 0;
	if (!creds_uid(&mh, &sender) || sender != uid) {
		snprintf(error_text, NLPROTO_LINE_MAX,
			 "netlink port %u is held by a process of uid %u, not by zswapd", port,
			 sender);
		return -EPERM;
	}
	if (mh.msg_flags & MSG_TRUNC) {
		snprintf(error_text, NLPROTO_LINE_MAX, "message longer than %zu bytes",
			 sizeof(ret->bytes));
		return -EPROTO;
	}
	ret->group = from.nl_groups != 0;
	ret->len = (size_t)n;
	return 1;
}

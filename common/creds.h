/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who sent a datagram, as the kernel says.  Any thread, no state. */
#ifndef ZSWAPD_COMMON_CREDS_H
#define ZSWAPD_COMMON_CREDS_H

#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>

/* Holds what recvmsg(2) says of the sender, if the socket has SO_PASSCRED. */
union creds_buffer {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(struct ucred))];
};

/* The sender's uid, in this process' user namespace; false if it is not told. */
static inline bool creds_uid(struct msghdr *mh, uid_t *ret)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(mh); c; c = CMSG_NXTHDR(mh, c)) {
		struct ucred uc;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_CREDENTIALS ||
		    c->cmsg_len < CMSG_LEN(sizeof(uc)))
			continue;
		memcpy(&uc, CMSG_DATA(c), sizeof(uc));
		*ret = uc.uid;
		return true;
	}
	return false;
}

#endif

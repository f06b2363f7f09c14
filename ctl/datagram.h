/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One datagram, and whether it is to be believed: it is if it comes from the port that was asked
 * and a process of the expected uid sent it, as the kernel says.
 *
 * The kernel gives the uid as this process' user namespace sees it, and one that the namespace does
 * not know as 65534.  So in a namespace into which uid 0 is not mapped no daemon is believed.
 *
 * Private to ctl/client.c and ctl/events.c.
 */
#ifndef ZSWAPD_CTL_DATAGRAM_H
#define ZSWAPD_CTL_DATAGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct ctl_datagram {
	bool group; /* came to a multicast group */
	size_t len;
	_Alignas(4) char bytes[8192];
};

/*
 * Takes one from @fd, which has SO_PASSCRED, without waiting.  1: one to be believed.  0: none, or
 * one that is to be passed over.  -EPERM: the port is another uid's; -EPROTO: longer than any
 * message; both with a text in @error_text, which holds NLPROTO_LINE_MAX bytes.  -ENOBUFS: some
 * were lost.  Others of recvmsg(2).
 */
int ctl_receive(int fd, uint32_t port, uid_t uid, struct ctl_datagram *ret, char *error_text);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A message that may carry a descriptor (unix(7), SCM_RIGHTS).
 */
#ifndef ZSWAPD_COMMON_SENDFD_H
#define ZSWAPD_COMMON_SENDFD_H

#include <sys/uio.h>

/*
 * Sends the @n parts of @iov as one message, with @fd if it is not negative, and without a SIGPIPE.
 * 0, or the negative errno of sendmsg(2).  Any thread.
 */
int send_with_fd(int sock, struct iovec *iov, unsigned n, int fd);

#endif

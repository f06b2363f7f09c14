// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/link/link.h"
#include "common/log.h"
#include "common/sendfd.h"
#include "common/util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#define FLAGS (SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK)

int link_pair(int fds[2])
{
	return socketpair(AF_UNIX, FLAGS, 0, fds) < 0 ? -errno : 0;
}

int link_send(int sock, enum link_type type, const char *text, int fd)
{
	uint32_t t = type;
	size_t len = text ? strlen(text) : 0;
	struct iovec iov[] = {{&t, sizeof(t)}, {(char *)text, len}};

	if (len >= LINK_TEXT_MAX)
		return -EMSGSIZE;
	return send_with_fd(sock, iov, len ? 2 : 1, fd);
}

int link_receive(int sock, struct link_message *ret)
{
	struct iovec iov[] = {{&ret->type, sizeof(ret->type)}, {ret->text, LINK_TEXT_MAX - 1}};
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct msghdr m = {.msg_iov = iov,
			   .msg_iovlen = 2,
			   .msg_control = &control,
			   .msg_controllen = sizeof(control)};
	ssize_t n = recvmsg(sock, &m, MSG_CMSG_CLOEXEC);
	struct cmsghdr *c;

	ret->fd = -1;
	if (n < 0)
		return errno == ECONNRESET ? 0 : -errno;
	if (n == 0)
		return 0;
	c = CMSG_FIRSTHDR(&m);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
	    c->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(&ret->fd, CMSG_DATA(c), sizeof(ret->fd));
	if ((size_t)n < sizeof(ret->type) || (m.msg_flags & (MSG_TRUNC | MSG_CTRUNC))) {
		close_fd(ret->fd);
		return -EBADMSG;
	}
	ret->text[(size_t)n - sizeof(ret->type)] = '\0';
	return 1;
}

static int address(const char *path, struct sockaddr_un *ret)
{
	*ret = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (strlen(path) >= sizeof(ret->sun_path))
		return -ENAMETOOLONG;
	strcpy(ret->sun_path, path);
	return 0;
}

/* The mode is of the file from its first moment, since the directory is root's alone to write. */
static int bind_private(int fd, const struct sockaddr_un *a)
{
	mode_t mask = umask(0177);
	int r = bind(fd, (const struct sockaddr *)a, sizeof(*a)) < 0 ? -errno : 0;

	umask(mask);
	return r;
}

int link_listen(const char *path)
{
	cleanup_fd int fd = socket(AF_UNIX, FLAGS, 0);
	struct sockaddr_un a;
	int r = fd < 0 ? -errno : address(path, &a);

	if (r == 0 && unlink(path) < 0 && errno != ENOENT)
		r = -errno;
	if (r == 0)
		r = bind_private(fd, &a);
	if (r == 0 && listen(fd, 4) < 0)
		r = -errno;
	if (r < 0) {
		log_err("cannot listen at %s: %s", path, strerror(-r));
		return r;
	}
	r = fd;
	fd = -1;
	return r;
}

int link_accept(int listener)
{
	cleanup_fd int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct ucred peer;
	socklen_t len = sizeof(peer);
	int r;

	if (fd < 0)
		return -errno;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		return -errno;
	if (peer.uid != 0)
		return -EPERM;
	r = fd;
	fd = -1;
	return r;
}

int link_connect(const char *path)
{
	cleanup_fd int fd = socket(AF_UNIX, FLAGS, 0);
	struct sockaddr_un a;
	int r = fd < 0 ? -errno : address(path, &a);

	if (r == 0 && connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0)
		r = -errno;
	if (r < 0)
		return r;
	r = fd;
	fd = -1;
	return r;
}

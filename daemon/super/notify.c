// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/super/notify.h"
#include "common/log.h"
#include "common/sendfd.h"
#include "common/util.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

void notify_init(struct notify *n)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	size_t len = path ? strlen(path) : 0;

	*n = (struct notify){.socket = -1};
	if (len < 2 || len >= sizeof(a.sun_path))
		return;
	memcpy(a.sun_path, path, len);
	if (a.sun_path[0] == '@')
		a.sun_path[0] = '\0';
	n->socket = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (n->socket >= 0 &&
	    connect(n->socket, (struct sockaddr *)&a,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)) < 0) {
		log_warn("the service manager can't be told anything at %s: %s", path,
			 strerror(errno));
		n->socket = close_fd(n->socket);
	}
}

void notify_deinit(struct notify *n)
{
	n->socket = close_fd(n->socket);
}

/* False: it is to be offered again. */
static bool offer(const struct notify *n, const char *text, int fd)
{
	struct iovec iov = {(char *)text, strlen(text)};
	int r = n->socket < 0 ? 0 : send_with_fd(n->socket, &iov, 1, fd);

	return r != -EAGAIN && r != -ENOBUFS && r != -EINTR;
}

void notify_text(struct notify *n, const char *text)
{
	n->pending = !offer(n, text, -1);
	if (n->pending)
		snprintf(n->text, sizeof(n->text), "%s", text);
}

static bool offer_fd(const struct notify *n, const struct kept *k, const char *name, bool drop)
{
	char text[96];
	int fd = drop ? -1 : kept_get(k, name);

	if (!drop && fd < 0)
		return true;
	snprintf(text, sizeof(text), "FDSTORE%s=1\nFDNAME=%s", drop ? "REMOVE" : "", name);
	return offer(n, text, fd);
}

void notify_fd(struct notify *n, const struct kept *k, const char *name, bool drop)
{
	unsigned slot = 0;

	for (unsigned i = 0; i < KEPT_MAX; i++) {
		if (n->fds[i].pending && strcmp(n->fds[i].name, name) == 0)
			n->fds[i].pending = false;
		if (!n->fds[i].pending)
			slot = i;
	}
	if (offer_fd(n, k, name, drop))
		return;
	snprintf(n->fds[slot].name, KEPT_NAME_MAX, "%s", name);
	n->fds[slot].pending = true;
	n->fds[slot].drop = drop;
}

bool notify_retry(struct notify *n, const struct kept *k)
{
	bool left = false;

	for (unsigned i = 0; i < KEPT_MAX; i++) {
		if (n->fds[i].pending)
			n->fds[i].pending = !offer_fd(n, k, n->fds[i].name, n->fds[i].drop);
		left |= n->fds[i].pending;
	}
	if (n->pending)
		n->pending = !offer(n, n->text, -1);
	return !left && !n->pending;
}

// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/log.h"
#include "common/util.h"
#include "daemon/super/super_impl.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#define ANSWER_MS 5000 /* a worker looks several times a second */

/* All that it keeps, and who it is.  -ENOENT: it went away; -EBUSY; -ETIMEDOUT. */
static int hear(struct super *s, int sock)
{
	uint64_t deadline = now_ns() + ANSWER_MS * 1000000ull, now;
	struct pollfd pfd = {.fd = sock, .events = POLLIN};
	struct link_message m;

	while ((now = now_ns()) < deadline) {
		int r = link_receive(sock, &m);

		if (r == -EAGAIN) {
			poll(&pfd, 1, (int)((deadline - now) / 1000000) + 1);
			continue;
		}
		if (r <= 0)
			return r == 0 ? -ENOENT : r;
		if (m.type == LINK_KEEP && m.fd >= 0) {
			r = kept_put(&s->kept, m.text, m.fd);
			if (r < 0)
				return r;
			continue;
		}
		close_fd(m.fd);
		if (m.type == LINK_REFUSED)
			return -EBUSY;
		if (m.type != LINK_HELLO)
			continue;
		s->worker.pid = (pid_t)strtol(m.text, NULL, 10);
		s->worker.pidfd = (int)syscall(SYS_pidfd_open, s->worker.pid, 0);
		if (s->worker.pidfd < 0 && errno != ESRCH)
			return -errno;
		/*
		 * It may have died with its last word, but what it kept is here.  The link tells
		 * whether the pid was still its own.
		 */
		pfd.events = 0;
		if (s->worker.pidfd < 0 || poll(&pfd, 1, 0) != 0) {
			s->worker.pidfd = close_fd(s->worker.pidfd);
			s->worker.pid = 0;
		}
		return 0;
	}
	return -ETIMEDOUT;
}

int adopt(struct super *s, const char *path)
{
	int sock = link_connect(path), r;

	if (sock < 0)
		return sock == -ECONNREFUSED ? -ENOENT : sock;
	r = hear(s, sock);
	if (r < 0) {
		close_fd(sock);
		close_fd(s->worker.pidfd);
		s->worker = CHILD_NULL;
		kept_deinit(&s->kept);
		return r;
	}
	if (!s->worker.pid) {
		close_fd(sock);
		s->worker = CHILD_NULL;
		return 0;
	}
	s->worker.link = sock;
	s->worker.since = now_ns();
	s->worker.ready = true;
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/worker/supervised.h"
#include "common/log.h"
#include "common/util.h"
#include "daemon/link/link.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define HOLD_MS	   100	 /* between looks, while the worker's memory grows */
#define IDLE_MS	   1000	 /* while it does not */
#define UPGRADE_MS 20000 /* in which the supervisor looks at the new program */

/* --- to the supervisor --- */

static void tell(struct supervised *s, enum link_type type, const char *text, int fd)
{
	int r = s->link < 0 ? 0 : link_send(s->link, type, text, fd);

	/* One that is gone is noticed by the end of the link; another will be told all of it. */
	if (r < 0 && r != -EPIPE && r != -ECONNRESET)
		log_warn("the supervisor does not take a message: %s", strerror(-r));
}

int supervised_keep(struct supervised *s, const char *name, int fd)
{
	int copy = dup(fd), r;

	r = copy < 0 ? -errno : kept_put(s->kept, name, copy);
	if (r < 0) {
		log_err("cannot keep %s for a successor: %s", name, strerror(-r));
		return r;
	}
	tell(s, LINK_KEEP, name, fd);
	return 0;
}

void supervised_drop(struct supervised *s, const char *name)
{
	kept_drop(s->kept, name);
	tell(s, LINK_DROP, name, -1);
}

void supervised_notify(struct supervised *s, const char *state)
{
	tell(s, LINK_NOTIFY, state, -1);
}

/* --- a standby --- */

bool supervised_await_order(struct supervised *s, bool (*idle)(void *ctx), void *ctx)
{
	struct pollfd pfd = {.fd = s->link, .events = POLLIN};
	bool said = false, more = true;
	int timeout = 0;

	for (;;) {
		struct link_message m;
		int r;

		if (!more && !said) {
			tell(s, LINK_PREPARED, NULL, -1);
			said = true;
		}
		poll(&pfd, 1, timeout);
		r = link_receive(s->link, &m);
		if (r == 0)
			return false;
		if (r > 0) {
			close_fd(m.fd);
			if (m.type == LINK_GO)
				return true;
			continue;
		}
		more = idle(ctx);
		timeout = more ? 0 : timeout == 0 ? HOLD_MS : IDLE_MS;
	}
}

/* --- from the supervisor, and to a new one --- */

static bool has_supervisor(const struct supervised *s)
{
	struct pollfd pfd = {.fd = s->link, .events = 0};

	return s->link >= 0 && poll(&pfd, 1, 0) == 0;
}

int supervised_by(const struct supervised *s)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	/* Of a pair it is who made it, and of a call who called. */
	if (s->link < 0 || getsockopt(s->link, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		return 0;
	return peer.pid;
}

static void lose(struct supervised *s)
{
	s->link = close_fd(s->link);
	if (s->upgrading)
		log_info("the supervisor executes another program");
	else
		log_warn(
			"the supervisor is gone; this worker goes on without, and nothing would take over "
			"from it; start zswapd again, and it adopts this worker");
}

static void adopt_to(struct supervised *s, int link)
{
	char hello[64];
	int r = 0;

	for (unsigned i = 0; i < s->kept->n && r == 0; i++)
		r = link_send(link, LINK_KEEP, s->kept->entries[i].name, s->kept->entries[i].fd);
	snprintf(hello, sizeof(hello), "%d %s", getpid(), ZSWAPD_VERSION);
	if (r == 0)
		r = link_send(link, LINK_HELLO, hello, -1);
	if (r < 0) {
		log_warn("a new supervisor has called, but could not be told what there is: %s",
			 strerror(-r));
		close_fd(link);
		return;
	}
	close_fd(s->link);
	s->link = link;
	s->upgrading = false;
	log_info("a new supervisor has adopted this worker");
}

static void answer_call(struct supervised *s)
{
	int link = link_accept(kept_get(s->kept, KEPT_LISTENER));

	if (link < 0) {
		if (link != -EAGAIN)
			log_warn("a call at the listener was not taken: %s", strerror(-link));
		return;
	}
	if (!has_supervisor(s)) {
		adopt_to(s, link);
		return;
	}
	link_send(link, LINK_REFUSED, "it has a supervisor, which runs", -1);
	close_fd(link);
}

void supervised_work(struct supervised *s)
{
	struct link_message m;
	int r = s->link < 0 ? -EAGAIN : link_receive(s->link, &m);

	if (r == 0)
		lose(s);
	else if (r > 0) {
		/* Too late an answer, or that the program can't be executed after all. */
		s->upgrading = false;
		close_fd(m.fd);
	}
	answer_call(s);
}

int supervised_upgrade(struct supervised *s, char *text, size_t size)
{
	struct pollfd pfd = {.fd = s->link, .events = POLLIN};
	uint64_t deadline = now_ns() + UPGRADE_MS * 1000000ull;
	struct link_message m;
	char *rest;
	int r;

	if (!has_supervisor(s)) {
		snprintf(text, size, "there is no supervisor; start zswapd again");
		return -ESRCH;
	}
	r = link_send(s->link, LINK_UPGRADE, NULL, -1);
	while (r == 0 || r == -EAGAIN) {
		if (now_ns() >= deadline) {
			r = -ETIMEDOUT;
			break;
		}
		poll(&pfd, 1, 100);
		r = link_receive(s->link, &m);
		if (r == 0) {
			r = -EPIPE;
			break;
		}
		if (r < 0)
			continue;
		close_fd(m.fd);
		if (m.type != LINK_ANSWER) {
			r = -EAGAIN;
			continue;
		}
		r = (int)strtol(m.text, &rest, 10);
		snprintf(text, size, "%s", rest + (*rest == ' '));
		s->upgrading = r == 0;
		return -r;
	}
	snprintf(text, size, "the supervisor does not answer: %s", strerror(-r));
	return r;
}

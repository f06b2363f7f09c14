// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Socket and thread.  The thread takes one datagram, hands it to stats_server_handle(), sends what
 * comes back without waiting, and between any two datagrams looks at the stop descriptor and at
 * what there is to do for stats_server_work().
 *
 * The thread takes no more than a fifth of one CPU, however many ask: when it has had its share of
 * a window of time, requests wait in the socket's queue until the next one, and their senders with
 * them once that is full.
 *
 * The datagrams are received here and not by libnl, because libnl allocates as much as a sender
 * likes, and because the true length of an oversized one and its credentials are wanted.
 */
#include "daemon/stats/server.h"
#include "common/creds.h"
#include "common/log.h"
#include "common/portfile.h"
#include "common/thread.h"
#include "common/util.h"
#include "daemon/stats/server_impl.h"

#include <errno.h>
#include <netlink/errno.h>
#include <netlink/netlink.h>
#include <netlink/socket.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#define STACK_BYTES  KIB(128)
#define RCVBUF_BYTES ((int)KIB(208))
#define STOP_SECONDS 2
#define IN_A_ROW     16u /* requests between two looks at what else there is */
#define WINDOW_NS    (50ull * 1000000)
#define SHARE_NS     (WINDOW_NS / 5) /* of it, for answering */

static int init(struct stats_server *s)
{
	int r;

	s->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->wake_fd < 0)
		return -errno;
	r = stats_changes_init(&s->changes);
	if (r < 0)
		close_fd(s->wake_fd);
	else
		stats_events_init(&s->events);
	return r;
}

int stats_server_new(struct stats_server **ret, const char *name,
		     const struct stats_server_ops *ops, void *ctx)
{
	struct stats_server *s;
	int r;

	if (!nlproto_name_ok(name)) {
		log_err("stats: '%s' cannot be a device name; use up to %d of A-Z a-z 0-9 _ . -",
			name, NLPROTO_NAME_MAX - 1);
		return -EINVAL;
	}
	s = calloc(1, sizeof(*s));
	r = s ? init(s) : -ENOMEM;
	if (r < 0) {
		log_err("stats: no endpoint for '%s': %s", name, strerror(-r));
		free(s);
		return r;
	}
	strcpy(s->name, name);
	strcpy(s->run_dir, PORTFILE_DIR);
	s->ops = ops;
	s->ctx = ctx;
	s->stop_fd = s->done_fd = -1;
	*ret = s;
	return 0;
}

int stats_server_set_run_dir(struct stats_server *s, const char *dir)
{
	if (strlen(dir) >= sizeof(s->run_dir))
		return -ENAMETOOLONG;
	strcpy(s->run_dir, dir);
	return 0;
}

uint32_t stats_server_port(const struct stats_server *s)
{
	return s->running ? s->port : 0;
}

/* Without waiting: a reader whose buffer is full loses the answer, not we our time. */
static int send_reply(void *ctx, const struct nlmsghdr *reply)
{
	const struct stats_server *s = ctx;
	struct sockaddr_nl to = {.nl_family = AF_NETLINK, .nl_pid = reply->nlmsg_pid};
	int r;

	if (reply->nlmsg_pid == 0)
		to.nl_groups = 1u << (NLPROTO_GROUP - 1);
	r = sendto(nl_socket_get_fd(s->sk), reply, reply->nlmsg_len, MSG_DONTWAIT | MSG_NOSIGNAL,
		   (struct sockaddr *)&to, sizeof(to)) < 0
		    ? -errno
		    : 0;
	/* What goes to a group goes to port 0 as well, where nobody is. */
	return reply->nlmsg_pid == 0 ? 0 : r;
}

/* 1: a datagram was dealt with; 0: none was there; else the negative errno of the socket. */
static int serve_one(struct stats_server *s, int fd)
{
	union {
		struct nlmsghdr align;
		char bytes[NLPROTO_REQUEST_MAX];
	} buf;
	union creds_buffer control;
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
	struct stats_peer peer = {0};
	ssize_t n;

	n = recvmsg(fd, &mh, MSG_DONTWAIT | MSG_TRUNC); /* TRUNC: n is the true length */
	if (n < 0)
		/* ENOBUFS: requests were lost; their senders have a time limit. */
		return errno == EAGAIN || errno == EINTR || errno == ENOBUFS ? 0 : -errno;
	/* A datagram to a group comes from who may send to it, and asks nothing. */
	if (mh.msg_namelen != sizeof(from) || from.nl_groups || from.nl_pid == s->port)
		return 1;
	peer.port = from.nl_pid;
	peer.has_creds = creds_uid(&mh, &peer.uid);
	stats_server_handle(s, &peer, buf.bytes, (size_t)n, send_reply, s);
	return 1;
}

void stats_signal(int fd)
{
	uint64_t one = 1;

	z_assert(write(fd, &one, sizeof(one)) == sizeof(one));
}

uint64_t stats_server_work(struct stats_server *s, uint64_t now, stats_reply_fn reply,
			   void *reply_ctx)
{
	uint64_t change = stats_changes_work(s, now, reply, reply_ctx);

	return min_u64(change, stats_events_work(s, now, false, reply, reply_ctx));
}

/* Rounded up, so that the last wait does not spin. */
static int ms_until(uint64_t when, uint64_t now)
{
	return when <= now ? 0 : (int)min_u64((when - now + 999999) / 1000000, INT_MAX);
}

static uint64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

struct share {
	uint64_t window_end; /* ns */
	uint64_t cpu_limit;  /* of this thread's CPU time, in this window */
};

/* When requests may be answered again: now (0), or at the end of the window. */
static uint64_t rest_until(struct share *sh, uint64_t now)
{
	uint64_t cpu = cpu_ns();

	if (now >= sh->window_end) {
		sh->window_end = now + WINDOW_NS;
		sh->cpu_limit = cpu + SHARE_NS;
	}
	return cpu < sh->cpu_limit ? 0 : sh->window_end;
}

/* 0, or the negative errno of the socket. */
static int serve_some(struct stats_server *s, int fd)
{
	int r = 1;

	for (unsigned i = 0; r > 0 && i < IN_A_ROW; i++)
		r = serve_one(s, fd);
	return r < 0 ? r : 0;
}

/* Until told to stop, or until the socket fails. */
static void serve(struct stats_server *s)
{
	struct pollfd fds[] = {
		{.events = POLLIN},
		{.fd = s->stop_fd, .events = POLLIN},
		{.fd = s->wake_fd, .events = POLLIN},
	};
	uint64_t now, next, count, rest = 0;
	struct share share = {0};
	int fd = nl_socket_get_fd(s->sk), r = 0;

	next = stats_server_work(s, now_ns(), send_reply, s);
	while (r == 0) {
		now = now_ns();
		rest = rest > now ? rest : 0;
		fds[0].fd = rest ? -1 : fd;		   /* -1 is not looked at */
		next = min_u64(next, s->changes.deadline); /* a request may have set it */
		if (poll(fds, ARRAY_SIZE(fds), ms_until(rest ? min_u64(rest, next) : next, now)) <
		    0) {
			r = errno == EINTR ? 0 : -errno;
			continue;
		}
		if (fds[1].revents) {
			stats_events_work(s, now_ns(), true, send_reply, s);
			return;
		}
		if (fds[0].revents) {
			r = serve_some(s, fd);
			rest = rest_until(&share, now);
		}
		now = now_ns();
		/* Requests can be waiting all the time: the ticks come in between all the same. */
		if (fds[2].revents && read(s->wake_fd, &count, sizeof(count)) == sizeof(count))
			next = 0;
		if (now >= next)
			next = stats_server_work(s, now, send_reply, s);
	}
	log_err("stats: netlink socket of '%s' failed: %s; statistics end here, swap goes on. "
		"Restart zswapd to have them back",
		s->name, strerror(-r));
}

static void *server_main(void *arg)
{
	struct stats_server *s = arg;

	pthread_setname_np(pthread_self(), "stats");
	thread_mark_io_flusher();
	serve(s);
	stats_signal(s->done_fd);
	return NULL;
}

/* libnl reports a taken port as NLE_EXIST. */
static int open_socket(const char *name, uint32_t port, struct nl_sock **ret)
{
	struct nl_sock *sk = nl_socket_alloc();
	int r;

	if (!sk)
		return -NLE_NOMEM;
	if (port)
		nl_socket_set_local_port(sk, port);
	r = nl_connect(sk, NETLINK_USERSOCK);
	if (r == 0)
		r = nl_socket_set_passcred(sk, 1);
	if (r == 0)
		r = nl_socket_set_buffer_size(sk, RCVBUF_BYTES, RCVBUF_BYTES);
	if (r < 0) {
		nl_socket_free(sk);
		return r;
	}
	*ret = sk;
	return 0;
}

static int bind_port(struct stats_server *s)
{
	uint32_t port = nlproto_port(s->name);
	int r = open_socket(s->name, port, &s->sk);

	if (r == -NLE_EXIST) {
		log_warn("stats: netlink port %u of '%s' is taken by another process "
			 "(/proc/net/netlink); another port is used, named in %s/%s.port",
			 port, s->name, s->run_dir, s->name);
		r = open_socket(s->name, 0, &s->sk);
	}
	if (r < 0) {
		log_err("stats: no netlink socket for '%s': %s; zswapctl will not reach this "
			"daemon",
			s->name, nl_geterror(r));
		return r == -NLE_NOMEM ? -ENOMEM : -EIO;
	}
	s->port = nl_socket_get_local_port(s->sk);
	return 0;
}

static int start_thread(struct stats_server *s)
{
	struct sched_param param = {0};
	pthread_attr_t attr;
	sigset_t all, old;
	int r;

	r = pthread_attr_init(&attr);
	if (r)
		return -r;
	/* The starter may run under SCHED_FIFO; this thread must not. */
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&attr, SCHED_OTHER);
	pthread_attr_setschedparam(&attr, &param);
	/* Signals are the main thread's. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	r = pthread_create(&s->thread, &attr, server_main, s);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return -r;
}

static void close_socket(struct stats_server *s)
{
	nl_socket_free(s->sk);
	s->sk = NULL;
	s->stop_fd = close_fd(s->stop_fd);
	s->done_fd = close_fd(s->done_fd);
}

int stats_server_start(struct stats_server *s)
{
	int r;

	z_assert(!s->running && !s->abandoned);
	r = bind_port(s);
	if (r < 0)
		return r;
	s->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	s->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r = s->stop_fd < 0 || s->done_fd < 0 ? -errno : start_thread(s);
	if (r < 0) {
		log_err("stats: no thread for '%s': %s", s->name, strerror(-r));
		close_socket(s);
		return r;
	}
	s->running = true;
	r = portfile_write(s->run_dir, s->name, s->port);
	if (r < 0)
		log_warn("stats: cannot write %s/%s.port: %s; zswapctl finds '%s' only %s",
			 s->run_dir, s->name, strerror(-r), s->name,
			 s->port == nlproto_port(s->name) ? "when told its name"
							  : "after a restart");
	return 0;
}

/* Whether the thread has come to its end within the time it has for that. */
static bool wait_done(struct stats_server *s)
{
	struct pollfd pfd = {.fd = s->done_fd, .events = POLLIN};
	uint64_t deadline = now_ns() + STOP_SECONDS * 1000000000ull, now;

	while ((now = now_ns()) < deadline)
		if (poll(&pfd, 1, (int)((deadline - now + 999999) / 1000000)) > 0)
			return true;
	return false;
}

int stats_server_stop(struct stats_server *s)
{
	if (!s->running)
		return 0;
	portfile_remove(s->run_dir, s->name, s->port);
	stats_signal(s->stop_fd);
	s->running = false;
	if (!wait_done(s)) {
		log_err("stats: the thread of '%s' has not ended within %d s and is left behind",
			s->name, STOP_SECONDS);
		pthread_detach(s->thread);
		s->abandoned = true;
		return -ETIMEDOUT;
	}
	pthread_join(s->thread, NULL);
	close_socket(s);
	return 0;
}

void stats_server_free(struct stats_server *s)
{
	if (!s)
		return;
	stats_server_stop(s);
	if (s->abandoned)
		return;
	stats_changes_deinit(&s->changes);
	stats_events_deinit(&s->events);
	close_fd(s->wake_fd);
	free(s);
}

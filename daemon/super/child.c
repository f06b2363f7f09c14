// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/log.h"
#include "common/util.h"
#include "daemon/super/super_impl.h"
#include "daemon/worker/worker.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define END_MS 1000

static void forget(struct child *c)
{
	c->pidfd = close_fd(c->pidfd);
	c->link = close_fd(c->link);
	*c = CHILD_NULL;
}

/* Nothing of the supervisor's own is the worker's, but for what is kept and the page. */
static _Noreturn void be_worker(struct super *s, int link, bool standby)
{
	struct worker_start start = {
		.config = s->o->config,
		.source = s->o->source,
		.kept = &s->kept,
		.watch = s->watch,
		.link = link,
		.standby = standby,
	};
	struct config running;

	/* A device and its pages go on as they were made, whatever the files say by now. */
	if (watch_config(s->watch, &running))
		start.config = &running;
	/* A Ctrl-C at the terminal is for the supervisor, which passes it on. */
	setpgid(0, 0);
	prctl(PR_SET_NAME, standby ? STANDBY_COMM : WORKER_COMM);
	forget(&s->worker);
	forget(&s->standby);
	s->signal_fd = close_fd(s->signal_fd);
	notify_deinit(&s->notify);
	exit(worker_run(&start));
}

int child_fork(struct super *s, struct child *ret, bool standby)
{
	struct child c = CHILD_NULL;
	int fds[2], r;

	r = link_pair(fds);
	if (r < 0) {
		log_err("no link for another worker: %s", strerror(-r));
		return r;
	}
	c.pid = fork();
	if (c.pid == 0) {
		close_fd(fds[0]);
		be_worker(s, fds[1], standby);
	}
	r = -errno;
	close_fd(fds[1]);
	c.link = fds[0];
	if (c.pid < 0) {
		forget(&c);
		log_err("another worker can't be forked: %s", strerror(-r));
		return r;
	}
	c.pidfd = (int)syscall(SYS_pidfd_open, c.pid, 0);
	if (c.pidfd < 0) {
		r = -errno;
		log_err("worker %d can't be watched: %s", c.pid, strerror(-r));
		kill(c.pid, SIGKILL);
		waitpid(c.pid, NULL, 0);
		forget(&c);
		return r;
	}
	c.since = now_ns();
	*ret = c;
	return 0;
}

void child_signal(const struct child *c, int sig)
{
	if (c->pid)
		syscall(SYS_pidfd_send_signal, c->pidfd, sig, NULL, 0);
}

bool child_is_dead(const struct child *c)
{
	struct pollfd pfd = {.fd = c->pidfd, .events = POLLIN};

	return c->pid && poll(&pfd, 1, 0) > 0;
}

bool child_ended(struct child *c, int *ret_status)
{
	if (!child_is_dead(c))
		return false;
	if (waitpid(c->pid, ret_status, 0) != c->pid)
		*ret_status = -1;
	forget(c);
	return true;
}

void child_end(struct child *c)
{
	struct pollfd pfd = {.fd = c->pidfd, .events = POLLIN};
	int status;

	if (!c->pid)
		return;
	child_signal(c, SIGKILL);
	poll(&pfd, 1, END_MS);
	if (!child_ended(c, &status)) {
		log_warn("process %d does not end yet", c->pid);
		forget(c);
	}
}

void child_reap_others(const struct super *s)
{
	siginfo_t si;

	while (true) {
		si.si_pid = 0;
		if (waitid(P_ALL, 0, &si, WEXITED | WNOHANG | WNOWAIT) < 0 || si.si_pid == 0 ||
		    si.si_pid == s->worker.pid || si.si_pid == s->standby.pid ||
		    si.si_pid == s->upgrade.run.pid)
			return;
		waitpid(si.si_pid, NULL, WNOHANG);
	}
}

// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/super/super.h"
#include "common/log.h"
#include "common/util.h"
#include "daemon/super/super_impl.h"
#include "daemon/worker/worker.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#define SECOND_NS      1000000000ull
#define TICK_MS	       1000
#define SHORT_MS       20	 /* while a new program is asked, or the manager is busy */
#define LIVED_NS       SECOND_NS /* a death after that is the first in a row */
#define FREE_DEATHS    3u	 /* in a row, before there is a pause */
#define PAUSE_MIN_NS   (SECOND_NS / 20)
#define STANDBY_MAX_NS (64 * SECOND_NS)
#define PAUSE_MAX_NS   (10 * SECOND_NS)

/* --- workers come and go --- */

static bool holds_pages(const struct super *s)
{
	return kept_get(&s->kept, KEPT_STATE) >= 0 && kept_get(&s->kept, KEPT_FRONT) >= 0;
}

static void end(struct super *s, int status)
{
	s->over = true;
	s->status = status;
}

/* The standby becomes the worker, or one is forked for that. */
static void go(struct super *s)
{
	s->go_at = 0;
	s->took_over = true;
	s->beats.kill_at = 0;
	s->blind = false;
	s->upgrade.replace = false; /* whoever goes is of this program */
	s->stop_told = false;
	s->stopping = false;
	s->went_unprepared = s->standby.pid && !s->standby.ready;
	if (s->standby.pid) {
		s->worker = s->standby;
		s->standby = CHILD_NULL;
		s->worker.ready = false;
		s->worker.since = now_ns();
		child_signal(&s->worker, SIGCONT); /* should somebody have stopped it */
		if (link_send(s->worker.link, LINK_GO, NULL, -1) == 0)
			return;
		child_end(&s->worker);
	}
	if (child_fork(s, &s->worker, false) < 0)
		s->go_at = now_ns() + SECOND_NS;
}

/* Nothing, for a death now and then. */
static uint64_t pause_before_next(const struct super *s)
{
	unsigned n = s->in_a_row;

	if (n <= FREE_DEATHS)
		return 0;
	return min_u64(PAUSE_MIN_NS << min_u64(n - FREE_DEATHS - 1, 10), PAUSE_MAX_NS);
}

/* The successor goes first; whoever hears of it may be waiting for its pages. */
static void replace(struct super *s, pid_t pid, int status, bool lived)
{
	char report[WATCH_REPORT_MAX];
	bool wanted = s->replacing;
	uint64_t pause;

	s->replacing = false;
	s->in_a_row = wanted || lived ? 0 : s->in_a_row;
	s->in_a_row += !wanted;
	pause = pause_before_next(s);
	if (!wanted)
		watch_make_report(s->watch, pid, status,
				  s->beats.kill_at ? "it did not answer any more" : NULL);
	s->go_at = now_ns() + pause;
	if (!pause)
		go(s);
	if (wanted)
		return;
	watch_report(s->watch, report);
	log_err("%s", report);
	if (pause)
		log_err("%u workers have died soon one after the other; the next one goes in %.2f s",
			s->in_a_row, (double)pause / 1e9);
}

static void end_without_pages(struct super *s, pid_t pid, int status, bool ready)
{
	char how[32] = "";

	if (status != -1)
		snprintf(how, sizeof(how), " (%s %d)", WIFEXITED(status) ? "status" : "signal",
			 WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
	log_err("worker %d has ended%s %s", pid, how,
		ready ? "and keeps nothing for a successor; what was swapped to its device is lost"
		      : "before it was ready");
	end(s, EXIT_FAILURE);
}

static void worker_ended(struct super *s, pid_t pid, int status, uint64_t lived, bool ready)
{
	bool exited = status != -1 && WIFEXITED(status);
	/* It may have failed as a standby, and been told to go while it ended. */
	bool never_went = s->went_unprepared && !ready && holds_pages(s);

	if (exited && WEXITSTATUS(status) == WORKER_STOPPED)
		end(s, EXIT_SUCCESS);
	else if (exited && WEXITSTATUS(status) == WORKER_FAILED && !never_went)
		end(s, EXIT_FAILURE);
	else if (holds_pages(s))
		replace(s, pid, status, ready && lived > LIVED_NS);
	else if (status == -1 && s->stopping)
		end(s, EXIT_SUCCESS); /* it has let go of its pages, in order */
	else
		end_without_pages(s, pid, status, ready);
}

/*
 * While a worker is not ready, its start is all that counts.  Not every device can be taken over;
 * of one that can't, nothing is kept.
 */
static bool wants_standby(const struct super *s)
{
	return s->worker.ready && !s->standby.pid && holds_pages(s);
}

static void fork_standby(struct super *s)
{
	s->fork_at = 0;
	if (child_fork(s, &s->standby, true) < 0)
		s->fork_at = now_ns() + SECOND_NS;
}

static void standby_ended(struct super *s, int status)
{
	uint64_t pause = min_u64(SECOND_NS << min_u64(s->unprepared++, 10), STANDBY_MAX_NS);

	log_warn("the standby has ended (%s %d); another one is forked in %llu s",
		 WIFSIGNALED(status) ? "signal" : "status",
		 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status),
		 (unsigned long long)(pause / SECOND_NS));
	s->fork_at = now_ns() + pause;
}

/* A worker that takes over is told when it serves: before, it may take it for one to the standby.
 */
static void tell_to_stop(struct super *s)
{
	if (!s->stop_signal || s->stop_told || !s->worker.pid || (s->took_over && !s->worker.ready))
		return;
	child_signal(&s->worker, s->stop_signal);
	s->stop_told = true;
}

/* --- what they say --- */

static void worker_notifies(struct super *s, const char *text)
{
	notify_text(&s->notify, text);
	if (strncmp(text, "STOPPING=1", 10) == 0)
		s->stopping = true;
	if (strncmp(text, "READY=1", 7) != 0)
		return;
	if (s->stopping) { /* and now not any more: it refuses */
		s->stopping = false;
		s->stop_signal = 0;
	}
	if (s->worker.ready)
		return;
	s->worker.ready = true;
	beats_reset(&s->beats);
	if (wants_standby(s))
		fork_standby(s);
	tell_to_stop(s);
}

static void keep(struct super *s, struct link_message *m)
{
	int r = m->fd < 0 ? -EBADMSG : kept_put(&s->kept, m->text, m->fd);

	m->fd = -1;
	if (r < 0)
		log_err("%s can't be kept for a successor: %s", m->text, strerror(-r));
	else if (!kept_is_private(m->text))
		notify_fd(&s->notify, &s->kept, m->text, false);
}

static void handle(struct super *s, struct child *c, struct link_message *m)
{
	/* What a standby makes of what is kept is not the worker's view. */
	if (c == &s->standby && m->type != LINK_PREPARED) {
		close_fd(m->fd);
		return;
	}
	switch (m->type) {
	case LINK_KEEP:
		keep(s, m);
		break;
	case LINK_DROP:
		/* Whoever stood by has it as well, and nothing is left to take over. */
		child_end(&s->standby);
		s->fork_at = 0;
		kept_drop(&s->kept, m->text);
		notify_fd(&s->notify, &s->kept, m->text, true);
		break;
	case LINK_NOTIFY:
		worker_notifies(s, m->text);
		break;
	case LINK_PREPARED:
		/* It may have said so just before it was ordered to go. */
		if (c != &s->standby)
			break;
		c->ready = true;
		s->unprepared = 0;
		log_debug("standby %d is prepared", c->pid);
		break;
	case LINK_UPGRADE:
		upgrade_begin(s);
		break;
	}
	close_fd(m->fd);
}

static void hear(struct super *s, struct child *c)
{
	struct link_message m;
	int r = 1;

	while (c->link >= 0 && (r = link_receive(c->link, &m)) > 0)
		handle(s, c, &m);
	if (r == 0)
		c->link = close_fd(c->link);
}

static void look_at_worker(struct super *s)
{
	pid_t pid = s->worker.pid;
	uint64_t lived = now_ns() - s->worker.since;
	bool ready = s->worker.ready;
	bool dead = child_is_dead(&s->worker);
	int status;

	/* What it said last counts, also when it is gone: it is heard after its death. */
	hear(s, &s->worker);
	if (dead && child_ended(&s->worker, &status))
		worker_ended(s, pid, status, lived, ready);
}

static void look_at_standby(struct super *s)
{
	int status;

	hear(s, &s->standby);
	if (child_ended(&s->standby, &status) && !s->over)
		standby_ended(s, status);
}

/* --- the loop --- */

static void pass_signals(struct super *s)
{
	struct signalfd_siginfo si;

	while (read(s->signal_fd, &si, sizeof(si)) == sizeof(si)) {
		if (!s->worker.pid)
			log_warn("signal %u: there is no worker at the moment; %s", si.ssi_signo,
				 si.ssi_signo == SIGHUP ? "try again" : "the next one is told");
		if (si.ssi_signo == SIGHUP) {
			child_signal(&s->worker, SIGHUP);
			continue;
		}
		s->stop_signal = (int)si.ssi_signo;
		s->stop_told = false;
		tell_to_stop(s);
	}
}

static int timeout(const struct super *s, bool all_told)
{
	uint64_t now = now_ns(), next = now + TICK_MS * 1000000ull;

	if (s->go_at)
		next = min_u64(next, s->go_at);
	if (s->fork_at && wants_standby(s))
		next = min_u64(next, s->fork_at);
	if (s->upgrade.run.pid > 0 || !all_told)
		next = min_u64(next, now + SHORT_MS * 1000000ull);
	return next <= now ? 0 : (int)((next - now + 999999) / 1000000);
}

static void do_what_is_due(struct super *s)
{
	uint64_t now = now_ns();

	if (s->go_at && now >= s->go_at)
		go(s);
	if (s->fork_at && now >= s->fork_at && wants_standby(s))
		fork_standby(s);
	if (s->upgrade.replace && s->standby.ready && !s->stop_signal) {
		s->upgrade.replace = false;
		s->replacing = true;
		log_info("upgrade: worker %d is replaced", s->worker.pid);
		child_signal(&s->worker, SIGKILL);
	}
	beats_look(s);
	upgrade_work(s);
	child_reap_others(s);
}

/* On the page, for who asks the worker. */
static void show_standby(struct super *s)
{
	bool prepared = s->standby.pid && s->standby.ready;

	atomic_store(&s->watch->standby, prepared ? s->standby.pid : 0);
}

static void loop(struct super *s)
{
	bool told = true;

	while (!s->over) {
		struct pollfd fds[] = {
			{.fd = s->worker.pidfd, .events = POLLIN},
			{.fd = s->worker.link, .events = POLLIN},
			{.fd = s->standby.pidfd, .events = POLLIN},
			{.fd = s->standby.link, .events = POLLIN},
			{.fd = s->signal_fd, .events = POLLIN},
		};

		poll(fds, ARRAY_SIZE(fds), timeout(s, told));
		look_at_worker(s);
		if (s->over)
			break;
		look_at_standby(s);
		if (fds[4].revents)
			pass_signals(s);
		do_what_is_due(s);
		show_standby(s);
		told = notify_retry(&s->notify, &s->kept);
	}
}

int super_run(const struct super_options *o)
{
	struct super s = {
		.o = o,
		.signal_fd = -1,
		.worker = CHILD_NULL,
		.standby = CHILD_NULL,
		.notify = {.socket = -1},
		.upgrade = {.run = RUN_NULL},
		.status = EXIT_FAILURE,
	};

	if (super_start(&s) == 0)
		loop(&s);
	super_stop(&s);
	return s.status;
}

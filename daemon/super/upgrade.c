// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The new program is asked, in processes of its own, before it is executed: what it is, and then
 * whether it can use the configuration.  Once it runs in this one's place there is no way back, and
 * while it does not, nobody watches over the worker.
 *
 * What it gets: the arguments and the environment of this one, the blocked signals, and those that
 * wait.  The standby ends with its link, and is reaped by whoever this process is then.  The worker
 * has all descriptors, and gives them to who adopts it.  Those that the pages live by are left open
 * all the same: else they would end with a worker that dies just then.  Not so the private ones:
 * the new program would find the lock held, by itself.
 */
#include "common/log.h"
#include "common/util.h"
#include "daemon/state/state.h"
#include "daemon/super/super_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ASK_NS	 10000000000ull /* in all */
#define ARGS_MAX 16u
#define VARIABLE "ZSWAPD_UPGRADE" /* from one program to the next: "FD=NAME "... */
#define LEFT_MAX (KEPT_MAX * (KEPT_NAME_MAX + 12u))

void super_print_version(void)
{
	printf("zswapd %s state %u\n", ZSWAPD_VERSION, STATE_VERSION);
}

/* -1, 0, 1: as strcmp(3). */
static int compare(const unsigned a[3], const unsigned b[3])
{
	for (int i = 0; i < 3; i++) {
		if (a[i] != b[i])
			return a[i] < b[i] ? -1 : 1;
	}
	return 0;
}

bool super_can_follow(const char *line, char *reason, size_t size)
{
	unsigned ours[3], its[3], state;
	int end = 0;

	sscanf(ZSWAPD_VERSION, "%u.%u.%u", &ours[0], &ours[1], &ours[2]);
	if (sscanf(line, "zswapd %u.%u.%u state %u%n", &its[0], &its[1], &its[2], &state, &end) <
		    4 ||
	    end == 0) {
		snprintf(reason, size,
			 "it does not say that it can take over, so that it is older than this "
			 "version (%s) or no zswapd; it said: %.80s",
			 ZSWAPD_VERSION, line);
		return false;
	}
	if (state != STATE_VERSION) {
		snprintf(reason, size,
			 "version %u.%u.%u has layout %u of the state, what runs (%s) has %u; to "
			 "change, stop zswapd and start it again",
			 its[0], its[1], its[2], state, ZSWAPD_VERSION, STATE_VERSION);
		return false;
	}
	if (compare(its, ours) < 0) {
		snprintf(reason, size,
			 "version %u.%u.%u is older than what runs (%s); to go back, stop zswapd "
			 "and start it again",
			 its[0], its[1], its[2], ZSWAPD_VERSION);
		return false;
	}
	snprintf(reason, size, "%u.%u.%u takes over from %s", its[0], its[1], its[2],
		 ZSWAPD_VERSION);
	return true;
}

/* Cut off, a path is another one: then it is empty. */
static void read_own_path(char *ret, size_t size)
{
	static const char deleted[] = " (deleted)";
	ssize_t n = readlink("/proc/self/exe", ret, size - 1);
	size_t len;

	ret[n > 0 && (size_t)n < size - 1 ? n : 0] = '\0';
	len = strlen(ret);
	/* Replaced while it was started. */
	if (len > strlen(deleted) && strcmp(ret + len - strlen(deleted), deleted) == 0 &&
	    access(ret, F_OK) < 0)
		ret[len - strlen(deleted)] = '\0';
}

static bool is_this_program(const char *path)
{
	struct stat a, b;

	return stat(path, &a) == 0 && stat("/proc/self/exe", &b) == 0 && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

/* As it was called, since that may be a link, which leads to another file by then. */
static void find_program(struct upgrade *u, const char *called)
{
	if (called && *called == '/' && strlen(called) < sizeof(u->program) &&
	    is_this_program(called))
		strcpy(u->program, called);
	else
		read_own_path(u->program, sizeof(u->program));
}

/* --- what one program leaves to the next --- */

static void set_left_open(const struct kept *k, bool open)
{
	for (unsigned i = 0; i < k->n; i++) {
		if (!kept_is_private(k->entries[i].name))
			fcntl(k->entries[i].fd, F_SETFD, open ? 0 : FD_CLOEXEC);
	}
}

static void leave(const struct kept *k)
{
	char text[LEFT_MAX] = "";
	size_t n = 0;

	for (unsigned i = 0; i < k->n; i++) {
		if (!kept_is_private(k->entries[i].name))
			n += (size_t)snprintf(text + n, sizeof(text) - n, "%d=%s ",
					      k->entries[i].fd, k->entries[i].name);
	}
	z_assert(n < sizeof(text));
	setenv(VARIABLE, text, 1);
	set_left_open(k, true);
}

static void take_back(const struct kept *k)
{
	unsetenv(VARIABLE);
	set_left_open(k, false);
}

/* Close-on-exec again, before another program is run. */
static void receive_left(struct kept *k, const char *text)
{
	char name[KEPT_NAME_MAX];
	int fd, end;

	while (sscanf(text, "%d=%31s %n", &fd, name, &end) == 2) {
		text += end;
		if (fd > STDERR_FILENO && fcntl(fd, F_SETFD, FD_CLOEXEC) == 0)
			kept_put(k, name, fd);
	}
}

void upgrade_settle(struct super *s, bool take)
{
	struct kept *k = &s->upgrade.left;

	/* Who is forked now is of this program. */
	if (take)
		s->upgrade.replace = false;
	for (unsigned i = 0; take && i < k->n; i++) {
		kept_put(&s->kept, k->entries[i].name, k->entries[i].fd);
		k->entries[i].fd = -1;
	}
	kept_deinit(k);
}

void upgrade_init(struct super *s)
{
	struct upgrade *u = &s->upgrade;
	const char *left = getenv(VARIABLE);

	u->run = RUN_NULL;
	find_program(u, s->o->argv[0]);
	u->replace = left != NULL;
	if (left)
		receive_left(&u->left, left);
	unsetenv(VARIABLE);
}

static void answer(struct super *s, int error, const char *reason)
{
	char text[LINK_TEXT_MAX];

	snprintf(text, sizeof(text), "%d %.600s", error, reason);
	link_send(s->worker.link, LINK_ANSWER, text, -1);
	log_msg(error ? LOG_LEVEL_ERR : LOG_LEVEL_INFO, "upgrade: %s%.600s",
		error ? "refused: " : "", reason);
}

static void refuse(struct super *s, int error, const char *reason)
{
	run_deinit(&s->upgrade.run);
	answer(s, error, reason);
}

void upgrade_begin(struct super *s)
{
	struct upgrade *u = &s->upgrade;
	const char *const argv[] = {u->program, "--takeover-version", NULL};

	if (u->run.pid > 0) {
		answer(s, EBUSY, "another is under way");
		return;
	}
	if (kept_get(&s->kept, KEPT_STATE) < 0) {
		answer(s, EOPNOTSUPP,
		       "nobody can take this device over; stop zswapd and start it again");
		return;
	}
	u->deadline = now_ns() + ASK_NS;
	u->follows = false;
	if (!*u->program || run_start(&u->run, argv) < 0)
		refuse(s, ENOENT, "the program can't be run; is it installed?");
}

/* In a process's place it would end for a mistake in the files, and nobody would be there. */
static int ask_about_config(struct super *s)
{
	const char *argv[ARGS_MAX + 2] = {s->upgrade.program};
	unsigned n = 1;

	for (; s->o->argv[n]; n++) {
		if (n == ARGS_MAX)
			return -E2BIG;
		argv[n] = s->o->argv[n];
	}
	argv[n] = "--check-config";
	return run_start(&s->upgrade.run, argv);
}

/*
 * There is no way back from here.  Were there no worker that serves, who adopts would find none,
 * and the pages would end with this program.
 */
static void become(struct super *s)
{
	struct upgrade *u = &s->upgrade;
	char text[400];
	int r;

	if (!s->worker.pid || !s->worker.ready || s->worker.link < 0) {
		refuse(s, EAGAIN, "another worker is just taking over; try again");
		return;
	}
	if (s->stop_signal) {
		refuse(s, ECANCELED, "zswapd is being stopped");
		return;
	}
	answer(s, 0, u->reason);
	leave(&s->kept);
	/* They were for this one, which has closed or kept what came with them. */
	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
	execv(u->program, s->o->argv);
	r = errno;
	take_back(&s->kept);
	snprintf(text, sizeof(text), "%s can't be executed: %s; everything goes on as it was",
		 u->program, strerror(r));
	answer(s, r, text);
}

/* The program has ended with @status. */
static void go_on(struct super *s, int status)
{
	struct upgrade *u = &s->upgrade;
	char reason[512];

	if (!u->follows) {
		if (!super_can_follow(u->run.output, u->reason, sizeof(u->reason))) {
			refuse(s, EPROTONOSUPPORT, u->reason);
			return;
		}
		u->follows = true;
		if (status == 0 && ask_about_config(s) == 0)
			return;
		refuse(s, EPROTONOSUPPORT, "the program can't be run as it should");
	} else if (status != 0) {
		/* Without the priority that a line of the log begins with. */
		snprintf(reason, sizeof(reason), "the program can't use the configuration: %s",
			 u->run.output + (u->run.output[0] == '<' ? 3 : 0));
		refuse(s, EINVAL, reason);
	} else {
		become(s);
	}
}

void upgrade_work(struct super *s)
{
	struct upgrade *u = &s->upgrade;
	int status, r;

	if (u->run.pid <= 0)
		return;
	r = run_wait(&u->run, 1, &status);
	if (r == -ETIMEDOUT && now_ns() < u->deadline)
		return;
	if (r == 0)
		go_on(s, status);
	else
		refuse(s, -r,
		       r == -ETIMEDOUT ? "the program does not say what it is" : strerror(-r));
}

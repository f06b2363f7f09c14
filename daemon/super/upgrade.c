// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The new program is asked first what it is, in a process of its own: from then on there is no way
 * back but to execute the old one.
 */
#include "common/log.h"
#include "common/util.h"
#include "daemon/state/state.h"
#include "daemon/super/super_impl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ASK_NS	 10000000000ull
#define VARIABLE "ZSWAPD_UPGRADE" /* from one program to the next */

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

void upgrade_init(struct super *s)
{
	struct upgrade *u = &s->upgrade;
	ssize_t n = readlink("/proc/self/exe", u->program, sizeof(u->program) - 1);

	u->run = RUN_NULL;
	u->program[n > 0 ? n : 0] = '\0';
	u->replace = getenv(VARIABLE) != NULL;
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

void upgrade_begin(struct super *s)
{
	struct upgrade *u = &s->upgrade;
	const char *const argv[] = {u->program, "--takeover-version", NULL};

	if (u->run.pid > 0) {
		answer(s, EBUSY, "another is under way");
		return;
	}
	u->deadline = now_ns() + ASK_NS;
	if (!*u->program || run_start(&u->run, argv) < 0)
		answer(s, ENOENT, "the program can't be run; is it installed?");
}

static _Noreturn void become(struct super *s)
{
	setenv(VARIABLE, "1", 1);
	execv(s->upgrade.program, s->o->argv);
	/* The worker has lost nothing but its link, and a new supervisor is what mends that. */
	log_err("upgrade: %s can't be executed: %s; the worker goes on", s->upgrade.program,
		strerror(errno));
	exit(EXIT_FAILURE);
}

void upgrade_work(struct super *s)
{
	struct upgrade *u = &s->upgrade;
	char reason[400];
	int status, r;

	if (u->run.pid <= 0)
		return;
	r = run_wait(&u->run, 1, &status);
	if (r == -ETIMEDOUT && now_ns() < u->deadline)
		return;
	if (r < 0) {
		run_deinit(&u->run);
		answer(s, -r,
		       r == -ETIMEDOUT ? "the program does not say what it is" : strerror(-r));
		return;
	}
	if (!super_can_follow(u->run.output, reason, sizeof(reason))) {
		answer(s, EPROTONOSUPPORT, reason);
		return;
	}
	answer(s, 0, reason);
	become(s);
}

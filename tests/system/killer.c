// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Kills (SIGKILL) the processes of a zswapd at random moments, and waits each time until the daemon
 * is whole again: a worker that serves and a standby behind it.
 *
 * usage: killer [--keeper PID] CONFIG KILLS SECONDS SEED KIND...
 *
 * CONFIG is the configuration file that the daemon was started with; only processes with it on
 *their command line are touched.  It ends after KILLS or SECONDS, whichever comes first.  Of the
 *KINDs one is taken at random each time (name one more often, and it comes more often):
 *
 *	worker		the worker
 *	both		worker and standby at one moment
 *	again		the worker, and its successor 5 ms after it has begun to take over
 *	supervisor	keeper kills the supervisor and starts another; then the worker is killed
 *	all		keeper kills all three and starts the daemon again
 *	storm		each worker as soon as it is there, 8 times
 *
 * The last but storm want keeper (tests/crash/keeper.c).  Between two of them lies more than the
 * second after which the supervisor takes a worker's death for the first one in a row.
 *
 * Output: a line for each kill, "KIND BEGIN END" in µs of CLOCK_MONOTONIC: from the signal to when
 * the daemon was whole; `heir` is the worker's death under a new supervisor.  Exit status 1: it
 * did not become whole within 30 s.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/util.h"

#define LIVED_US 1050000u /* and up to PAUSE_US more between two kills */
#define PAUSE_US 350000u
#define AGAIN_US 5000u
#define LOOK_US	 5000u
#define BOUND_NS UINT64_C(30000000000)
#define STORM	 8

struct daemon {
	pid_t supervisor, worker, standby; /* 0: there is none */
};

static const char *config;
static pid_t keeper;
static uint64_t random_state, kills, wanted, deadline;

static uint64_t random_below(uint64_t n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state % n;
}

static ssize_t read_proc(pid_t pid, const char *name, char *buf, size_t size)
{
	char path[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, buf, size - 1);
	buf[n > 0 ? n : 0] = '\0';
	return n;
}

/* Whether it was started with our configuration: one of its arguments is that. */
static bool is_ours(pid_t pid)
{
	char line[2048];
	ssize_t n = read_proc(pid, "cmdline", line, sizeof(line));

	for (ssize_t at = 0; at < n; at += (ssize_t)strlen(line + at) + 1) {
		if (strcmp(line + at, config) == 0)
			return true;
	}
	return false;
}

static struct daemon look(void)
{
	struct daemon d = {0};
	DIR *dir = opendir("/proc");
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10), *which;
		char comm[32];

		if (pid <= 0 || read_proc(pid, "comm", comm, sizeof(comm)) <= 0)
			continue;
		comm[strcspn(comm, "\n")] = '\0';
		which = strcmp(comm, "zswapd") == 0	      ? &d.supervisor
			: strcmp(comm, "zswapd-worker") == 0  ? &d.worker
			: strcmp(comm, "zswapd-standby") == 0 ? &d.standby
							      : NULL;
		if (which && is_ours(pid))
			*which = pid;
	}
	if (dir)
		closedir(dir);
	return d;
}

static _Noreturn void give_up(const char *what, const struct daemon *d)
{
	printf("failed %s: supervisor %d, worker %d, standby %d\n", what, d->supervisor, d->worker,
	       d->standby);
	exit(1);
}

/* With another worker than @former, and another supervisor than @supervisor (0: any). */
static struct daemon await_whole(const char *what, pid_t former, pid_t supervisor)
{
	uint64_t end = now_ns() + BOUND_NS;
	struct daemon d;

	while (true) {
		d = look();
		if (d.supervisor && d.worker && d.standby && d.worker != former &&
		    d.supervisor != supervisor)
			return d;
		if (now_ns() > end)
			give_up(what, &d);
		usleep(LOOK_US);
	}
}

/* Until somebody else is the worker. */
static pid_t await_worker(const char *what, const struct daemon *former)
{
	uint64_t end = now_ns() + BOUND_NS;
	char comm[32];

	while (true) {
		struct daemon d;

		if (former->standby && read_proc(former->standby, "comm", comm, sizeof(comm)) > 0 &&
		    strcmp(comm, "zswapd-worker\n") == 0)
			return former->standby;
		d = look();
		if (d.worker && d.worker != former->worker)
			return d.worker;
		if (now_ns() > end)
			give_up(what, &d);
		usleep(1000);
	}
}

static void report(const char *what, uint64_t began, unsigned n)
{
	kills += n;
	printf("%s %" PRIu64 " %" PRIu64 "\n", what, began / 1000, now_ns() / 1000);
	fflush(stdout);
}

static void kill_worker(const char *what, const struct daemon *d)
{
	uint64_t began = now_ns();

	kill(d->worker, SIGKILL);
	await_whole(what, d->worker, 0);
	report(what, began, 1);
}

static void kill_both(const struct daemon *d)
{
	uint64_t began = now_ns();

	kill(d->standby, SIGKILL);
	kill(d->worker, SIGKILL);
	await_whole("both", d->worker, 0);
	report("both", began, 2);
}

static void kill_again(const struct daemon *d)
{
	uint64_t began = now_ns();
	pid_t next;

	kill(d->worker, SIGKILL);
	next = await_worker("again", d);
	usleep(AGAIN_US);
	kill(next, SIGKILL);
	await_whole("again", next, 0);
	report("again", began, 2);
}

static void kill_supervisor(const struct daemon *d)
{
	uint64_t began = now_ns();
	struct daemon next;

	kill(keeper, SIGUSR2);
	next = await_whole("supervisor", 0, d->supervisor);
	report("supervisor", began, 1);
	if (next.worker != d->worker)
		give_up("supervisor, whose worker must go on", &next);
	usleep((useconds_t)random_below(PAUSE_US));
	kill_worker("heir", &next);
}

static void kill_all(const struct daemon *d)
{
	uint64_t began = now_ns();

	kill(keeper, SIGUSR1);
	await_whole("all", d->worker, d->supervisor);
	report("all", began, 3);
}

static void kill_in_a_row(struct daemon d)
{
	uint64_t began = now_ns();

	for (unsigned i = 0; i < STORM; i++) {
		kill(d.worker, SIGKILL);
		if (i + 1 < STORM)
			d.worker = await_worker("storm", &d);
		d.standby = 0;
	}
	await_whole("storm", d.worker, 0);
	report("storm", began, STORM);
}

static int kill_one(const char *kind)
{
	struct daemon d = await_whole("at first", 0, 0);

	if (strcmp(kind, "worker") == 0)
		kill_worker(kind, &d);
	else if (strcmp(kind, "both") == 0)
		kill_both(&d);
	else if (strcmp(kind, "again") == 0)
		kill_again(&d);
	else if (strcmp(kind, "supervisor") == 0 && keeper)
		kill_supervisor(&d);
	else if (strcmp(kind, "all") == 0 && keeper)
		kill_all(&d);
	else if (strcmp(kind, "storm") == 0)
		kill_in_a_row(d);
	else
		return -EINVAL;
	return 0;
}

int main(int argc, char *argv[])
{
	if (argc > 2 && strcmp(argv[1], "--keeper") == 0) {
		keeper = (pid_t)strtol(argv[2], NULL, 10);
		argc -= 2;
		argv += 2;
	}
	if (argc < 6) {
		fprintf(stderr, "usage: killer [--keeper PID] CONFIG KILLS SECONDS SEED KIND...\n");
		return 2;
	}
	config = argv[1];
	wanted = strtoull(argv[2], NULL, 10);
	deadline = now_ns() + strtoull(argv[3], NULL, 10) * UINT64_C(1000000000);
	random_state = strtoull(argv[4], NULL, 10) * UINT64_C(0x9e3779b97f4a7c15) | 1;
	mlockall(MCL_CURRENT | MCL_FUTURE);
	while (kills < wanted && now_ns() < deadline) {
		const char *kind = argv[5 + random_below((uint64_t)argc - 5)];

		usleep(LIVED_US + (useconds_t)random_below(PAUSE_US));
		if (kill_one(kind) < 0) {
			fprintf(stderr, "killer: '%s' is no kind of kill here\n", kind);
			return 2;
		}
	}
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A service manager of one service, for tests: starts a daemon, keeps the descriptors that it
 * deposits (sd_notify's FDSTORE), and starts it again with them when it is killed.
 * usage: keeper [--stay] [--lose NAME] REPORT COMMAND [ARG]...
 *
 *	SIGUSR1		supervisor, worker and standby are killed (SIGKILL), and a daemon is started
 *			that finds nothing but what was deposited
 *	SIGUSR2		the supervisor is killed, and another is started, which adopts the worker
 *	SIGRTMIN	the worker is killed, which is the supervisor's affair
 *	SIGTERM		the daemon is asked to end; keeper ends with its status
 *
 * A supervisor that ends by itself is not started again; keeper ends with its status, 1 for a
 * signal. With --stay it remains, with all that was deposited, until one of its signals comes.
 * With --lose it forgets to keep descriptors of that name.
 *
 * It is locked in memory, since what is swapped out stays out while there is no daemon.  What it
 * keeps is not, so the machine must not be short of memory meanwhile.
 *
 * REPORT gets a line each time that the daemon is ready: "ready N MS", N from 0, with the
 * milliseconds since it was started or, from 1 on, since what a signal is for was killed.  Before
 * that, "gone MS", when the kernel had cleared that away.  With --stay, "ended STATUS" when a
 * supervisor has.
 *
 * Whose parent dies becomes keeper's child (PR_SET_CHILD_SUBREAPER).
 */
#include "common/util.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#define KEPT_MAX     16
#define LISTEN_START 3

static struct {
	char name[64];
	int fd;
} kept[KEPT_MAX];
static unsigned nkept;

static int notify_fd;
static char notify_path[64];
static FILE *report;
static pid_t daemon_pid; /* the supervisor; 0: there is none */
static bool stay;
static const char *lose = "";
static unsigned starts;
static uint64_t began;

/* A process whose parent is @parent, called @comm if that is not NULL; 0: there is none. */
static pid_t find_child(pid_t parent, const char *comm)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	pid_t found = 0;

	while (dir && !found && (entry = readdir(dir))) {
		char path[32], name[32];
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10), its_parent;
		FILE *f;

		snprintf(path, sizeof(path), "/proc/%d/stat", pid);
		f = pid > 0 ? fopen(path, "re") : NULL;
		if (!f)
			continue;
		if (fscanf(f, "%*d (%31[^)]) %*c %d", name, &its_parent) == 2 &&
		    its_parent == parent && (!comm || strcmp(name, comm) == 0))
			found = pid;
		fclose(f);
	}
	if (dir)
		closedir(dir);
	return found;
}

/* Waits for the supervisor, so that nobody forks any more, and then for those it leaves. */
static void kill_all(void)
{
	pid_t pid;

	if (daemon_pid) {
		kill(daemon_pid, SIGKILL);
		waitpid(daemon_pid, NULL, 0);
		daemon_pid = 0;
	}
	while ((pid = find_child(getpid(), NULL))) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
}

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "keeper: %s: %s\n", what, strerror(errno));
	if (daemon_pid > 0)
		kill_all();
	exit(1);
}

static void listen_for_notes(void)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};

	/* An abstract name, which no file system has to hold. */
	snprintf(notify_path, sizeof(notify_path), "@zswapd-keeper-%d", getpid());
	notify_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	memcpy(a.sun_path + 1, notify_path + 1, strlen(notify_path) - 1);
	if (notify_fd < 0 ||
	    bind(notify_fd, (struct sockaddr *)&a,
		 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(notify_path))) < 0)
		die("notify socket");
}

/* In the child: the kept descriptors from LISTEN_START on, and nothing else of ours. */
static _Noreturn void become(char *const argv[])
{
	char names[KEPT_MAX * 65] = "", number[16];
	sigset_t none;

	for (unsigned i = 0; i < nkept; i++) {
		/* Out of the way first: the targets may be in use by others of them. */
		kept[i].fd = fcntl(kept[i].fd, F_DUPFD, LISTEN_START + KEPT_MAX);
		if (kept[i].fd < 0)
			die("fcntl");
	}
	for (unsigned i = 0; i < nkept; i++) {
		if (dup2(kept[i].fd, (int)(LISTEN_START + i)) < 0)
			die("dup2");
		close(kept[i].fd);
		strcat(names, i ? ":" : "");
		strcat(names, kept[i].name);
	}
	if (nkept) {
		snprintf(number, sizeof(number), "%d", getpid());
		setenv("LISTEN_PID", number, 1);
		snprintf(number, sizeof(number), "%u", nkept);
		setenv("LISTEN_FDS", number, 1);
		setenv("LISTEN_FDNAMES", names, 1);
	}
	setenv("NOTIFY_SOCKET", notify_path, 1);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	execvp(argv[0], argv);
	die(argv[0]);
}

static void start(char *const argv[])
{
	daemon_pid = fork();
	if (daemon_pid < 0)
		die("fork");
	if (daemon_pid == 0)
		become(argv);
}

static bool is_kept(int fd)
{
	struct stat a, b;

	for (unsigned i = 0; i < nkept; i++) {
		if (fstat(fd, &a) == 0 && fstat(kept[i].fd, &b) == 0 && a.st_dev == b.st_dev &&
		    a.st_ino == b.st_ino)
			return true;
	}
	return false;
}

static void drop(const char *name)
{
	for (unsigned i = 0; i < nkept;) {
		if (strcmp(kept[i].name, name) != 0) {
			i++;
			continue;
		}
		close(kept[i].fd);
		kept[i] = kept[--nkept];
	}
}

/* The value of the note's line "KEY=". */
static bool note_value(const char *note, const char *key, char *ret, size_t size)
{
	size_t len = strlen(key);

	for (const char *line = note; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, key, len) == 0) {
			snprintf(ret, size, "%.*s", (int)strcspn(line + len, "\n"), line + len);
			return true;
		}
	}
	return false;
}

/* False: there is none. */
static bool take_note(void)
{
	char note[1024], value[64] = "", name[64] = "stored";
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = {note, sizeof(note) - 1};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   .msg_controllen = sizeof(control)};
	ssize_t n = recvmsg(notify_fd, &m, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	struct cmsghdr *c;
	int fd = -1;

	if (n < 0)
		return false;
	note[n] = '\0';
	c = CMSG_FIRSTHDR(&m);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
		memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	note_value(note, "FDNAME=", name, sizeof(name));
	if (note_value(note, "FDSTOREREMOVE=", value, sizeof(value))) {
		drop(name);
	} else if (note_value(note, "FDSTORE=", value, sizeof(value)) && fd >= 0 &&
		   nkept < KEPT_MAX && !is_kept(fd) && strcmp(name, lose) != 0) {
		snprintf(kept[nkept].name, sizeof(kept[nkept].name), "%s", name);
		kept[nkept++].fd = fd;
		fd = -1;
	}
	if (note_value(note, "READY=", value, sizeof(value)) && began) {
		fprintf(report, "ready %u %.1f\n", starts++, (double)(now_ns() - began) / 1e6);
		fflush(report);
		began = 0;
	}
	close_fd(fd);
	return true;
}

/* The daemon has ended: keeper's status. */
static int ended(int status)
{
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static void report_end(int status)
{
	daemon_pid = 0;
	fprintf(report, "ended %d\n", status);
	fflush(report);
}

static void start_another(char *const argv[])
{
	uint64_t killed = began;

	fprintf(report, "gone %.1f\n", (double)(now_ns() - began) / 1e6);
	/* What the former ones said last is kept, but nobody is ready. */
	began = 0;
	while (take_note())
		;
	began = killed;
	start(argv);
}

static void replace_all(char *const argv[])
{
	began = now_ns();
	kill_all();
	start_another(argv);
}

static void replace_supervisor(char *const argv[])
{
	began = now_ns();
	if (daemon_pid) {
		kill(daemon_pid, SIGKILL);
		waitpid(daemon_pid, NULL, 0);
	}
	start_another(argv);
}

/* A child of the supervisor or, if it was adopted, of ours. */
static void kill_worker(void)
{
	pid_t pid = find_child(daemon_pid, "zswapd-worker");

	if (!pid)
		pid = find_child(getpid(), "zswapd-worker");
	began = now_ns();
	if (pid)
		kill(pid, SIGKILL);
	else
		fprintf(stderr, "keeper: there is no worker\n");
}

/* True if the supervisor is among those who have ended, with *ret_status. */
static bool supervisor_ended(int *ret_status)
{
	bool found = false;
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid != daemon_pid)
			continue;
		*ret_status = status;
		found = true;
	}
	return found;
}

/* Those behind the options. */
static char **parse_options(char **argv)
{
	if (*argv && strcmp(*argv, "--stay") == 0) {
		stay = true;
		argv++;
	}
	if (*argv && argv[1] && strcmp(*argv, "--lose") == 0) {
		lose = argv[1];
		argv += 2;
	}
	return argv;
}

static int open_signals(void)
{
	const int signals[] = {SIGCHLD, SIGTERM, SIGUSR1, SIGUSR2, SIGRTMIN};
	sigset_t set;
	int fd;

	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		sigaddset(&set, signals[i]);
	sigprocmask(SIG_BLOCK, &set, NULL);
	fd = signalfd(-1, &set, SFD_CLOEXEC);
	if (fd < 0)
		die("signalfd");
	return fd;
}

int main(int argc, char *argv[])
{
	struct signalfd_siginfo si;
	int signal_fd, fd;

	argv = parse_options(argv + 1);
	if (!argv[0] || !argv[1]) {
		fprintf(stderr, "usage: keeper [--stay] [--lose NAME] REPORT COMMAND [ARG]...\n");
		return 2;
	}
	/* Appending, so that its reader may empty it. */
	fd = open(*argv, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
	report = fd < 0 ? NULL : fdopen(fd, "a");
	if (!report)
		die(*argv);
	argv++;
	if (mlockall(MCL_CURRENT | MCL_FUTURE) < 0)
		die("mlockall");
	signal_fd = open_signals();
	if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
		die("prctl");
	listen_for_notes();
	began = now_ns();
	start(argv);
	while (true) {
		struct pollfd fds[] = {{.fd = notify_fd, .events = POLLIN},
				       {.fd = signal_fd, .events = POLLIN}};
		int status;

		poll(fds, 2, -1);
		if (fds[0].revents)
			take_note();
		if (!fds[1].revents || read(signal_fd, &si, sizeof(si)) != sizeof(si))
			continue;
		if (si.ssi_signo == SIGUSR1)
			replace_all(argv);
		else if (si.ssi_signo == SIGUSR2)
			replace_supervisor(argv);
		else if ((int)si.ssi_signo == SIGRTMIN)
			kill_worker();
		else if (si.ssi_signo == SIGTERM && !daemon_pid)
			return 0;
		else if (si.ssi_signo == SIGTERM)
			kill(daemon_pid, SIGTERM);
		else if (!supervisor_ended(&status))
			continue;
		else if (!stay)
			return ended(status);
		else
			report_end(ended(status));
	}
}

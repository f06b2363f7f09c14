// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/worker/run.h"
#include "common/log.h"
#include "common/util.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define KILL_WAIT_MS 1000

static const char *const directories[] = {"/usr/sbin", "/sbin", "/usr/bin", "/bin",
					  "/usr/local/sbin"};

/* By absolute path, so that nobody's PATH decides what runs as root. */
static bool find_program(const char *name, char *path, size_t size)
{
	if (*name == '/')
		return (size_t)snprintf(path, size, "%s", name) < size && access(path, X_OK) == 0;
	for (size_t i = 0; i < ARRAY_SIZE(directories); i++) {
		int n = snprintf(path, size, "%s/%s", directories[i], name);

		if (n > 0 && (size_t)n < size && access(path, X_OK) == 0)
			return true;
	}
	return false;
}

bool run_installed(const char *program)
{
	char path[128];

	return find_program(program, path, sizeof(path));
}

static int set_attributes(posix_spawnattr_t *attr)
{
	sigset_t all, defaults;
	int r;

	sigfillset(&all);
	sigemptyset(&defaults);
	sigaddset(&defaults, SIGPIPE);
	r = posix_spawnattr_setsigmask(attr, &all);
	if (r == 0)
		r = posix_spawnattr_setsigdefault(attr, &defaults);
	if (r == 0)
		r = posix_spawnattr_setpgroup(attr, 0);
	if (r == 0)
		r = posix_spawnattr_setflags(attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
							   POSIX_SPAWN_SETPGROUP);
	return r;
}

static int spawn(const char *path, const char *const argv[], int output_fd, pid_t *ret_pid)
{
	static const char *const environment[] = {"LC_ALL=C", "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
						  NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	int r;

	r = posix_spawn_file_actions_init(&actions);
	if (r)
		return -r;
	r = posix_spawnattr_init(&attr);
	if (r) {
		posix_spawn_file_actions_destroy(&actions);
		return -r;
	}
	r = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	if (r == 0)
		r = posix_spawn_file_actions_adddup2(&actions, output_fd, STDOUT_FILENO);
	if (r == 0)
		r = posix_spawn_file_actions_adddup2(&actions, output_fd, STDERR_FILENO);
	if (r == 0)
		r = set_attributes(&attr);
	if (r == 0)
		/* Neither is written to; the types are older than const. */
		r = posix_spawn(ret_pid, path, &actions, &attr, (char *const *)argv,
				(char *const *)environment);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&actions);
	return -r;
}

/*
 * The thread may be marked as part of the I/O path (PR_SET_IO_FLUSHER), which children inherit.
 * For swapoff that would be wrong: its memory comes from reclaim, other swap devices included.
 */
static int spawn_unmarked(const char *path, const char *const argv[], int output_fd, pid_t *ret_pid)
{
	bool marked = prctl(PR_GET_IO_FLUSHER, 0, 0, 0, 0) == 1;
	int r;

	if (marked)
		prctl(PR_SET_IO_FLUSHER, 0, 0, 0, 0);
	r = spawn(path, argv, output_fd, ret_pid);
	if (marked && prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0) < 0)
		log_warn("cannot mark the thread as I/O flusher again: %s", strerror(errno));
	return r;
}

int run_start(struct run *ret, const char *const argv[])
{
	cleanup_fd int read_fd = -1, write_fd = -1;
	struct run run = RUN_NULL;
	char path[256];
	int fds[2], r;

	if (!find_program(argv[0], path, sizeof(path))) {
		log_err("%s is not installed", argv[0]);
		return -ENOENT;
	}
	if (pipe2(fds, O_CLOEXEC) < 0) {
		r = -errno;
		log_err("cannot run %s: %s", path, strerror(-r));
		return r;
	}
	read_fd = fds[0];
	write_fd = fds[1];
	/* Only our end: the child's writes wait, our reads are polled. */
	if (fcntl(read_fd, F_SETFL, O_NONBLOCK) < 0)
		return -errno;
	r = spawn_unmarked(path, argv, write_fd, &run.pid);
	if (r < 0) {
		log_err("cannot run %s: %s", path, strerror(-r));
		return r;
	}
	run.output_fd = read_fd;
	read_fd = -1;
	run.pidfd = (int)syscall(SYS_pidfd_open, run.pid, 0);
	if (run.pidfd < 0) {
		r = -errno;
		log_err("cannot wait for %s: %s", path, strerror(-r));
		run_deinit(&run);
		return r;
	}
	*ret = run;
	return 0;
}

/* Takes what is there; keeps what fits and drops the rest, so that the child never blocks. */
static void take_output(struct run *run)
{
	char chunk[512];
	ssize_t n;

	while ((n = read(run->output_fd, chunk, sizeof(chunk))) > 0) {
		size_t room = sizeof(run->output) - 1 - run->output_len;
		size_t len = (size_t)n < room ? (size_t)n : room;

		memcpy(run->output + run->output_len, chunk, len);
		run->output_len += (uint32_t)len;
		run->output[run->output_len] = '\0';
	}
	if (n == 0)
		run->output_fd = close_fd(run->output_fd);
}

/* One log line's worth: newlines within become "; ", those at the end go. */
static void join_lines(struct run *run)
{
	char *p = run->output;

	while (run->output_len && run->output[run->output_len - 1] == '\n')
		run->output[--run->output_len] = '\0';
	while ((p = strchr(p, '\n')))
		*p = ';';
}

int run_wait(struct run *run, int timeout_ms, int *ret_status)
{
	uint64_t deadline = now_ns() + (uint64_t)timeout_ms * 1000000u;
	siginfo_t info = {0};

	for (;;) {
		struct pollfd fds[] = {{.fd = run->pidfd, .events = POLLIN},
				       {.fd = run->output_fd, .events = POLLIN}};
		uint64_t now = now_ns();
		int r;

		if (now >= deadline)
			return -ETIMEDOUT;
		r = poll(fds, 2, (int)((deadline - now + 999999u) / 1000000u));
		if (r < 0 && errno != EINTR)
			return -errno;
		if (r <= 0)
			continue;
		if (fds[1].revents)
			take_output(run);
		if (fds[0].revents)
			break;
	}
	if (run->output_fd >= 0)
		take_output(run);
	join_lines(run);
	if (waitid(P_PID, (id_t)run->pid, &info, WEXITED) < 0)
		return -errno;
	run->pid = -1;
	run_deinit(run);
	*ret_status = info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
	return 0;
}

void run_deinit(struct run *run)
{
	int status;

	if (run->pid > 0) {
		kill(run->pid, SIGKILL);
		if (run->pidfd >= 0) {
			run->output_fd = close_fd(run->output_fd);
			/* On success it calls this again, with nothing left to kill. */
			if (run_wait(run, KILL_WAIT_MS, &status) < 0)
				log_warn("process %d does not end; left behind", (int)run->pid);
		}
		run->pid = -1;
	}
	run->pidfd = close_fd(run->pidfd);
	run->output_fd = close_fd(run->output_fd);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Running one of the system's programs and waiting for it, but not for ever.
 *
 * posix_spawn, never fork: while a forked child shares the parent's pages, a data thread's next
 * write to one of them needs a new page, just when there may be none.  The child gets standard
 * input from /dev/null, no descriptor of ours (all are close-on-exec), LC_ALL=C and a fixed PATH as
 * its environment, and a process group and an all-blocking signal mask of its own, so that a
 * Ctrl-C meant for the daemon does not end it half way.
 *
 * Main thread only.
 */
#ifndef ZSWAPD_WORKER_RUN_H
#define ZSWAPD_WORKER_RUN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct run {
	pid_t pid;
	int pidfd;
	int output_fd;
	uint32_t output_len;
	char output[240]; /* the first of what it wrote to stdout and stderr, NUL-terminated */
};

#define RUN_NULL ((struct run){.pid = -1, .pidfd = -1, .output_fd = -1})

/* Whether run_start() would find @program. */
bool run_installed(const char *program);

/*
 * Starts @argv, whose first word is a program's path, or its name in one of the usual directories
 * of system programs.  Logged: -ENOENT when it is not installed, and what posix_spawn says.
 */
int run_start(struct run *ret, const char *const argv[]);

/*
 * Waits up to @timeout_ms.  0: it has ended, *ret_status is its exit status, 128 + N if signal N
 * ended it, and @run is deinitialised but for its output.  -ETIMEDOUT: it still runs; wait again or
 * call run_deinit().  Nothing is logged.
 */
int run_wait(struct run *run, int timeout_ms, int *ret_status);

/*
 * Kills it if it still runs and reaps it.  One that does not die within a second, since it waits in
 * the kernel, is left behind.  May be called twice.
 */
void run_deinit(struct run *run);

#endif

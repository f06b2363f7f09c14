// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/ctl/program.h"

#include <fcntl.h>
#include <grp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

char program_out[1 << 16], program_err[1 << 14];

static const char *program, *run_dir;
static int out_fd = -1, err_fd = -1;

void program_init(const char *path, const char *dir)
{
	program = path;
	run_dir = dir;
}

int become_nobody(void)
{
	return setgroups(0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 ||
	       setresuid(NOBODY, NOBODY, NOBODY) < 0;
}

static void read_all(int fd, char *buf, size_t size)
{
	ssize_t n = pread(fd, buf, size - 1, 0);

	assert_true(n >= 0);
	buf[n] = '\0';
}

/* By descriptor, since the build directory may be closed to the unprivileged user. */
static void exec_program(char **argv, bool unprivileged)
{
	int fd = open(program, O_RDONLY);

	dup2(out_fd, STDOUT_FILENO);
	dup2(err_fd, STDERR_FILENO);
	setenv("ZSWAPD_RUN_DIR", run_dir, 1);
	if (fd >= 0 && (!unprivileged || !become_nobody()))
		fexecve(fd, argv, environ);
	_exit(99);
}

pid_t program_start(bool unprivileged, const char *args)
{
	char copy[256], *argv[16] = {(char *)"zswapctl"}, *save;
	int n = 1;
	pid_t pid;

	snprintf(copy, sizeof(copy), "%s", args);
	for (char *a = strtok_r(copy, " ", &save); a; a = strtok_r(NULL, " ", &save))
		argv[n++] = a;
	out_fd = memfd_create("out", 0);
	err_fd = memfd_create("err", 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		exec_program(argv, unprivileged);
	return pid;
}

void program_peek(void)
{
	read_all(out_fd, program_out, sizeof(program_out));
}

int program_end(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	read_all(out_fd, program_out, sizeof(program_out));
	read_all(err_fd, program_err, sizeof(program_err));
	close(out_fd);
	close(err_fd);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int program_run(bool unprivileged, const char *args)
{
	return program_end(program_start(unprivileged, args));
}

void assert_has(const char *text, const char *word)
{
	if (!strstr(text, word))
		fail_msg("'%s' is not in:\n%s", word, text);
}

void assert_has_not(const char *text, const char *word)
{
	if (strstr(text, word))
		fail_msg("'%s' is in:\n%s", word, text);
}

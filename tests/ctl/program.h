/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs zswapctl as users do: as root or not, with its output caught. */
#ifndef ZSWAPD_TESTS_CTL_PROGRAM_H
#define ZSWAPD_TESTS_CTL_PROGRAM_H

#include <stdbool.h>
#include <sys/types.h>

#define NOBODY 65534

/* What the last program said, NUL-terminated. */
extern char program_out[1 << 16], program_err[1 << 14];

/* @path: of zswapctl.  @run_dir: where it finds port files. */
void program_init(const char *path, const char *run_dir);

/* Blanks separate arguments.  The exit code of `zswapctl @args`, or 128 + a signal. */
int program_run(bool unprivileged, const char *args);

/* The two halves of it, with the program running in between. */
pid_t program_start(bool unprivileged, const char *args);
int program_end(pid_t pid);

/* What the running program has said on stdout until now, in program_out. */
void program_peek(void);

/* For children of the test.  0 on success. */
int become_nobody(void);

/* Fails the test, showing @text, if @word is not in it. */
void assert_has(const char *text, const char *word);
void assert_has_not(const char *text, const char *word);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What goes to stderr between begin and end, as text.  An assertion that fails in between leaves
 * its message there, so there should be none.
 */
#ifndef ZSWAPD_TESTS_STDERR_H
#define ZSWAPD_TESTS_STDERR_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

struct stderr_capture {
	int fd;
	int saved;
	char text[8192];
};

static inline void stderr_capture_begin(struct stderr_capture *cap)
{
	cap->fd = memfd_create("stderr", MFD_CLOEXEC);
	cap->saved = dup(STDERR_FILENO);
	assert_true(cap->fd >= 0 && cap->saved >= 0);
	assert_true(dup2(cap->fd, STDERR_FILENO) >= 0);
}

/* Returns the text. */
static inline const char *stderr_capture_end(struct stderr_capture *cap)
{
	ssize_t n;

	assert_true(dup2(cap->saved, STDERR_FILENO) >= 0);
	n = pread(cap->fd, cap->text, sizeof(cap->text) - 1, 0);
	assert_true(n >= 0);
	cap->text[n] = '\0';
	close(cap->saved);
	close(cap->fd);
	return cap->text;
}

#endif

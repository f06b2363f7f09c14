/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the configuration says to people goes to stderr; the tests put a memory file there and
 * compare whole messages, since file, line, key and way out are part of what is promised.
 */
#ifndef ZSWAPD_TESTS_CONFIG_CAPTURE_H
#define ZSWAPD_TESTS_CONFIG_CAPTURE_H

#include "daemon/config/config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

/* What shares are shares of, whatever the machine has. */
#define RAM GIB(8)

struct capture {
	int fd;
	int saved;
	char text[8192];
};

static inline void capture_begin(struct capture *cap)
{
	cap->fd = memfd_create("stderr", MFD_CLOEXEC);
	cap->saved = dup(STDERR_FILENO);
	assert_true(cap->fd >= 0 && cap->saved >= 0);
	assert_true(dup2(cap->fd, STDERR_FILENO) >= 0);
}

static inline const char *capture_end(struct capture *cap)
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

static inline int parse_bytes(struct config *c, const char *text, size_t len, struct capture *cap)
{
	FILE *f = fmemopen((void *)(uintptr_t)text, len, "r");
	int r;

	assert_non_null(f);
	capture_begin(cap);
	r = config_parse(c, f, "z.conf", NULL);
	capture_end(cap);
	fclose(f);
	return r;
}

/* Parses @text over the defaults; it has to succeed and say exactly @said. */
static inline void parse_says(struct config *c, const char *text, const char *said)
{
	struct capture cap;

	config_init_defaults(c, RAM);
	assert_int_equal(parse_bytes(c, text, strlen(text), &cap), 0);
	assert_string_equal(cap.text, said);
}

#endif

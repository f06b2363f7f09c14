/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the configuration says to people goes to stderr; the tests put a memory file there and
 * compare whole messages, since file, line, key and way out are part of what is promised.
 */
#ifndef ZSWAPD_TESTS_CONFIG_CAPTURE_H
#define ZSWAPD_TESTS_CONFIG_CAPTURE_H

#include "daemon/config/config.h"

#include "tests/lib/stderr.h"

#include <string.h>

/* What shares are shares of, whatever the machine has. */
#define RAM GIB(8)

static inline int parse_bytes(struct config *c, const char *text, size_t len,
			      struct stderr_capture *cap)
{
	FILE *f = fmemopen((void *)(uintptr_t)text, len, "r");
	int r;

	assert_non_null(f);
	stderr_capture_begin(cap);
	r = config_parse(c, f, "z.conf", NULL);
	stderr_capture_end(cap);
	fclose(f);
	return r;
}

/* Parses @text over the defaults; it has to succeed and say exactly @said. */
static inline void parse_says(struct config *c, const char *text, const char *said)
{
	struct stderr_capture cap;

	config_init_defaults(c, RAM);
	assert_int_equal(parse_bytes(c, text, strlen(text), &cap), 0);
	assert_string_equal(cap.text, said);
}

#endif

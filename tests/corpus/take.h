/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ZSWAPD_TESTS_CORPUS_TAKE_H
#define ZSWAPD_TESTS_CORPUS_TAKE_H

#include <stdint.h>
#include <sys/types.h>

/*
 * Appends at most @max_pages resident anonymous pages of the stopped process @pid to the file @out
 * and prints a line under the name @label.  Returns 0, -ENODATA if it has none, or another
 * negative errno.
 */
int take_program(pid_t pid, const char *out, const char *label, uint64_t max_pages);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reading /proc without allocating, for watchers of a machine that is short of memory.
 */
#ifndef ZSWAPD_TESTS_GUEST_PROC_H
#define ZSWAPD_TESTS_GUEST_PROC_H

#include <stdint.h>
#include <sys/types.h>

/* Bytes read, or negative errno; @buf is a string afterwards. */
ssize_t proc_read(const char *path, char *buf, size_t size);

/* The number that follows @name in @text, 0 if there is none. */
uint64_t proc_field(const char *text, const char *name);

/* Calls each(arg, number) for the entries of a directory that are numbers. */
void proc_each(const char *path, void (*each)(void *arg, int number), void *arg);

/* The highest pid of those called @comm; 0: there is none. */
pid_t proc_find(const char *comm);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Accesses that took long, each with when it began, so that they can be laid beside what happened
 * to whoever serves.  In fixed memory, which may be shared: what a process noted is there when it
 * has been killed.
 *
 * The file has a line each: beginning and length in µs, CLOCK_MONOTONIC.
 */
#ifndef ZSWAPD_TESTS_SYSTEM_STALLS_H
#define ZSWAPD_TESTS_SYSTEM_STALLS_H

#include <stdatomic.h>
#include <stdint.h>

#define STALL_MIN_NS 2000000u
#define STALLS_MAX   262144u

struct stall {
	uint64_t start_ns; /* now_ns() */
	uint64_t ns;
};

struct stalls {
	_Atomic uint32_t n; /* may be more than there is room for */
	struct stall entries[STALLS_MAX];
};

/* Notes what took STALL_MIN_NS or longer.  Any thread. */
void stalls_add(struct stalls *s, uint64_t start_ns, uint64_t ns);

/* Negative errno; -ENOSPC: there were more than there was room for. */
int stalls_write(const struct stalls *s, const char *path);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Small things every layer uses.  No state, callable from any thread.
 */
#ifndef ZSWAPD_COMMON_UTIL_H
#define ZSWAPD_COMMON_UTIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#define ARRAY_SIZE(a)			(sizeof(a) / sizeof((a)[0]))

#define KIB(n)				((uint64_t)(n) << 10)
#define MIB(n)				((uint64_t)(n) << 20)
#define GIB(n)				((uint64_t)(n) << 30)

#define container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

#define likely(x)			__builtin_expect(!!(x), 1)
#define unlikely(x)			__builtin_expect(!!(x), 0)

#define CACHE_LINE			64

/* Integrity assertion: stays on in release builds, since going on would cost somebody's memory. */
#define z_assert(cond)                                              \
	do {                                                        \
		if (unlikely(!(cond)))                              \
			z_assert_failed(#cond, __FILE__, __LINE__); \
	} while (0)

_Noreturn void z_assert_failed(const char *cond, const char *file, int line);

static inline uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t max_u64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* @align is a power of two. */
static inline uint64_t align_up(uint64_t v, uint64_t align)
{
	return (v + align - 1) & ~(align - 1);
}

static inline uint64_t align_down(uint64_t v, uint64_t align)
{
	return v & ~(align - 1);
}

/* CLOCK_MONOTONIC in nanoseconds. */
uint64_t now_ns(void);

/* Closes @fd unless it is negative, keeps errno, returns -1 to be assigned. */
int close_fd(int fd);

static inline void close_fd_p(int *fd)
{
	*fd = close_fd(*fd);
}

#define cleanup_fd __attribute__((cleanup(close_fd_p)))

void free_p(void *p);

#define cleanup_free __attribute__((cleanup(free_p)))

#endif

// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/lib/allocs.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define COUNTED 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define COUNTED 0
#endif
#endif
#ifndef COUNTED
#define COUNTED 1
#endif

static __thread unsigned long count;

bool allocs_counted(void)
{
	return COUNTED;
}

unsigned long allocs_of_thread(void)
{
	return count;
}

#if COUNTED

/* The C library's own names for what is taken over here. */
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t align, size_t n);

void *malloc(size_t n)
{
	count++;
	return __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
	count++;
	return __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
	count++;
	return __libc_realloc(p, n);
}

void *aligned_alloc(size_t align, size_t n)
{
	count++;
	return __libc_memalign(align, n);
}

int posix_memalign(void **ret, size_t align, size_t n)
{
	void *p;

	count++;
	p = __libc_memalign(align, n);
	if (!p)
		return ENOMEM;
	*ret = p;
	return 0;
}

void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off)
{
	count++;
	return (void *)(uintptr_t)syscall(SYS_mmap, addr, len, prot, flags, fd, off);
}

#endif

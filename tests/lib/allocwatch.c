// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Counts what each thread of a program allocates, the program being as it is: a library for
 * LD_PRELOAD that takes the C library's functions over.
 *
 * A thread gets its entry with its first call.  Entries are shared by a process and those it forks,
 * and outlive them.  What the C library does for itself (a thread's stack, a file's buffer) comes
 * through here only where it calls malloc.
 */
/* Both names of mmap(2) and fallocate(2) are defined here, so neither may be a macro for the other.
 */
#undef _FILE_OFFSET_BITS
#include "tests/lib/allocwatch.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The C library's own names for what is taken over here. */
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t align, size_t n);
void __libc_free(void *p);

static struct allocwatch *watch;
static __thread struct allocwatch_thread *mine __attribute__((tls_model("initial-exec")));

/* The child's only thread is another one than the one that forked. */
static void forget(void)
{
	mine = NULL;
}

__attribute__((constructor)) static void begin(void)
{
	const char *path = getenv("ZSWAPD_ALLOCWATCH");
	int fd = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
	void *p = MAP_FAILED;

	if (fd < 0)
		return;
	if (ftruncate(fd, sizeof(*watch)) == 0)
		p = (void *)syscall(SYS_mmap, NULL, sizeof(*watch), PROT_READ | PROT_WRITE,
				    MAP_SHARED | MAP_POPULATE, fd, 0);
	close(fd);
	if (p == MAP_FAILED)
		return;
	pthread_atfork(NULL, NULL, forget);
	watch = p;
}

static struct allocwatch_thread *entry(void)
{
	uint32_t i;

	if (mine || !watch)
		return mine;
	i = atomic_fetch_add(&watch->n, 1);
	if (i >= ALLOCWATCH_THREADS)
		return NULL;
	mine = &watch->threads[i];
	mine->pid = getpid();
	mine->tid = gettid();
	return mine;
}

static void add(_Atomic uint64_t *n, uint64_t more)
{
	atomic_store_explicit(n, atomic_load_explicit(n, memory_order_relaxed) + more,
			      memory_order_relaxed);
}

static void note(struct allocwatch_thread *t, _Atomic uint64_t *kind, uint64_t bytes)
{
	add(kind, 1);
	add(&t->bytes, bytes);
	if (bytes > atomic_load_explicit(&t->largest, memory_order_relaxed))
		atomic_store_explicit(&t->largest, bytes, memory_order_relaxed);
}

static void note_alloc(uint64_t bytes)
{
	struct allocwatch_thread *t = entry();

	if (t)
		note(t, &t->allocs, bytes);
}

static void note_map(uint64_t bytes)
{
	struct allocwatch_thread *t = entry();

	if (t)
		note(t, &t->maps, bytes);
}

void *malloc(size_t n)
{
	note_alloc(n);
	return __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
	note_alloc(n * size);
	return __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
	note_alloc(n);
	return __libc_realloc(p, n);
}

void *aligned_alloc(size_t align, size_t n)
{
	note_alloc(n);
	return __libc_memalign(align, n);
}

void *memalign(size_t align, size_t n)
{
	note_alloc(n);
	return __libc_memalign(align, n);
}

int posix_memalign(void **ret, size_t align, size_t n)
{
	void *p;

	note_alloc(n);
	p = __libc_memalign(align, n);
	if (!p)
		return ENOMEM;
	*ret = p;
	return 0;
}

void free(void *p)
{
	struct allocwatch_thread *t = p ? entry() : NULL;

	if (t)
		add(&t->frees, 1);
	__libc_free(p);
}

void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off)
{
	note_map(len);
	return (void *)syscall(SYS_mmap, addr, len, prot, flags, fd, off);
}

void *mmap64(void *addr, size_t len, int prot, int flags, int fd, off64_t off)
	__attribute__((alias("mmap")));

int munmap(void *addr, size_t len)
{
	note_map(0);
	return (int)syscall(SYS_munmap, addr, len);
}

int madvise(void *addr, size_t len, int advice)
{
	note_map(0);
	return (int)syscall(SYS_madvise, addr, len, advice);
}

int fallocate(int fd, int mode, off_t off, off_t len)
{
	note_map(0);
	return (int)syscall(SYS_fallocate, fd, mode, off, len);
}

int fallocate64(int fd, int mode, off64_t off, off64_t len) __attribute__((alias("fallocate")));

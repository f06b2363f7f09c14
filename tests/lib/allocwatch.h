/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What allocwatch.c, loaded into a program with LD_PRELOAD, writes down of each of its threads in
 * the file that $ZSWAPD_ALLOCWATCH names, and what allocs-show reads.
 */
#ifndef ZSWAPD_TESTS_ALLOCWATCH_H
#define ZSWAPD_TESTS_ALLOCWATCH_H

#include <stdatomic.h>
#include <stdint.h>

#define ALLOCWATCH_THREADS 1024u

struct allocwatch_thread {
	int32_t pid, tid;
	/* written by the thread alone */
	_Atomic uint64_t allocs; /* malloc and its relatives */
	_Atomic uint64_t frees;
	_Atomic uint64_t maps;	  /* mmap, munmap, madvise, fallocate */
	_Atomic uint64_t bytes;	  /* of allocs and maps */
	_Atomic uint64_t largest; /* of them */
};

struct allocwatch {
	_Atomic uint32_t n; /* threads so far, those that did not fit included */
	struct allocwatch_thread threads[ALLOCWATCH_THREADS];
};

#endif

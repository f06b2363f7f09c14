/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Counts the calling thread's allocations: whoever links this takes the C library's functions over,
 * for shared libraries as well.  Not under a sanitizer, which does the same.
 */
#ifndef ZSWAPD_TESTS_ALLOCS_H
#define ZSWAPD_TESTS_ALLOCS_H

#include <stdbool.h>

/* False: nothing is counted in this build. */
bool allocs_counted(void);

/* Calls of malloc(3) and its relatives and of mmap(2) by this thread so far. */
unsigned long allocs_of_thread(void);

#endif

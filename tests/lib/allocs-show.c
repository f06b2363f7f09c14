// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Shows what allocwatch.c has written down: a line for each thread that has allocated anything,
 * "PID TID ALLOCS FREES MAPS BYTES LARGEST".
 * usage: allocs-show FILE
 */
#include "tests/lib/allocwatch.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>

#include "common/util.h"

int main(int argc, char **argv)
{
	cleanup_fd int fd = argc == 2 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1;
	struct allocwatch *w =
		fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(*w), PROT_READ, MAP_SHARED, fd, 0);

	if (w == MAP_FAILED) {
		fputs("usage: allocs-show FILE\n", stderr);
		return 2;
	}
	if (w->n > ALLOCWATCH_THREADS) {
		fprintf(stderr, "allocs-show: %u threads, of which %u are known\n", w->n,
			ALLOCWATCH_THREADS);
		return 1;
	}
	for (uint32_t i = 0; i < w->n; i++) {
		const struct allocwatch_thread *t = &w->threads[i];

		printf("%d %d %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
		       t->pid, t->tid, (uint64_t)t->allocs, (uint64_t)t->frees, (uint64_t)t->maps,
		       (uint64_t)t->bytes, (uint64_t)t->largest);
	}
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * How long a reader of a device waits while something happens to whoever serves it: reads one page
 * after the other, at random, and prints the longest waits.
 * usage: gaps DEVICE SECONDS COUNT [FILE]
 *
 * Output: "reads N failed N", then the COUNT longest waits in ms, one a line, longest first.  FILE
 * gets all waits of 2 ms or more (tests/system/stalls.h).
 */
#include "common/util.h"
#include "tests/system/stalls.h"

#include <fcntl.h>
#include <inttypes.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#define PAGE	  4096u
#define COUNT_MAX 1000u

static uint64_t longest[COUNT_MAX + 1]; /* ns, falling */
static struct stalls stalls;

static void note_wait(uint64_t ns, unsigned count)
{
	unsigned i = count;

	if (ns <= longest[count - 1])
		return;
	for (; i > 0 && longest[i - 1] < ns; i--)
		longest[i] = longest[i - 1];
	longest[i] = ns;
}

int main(int argc, char *argv[])
{
	uint64_t bytes = 0, reads = 0, failed = 0, end, x = 88172645463325252u;
	void *page = aligned_alloc(PAGE, PAGE);
	unsigned count;
	int fd;

	if (argc != 4 && argc != 5) {
		fprintf(stderr, "usage: gaps DEVICE SECONDS COUNT [FILE]\n");
		return 2;
	}
	count = (unsigned)min_u64(max_u64(strtoul(argv[3], NULL, 10), 1), COUNT_MAX);
	fd = open(argv[1], O_RDONLY | O_DIRECT | O_CLOEXEC);
	if (!page || fd < 0 || ioctl(fd, BLKGETSIZE64, &bytes) < 0 || bytes < PAGE) {
		perror(argv[1]);
		return 2;
	}
	mlockall(MCL_CURRENT);
	end = now_ns() + strtoul(argv[2], NULL, 10) * UINT64_C(1000000000);
	for (uint64_t now = now_ns(); now < end; reads++) {
		uint64_t start = now;

		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		failed += pread(fd, page, PAGE, (off_t)(x % (bytes / PAGE) * PAGE)) != PAGE;
		now = now_ns();
		note_wait(now - start, count);
		stalls_add(&stalls, start, now - start);
	}
	printf("reads %" PRIu64 " failed %" PRIu64 "\n", reads, failed);
	for (unsigned i = 0; i < count; i++)
		printf("%.2f\n", (double)longest[i] / 1e6);
	if (argc == 5 && stalls_write(&stalls, argv[4]) < 0) {
		perror(argv[4]);
		return 1;
	}
	return failed ? 1 : 0;
}

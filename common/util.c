// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/util.h"
#include "common/log.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

void z_assert_failed(const char *cond, const char *file, int line)
{
	/* Which waits for nobody: until this process has ended, nobody takes over from it. */
	log_err("assertion '%s' failed at %s:%d", cond, file, line);
	abort();
}

uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

int close_fd(int fd)
{
	int saved = errno;

	if (fd >= 0)
		close(fd);
	errno = saved;
	return -1;
}

void free_p(void *p)
{
	free(*(void **)p);
}

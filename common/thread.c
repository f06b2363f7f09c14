// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/thread.h"
#include "common/util.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>

#ifndef PR_SET_IO_FLUSHER
#define PR_SET_IO_FLUSHER 57
#endif

#define STACK_BYTES (256u << 10)

struct start {
	char name[16];
	void *(*main)(void *);
	void *arg;
};

static _Atomic bool refused;

bool thread_mark_io_flusher(void)
{
	if (prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0) == 0)
		return true;
	atomic_store(&refused, true);
	return false;
}

bool thread_all_io_flushers(void)
{
	return !atomic_load(&refused);
}

static void *start_main(void *arg)
{
	struct start s = *(struct start *)arg;

	free(arg);
	prctl(PR_SET_NAME, s.name);
	thread_mark_io_flusher();
	return s.main(s.arg);
}

int thread_start(pthread_t *ret, const char *name, void *(*main)(void *), void *arg)
{
	struct start *s = malloc(sizeof(*s));
	pthread_attr_t attr;
	int r;

	if (!s)
		return -ENOMEM;
	snprintf(s->name, sizeof(s->name), "zswapd-%s", name);
	s->main = main;
	s->arg = arg;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	r = -pthread_create(ret, &attr, start_main, s);
	pthread_attr_destroy(&attr);
	if (r < 0)
		free(s);
	return r;
}

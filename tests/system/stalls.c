// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/system/stalls.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "common/util.h"

void stalls_add(struct stalls *s, uint64_t start_ns, uint64_t ns)
{
	uint32_t i;

	if (likely(ns < STALL_MIN_NS))
		return;
	i = atomic_fetch_add(&s->n, 1);
	if (i < STALLS_MAX)
		s->entries[i] = (struct stall){start_ns, ns};
}

int stalls_write(const struct stalls *s, const char *path)
{
	uint32_t n = atomic_load(&s->n);
	FILE *f = fopen(path, "we");

	if (!f)
		return -errno;
	for (uint32_t i = 0; i < n && i < STALLS_MAX; i++)
		fprintf(f, "%" PRIu64 " %" PRIu64 "\n", s->entries[i].start_ns / 1000,
			s->entries[i].ns / 1000);
	if (fclose(f))
		return -errno;
	return n > STALLS_MAX ? -ENOSPC : 0;
}

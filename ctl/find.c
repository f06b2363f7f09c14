// SPDX-License-Identifier: GPL-2.0-or-later
#include "ctl/find.h"
#include "common/portfile.h"
#include "common/util.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN_MAX 8

static int by_name(const void *a, const void *b)
{
	return strcmp(a, b);
}

unsigned ctl_find_device(const char *run_dir, char ret_name[static NLPROTO_NAME_MAX],
			 char ret_choices[static NLPROTO_TEXT_MAX])
{
	char names[SHOWN_MAX][NLPROTO_NAME_MAX];
	size_t n = portfile_list(run_dir, names, SHOWN_MAX);
	size_t shown = min_u64(n, SHOWN_MAX), at = 0;

	if (n <= 1) {
		snprintf(ret_name, NLPROTO_NAME_MAX, "%s", n ? names[0] : CTL_DEFAULT_DEVICE);
		return 0;
	}
	qsort(names, shown, sizeof(names[0]), by_name);
	ret_choices[0] = '\0';
	for (size_t i = 0; i < shown && at < NLPROTO_TEXT_MAX; i++)
		at += (size_t)snprintf(ret_choices + at, NLPROTO_TEXT_MAX - at, "%s%s",
				       i ? " " : "", names[i]);
	return (unsigned)n;
}

uint32_t ctl_find_port(const char *run_dir, const char *name)
{
	uint32_t port;

	return portfile_read(run_dir, name, &port) == 0 ? port : nlproto_port(name);
}

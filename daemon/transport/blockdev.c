// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/transport/blockdev.h"
#include "common/log.h"
#include "common/textfile.h"
#include "common/util.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

void blockdev_tune(const char *name)
{
	static const struct {
		const char *attribute, *value;
	} settings[] = {
		{"queue/rotational", "0"},
		{"queue/scheduler", "none"},
		{"queue/read_ahead_kb", "0"},
		{"queue/wbt_lat_usec", "0"},
	};
	char path[96];

	for (size_t i = 0; i < ARRAY_SIZE(settings); i++) {
		int r;

		snprintf(path, sizeof(path), "/sys/block/%s/%s", name, settings[i].attribute);
		r = textfile_write(path, settings[i].value);
		/* A kernel without such a setting does not do such a thing. */
		if (r < 0 && r != -ENOENT)
			log_warn("cannot set %s to %s: %s", path, settings[i].value, strerror(-r));
	}
}

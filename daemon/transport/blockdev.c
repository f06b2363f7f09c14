// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/transport/blockdev.h"
#include "common/log.h"
#include "common/textfile.h"
#include "common/util.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysinfo.h>

/* A request of swap is a cluster's 32 pages mostly. */
#define REQUEST_BYTES KIB(128)
#define MEMORY_SHARE  64
#define REQUESTS_MIN  8

/* After the scheduler, a change of which sets the number anew. */
static int limit_requests(const char *name, unsigned max)
{
	char path[96], text[24];
	struct sysinfo info;
	uint64_t present, wanted;
	int r;

	snprintf(path, sizeof(path), "/sys/block/%s/queue/nr_requests", name);
	r = textfile_read_u64(path, &present);
	if (r < 0 || sysinfo(&info) < 0)
		return r < 0 ? r : -errno;
	wanted = (uint64_t)info.totalram * info.mem_unit / MEMORY_SHARE / REQUEST_BYTES;
	wanted = min_u64(max_u64(wanted, REQUESTS_MIN), max);
	if (wanted >= present)
		return 0;
	snprintf(text, sizeof(text), "%" PRIu64, wanted);
	return textfile_write(path, text);
}

void blockdev_tune(const char *name, unsigned requests_max)
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
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(settings); i++) {
		snprintf(path, sizeof(path), "/sys/block/%s/%s", name, settings[i].attribute);
		r = textfile_write(path, settings[i].value);
		/* A kernel without such a setting does not do such a thing. */
		if (r < 0 && r != -ENOENT)
			log_warn("cannot set %s to %s: %s", path, settings[i].value, strerror(-r));
	}
	r = limit_requests(name, requests_max);
	if (r < 0)
		log_warn("cannot limit the requests of %s: %s; short of memory, or after a crash, "
			 "swap may stand still",
			 name, strerror(-r));
}

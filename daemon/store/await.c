// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/store/store.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define LOOK_MS 50

static bool there(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 || errno != ENOENT;
}

/* As store_open() sees it: a file can be made, a device can't. */
static bool can_be(const char *path)
{
	const char *end = strrchr(path, '/');
	char dir[512];

	if (there(path))
		return true;
	if (strncmp(path, "/dev/", 5) == 0 || !end || (size_t)(end - path) >= sizeof(dir))
		return false;
	memcpy(dir, path, (size_t)(end - path));
	dir[end - path] = '\0';
	return there(*dir ? dir : "/");
}

int store_await(const char *path, unsigned ms)
{
	const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000l};
	uint64_t deadline = now_ns() + ms * 1000000ull;

	while (!can_be(path)) {
		if (now_ns() >= deadline)
			return -ENOENT;
		nanosleep(&pause, NULL);
	}
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What tells the device of a name from all others, however early its daemon died.
 *
 * Before a device is made, a random number is written to DIR/NAME.ublk, and the device carries it
 * where the driver keeps 64 bits for its server.  So a device is found again by whoever comes next
 * under that name, even if it was never used, and no other is ever taken for it.  The file goes
 * with the device.
 */
#include "common/log.h"
#include "common/textfile.h"
#include "daemon/ublk/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define CLASS_PREFIX "/sys/class/ublk-char/ublkc"
#define MARK_PATH    160

static void mark_path(const struct transport_options *o, char path[static MARK_PATH])
{
	snprintf(path, MARK_PATH, "%s/%s.ublk", o->run_dir, o->name);
}

uint64_t ublk_mark_new(const struct transport_options *o)
{
	char path[MARK_PATH], text[24];
	cleanup_fd int fd = -1;
	uint64_t mark = 0;
	int n;

	mark_path(o, path);
	if (getrandom(&mark, sizeof(mark), GRND_NONBLOCK) == sizeof(mark))
		fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	n = snprintf(text, sizeof(text), "%016" PRIx64 "\n", mark);
	if (fd >= 0 && write(fd, text, (size_t)n) == n)
		return mark;
	log_warn("ublk: cannot write %s: %s; if this daemon dies, its device is left behind", path,
		 strerror(errno));
	return 0;
}

void ublk_mark_remove(const struct transport_options *o)
{
	char path[MARK_PATH];

	mark_path(o, path);
	unlink(path);
}

static uint64_t mark_read(const struct transport_options *o)
{
	char path[MARK_PATH], text[24];

	mark_path(o, path);
	return textfile_read_line(path, text, sizeof(text)) == 0 ? strtoull(text, NULL, 16) : 0;
}

bool ublk_mark_find(struct ublk_control *c, const struct transport_options *o,
		    struct ublk_dev_info *ret)
{
	uint64_t mark = mark_read(o);
	struct ublk_dev_info info;
	bool found = false;
	glob_t g;

	if (!mark || glob(CLASS_PREFIX "*", GLOB_NOSORT, NULL, &g) != 0)
		return false;
	for (size_t i = 0; i < g.gl_pathc && !found; i++) {
		uint32_t id = (uint32_t)strtoul(g.gl_pathv[i] + strlen(CLASS_PREFIX), NULL, 10);

		found = ublk_info(c, id, &info) == 0 && info.server_flags == mark;
	}
	globfree(&g);
	if (found)
		*ret = info;
	return found;
}

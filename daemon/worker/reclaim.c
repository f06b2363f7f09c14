// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/worker/reclaim.h"
#include "common/log.h"
#include "common/textfile.h"
#include "common/util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define OFF	   "0"
#define OPEN_TRIES 100

/* The file, with a shared lock.  Who restores removes it, so it may be gone before it is locked. */
static int open_shared(const char *path)
{
	for (int i = 0; i < OPEN_TRIES; i++) {
		cleanup_fd int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
		struct stat st;

		if (fd < 0 || flock(fd, LOCK_SH) < 0 || fstat(fd, &st) < 0)
			return -errno;
		if (st.st_nlink > 0) {
			int locked = fd;

			fd = -1;
			return locked;
		}
	}
	return -EBUSY;
}

/* In place of what an earlier daemon found: whoever has changed the setting since meant it. */
static int remember(int fd, const char *value)
{
	size_t len = strlen(value);
	ssize_t n;

	if (ftruncate(fd, 0) < 0)
		return -errno;
	n = pwrite(fd, value, len, 0);
	if (n < 0)
		return -errno;
	return (size_t)n == len ? 0 : -EIO;
}

/* Read under the lock: before, somebody may just be putting it back. */
static int switch_off(const struct reclaim *r)
{
	char value[RECLAIM_VALUE_MAX];
	int e = textfile_read_line(r->boost, value, sizeof(value));

	if (e < 0 || strcmp(value, OFF) == 0)
		return e;
	e = remember(r->fd, value);
	if (e == 0)
		e = textfile_write(r->boost, OFF);
	if (e == 0)
		log_info("%s is 0 while the device is served, it was %s", r->boost, value);
	return e;
}

void reclaim_adapt(struct reclaim *ret, const char *boost, const char *file)
{
	int r;

	*ret = (struct reclaim){.boost = boost, .file = file, .fd = -1};
	if (access(boost, F_OK) < 0 && errno == ENOENT)
		return;
	r = open_shared(file);
	if (r >= 0) {
		ret->fd = r;
		r = switch_off(ret);
	}
	if (r < 0)
		log_warn("cannot set %s to 0: %s; short of memory, the kernel may wait for pages "
			 "that its own threads have no memory to send to this device; set "
			 "vm.watermark_boost_factor=0 in /etc/sysctl.d",
			 boost, strerror(-r));
}

static void put_back(const struct reclaim *r)
{
	char value[RECLAIM_VALUE_MAX], now[RECLAIM_VALUE_MAX];
	ssize_t n = pread(r->fd, value, sizeof(value) - 1, 0);
	int e = n < 0 ? -errno : 0;

	/* Empty: it was off before. */
	if (n > 0) {
		value[n] = '\0';
		e = textfile_read_line(r->boost, now, sizeof(now));
		if (e == 0 && strcmp(now, OFF) == 0)
			e = textfile_write(r->boost, value);
	}
	if (e < 0)
		log_warn("cannot set %s back to what %s says: %s", r->boost, r->file, strerror(-e));
	else
		unlink(r->file);
}

void reclaim_restore(struct reclaim *r)
{
	if (r->fd < 0)
		return;
	if (flock(r->fd, LOCK_EX | LOCK_NB) == 0)
		put_back(r);
	r->fd = close_fd(r->fd);
}

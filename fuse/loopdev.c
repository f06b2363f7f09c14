// SPDX-License-Identifier: GPL-2.0-or-later
#include "fuse/loopdev.h"
#include "common/log.h"
#include "common/textfile.h"
#include "common/util.h"
#include "daemon/transport/blockdev.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/loop.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#define BLOCK_SIZE	   4096
#define RETRY_MS	   10
#define ATTACH_TRIES	   100
#define DETACH_TIMEOUT_NS  UINT64_C(5000000000)
#define LOOP_MAJOR	   7
#define LOOPDEV_SYSFS_MAX  96
#define LOOPDEV_NUMBER_MAX 999999

static void sysfs_path(char path[LOOPDEV_SYSFS_MAX], int number, const char *attribute)
{
	snprintf(path, LOOPDEV_SYSFS_MAX, "/sys/block/loop%d/%s", number, attribute);
}

static int read_attribute(int number, const char *attribute, uint64_t *ret)
{
	char path[LOOPDEV_SYSFS_MAX];

	sysfs_path(path, number, attribute);
	return textfile_read_u64(path, ret);
}

static int verify(int number)
{
	uint64_t direct, discard, rotational;
	int r;

	r = read_attribute(number, "loop/dio", &direct);
	if (r == 0)
		r = read_attribute(number, "queue/discard_max_bytes", &discard);
	if (r == 0)
		r = read_attribute(number, "queue/rotational", &rotational);
	if (r < 0) {
		log_err("cannot read what loop%d can do from /sys/block: %s", number, strerror(-r));
		return r;
	}
	if (!direct) {
		log_err("loop%d: the kernel does not use direct I/O with this file; without it "
			"every page would be kept twice",
			number);
		return -EOPNOTSUPP;
	}
	if (!discard) {
		log_err("loop%d does not offer discard with this file; without it no memory would "
			"come back",
			number);
		return -EOPNOTSUPP;
	}
	if (rotational)
		log_warn("loop%d counts as rotational; swap will be slower", number);
	return 0;
}

static int configure(int fd, int backing_fd, const char *name)
{
	struct loop_config config = {
		.fd = (uint32_t)backing_fd,
		.block_size = BLOCK_SIZE,
		.info.lo_flags = LO_FLAGS_DIRECT_IO,
	};

	snprintf((char *)config.info.lo_file_name, sizeof(config.info.lo_file_name), "%s", name);
	return ioctl(fd, LOOP_CONFIGURE, &config) < 0 ? -errno : 0;
}

/*
 * One round.  Between asking for a free number and configuring it somebody else may do the same
 * (-EBUSY), and its node may not be there yet (-ENOENT, -ENXIO): then it is asked for again.
 */
static int try_attach(int control_fd, int backing_fd, const char *name, int *ret_number)
{
	cleanup_fd int fd = -1;
	char path[LOOPDEV_PATH_MAX];
	int number, r;

	number = ioctl(control_fd, LOOP_CTL_GET_FREE);
	if (number < 0)
		return -errno;
	if (number > LOOPDEV_NUMBER_MAX)
		return -EOVERFLOW;
	snprintf(path, sizeof(path), "/dev/loop%d", number);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	r = configure(fd, backing_fd, name);
	if (r < 0)
		return r;
	*ret_number = number;
	return 0;
}

static int attach(int control_fd, int backing_fd, const char *name, int *ret_number)
{
	int r = -EBUSY;

	for (int i = 0; i < ATTACH_TRIES; i++) {
		r = try_attach(control_fd, backing_fd, name, ret_number);
		if (r != -EBUSY && r != -ENOENT && r != -ENXIO && r != -EINTR)
			return r;
		poll(NULL, 0, RETRY_MS);
	}
	return r;
}

int loopdev_attach(int backing_fd, const char *name_for_info, char ret_path[LOOPDEV_PATH_MAX])
{
	cleanup_fd int control_fd = -1;
	char path[LOOPDEV_PATH_MAX];
	int number = -1, r;

	control_fd = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	if (control_fd < 0) {
		r = -errno;
		log_err("cannot open /dev/loop-control: %s (modprobe loop?)", strerror(-r));
		return r;
	}
	r = attach(control_fd, backing_fd, name_for_info, &number);
	if (r < 0) {
		log_err("cannot attach %s to a loop device: %s", name_for_info, strerror(-r));
		return r;
	}
	snprintf(path, sizeof(path), "/dev/loop%d", number);
	blockdev_tune(path + strlen("/dev/"), UINT_MAX);
	r = verify(number);
	if (r < 0) {
		loopdev_detach(path);
		return r;
	}
	memcpy(ret_path, path, sizeof(path));
	return 0;
}

/* What lies under loop@number; -ENOENT if nothing does. */
static int read_backing(int number, char ret_backing[PATH_MAX])
{
	char path[LOOPDEV_SYSFS_MAX];

	sysfs_path(path, number, "loop/backing_file");
	return textfile_read_line(path, ret_backing, PATH_MAX);
}

/* Its descriptor is closed on return: our own would keep the device from going. */
static int request_clear(const char *path)
{
	cleanup_fd int fd = -1;
	struct stat st;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISBLK(st.st_mode) || major(st.st_rdev) != LOOP_MAJOR)
		return -ENOTBLK;
	return ioctl(fd, LOOP_CLR_FD, 0) < 0 ? -errno : 0;
}

/*
 * Asks until the kernel has taken the request, and not once more: the number may be somebody else's
 * the moment it is free.  Then waits until nothing, or another file, is under it.
 */
static int detach(const char *path, int number, const char *backing)
{
	uint64_t deadline = now_ns() + DETACH_TIMEOUT_NS;
	char now_backing[PATH_MAX];
	bool requested = false;
	int r;

	for (;;) {
		if (!requested) {
			r = request_clear(path);
			if (r == -ENXIO)
				return 0;
			if (r < 0 && r != -EBUSY && r != -EINTR)
				return r;
			requested = r == 0;
		}
		if (requested &&
		    (read_backing(number, now_backing) < 0 || strcmp(now_backing, backing) != 0))
			return 0;
		if (now_ns() >= deadline)
			return -EBUSY;
		poll(NULL, 0, RETRY_MS);
	}
}

int loopdev_detach(const char *path)
{
	char backing[PATH_MAX];
	int number, r;

	if (sscanf(path, "/dev/loop%d", &number) != 1) {
		log_err("cannot detach %s: not the name of a loop device", path);
		return -EINVAL;
	}
	r = read_backing(number, backing);
	if (r == -ENOENT)
		return 0;
	if (r == 0)
		r = detach(path, number, backing);
	if (r == -EBUSY)
		log_err("%s is still in use (swapon, mount, a program); it is detached once that "
			"ends",
			path);
	else if (r < 0)
		log_err("cannot detach %s: %s", path, strerror(-r));
	return r;
}

void loopdev_forsake(const char *path)
{
	request_clear(path);
}

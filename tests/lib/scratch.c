// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/lib/scratch.h"
#include "common/util.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/swap.h>

#include <cmocka.h>

#define ATTACH_TRIES 50

const char *scratch_no_loops(void)
{
	if (geteuid() != 0)
		return "not root";
	if (access("/dev/loop-control", R_OK | W_OK) < 0)
		return "no /dev/loop-control";
	return NULL;
}

void scratch_init(struct scratch *s)
{
	const char *base = getenv("ZSWAPD_TEST_DIR");

	memset(s, 0, sizeof(*s));
	snprintf(s->dir, sizeof(s->dir), "%s/zswapd-test-XXXXXX", base ? base : "/var/tmp");
	assert_non_null(mkdtemp(s->dir));
}

static void detach(const char *dev)
{
	cleanup_fd int fd = -1;

	swapoff(dev);
	fd = open(dev, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		ioctl(fd, LOOP_CLR_FD, 0);
}

void scratch_deinit(struct scratch *s)
{
	for (int i = SCRATCH_LOOPS - 1; i >= 0; i--) {
		if (s->mounts[i][0])
			umount2(s->mounts[i], MNT_DETACH);
	}
	for (int i = SCRATCH_LOOPS - 1; i >= 0; i--) {
		if (s->loops[i][0])
			detach(s->loops[i]);
	}
	scratch_run("rm -rf --one-file-system '%s'", s->dir);
	memset(s, 0, sizeof(*s));
}

const char *scratch_path(const struct scratch *s, const char *name)
{
	static char paths[4][PATH_MAX];
	static unsigned next;
	char *p = paths[next++ % 4];

	snprintf(p, PATH_MAX, "%s/%s", s->dir, name);
	return p;
}

const char *scratch_file(const struct scratch *s, const char *name, uint64_t size)
{
	const char *path = scratch_path(s, name);
	cleanup_fd int fd = -1;

	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	return path;
}

static int attach(int control_fd, int file_fd, char dev[SCRATCH_DEV])
{
	struct loop_config config = {.fd = (uint32_t)file_fd, .block_size = 512};
	cleanup_fd int fd = -1;
	int number;

	number = ioctl(control_fd, LOOP_CTL_GET_FREE);
	if (number < 0)
		return -1;
	snprintf(dev, SCRATCH_DEV, "/dev/loop%d", number);
	fd = open(dev, O_RDWR | O_CLOEXEC);
	return fd < 0 ? -1 : ioctl(fd, LOOP_CONFIGURE, &config);
}

const char *scratch_loop(struct scratch *s, const char *name, uint64_t size)
{
	const char *path = scratch_file(s, name, size);
	cleanup_fd int control_fd = -1, file_fd = -1;
	char dev[SCRATCH_DEV];
	int slot = 0, tries = 0;

	while (slot < SCRATCH_LOOPS && s->loops[slot][0])
		slot++;
	assert_true(slot < SCRATCH_LOOPS);
	control_fd = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	file_fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(control_fd >= 0 && file_fd >= 0);
	/* Other tests take free numbers too. */
	while (attach(control_fd, file_fd, dev) < 0) {
		assert_true(errno == EBUSY || errno == ENOENT || errno == ENXIO);
		assert_true(++tries < ATTACH_TRIES);
		usleep(10000);
	}
	memcpy(s->loops[slot], dev, sizeof(dev));
	return s->loops[slot];
}

const char *scratch_mount(struct scratch *s, const char *dev, const char *type, const char *name)
{
	const char *path = scratch_path(s, name);
	int slot = 0;

	while (slot < SCRATCH_LOOPS && s->mounts[slot][0])
		slot++;
	assert_true(slot < SCRATCH_LOOPS);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(mount(dev, path, type, 0, NULL), 0);
	snprintf(s->mounts[slot], PATH_MAX, "%s", path);
	return s->mounts[slot];
}

void scratch_umount(struct scratch *s, const char *dir)
{
	for (int i = 0; i < SCRATCH_LOOPS; i++) {
		if (strcmp(s->mounts[i], dir) != 0)
			continue;
		assert_int_equal(umount2(dir, 0), 0);
		s->mounts[i][0] = '\0';
		return;
	}
	fail_msg("%s is not mounted", dir);
}

int scratch_run(const char *fmt, ...)
{
	char command[PATH_MAX + 256], quiet[PATH_MAX + 512];
	va_list ap;
	int status;

	va_start(ap, fmt);
	vsnprintf(command, sizeof(command), fmt, ap);
	va_end(ap);
	snprintf(quiet, sizeof(quiet), "PATH=$PATH:/usr/sbin:/sbin; { %s; } >/dev/null 2>&1",
		 command);
	status = system(quiet);
	return status >= 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool scratch_has(const char *program)
{
	return scratch_run("command -v %s", program) == 0;
}

// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/textfile.h"
#include "common/util.h"
#include "fuse/loopdev.h"
#include "tests/lib/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/loop.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <cmocka.h>

static struct scratch scratch;
static char attached[LOOPDEV_PATH_MAX];

static int setup(void **state)
{
	attached[0] = '\0';
	scratch_init(&scratch);
	return 0;
}

static int teardown(void **state)
{
	if (attached[0])
		loopdev_detach(attached);
	scratch_deinit(&scratch);
	return 0;
}

static bool cannot_run(void)
{
	const char *why = scratch_no_loops();

	if (why)
		print_message("skipped: %s\n", why);
	return why != NULL;
}

static void assert_attribute(const char *dev, const char *name, const char *want)
{
	char path[128], line[128];

	snprintf(path, sizeof(path), "/sys/block/%s/%s", dev + strlen("/dev/"), name);
	assert_int_equal(textfile_read_line(path, line, sizeof(line)), 0);
	assert_string_equal(line, want);
}

static bool is_attached(const char *dev)
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/block/%s/loop/backing_file", dev + strlen("/dev/"));
	return access(path, F_OK) == 0;
}

static int open_backing(const char *name, uint64_t size)
{
	return open(scratch_file(&scratch, name, size), O_RDWR | O_CLOEXEC);
}

static void set_up_for_swap(void **state)
{
	cleanup_fd int backing_fd = -1, fd = -1;
	struct loop_info64 info;
	int sector;
	uint64_t bytes;

	if (cannot_run())
		skip();
	backing_fd = open_backing("backing", MIB(4));
	assert_int_equal(loopdev_attach(backing_fd, "zswapd/test", attached), 0);
	assert_attribute(attached, "loop/dio", "1");
	assert_attribute(attached, "loop/autoclear", "0");
	assert_attribute(attached, "queue/logical_block_size", "4096");
	assert_attribute(attached, "queue/rotational", "0");
	assert_attribute(attached, "queue/read_ahead_kb", "0");
	assert_attribute(attached, "ro", "0");
	fd = open(attached, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(ioctl(fd, BLKSSZGET, &sector), 0);
	assert_int_equal(sector, 4096);
	assert_int_equal(ioctl(fd, BLKGETSIZE64, &bytes), 0);
	assert_int_equal(bytes, MIB(4));
	assert_int_equal(ioctl(fd, LOOP_GET_STATUS64, &info), 0);
	assert_string_equal((char *)info.lo_file_name, "zswapd/test");
	fd = close_fd(fd);
	assert_int_equal(loopdev_detach(attached), 0);
	assert_false(is_attached(attached));
	assert_int_equal(loopdev_detach(attached), 0); /* nothing left to do */
}

static void data_and_discard_reach_the_file(void **state)
{
	uint64_t range[2] = {KIB(64), KIB(128)};
	cleanup_fd int backing_fd = -1, fd = -1;
	cleanup_free uint8_t *page = aligned_alloc(4096, 4096);
	uint8_t back[4096];
	struct stat before, after;

	if (cannot_run())
		skip();
	assert_non_null(page);
	backing_fd = open_backing("backing", MIB(1));
	assert_int_equal(loopdev_attach(backing_fd, "test", attached), 0);
	fd = open(attached, O_RDWR | O_DIRECT | O_CLOEXEC);
	assert_true(fd >= 0);
	for (off_t at = 0; at < (off_t)MIB(1); at += 4096) {
		memset(page, (int)(at / 4096), 4096);
		assert_int_equal(pwrite(fd, page, 4096, at), 4096);
	}
	assert_int_equal(pread(backing_fd, back, 4096, KIB(100)), 4096);
	assert_int_equal(back[0], 25);
	assert_int_equal(back[4095], 25);
	assert_int_equal(fstat(backing_fd, &before), 0);
	assert_int_equal(ioctl(fd, BLKDISCARD, range), 0);
	assert_int_equal(fstat(backing_fd, &after), 0);
	assert_true(after.st_blocks < before.st_blocks);
	assert_int_equal(pread(backing_fd, back, 4096, KIB(100)), 4096);
	assert_int_equal(back[0], 0);
	assert_int_equal(pread(backing_fd, back, 4096, KIB(60)), 4096);
	assert_int_equal(back[0], 15);
}

static void a_device_in_use_is_not_forced(void **state)
{
	cleanup_fd int backing_fd = -1, user_fd = -1;
	uint64_t start;

	if (cannot_run())
		skip();
	backing_fd = open_backing("backing", MIB(1));
	assert_int_equal(loopdev_attach(backing_fd, "test", attached), 0);
	user_fd = open(attached, O_RDONLY | O_CLOEXEC);
	assert_true(user_fd >= 0);
	start = now_ns();
	assert_int_equal(loopdev_detach(attached), -EBUSY);
	assert_true(now_ns() - start < UINT64_C(8000000000));
	assert_true(is_attached(attached));
	/* The promise of the message: gone with its last user. */
	user_fd = close_fd(user_fd);
	assert_int_equal(loopdev_detach(attached), 0);
	assert_false(is_attached(attached));
}

/* ramfs keeps files in the page cache and nowhere else, so there is nothing direct about it. */
static void no_direct_io_is_refused(void **state)
{
	char path[LOOPDEV_PATH_MAX] = "untouched", file[PATH_MAX + 8];
	cleanup_fd int backing_fd = -1;

	if (cannot_run())
		skip();
	snprintf(file, sizeof(file), "%s/file", scratch_mount(&scratch, "none", "ramfs", "mnt"));
	backing_fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(backing_fd >= 0);
	assert_int_equal(ftruncate(backing_fd, MIB(1)), 0);
	assert_int_equal(loopdev_attach(backing_fd, "test", path), -EOPNOTSUPP);
	assert_string_equal(path, "untouched");
	/* Nothing stays behind that would keep it from being unmounted. */
	backing_fd = close_fd(backing_fd);
	scratch_umount(&scratch, scratch.mounts[0]);
}

static void wrong_arguments(void **state)
{
	char path[LOOPDEV_PATH_MAX] = "untouched";
	int fds[2];

	if (cannot_run())
		skip();
	assert_int_equal(loopdev_attach(-1, "test", path), -EBADF);
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_int_equal(loopdev_attach(fds[1], "test", path), -EINVAL);
	close_fd(fds[0]);
	close_fd(fds[1]);
	assert_string_equal(path, "untouched");
	assert_int_equal(loopdev_detach("/dev/null"), -EINVAL);
	assert_int_equal(loopdev_detach("/dev/loop999999"), 0);
}

#define RACERS 4
#define ROUNDS 10

struct racer {
	pthread_t thread;
	int backing_fd;
	int failures;
};

/* Reads its own mark through the device that it was given. */
static void *race(void *arg)
{
	struct racer *racer = arg;
	char path[LOOPDEV_PATH_MAX], mine[32], seen[32];

	if (pread(racer->backing_fd, mine, sizeof(mine), 0) != sizeof(mine))
		racer->failures++;
	for (int i = 0; i < ROUNDS; i++) {
		cleanup_fd int fd = -1;

		if (loopdev_attach(racer->backing_fd, "race", path) < 0) {
			racer->failures++;
			continue;
		}
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0 || pread(fd, seen, sizeof(seen), 0) != sizeof(seen) ||
		    memcmp(mine, seen, sizeof(mine)) != 0)
			racer->failures++;
		fd = close_fd(fd);
		if (loopdev_detach(path) < 0)
			racer->failures++;
	}
	return NULL;
}

static void several_at_a_time(void **state)
{
	struct racer racers[RACERS] = {0};

	if (cannot_run())
		skip();
	for (int i = 0; i < RACERS; i++) {
		char mark[32] = "", name[16];

		snprintf(name, sizeof(name), "backing%d", i);
		racers[i].backing_fd = open_backing(name, KIB(64));
		snprintf(mark, sizeof(mark), "mark %d", i);
		assert_int_equal(pwrite(racers[i].backing_fd, mark, sizeof(mark), 0), sizeof(mark));
	}
	for (int i = 0; i < RACERS; i++)
		assert_int_equal(pthread_create(&racers[i].thread, NULL, race, &racers[i]), 0);
	for (int i = 0; i < RACERS; i++) {
		assert_int_equal(pthread_join(racers[i].thread, NULL), 0);
		assert_int_equal(racers[i].failures, 0);
		close_fd(racers[i].backing_fd);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(set_up_for_swap, setup, teardown),
		cmocka_unit_test_setup_teardown(data_and_discard_reach_the_file, setup, teardown),
		cmocka_unit_test_setup_teardown(a_device_in_use_is_not_forced, setup, teardown),
		cmocka_unit_test_setup_teardown(no_direct_io_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(wrong_arguments, setup, teardown),
		cmocka_unit_test_setup_teardown(several_at_a_time, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Files need a file system with O_DIRECT, devices and the full disk need root and loop devices;
 * what is missing skips its tests.
 */
#include "common/log.h"
#include "common/util.h"
#include "daemon/store/store.h"
#include "daemon/store/superblock.h"
#include "tests/lib/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/swap.h>

#include <cmocka.h>

static struct scratch scratch;

static int setup(void **state)
{
	scratch_init(&scratch);
	return 0;
}

static int teardown(void **state)
{
	scratch_deinit(&scratch);
	return 0;
}

#define SKIP_WITHOUT_LOOPS()                                 \
	do {                                                 \
		const char *why = scratch_no_loops();        \
		if (why) {                                   \
			print_message("skipped: %s\n", why); \
			skip();                              \
		}                                            \
	} while (0)

static struct store *opened(const char *path, uint64_t size)
{
	struct store *s = NULL;

	assert_int_equal(store_open(&s, &(struct store_options){.path = path, .size = size}), 0);
	assert_non_null(s);
	return s;
}

static void assert_refused(const char *path, uint64_t size, int error)
{
	struct store *untouched = (struct store *)1, *s = untouched;

	assert_int_equal(store_open(&s, &(struct store_options){.path = path, .size = size}),
			 error);
	assert_ptr_equal(s, untouched);
}

static void read_superblock(const char *path, struct superblock *ret)
{
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(pread(fd, ret, sizeof(*ret), 0), sizeof(*ret));
}

static void poke(const char *path, off_t at, const void *bytes, size_t len)
{
	cleanup_fd int fd = open(path, O_WRONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, bytes, len, at), len);
	assert_int_equal(fsync(fd), 0);
}

/* The byte at @at. */
static int peek(const char *path, off_t at)
{
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint8_t byte;

	assert_true(fd >= 0);
	assert_int_equal(pread(fd, &byte, 1, at), 1);
	return byte;
}

static uint64_t file_size(const char *path)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return (uint64_t)st.st_size;
}

/* A whole place through the descriptor, as the engine will do it. */
static void assert_place_works(const struct store *s, uint32_t place)
{
	off_t at = (off_t)(s->data_offset + place * STORE_PLACE_SIZE);
	cleanup_free uint8_t *out = aligned_alloc(4096, STORE_PLACE_SIZE);
	cleanup_free uint8_t *in = aligned_alloc(4096, STORE_PLACE_SIZE);

	assert_non_null(out);
	assert_non_null(in);
	memset(out, 0xa5, STORE_PLACE_SIZE);
	assert_int_equal(pwrite(s->fd, out, STORE_PLACE_SIZE, at), STORE_PLACE_SIZE);
	assert_int_equal(pread(s->fd, in, STORE_PLACE_SIZE, at), STORE_PLACE_SIZE);
	assert_memory_equal(in, out, STORE_PLACE_SIZE);
	assert_int_equal(pread(s->fd, in, s->dio_align, at + s->dio_align), s->dio_align);
}

/* Extents that fallocate made and nothing has written yet. */
static bool has_unwritten_extents(const char *path)
{
	enum {
		EXTENTS = 256
	};
	size_t size = sizeof(struct fiemap) + EXTENTS * sizeof(struct fiemap_extent);
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	cleanup_free struct fiemap *map = calloc(1, size);

	assert_true(fd >= 0);
	assert_non_null(map);
	map->fm_length = FIEMAP_MAX_OFFSET;
	map->fm_flags = FIEMAP_FLAG_SYNC;
	map->fm_extent_count = EXTENTS;
	assert_int_equal(ioctl(fd, FS_IOC_FIEMAP, map), 0);
	assert_true(map->fm_mapped_extents > 0);
	for (unsigned i = 0; i < map->fm_mapped_extents; i++) {
		if (map->fm_extents[i].fe_flags & FIEMAP_EXTENT_UNWRITTEN)
			return true;
	}
	return false;
}

/* --- files --- */

static void a_file_is_created_and_used_again(void **state)
{
	const char *path = scratch_path(&scratch, "store");
	struct superblock first, second;
	struct store *s;
	struct stat st;

	s = opened(path, MIB(16) + 4097);
	assert_true(s->is_file);
	assert_int_equal(s->nplaces, 14);
	assert_int_equal(s->data_offset, MIB(1));
	assert_true(s->dio_align >= 1 && (s->dio_align & (s->dio_align - 1)) == 0);
	assert_string_equal(s->path, path);
	assert_true(fcntl(s->fd, F_GETFL) & O_DIRECT);
	assert_true(fcntl(s->fd, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(fstat(s->fd, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(st.st_size, MIB(16));
	assert_true((uint64_t)st.st_blocks * 512 >= MIB(16));
	assert_false(has_unwritten_extents(path));
	assert_place_works(s, 0);
	assert_place_works(s, s->nplaces - 1);
	store_free(s);

	read_superblock(path, &first);
	assert_int_equal(superblock_check(&first), SUPERBLOCK_VALID);
	assert_int_equal(first.flags, SUPERBLOCK_WRITTEN);
	assert_int_equal(first.size, MIB(16));

	/* Instant: not even the last place is written again. */
	s = opened(path, MIB(16));
	assert_int_equal(s->nplaces, 14);
	store_free(s);
	assert_int_equal(peek(path, MIB(14) + 5), 0xa5);
	read_superblock(path, &second);
	assert_memory_equal(&first, &second, sizeof(first));
}

/* That the check used above would see it. */
static void preallocated_extents_are_unwritten(void **state)
{
	const char *path = scratch_file(&scratch, "file", 0);
	cleanup_fd int fd = open(path, O_RDWR | O_CLOEXEC);

	assert_int_equal(fallocate(fd, 0, 0, MIB(1)), 0);
	assert_true(has_unwritten_extents(path));
}

static void a_file_follows_its_size(void **state)
{
	const char *path = scratch_path(&scratch, "store");
	struct superblock before, sb;
	struct store *s;

	store_free(opened(path, MIB(8)));
	read_superblock(path, &before);
	poke(path, MIB(2), "kept", 4);

	s = opened(path, MIB(24));
	assert_int_equal(s->nplaces, 22);
	assert_place_works(s, 21);
	store_free(s);
	assert_int_equal(file_size(path), MIB(24));
	assert_false(has_unwritten_extents(path));
	/* Only what was added has been written. */
	assert_int_equal(peek(path, MIB(2)), 'k');

	s = opened(path, MIB(4));
	assert_int_equal(s->nplaces, 2);
	store_free(s);
	assert_int_equal(file_size(path), MIB(4));
	assert_int_equal(peek(path, MIB(2)), 'k');
	read_superblock(path, &sb);
	assert_int_equal(superblock_check(&sb), SUPERBLOCK_VALID);
	assert_int_equal(sb.size, MIB(4));
	assert_int_equal(sb.flags, SUPERBLOCK_WRITTEN);
	assert_memory_equal(sb.uuid, before.uuid, sizeof(sb.uuid));
}

/* What a start that was interrupted, or somebody with truncate, leaves behind is made good. */
static void an_unfinished_file_is_finished(void **state)
{
	const char *path = scratch_path(&scratch, "store");
	struct superblock sb;

	store_free(opened(path, MIB(8)));
	poke(path, MIB(5), "old", 3);
	read_superblock(path, &sb);
	sb.flags = 0;
	superblock_seal(&sb);
	poke(path, 0, &sb, sizeof(sb));
	store_free(opened(path, MIB(8)));
	assert_int_equal(peek(path, MIB(5)), 0);
	read_superblock(path, &sb);
	assert_int_equal(sb.flags, SUPERBLOCK_WRITTEN);

	/* Shorter than its superblock says. */
	assert_int_equal(truncate(path, MIB(3) + 17), 0);
	store_free(opened(path, MIB(8)));
	assert_int_equal(file_size(path), MIB(8));
	assert_false(has_unwritten_extents(path));

	/* Longer: cut off, then the superblock was already right. */
	assert_int_equal(truncate(path, MIB(20)), 0);
	store_free(opened(path, MIB(8)));
	assert_int_equal(file_size(path), MIB(8));

	/* Cut to its head before anything was allocated. */
	read_superblock(path, &sb);
	sb.flags = 0;
	superblock_seal(&sb);
	poke(path, 0, &sb, sizeof(sb));
	assert_int_equal(truncate(path, 4096), 0);
	store_free(opened(path, MIB(8)));
	assert_int_equal(file_size(path), MIB(8));
	assert_false(has_unwritten_extents(path));
}

static void holes_are_filled(void **state)
{
	cleanup_fd int fd = -1;
	const char *path = scratch_path(&scratch, "store");
	struct stat st;

	store_free(opened(path, MIB(8)));
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_int_equal(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, MIB(2), MIB(4)),
			 0);
	assert_int_equal(stat(path, &st), 0);
	assert_true((uint64_t)st.st_blocks * 512 < MIB(8));
	store_free(opened(path, MIB(8)));
	assert_int_equal(stat(path, &st), 0);
	assert_true((uint64_t)st.st_blocks * 512 >= MIB(8));
	assert_false(has_unwritten_extents(path));
}

static void a_damaged_superblock_is_made_again(void **state)
{
	const char *path = scratch_path(&scratch, "store");
	struct superblock sb;

	store_free(opened(path, MIB(4)));
	poke(path, 2000, "x", 1);
	store_free(opened(path, MIB(4)));
	read_superblock(path, &sb);
	assert_int_equal(superblock_check(&sb), SUPERBLOCK_VALID);

	sb.version++;
	superblock_seal(&sb);
	poke(path, 0, &sb, sizeof(sb));
	assert_refused(path, MIB(4), -EEXIST);
	sb.magic[0]++;
	poke(path, 0, &sb, sizeof(sb));
	assert_refused(path, MIB(4), -EEXIST);
}

static void other_files_are_refused(void **state)
{
	const char *path;

	/* An empty one has nothing to lose. */
	store_free(opened(scratch_file(&scratch, "empty", 0), MIB(4)));
	/* One byte is somebody's, so are zeroes. */
	path = scratch_file(&scratch, "short", 0);
	poke(path, 0, "x", 1);
	assert_refused(path, MIB(4), -EEXIST);
	assert_int_equal(file_size(path), 1);
	assert_refused(scratch_file(&scratch, "zero", MIB(4)), MIB(4), -EEXIST);
	path = scratch_file(&scratch, "swap", MIB(4));
	assert_int_equal(scratch_run("mkswap '%s'", path), 0);
	assert_refused(path, MIB(4), -EEXIST);
}

static void other_kinds_and_names_are_refused(void **state)
{
	const char *target = scratch_file(&scratch, "target", 0);
	const char *link = scratch_path(&scratch, "link");
	const char *fifo = scratch_path(&scratch, "fifo");

	assert_int_equal(symlink(target, link), 0);
	assert_refused(link, MIB(4), -ELOOP);
	assert_int_equal(file_size(target), 0);
	assert_int_equal(unlink(target), 0);
	assert_refused(link, MIB(4), -ELOOP); /* dangling: nothing is made through it */
	assert_int_equal(access(target, F_OK), -1);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	assert_refused(fifo, MIB(4), -EINVAL);
	assert_refused(scratch.dir, MIB(4), -EINVAL);
	assert_refused("/dev/null", MIB(4), -EINVAL);
	assert_refused(scratch_path(&scratch, "no/such/dir"), MIB(4), -ENOENT);
	assert_refused("/dev/no-such-device", MIB(4), -ENOENT);
	assert_int_equal(access("/dev/no-such-device", F_OK), -1);
}

static void sizes_are_checked(void **state)
{
	const char *path = scratch_path(&scratch, "store");

	assert_refused(path, 0, -EINVAL);
	assert_refused(path, STORE_SIZE_MIN - 1, -EINVAL);
	assert_refused(path, UINT64_MAX, -EINVAL);
	assert_int_equal(access(path, F_OK), -1);
	store_free(opened(path, STORE_SIZE_MIN));
	assert_refused(path, 0, -EINVAL);
}

static void a_file_open_to_others_is_refused(void **state)
{
	static const mode_t modes[] = {0644, 0640, 0602, 0610};
	const char *path = scratch_path(&scratch, "store");

	store_free(opened(path, MIB(4)));
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		assert_int_equal(chmod(path, modes[i]), 0);
		assert_refused(path, MIB(4), -EPERM);
	}
	assert_int_equal(chmod(path, 0600), 0);
	store_free(opened(path, MIB(4)));
	if (geteuid() == 0) {
		assert_int_equal(chown(path, 12345, 0), 0);
		assert_refused(path, MIB(4), -EPERM);
	}
}

static void a_second_opener_of_a_file_is_refused(void **state)
{
	const char *path = scratch_path(&scratch, "store");
	const char *other = scratch_path(&scratch, "other-name");
	struct store *s = opened(path, MIB(4));

	assert_refused(path, MIB(4), -EBUSY);
	assert_int_equal(link(path, other), 0);
	assert_refused(other, MIB(4), -EBUSY);
	assert_place_works(s, 0);
	store_free(s);
	store_free(opened(path, MIB(4)));
}

static void memory_is_no_store(void **state)
{
	SKIP_WITHOUT_LOOPS();
	const char *dir = scratch_mount(&scratch, "none", "tmpfs", "memory");
	char path[PATH_MAX + 8];

	snprintf(path, sizeof(path), "%s/store", dir);
	assert_refused(path, MIB(4), -EOPNOTSUPP);
	assert_int_equal(access(path, F_OK), -1);
}

static void a_full_file_system(void **state)
{
	SKIP_WITHOUT_LOOPS();
	const char *dev = scratch_loop(&scratch, "disk", MIB(32)), *dir;
	char path[PATH_MAX + 8];

	assert_int_equal(scratch_run("mkfs.ext4 -q -m 0 -O ^has_journal %s", dev), 0);
	dir = scratch_mount(&scratch, dev, "ext4", "mnt");
	snprintf(path, sizeof(path), "%s/store", dir);

	assert_refused(path, MIB(64), -ENOSPC);
	assert_int_equal(access(path, F_OK), -1);
	/* One that was there keeps its length and works on. */
	store_free(opened(path, MIB(8)));
	assert_refused(path, MIB(64), -ENOSPC);
	assert_int_equal(file_size(path), MIB(8));
	store_free(opened(path, MIB(8)));
	/* Full to the last block. */
	assert_int_equal(scratch_run("dd if=/dev/zero of=%s/fill bs=4k conv=fsync; true", dir), 0);
	assert_refused(path, MIB(9), -ENOSPC);
	assert_int_equal(file_size(path), MIB(8));
	snprintf(path, sizeof(path), "%s/new", dir);
	assert_refused(path, MIB(4), -ENOSPC);
	assert_int_equal(access(path, F_OK), -1);
	scratch_umount(&scratch, dir);
}

static void a_file_in_use_elsewhere(void **state)
{
	SKIP_WITHOUT_LOOPS();
	const char *dev = scratch_loop(&scratch, "store", MIB(4));

	/* The same inode by two names: under a loop device, which hides behind no path. */
	assert_refused(scratch_path(&scratch, "store"), MIB(4), -EBUSY);
	assert_int_equal(link(scratch_path(&scratch, "store"), scratch_path(&scratch, "other")), 0);
	assert_refused(scratch_path(&scratch, "other"), MIB(4), -EBUSY);
	assert_int_equal(peek(dev, 0), 0);
}

/* Tiny, lowest priority, off again at once: nothing gets swapped to it. */
static void active_swap_is_refused(void **state)
{
	SKIP_WITHOUT_LOOPS();
	const char *dev = scratch_loop(&scratch, "disk", MIB(4));
	const char *file = scratch_file(&scratch, "swapfile", 0);
	int r;

	assert_int_equal(scratch_run("mkswap %s", dev), 0);
	assert_int_equal(swapon(dev, SWAP_FLAG_PREFER), 0);
	r = store_open(&(struct store *){NULL}, &(struct store_options){.path = dev, .size = 0});
	assert_int_equal(swapoff(dev), 0);
	assert_int_equal(r, -EBUSY);

	assert_int_equal(scratch_run("dd if=/dev/zero of=%s bs=1M count=4", file), 0);
	assert_int_equal(scratch_run("mkswap %s", file), 0);
	if (swapon(file, SWAP_FLAG_PREFER) < 0) {
		print_message("skipped: no swap file here: %s\n", strerror(errno));
		skip();
	}
	r = store_open(&(struct store *){NULL},
		       &(struct store_options){.path = file, .size = MIB(4)});
	assert_int_equal(swapoff(file), 0);
	assert_int_equal(r, -EBUSY);
}

static void copy_on_write_is_turned_off(void **state)
{
	SKIP_WITHOUT_LOOPS();
	const char *dev, *dir;
	char path[PATH_MAX + 8];

	if (!scratch_has("mkfs.btrfs") || scratch_run("grep -qw btrfs /proc/filesystems") != 0) {
		print_message("skipped: no btrfs\n");
		skip();
	}
	dev = scratch_loop(&scratch, "disk", MIB(256));
	assert_int_equal(scratch_run("mkfs.btrfs -q %s", dev), 0);
	dir = scratch_mount(&scratch, dev, "btrfs", "mnt");
	snprintf(path, sizeof(path), "%s/store", dir);
	store_free(opened(path, MIB(8)));
	assert_int_equal(scratch_run("lsattr '%s' | cut -d' ' -f1 | grep -q C", path), 0);
	store_free(opened(path, MIB(8)));
	scratch_umount(&scratch, dir);
}

/* What a successor takes over is opened as it is, or not at all. */

static void assert_not_kept(const char *path, uint64_t size, const uint8_t *id, int error)
{
	struct store_options o = {.path = path, .size = size, .keep = id, .fd = -1};

	assert_int_equal(store_open(&(struct store *){NULL}, &o), error);
}

static void assert_kept(const char *path, uint64_t size, const uint8_t *id)
{
	struct store_options o = {.path = path, .size = size, .keep = id, .fd = -1};
	struct store *s;

	assert_int_equal(store_open(&s, &o), 0);
	assert_memory_equal(s->id, id, STORE_ID_SIZE);
	store_free(s);
}

static void a_file_to_keep_is_not_changed(void **state)
{
	const char *path = scratch_path(&scratch, "store");
	const char *missing = scratch_path(&scratch, "missing");
	uint8_t id[STORE_ID_SIZE], other[STORE_ID_SIZE];
	struct superblock before, after;
	struct store *s = opened(path, MIB(8));

	memcpy(id, s->id, sizeof(id));
	memcpy(other, id, sizeof(id));
	other[15] ^= 1;
	assert_place_works(s, 5);
	store_free(s);
	read_superblock(path, &before);
	assert_memory_equal(before.uuid, id, sizeof(id));

	assert_not_kept(path, MIB(6), id, -ESTALE);
	assert_not_kept(path, MIB(10), id, -ESTALE);
	assert_not_kept(path, MIB(8), other, -ESTALE);
	assert_not_kept(missing, MIB(8), id, -ENOENT);
	assert_int_equal(access(missing, F_OK), -1);
	read_superblock(path, &after);
	assert_memory_equal(&before, &after, sizeof(before));
	assert_int_equal(file_size(path), MIB(8));
	assert_int_equal(peek(path, MIB(7) - 1), 0xa5);
	assert_kept(path, MIB(8), id);
	assert_int_equal(peek(path, MIB(7) - 1), 0xa5);

	/* A hole would have it written again, an empty one made anew. */
	assert_int_equal(scratch_run("fallocate -p -o 1M -l 1M '%s'", path), 0);
	assert_kept(path, MIB(8), id);
	assert_int_equal(peek(path, MIB(7) - 1), 0xa5);
	poke(path, 100, "x", 1);
	assert_not_kept(path, MIB(8), id, -ESTALE);
	assert_int_equal(peek(path, 100), 'x');
}

/* What a process has open goes to the next one also when it can't be read any more. */
static void a_copy_that_can_not_be_read_is_kept(void **state)
{
	const char *path = scratch_path(&scratch, "store");
	struct store_options o = {.path = path, .size = MIB(8)};
	uint8_t id[STORE_ID_SIZE];
	struct store *s = opened(path, MIB(8));

	memcpy(id, s->id, sizeof(id));
	store_free(s);
	o.keep = id;
	o.fd = open(path, O_WRONLY | O_CLOEXEC);
	assert_true(o.fd >= 0);
	assert_int_equal(store_open(&s, &o), 0);
	assert_memory_equal(s->id, id, sizeof(id));
	assert_int_equal(s->nplaces, 6);
	store_free(s);
	/* But not as one of another size. */
	o.size = MIB(6);
	assert_true(store_open(&s, &o) < 0);
	close(o.fd);
}

/* --- devices --- */

static void a_device_to_keep_is_not_changed(void **state)
{
	SKIP_WITHOUT_LOOPS();
	const char *dev = scratch_loop(&scratch, "disk", MIB(16));
	const char *blank = scratch_loop(&scratch, "blank", MIB(16));
	uint8_t id[STORE_ID_SIZE], other[STORE_ID_SIZE] = {1};
	struct store *s = opened(dev, 0);

	memcpy(id, s->id, sizeof(id));
	assert_place_works(s, 13);
	store_free(s);
	assert_not_kept(dev, 0, other, -ESTALE);
	assert_not_kept(blank, 0, id, -ESTALE);
	assert_int_equal(peek(blank, 0), 0);
	assert_kept(dev, 0, id);
	poke(dev, 0, "x", 1);
	assert_not_kept(dev, 0, id, -ESTALE);
	assert_int_equal(peek(dev, 0), 'x');
	assert_int_equal(peek(dev, MIB(15) - 1), 0xa5);
}

static void a_blank_device_is_formatted_and_accepted_again(void **state)
{
	SKIP_WITHOUT_LOOPS();
	const char *dev = scratch_loop(&scratch, "disk", MIB(16));
	const char *link = scratch_path(&scratch, "by-id");
	struct superblock first, second;
	struct store *s;

	/* Not blank, but nothing anybody knows. */
	poke(dev, 5000, "noise", 5);
	s = opened(dev, 0);
	assert_false(s->is_file);
	assert_int_equal(s->nplaces, 14);
	assert_int_equal(s->data_offset, MIB(1));
	assert_true(s->dio_align >= 1 && s->dio_align <= 4096);
	assert_true(fcntl(s->fd, F_GETFL) & O_DIRECT);
	assert_place_works(s, 0);
	assert_place_works(s, 13);
	assert_refused(dev, 0, -EBUSY); /* the second opener */
	store_free(s);
	read_superblock(dev, &first);
	assert_int_equal(superblock_check(&first), SUPERBLOCK_VALID);
	assert_int_equal(peek(dev, 5000), 0);

	assert_int_equal(symlink(dev, link), 0);
	s = opened(link, MIB(8));
	assert_int_equal(s->nplaces, 6);
	store_free(s);
	read_superblock(dev, &second);
	assert_memory_equal(&first, &second, sizeof(first));

	assert_refused(dev, MIB(17), -EINVAL);
	poke(dev, 100, "x", 1);
	store_free(opened(dev, 0));
	read_superblock(dev, &second);
	assert_int_equal(superblock_check(&second), SUPERBLOCK_VALID);
	second.version++;
	superblock_seal(&second);
	poke(dev, 0, &second, sizeof(second));
	assert_refused(dev, 0, -EEXIST);
}

static void a_device_too_small(void **state)
{
	SKIP_WITHOUT_LOOPS();
	assert_refused(scratch_loop(&scratch, "disk", MIB(2)), 0, -EINVAL);
	store_free(opened(scratch_loop(&scratch, "disk2", STORE_SIZE_MIN), 0));
}

static void somebody_elses_device_is_refused(void **state)
{
	static const struct {
		const char *program, *command; /* %s is the device */
	} rows[] = {
		{"mkfs.ext4", "mkfs.ext4 -q -F -L precious "},
		{"mkswap", "mkswap -L other "},
		{"mkfs.vfat", "mkfs.vfat "},
		{"mkfs.xfs", "mkfs.xfs -q "},
		{"sfdisk", "echo 'label: dos\n1M,2M' | sfdisk -q "},
		{"sfdisk", "echo 'label: gpt\n1M,2M' | sfdisk -q "},
	};
	SKIP_WITHOUT_LOOPS();
	const char *dev = scratch_loop(&scratch, "disk", MIB(16));
	unsigned tried = 0;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct superblock sb;

		if (!scratch_has(rows[i].program))
			continue;
		/* xfs wants more than this disk has; then there is nothing to refuse. */
		if (scratch_run("%s%s", rows[i].command, dev) != 0)
			continue;
		assert_refused(dev, 0, -EEXIST);
		read_superblock(dev, &sb);
		assert_int_equal(superblock_check(&sb), SUPERBLOCK_FOREIGN);
		/* The way out that the message names. */
		assert_int_equal(scratch_run("wipefs -a %s", dev), 0);
		store_free(opened(dev, 0));
		assert_int_equal(scratch_run("dd if=/dev/zero of=%s bs=1M; true", dev), 0);
		tried++;
	}
	assert_true(tried >= 4);
}

/* A file system made over a store may leave our first bytes alone; it still is what is there. */
static void our_superblock_does_not_outrank_a_file_system(void **state)
{
	SKIP_WITHOUT_LOOPS();
	const char *dev = scratch_loop(&scratch, "disk", MIB(16));
	struct superblock sb;

	store_free(opened(dev, 0));
	read_superblock(dev, &sb);
	assert_int_equal(scratch_run("mkfs.ext4 -q -F %s", dev), 0);
	poke(dev, 0, &sb, 1024); /* where ext4 leaves room for a boot loader */
	assert_refused(dev, 0, -EEXIST);
}

static void a_mounted_device_is_refused(void **state)
{
	SKIP_WITHOUT_LOOPS();
	const char *dev = scratch_loop(&scratch, "disk", MIB(16)), *dir;

	assert_int_equal(scratch_run("mkfs.ext4 -q -F %s", dev), 0);
	dir = scratch_mount(&scratch, dev, "ext4", "mnt");
	assert_refused(dev, 0, -EBUSY);
	scratch_umount(&scratch, dir);
	assert_refused(dev, 0, -EEXIST);
}

static void a_device_held_by_another_program_is_refused(void **state)
{
	SKIP_WITHOUT_LOOPS();
	const char *dev = scratch_loop(&scratch, "disk", MIB(16));
	int fd = open(dev, O_RDONLY | O_EXCL | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_refused(dev, 0, -EBUSY);
	close_fd(fd);
	store_free(opened(dev, 0));
}

/* And the other way round: nothing may take it from us. */
static void an_open_device_is_ours_alone(void **state)
{
	SKIP_WITHOUT_LOOPS();
	const char *dev = scratch_loop(&scratch, "disk", MIB(16));
	struct store *s = opened(dev, 0);

	assert_int_equal(open(dev, O_RDWR | O_EXCL | O_CLOEXEC), -1);
	assert_int_equal(errno, EBUSY);
	assert_int_not_equal(scratch_run("mkswap %s", dev), 0);
	store_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_file_is_created_and_used_again, setup, teardown),
		cmocka_unit_test_setup_teardown(preallocated_extents_are_unwritten, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_file_follows_its_size, setup, teardown),
		cmocka_unit_test_setup_teardown(an_unfinished_file_is_finished, setup, teardown),
		cmocka_unit_test_setup_teardown(holes_are_filled, setup, teardown),
		cmocka_unit_test_setup_teardown(a_damaged_superblock_is_made_again, setup,
						teardown),
		cmocka_unit_test_setup_teardown(other_files_are_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(other_kinds_and_names_are_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(sizes_are_checked, setup, teardown),
		cmocka_unit_test_setup_teardown(a_file_open_to_others_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(a_second_opener_of_a_file_is_refused, setup,
						teardown),
		cmocka_unit_test_setup_teardown(memory_is_no_store, setup, teardown),
		cmocka_unit_test_setup_teardown(a_full_file_system, setup, teardown),
		cmocka_unit_test_setup_teardown(a_file_in_use_elsewhere, setup, teardown),
		cmocka_unit_test_setup_teardown(active_swap_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(copy_on_write_is_turned_off, setup, teardown),
		cmocka_unit_test_setup_teardown(a_file_to_keep_is_not_changed, setup, teardown),
		cmocka_unit_test_setup_teardown(a_copy_that_can_not_be_read_is_kept, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_device_to_keep_is_not_changed, setup, teardown),
		cmocka_unit_test_setup_teardown(a_blank_device_is_formatted_and_accepted_again,
						setup, teardown),
		cmocka_unit_test_setup_teardown(a_device_too_small, setup, teardown),
		cmocka_unit_test_setup_teardown(somebody_elses_device_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(our_superblock_does_not_outrank_a_file_system,
						setup, teardown),
		cmocka_unit_test_setup_teardown(a_mounted_device_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(a_device_held_by_another_program_is_refused, setup,
						teardown),
		cmocka_unit_test_setup_teardown(an_open_device_is_ours_alone, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Opening a store, in an order that never lets a check and its use meet different objects: the
 * path is resolved once (O_PATH), looked at, and that very inode is opened and locked; only then is
 * it examined, and only then written.
 *
 * O_DIRECT is switched on late, because libblkid reads unaligned.
 */
#include "daemon/store/store.h"
#include "common/log.h"
#include "daemon/store/file.h"
#include "daemon/store/head.h"
#include "daemon/store/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>

/* The file may come and go between looking and opening, but not for ever. */
#define RESOLVE_TRIES  3
#define OWNER_TRIES    100
#define OWNER_PAUSE_NS 20000000 /* 2 s together */

static int refuse(const char *path, int r)
{
	log_err("store %s: cannot open it: %s", path, strerror(-r));
	return r;
}

/*
 * Finds the inode that @path means: an O_PATH descriptor, or 0 in *ret_exists when there is none.
 * A link is followed to devices only, for whose names links are usual (/dev/disk/by-id).
 */
static int resolve(const char *path, int *ret_fd, bool *ret_exists, struct stat *ret_st)
{
	cleanup_fd int fd = -1;
	bool is_link;

	fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT) {
		*ret_exists = false;
		return 0;
	}
	if (fd < 0 || fstat(fd, ret_st) < 0)
		return refuse(path, -errno);
	is_link = S_ISLNK(ret_st->st_mode);
	if (is_link) {
		fd = close_fd(fd);
		fd = open(path, O_PATH | O_CLOEXEC);
		if (fd >= 0 && fstat(fd, ret_st) < 0)
			return refuse(path, -errno);
		if (fd < 0 || !S_ISBLK(ret_st->st_mode)) {
			log_err("store %s is a symbolic link that does not lead to a block device; "
				"name the file itself",
				path);
			return -ELOOP;
		}
	}
	if (!S_ISREG(ret_st->st_mode) && !S_ISBLK(ret_st->st_mode)) {
		log_err("store %s is neither a block device nor a regular file", path);
		return -EINVAL;
	}
	*ret_fd = fd;
	*ret_exists = true;
	fd = -1;
	return 0;
}

/* Opens the inode behind an O_PATH descriptor. */
static int reopen(int path_fd, int flags)
{
	char name[32];
	int fd;

	snprintf(name, sizeof(name), "/proc/self/fd/%d", path_fd);
	fd = open(name, flags);
	return fd < 0 ? -errno : fd;
}

/*
 * A daemon that was killed a moment ago can still hold its store: the kernel takes its rings down,
 * and with them their references, in its own time.  True if it is worth another try.
 */
static bool wait_for_former_owner(unsigned *tries)
{
	const struct timespec pause = {.tv_nsec = OWNER_PAUSE_NS};

	if (++*tries > OWNER_TRIES)
		return false;
	nanosleep(&pause, NULL);
	return true;
}

/* Instead of preparing it: looks whether it is what was left here, and writes nothing. */
static int check_kept(struct store *s, const uint8_t *keep, uint64_t size)
{
	enum superblock_state state;
	struct superblock sb;
	int r;

	r = head_read(s, &sb, &state);
	if (r < 0)
		return r;
	if (state != SUPERBLOCK_VALID || memcmp(sb.uuid, keep, sizeof(sb.uuid)) != 0) {
		log_err("store %s is not the one that holds the pages to be taken over; start with "
			"the former configuration, or swap off first",
			s->path);
		return -ESTALE;
	}
	/* Of a device less than all may be used; the state tells how much. */
	if (s->is_file && sb.size != size) {
		log_err("store %s has %" PRIu64
			" bytes and holds pages to be taken over, but %" PRIu64
			" are configured; start with the former configuration, or swap off first",
			s->path, sb.size, size);
		return -ESTALE;
	}
	memcpy(s->id, sb.uuid, sizeof(s->id));
	return 0;
}

/* --- block device --- */

static int open_device(struct store *s, int path_fd, const struct stat *st)
{
	unsigned tries = 0;
	int r;

	r = probe_in_use(st, s->path);
	if (r < 0)
		return r;
	do {
		r = reopen(path_fd, O_RDWR | O_EXCL | O_CLOEXEC);
	} while (r == -EBUSY && wait_for_former_owner(&tries));
	if (r == -EBUSY) {
		log_err("store %s, or a partition of it, is mounted or in use (by md, LVM or "
			"another zswapd); unmount or stop that, or name another device",
			s->path);
		return r;
	}
	if (r < 0)
		return refuse(s->path, r);
	s->fd = r;
	r = probe_partitions(st, s->path);
	if (r < 0)
		return r;
	return probe_signatures(s->fd, s->path);
}

/* Bytes of the store in all. */
static int device_extent(const struct store *s, uint64_t size, uint64_t *ret)
{
	uint64_t bytes;

	if (ioctl(s->fd, BLKGETSIZE64, &bytes) < 0)
		return refuse(s->path, -errno);
	if (bytes < STORE_SIZE_MIN || size > bytes) {
		log_err("store %s has %" PRIu64 " bytes, %" PRIu64 " are needed", s->path, bytes,
			max_u64(size, STORE_SIZE_MIN));
		return -EINVAL;
	}
	*ret = align_down(size ? size : bytes, STORE_PLACE_SIZE);
	return 0;
}

static int other_version(const struct store *s)
{
	log_err("store %s was made by another version of zswapd; if that one no longer uses it: "
		"dd if=/dev/zero of=%s bs=4096 count=1 conv=notrunc",
		s->path, s->path);
	return -EEXIST;
}

static int prepare_device(struct store *s, uint64_t size)
{
	enum superblock_state state;
	struct superblock sb;
	int r;

	r = head_read(s, &sb, &state);
	if (r < 0)
		return r;
	switch (state) {
	case SUPERBLOCK_VALID:
		memcpy(s->id, sb.uuid, sizeof(s->id));
		return 0;
	case SUPERBLOCK_OTHER_VERSION:
		return other_version(s);
	case SUPERBLOCK_DAMAGED:
		log_notice("store %s: its superblock is damaged; it is formatted again", s->path);
		break;
	case SUPERBLOCK_FOREIGN:
		log_notice("store %s: nothing known is on it; it is formatted", s->path);
		break;
	}
	r = superblock_init(&sb, size);
	if (r < 0)
		return refuse(s->path, r);
	memcpy(s->id, sb.uuid, sizeof(s->id));
	return head_write(s, &sb, true);
}

/* --- file --- */

static int create_file(struct store *s)
{
	int fd;

	fd = open(s->path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 && errno == EEXIST)
		return -EEXIST;
	if (fd < 0)
		return refuse(s->path, -errno);
	s->fd = fd;
	return 0;
}

/* 1: the file was removed before it was locked, by the one who had just made it. */
static int lock_file(struct store *s)
{
	unsigned tries = 0;
	struct stat st;
	int r;

	do {
		r = flock(s->fd, LOCK_EX | LOCK_NB) < 0 ? -errno : 0;
	} while (r == -EWOULDBLOCK && wait_for_former_owner(&tries));
	if (r < 0) {
		if (r != -EWOULDBLOCK)
			return refuse(s->path, r);
		log_err("store %s is in use by another zswapd", s->path);
		return -EBUSY;
	}
	if (fstat(s->fd, &st) < 0)
		return refuse(s->path, -errno);
	return st.st_nlink == 0;
}

/* Before O_DIRECT, which libblkid could not read with. */
static int check_file_contents(const struct store *s, const struct stat *st)
{
	struct superblock sb;
	ssize_t n;
	int r;

	if (st->st_size == 0)
		return 0;
	r = probe_signatures(s->fd, s->path);
	if (r < 0)
		return r;
	n = pread(s->fd, &sb, sizeof(sb), 0);
	if (n < 0)
		return refuse(s->path, -errno);
	switch (n == sizeof(sb) ? superblock_check(&sb) : SUPERBLOCK_FOREIGN) {
	case SUPERBLOCK_VALID:
		return 0;
	case SUPERBLOCK_DAMAGED:
		log_notice("store %s: its superblock is damaged; it is made again", s->path);
		return 0;
	case SUPERBLOCK_OTHER_VERSION:
		return other_version(s);
	case SUPERBLOCK_FOREIGN:
		break;
	}
	log_err("store %s holds somebody else's data; name another file, or remove it if it is not "
		"needed",
		s->path);
	return -EEXIST;
}

static int prepare_file(struct store *s, const struct stat *st, uint64_t size, const uint8_t *keep)
{
	int r;

	r = file_check_owner(s->fd, s->path);
	if (r < 0)
		return r;
	r = probe_in_use(st, s->path);
	if (r < 0)
		return r;
	r = check_file_contents(s, st);
	if (r < 0)
		return r;
	r = probe_direct(s->fd, s->path, true, &s->dio_align);
	if (r < 0)
		return r;
	return keep ? check_kept(s, keep, size) : file_prepare(s, size);
}

/* The path may name another file by now. */
static void remove_created(const struct store *s, const struct stat *st)
{
	struct stat now;

	if (lstat(s->path, &now) == 0 && now.st_dev == st->st_dev && now.st_ino == st->st_ino &&
	    unlink(s->path) < 0)
		log_warn("store %s: cannot remove the unfinished file: %s", s->path,
			 strerror(errno));
}

/* 1: it vanished, look again. */
static int open_file(struct store *s, int path_fd, uint64_t size, const uint8_t *keep)
{
	bool created = path_fd < 0;
	struct stat st;
	int r;

	if (created) {
		r = create_file(s);
		if (r == -EEXIST)
			return 1;
		if (r < 0)
			return r;
	} else {
		r = reopen(path_fd, O_RDWR | O_CLOEXEC);
		if (r < 0)
			return refuse(s->path, r);
		s->fd = r;
	}
	r = lock_file(s);
	if (r) {
		s->fd = close_fd(s->fd);
		return r;
	}
	if (fstat(s->fd, &st) < 0)
		return refuse(s->path, -errno);
	r = prepare_file(s, &st, size, keep);
	if (r < 0 && created)
		remove_created(s, &st);
	return r;
}

static int check_file_size(const char *path, uint64_t size)
{
	if (size == 0) {
		log_err("store %s is a file (or none yet); its size must be given", path);
		return -EINVAL;
	}
	if (size > INT64_MAX) {
		log_err("store %s: no file is as large as %" PRIu64 " bytes", path, size);
		return -EINVAL;
	}
	return 0;
}

/* --- both --- */

/* Sets *ret_extent, bytes of the store in all.  1: the file came or went, look again. */
static int open_once(struct store *s, const struct store_options *o, uint64_t *ret_extent)
{
	cleanup_fd int path_fd = -1;
	bool exists = false;
	struct stat st;
	int r;

	r = resolve(s->path, &path_fd, &exists, &st);
	if (r < 0)
		return r;
	if (!exists && (o->keep || strncmp(s->path, "/dev/", 5) == 0)) {
		/* A device that has not appeared must not become a file in a tmpfs. */
		log_err("store %s does not exist", s->path);
		return -ENOENT;
	}
	s->is_file = !exists || S_ISREG(st.st_mode);
	if (s->is_file) {
		r = check_file_size(s->path, o->size);
		if (r < 0)
			return r;
		*ret_extent = align_down(o->size, STORE_PLACE_SIZE);
		return open_file(s, path_fd, *ret_extent, o->keep);
	}
	r = open_device(s, path_fd, &st);
	if (r < 0)
		return r;
	r = device_extent(s, o->size, ret_extent);
	if (r < 0)
		return r;
	r = probe_direct(s->fd, s->path, false, &s->dio_align);
	if (r < 0)
		return r;
	return o->keep ? check_kept(s, o->keep, *ret_extent) : prepare_device(s, *ret_extent);
}

/* The pages are where they are, whatever the configuration says by now. */
static void warn_if_elsewhere(const struct store *s, const struct stat *kept)
{
	struct stat st;

	if (stat(s->path, &st) == 0 &&
	    (S_ISBLK(st.st_mode) ? st.st_rdev == kept->st_rdev
				 : st.st_dev == kept->st_dev && st.st_ino == kept->st_ino))
		return;
	log_warn(
		"store %s is not the one that holds the pages, which is used on; stop and start to "
		"use the other",
		s->path);
}

/* The store as another process has opened it: locked, examined, and with direct I/O on. */
static int open_copy(struct store *s, const struct store_options *o, uint64_t *ret_extent)
{
	struct stat st;
	int r;

	s->fd = fcntl(o->fd, F_DUPFD_CLOEXEC, 3);
	if (s->fd < 0 || fstat(s->fd, &st) < 0)
		return refuse(s->path, -errno);
	s->is_file = S_ISREG(st.st_mode);
	if (s->is_file)
		*ret_extent = align_down(o->size, STORE_PLACE_SIZE);
	r = s->is_file ? 0 : device_extent(s, o->size, ret_extent);
	if (r == 0)
		r = probe_direct(s->fd, s->path, s->is_file, &s->dio_align);
	if (r < 0)
		return r;
	r = check_kept(s, o->keep, *ret_extent);
	if (r < 0 && (r == -ESTALE || (s->is_file && (uint64_t)st.st_size != *ret_extent)))
		return r;
	if (r < 0) {
		/* It is the other process's in any case, and pages in memory need no store. */
		log_warn("store %s is taken over all the same, for the pages in memory", s->path);
		memcpy(s->id, o->keep, sizeof(s->id));
	}
	warn_if_elsewhere(s, &st);
	return 0;
}

static void free_store_p(struct store **s)
{
	store_free(*s);
}

int store_open(struct store **ret, const struct store_options *o)
{
	__attribute__((cleanup(free_store_p))) struct store *s = NULL;
	uint64_t extent = 0;
	int r = 1;

	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->fd = -1;
	s->data_offset = STORE_DATA_OFFSET;
	s->path = strdup(o->path);
	if (!s->path)
		return -ENOMEM;
	if (o->size && o->size < STORE_SIZE_MIN) {
		log_err("store %s: size is %" PRIu64 " bytes, at least %" PRIu64 " are needed",
			s->path, o->size, STORE_SIZE_MIN);
		return -EINVAL;
	}
	if (o->keep && o->fd >= 0)
		r = open_copy(s, o, &extent);
	for (int i = 0; i < RESOLVE_TRIES && r > 0; i++)
		r = open_once(s, o, &extent);
	if (r > 0) {
		log_err("store %s comes and goes; is another zswapd starting on it?", s->path);
		return -EBUSY;
	}
	if (r < 0)
		return r;
	s->nplaces = (uint32_t)min_u64(
		(extent - STORE_DATA_OFFSET - STORE_TAIL_SIZE) / STORE_PLACE_SIZE, UINT32_MAX);
	z_assert(s->fd >= 0 && s->nplaces > 0);
	log_msg(o->keep ? LOG_LEVEL_DEBUG : LOG_LEVEL_INFO,
		"store %s: %u places of 1 MiB, direct I/O in units of %u bytes", s->path,
		s->nplaces, s->dio_align);
	*ret = s;
	s = NULL;
	return 0;
}

void store_free(struct store *s)
{
	if (!s)
		return;
	close_fd(s->fd);
	free(s->path);
	free(s);
}

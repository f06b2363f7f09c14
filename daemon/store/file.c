// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/store/file.h"
#include "common/log.h"
#include "daemon/store/head.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/uio.h>

/* MiB in one writev: the block layer splits it, so several requests are in flight at a time. */
#define FILL_DEPTH	  8
#define PROGRESS_INTERVAL UINT64_C(10000000000) /* ns */

int file_check_owner(int fd, const char *path)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_uid != geteuid()) {
		log_err("store %s belongs to user %u, not to this one (%u); remove it or name "
			"another file",
			path, st.st_uid, geteuid());
		return -EPERM;
	}
	if (st.st_mode & 077) {
		log_err("store %s is open to other users (mode %04o), who would see what is "
			"swapped out; remove it, it is made again with 0600",
			path, st.st_mode & 07777);
		return -EPERM;
	}
	return 0;
}

static uint64_t bytes_available(int fd)
{
	struct statvfs fs;

	if (fstatvfs(fd, &fs) < 0)
		return 0;
	return (uint64_t)fs.f_frsize * (geteuid() == 0 ? fs.f_bfree : fs.f_bavail);
}

static int no_space(const struct store *s, uint64_t needed, uint64_t available)
{
	log_err("store %s: not enough room in its file system: %" PRIu64 " bytes needed, %" PRIu64
		" available; make room or lower its size",
		s->path, needed, available);
	return -ENOSPC;
}

static int failed(const struct store *s, const char *what, int r)
{
	log_err("store %s: cannot %s: %s", s->path, what, strerror(-r));
	return r;
}

struct room {
	uint64_t needed;    /* bytes that @size takes and the file does not hold yet */
	uint64_t available; /* bytes, before anything was allocated */
};

static struct room measure_room(const struct store *s, const struct stat *st, uint64_t size)
{
	return (struct room){
		.needed = size - min_u64((uint64_t)st->st_blocks * 512, size),
		.available = bytes_available(s->fd),
	};
}

/* Gives every byte up to @size a place on the disk. */
static int allocate(struct store *s, uint64_t size, const struct room *room)
{
	int r;

	do {
		r = fallocate(s->fd, 0, 0, (off_t)size) < 0 ? -errno : 0;
	} while (r == -EINTR);
	if (r == -ENOSPC)
		return no_space(s, room->needed, room->available);
	if (r == -EOPNOTSUPP) /* then writing it once does the same */
		r = ftruncate(s->fd, (off_t)size) < 0 ? -errno : 0;
	return r < 0 ? failed(s, "make the file as large as asked", r) : 0;
}

static void log_progress(const struct store *s, uint64_t done, uint64_t size, uint64_t *next)
{
	if (now_ns() < *next)
		return;
	*next = now_ns() + PROGRESS_INTERVAL;
	log_info("store %s: %" PRIu64 " of %" PRIu64 " MiB written", s->path, done >> 20,
		 size >> 20);
}

/* Writes zeroes over [@from, @to), multiples of 1 MiB, and waits until they are on the disk. */
static int fill(struct store *s, uint64_t from, uint64_t to)
{
	uint64_t next = now_ns() + PROGRESS_INTERVAL;
	struct iovec iov[FILL_DEPTH];
	void *zeroes;
	int r = 0;

	zeroes = mmap(NULL, MIB(1), PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (zeroes == MAP_FAILED)
		return -errno;
	for (unsigned i = 0; i < FILL_DEPTH; i++)
		iov[i] = (struct iovec){zeroes, MIB(1)};
	for (uint64_t at = from; at < to;) {
		int count = (int)min_u64(FILL_DEPTH, (to - at + MIB(1) - 1) >> 20);
		ssize_t n = pwritev(s->fd, iov, count, (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			r = n < 0 ? -errno : -EIO;
			break;
		}
		/* A short write may end within a MiB; what is written twice does no harm. */
		if ((uint64_t)n < s->dio_align) {
			r = -EIO;
			break;
		}
		at = align_down(at + (uint64_t)n, s->dio_align);
		log_progress(s, at, to, &next);
	}
	munmap(zeroes, MIB(1));
	if (r == 0 && fdatasync(s->fd) < 0)
		r = -errno;
	if (r == -ENOSPC)
		return no_space(s, to - from, bytes_available(s->fd));
	return r < 0 ? failed(s, "write it once", r) : 0;
}

/* Copy on write would allocate at every write, which is what the whole file is to avoid. */
static void disable_cow(const struct store *s)
{
	struct statfs fs;
	int flags;

	if (fstatfs(s->fd, &fs) < 0 || fs.f_type != BTRFS_SUPER_MAGIC)
		return;
	if (ioctl(s->fd, FS_IOC_GETFLAGS, &flags) == 0) {
		flags |= FS_NOCOW_FL;
		if (ioctl(s->fd, FS_IOC_SETFLAGS, &flags) == 0)
			return;
	}
	log_warn("store %s: cannot turn copy-on-write off, its writes will need memory: %s",
		 s->path, strerror(errno));
}

/* Bytes from the start that need not be written again. */
static uint64_t bytes_written(const struct store *s, const struct superblock *sb,
			      const struct stat *st)
{
	uint64_t written = min_u64(sb->size, align_down((uint64_t)st->st_size, MIB(1)));

	if (!(sb->flags & SUPERBLOCK_WRITTEN))
		return 0;
	/* A copy that was made sparse, or holes punched since. */
	if ((uint64_t)st->st_blocks * 512 < written) {
		log_notice("store %s has holes; it is written again", s->path);
		return 0;
	}
	return written;
}

static int shrink(struct store *s, struct superblock *sb, uint64_t size)
{
	int r;

	sb->size = size;
	superblock_seal(sb);
	r = head_write(s, sb, false);
	if (r < 0)
		return r;
	if (ftruncate(s->fd, (off_t)size) < 0)
		return failed(s, "shorten the file", -errno);
	return 0;
}

static int grow(struct store *s, struct superblock *sb, const struct room *room, uint64_t written,
		uint64_t size)
{
	int r;

	log_info("store %s: writing %" PRIu64 " MiB once, so that later writes need no allocation",
		 s->path, (size - written) >> 20);
	r = allocate(s, size, room);
	if (r == 0)
		r = fill(s, max_u64(written, STORE_DATA_OFFSET), size);
	if (r < 0)
		return r;
	sb->size = size;
	sb->flags |= SUPERBLOCK_WRITTEN;
	superblock_seal(sb);
	return head_write(s, sb, false);
}

/* Writes what the table in file.h says; @written bytes are known to be good. */
static int bring_to_size(struct store *s, struct superblock *sb, const struct stat *st,
			 const struct room *room, uint64_t written, uint64_t size)
{
	int r;

	if (written == 0) {
		/* The head comes first: an interrupted creation must be known as ours. */
		sb->flags &= ~SUPERBLOCK_WRITTEN;
		superblock_seal(sb);
		r = head_write(s, sb, true);
		if (r < 0)
			return r;
	}
	if ((uint64_t)st->st_size > size) {
		r = shrink(s, sb, size);
		if (r < 0)
			return r;
	}
	return written < size ? grow(s, sb, room, written, size) : 0;
}

int file_prepare(struct store *s, uint64_t size)
{
	enum superblock_state state;
	struct superblock sb;
	uint64_t written = 0;
	struct room room;
	struct stat st;
	int r;

	r = head_read(s, &sb, &state);
	if (r < 0)
		return r;
	if (fstat(s->fd, &st) < 0)
		return failed(s, "stat the file", -errno);
	if (state == SUPERBLOCK_VALID) {
		written = bytes_written(s, &sb, &st);
	} else {
		if (st.st_size == 0)
			disable_cow(s);
		r = superblock_init(&sb, size);
		if (r < 0)
			return failed(s, "make a superblock", r);
	}
	/* Asked first, so that a wish for too much does not fill somebody's disk for a moment. */
	room = measure_room(s, &st, size);
	if (room.needed > room.available)
		return no_space(s, room.needed, room.available);
	memcpy(s->id, sb.uuid, sizeof(s->id));
	r = bring_to_size(s, &sb, &st, &room, written, size);
	if (r < 0 && (uint64_t)st.st_size < size && ftruncate(s->fd, st.st_size) < 0)
		log_warn("store %s: cannot give back what was added: %s", s->path, strerror(errno));
	return r;
}

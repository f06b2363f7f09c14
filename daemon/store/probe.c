// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/store/probe.h"
#include "common/log.h"
#include "common/swaps.h"
#include "common/textfile.h"
#include "common/util.h"
#include "daemon/store/store.h"

#include <blkid/blkid.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>

static void free_probe_p(blkid_probe *pr)
{
	blkid_free_probe(*pr);
}

/* A value fit for a log line: the label is somebody else's text. */
static const char *value(blkid_probe pr, const char *name, char *buf, size_t size)
{
	const char *v;

	if (blkid_probe_lookup_value(pr, name, &v, NULL) < 0 || !*v)
		return NULL;
	if (blkid_safe_string(v, buf, size) < 0)
		return NULL;
	return buf;
}

static void log_found(blkid_probe pr, const char *path)
{
	char type_buf[64], label_buf[128];
	const char *type, *label;

	type = value(pr, "TYPE", type_buf, sizeof(type_buf));
	if (!type) {
		type = value(pr, "PTTYPE", type_buf, sizeof(type_buf));
		log_err("store %s holds a partition table (%s); name a partition, or if nothing "
			"of it is needed: wipefs -a %s",
			path, type ? type : "unknown", path);
		return;
	}
	label = value(pr, "LABEL", label_buf, sizeof(label_buf));
	log_err("store %s holds somebody else's data (%s, label \"%s\"); if nothing of it is "
		"needed: wipefs -a %s",
		path, type, label ? label : "", path);
}

int probe_signatures(int fd, const char *path)
{
	__attribute__((cleanup(free_probe_p))) blkid_probe pr = NULL;
	int r;

	errno = 0;
	pr = blkid_new_probe();
	if (!pr || blkid_probe_set_device(pr, fd, 0, 0) < 0 ||
	    blkid_probe_enable_superblocks(pr, 1) < 0 ||
	    blkid_probe_set_superblocks_flags(pr, BLKID_SUBLKS_TYPE | BLKID_SUBLKS_LABEL) < 0 ||
	    blkid_probe_enable_partitions(pr, 1) < 0) {
		r = errno ? -errno : -EIO;
		log_err("store %s: cannot look for data on it: %s", path, strerror(-r));
		return r;
	}
	errno = 0;
	switch (blkid_do_safeprobe(pr)) {
	case 0:
		log_found(pr, path);
		return -EEXIST;
	case 1:
		return 0;
	case -2:
		log_err("store %s holds the signatures of several kinds of data; see wipefs %s, "
			"and if nothing of it is needed: wipefs -a %s",
			path, path, path);
		return -EEXIST;
	default:
		r = errno ? -errno : -EIO;
		log_err("store %s: cannot look for data on it: %s", path, strerror(-r));
		return r;
	}
}

/* libblkid sees the table; this sees what the kernel made of it, or of one since overwritten. */
int probe_partitions(const struct stat *st, const char *path)
{
	char dir[64], name[PATH_MAX];
	struct dirent *e;
	int r = 0;
	DIR *d;

	snprintf(dir, sizeof(dir), "/sys/dev/block/%u:%u", major(st->st_rdev), minor(st->st_rdev));
	d = opendir(dir);
	if (!d) {
		r = -errno;
		log_err("store %s: cannot read %s: %s", path, dir, strerror(-r));
		return r;
	}
	while (!r && (e = readdir(d))) {
		if (e->d_name[0] == '.')
			continue;
		snprintf(name, sizeof(name), "%s/%s/partition", dir, e->d_name);
		if (access(name, F_OK) < 0)
			continue;
		log_err("store %s is a whole disk with partitions (%s); name the partition meant",
			path, e->d_name);
		r = -EEXIST;
	}
	closedir(d);
	return r;
}

static int probe_swap(const struct stat *st, const char *path)
{
	cleanup_free char *text = NULL;
	int r;

	r = textfile_read(SWAPS_PATH, &text);
	if (r == -ENOENT) /* a kernel without swap */
		return 0;
	if (r >= 0)
		r = swaps_find(text, st, NULL);
	if (r < 0) {
		log_err("store %s: cannot tell from " SWAPS_PATH " whether it is swapped to: %s",
			path, strerror(-r));
		return r;
	}
	if (r > 0) {
		log_err("store %s is itself in use as swap; swapoff %s, or name another", path,
			path);
		return -EBUSY;
	}
	return 0;
}

/* The loop device that lies over the file @st, e.g. "loop3"; false if there is none. */
static bool find_loop(const struct stat *st, char ret_name[NAME_MAX + 1])
{
	char attr[PATH_MAX], backing[PATH_MAX];
	struct dirent *e;
	struct stat b;
	bool found = false;
	DIR *d;

	d = opendir("/sys/block");
	if (!d)
		return false;
	while (!found && (e = readdir(d))) {
		if (strncmp(e->d_name, "loop", 4) != 0)
			continue;
		snprintf(attr, sizeof(attr), "/sys/block/%s/loop/backing_file", e->d_name);
		if (textfile_read_line(attr, backing, sizeof(backing)) < 0 ||
		    stat(backing, &b) < 0 || b.st_dev != st->st_dev || b.st_ino != st->st_ino)
			continue;
		snprintf(ret_name, NAME_MAX + 1, "%s", e->d_name);
		found = true;
	}
	closedir(d);
	return found;
}

int probe_in_use(const struct stat *st, const char *path)
{
	char loop[NAME_MAX + 1];
	int r;

	r = probe_swap(st, path);
	if (r < 0)
		return r;
	if (S_ISREG(st->st_mode) && find_loop(st, loop)) {
		log_err("store %s is in use as the loop device /dev/%s; losetup -d /dev/%s, or "
			"name another file",
			path, loop, loop);
		return -EBUSY;
	}
	return 0;
}

static int check_file_system(int fd, const char *path)
{
	struct statfs fs;
	int r;

	if (fstatfs(fd, &fs) < 0) {
		r = -errno;
		log_err("store %s: cannot tell its file system: %s", path, strerror(-r));
		return r;
	}
	switch (fs.f_type) {
	case TMPFS_MAGIC:
	case RAMFS_MAGIC:
	case HUGETLBFS_MAGIC:
		log_err("store %s lies in a file system that is memory itself (tmpfs or the like); "
			"name a file on a disk",
			path);
		return -EOPNOTSUPP;
	default:
		return 0;
	}
}

static int no_direct(const char *path)
{
	log_err("store %s: no direct I/O (O_DIRECT) there, which the file system, its kind of "
		"compression, encryption or journal may refuse; name a file on ext4 or xfs, or a "
		"block device",
		path);
	return -EOPNOTSUPP;
}

/* Before 6.1 the kernel does not say: sectors for a device, pages for a file are always enough. */
static uint32_t default_align(int fd, bool is_file)
{
	int sector;

	if (!is_file && ioctl(fd, BLKSSZGET, &sector) == 0 && sector > 0)
		return (uint32_t)sector;
	return 4096;
}

int probe_direct(int fd, const char *path, bool is_file, uint32_t *ret_align)
{
	struct statx sx;
	uint32_t align;
	int flags, r;

	if (is_file) {
		r = check_file_system(fd, path);
		if (r < 0)
			return r;
	}
	flags = fcntl(fd, F_GETFL);
	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_DIRECT) < 0)
		return no_direct(path);
	align = default_align(fd, is_file);
	if (statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &sx) == 0 &&
	    (sx.stx_mask & STATX_DIOALIGN)) {
		/* 0: accepted by open, but done through the page cache. */
		if (sx.stx_dio_offset_align == 0)
			return no_direct(path);
		align = sx.stx_dio_offset_align;
		if (sx.stx_dio_mem_align > align)
			align = sx.stx_dio_mem_align;
	}
	if (align & (align - 1) || align > STORE_DATA_OFFSET) {
		log_err("store %s: direct I/O there needs an alignment of %u bytes, which does not "
			"divide 1 MiB",
			path, align);
		return -EOPNOTSUPP;
	}
	*ret_align = align;
	return 0;
}

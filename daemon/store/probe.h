/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * May this device or file be used as a store?  Questions to libblkid, /proc/swaps, sysfs and the
 * file system, each answered with 0 or with an error that is already logged.  Start-up only.
 */
#ifndef ZSWAPD_STORE_PROBE_H
#define ZSWAPD_STORE_PROBE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

/*
 * -EEXIST when @fd holds a file system, swap, RAID or LVM member, a partition table or anything
 * else that libblkid knows, or several of them.  @fd must not have O_DIRECT, since libblkid reads
 * unaligned; its offset moves.
 */
int probe_signatures(int fd, const char *path);

/* -EEXIST when the block device @st has partitions. */
int probe_partitions(const struct stat *st, const char *path);

/* -EBUSY when @st, a device or a file, is swapped to or, a file, is behind a loop device. */
int probe_in_use(const struct stat *st, const char *path);

/*
 * Switches @fd to O_DIRECT.  *ret_align is the granularity in bytes, a power of two that serves
 * offsets, lengths and memory addresses alike.  -EOPNOTSUPP when that is not to be had.
 */
int probe_direct(int fd, const char *path, bool is_file, uint32_t *ret_align);

#endif

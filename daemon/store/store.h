/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The store: where evicted segments lie, a block device or a file of that kind of size.
 *
 *	0		superblock (4096 bytes), zeroes up to data_offset
 *	1 MiB		place 0
 *	2 MiB		place 1
 *	...
 *	end - 1 MiB	tail, never written
 *
 * Nothing in a store outlives the daemon that wrote it: which place holds what is known only to the
 * state in memory.  So the superblock says "this is ours" and nothing else, and a place holds
 * garbage until it is written.
 *
 * The tail is there for the next start.  Before a device is used, libblkid looks for other people's
 * data on it, at its start and, for RAID, ZFS and GPT, near its end.  Swapped pages may hold any
 * bytes, such signatures too; with the head zeroed and the tail left alone, none of ours ever lies
 * where it is looked for.
 *
 * An open store is exclusive: O_EXCL for a device, which also keeps mount, swapon, mkfs and md off
 * it, a lock (flock) for a file.  Both belong to the open file description, so children that
 * inherit the descriptor hold them too, and both end with the last copy.
 *
 * store_open() may block for as long as it takes to write a new file once; it is for the main
 * thread before the data threads start.  The struct is read-only afterwards, for any thread.
 */
#ifndef ZSWAPD_STORE_STORE_H
#define ZSWAPD_STORE_STORE_H

#include "common/util.h"

#include <stdbool.h>
#include <stdint.h>

#define STORE_PLACE_SIZE  MIB(1)
#define STORE_DATA_OFFSET MIB(1)
#define STORE_TAIL_SIZE	  MIB(1)
#define STORE_ID_SIZE	  16
/* One place. */
#define STORE_SIZE_MIN (STORE_DATA_OFFSET + STORE_PLACE_SIZE + STORE_TAIL_SIZE)

struct store_options {
	const char *path;
	uint64_t size; /* bytes in all, rounded down to 1 MiB; 0 = the whole block device */
	/*
	 * Only the store of this id (STORE_ID_SIZE bytes), as it is: what it holds is still needed.
	 * NULL: any.
	 */
	const uint8_t *keep;
	/*
	 * With @keep: the store's descriptor, as another process has opened it, or -1.  It is then
	 * copied rather than opened again, which the other one's lock would forbid.  Should @path
	 * be another by now, that is said and changes nothing.
	 */
	int fd;
};

struct store {
	int fd;		      /* O_RDWR | O_DIRECT | O_CLOEXEC */
	uint32_t nplaces;     /* at least 1 */
	uint64_t data_offset; /* bytes; where place 0 starts */
	uint32_t dio_align;   /* bytes, a power of two: offset, length and address of O_DIRECT */
	uint8_t id[STORE_ID_SIZE]; /* made when it is formatted */
	bool is_file;
	char *path; /* as configured */
};

/*
 * Opens the store, making it if need be: a device on which nothing is found is formatted, a missing
 * or empty file is created, preallocated and written once with zeroes; a file of ours is resized.
 * A device of ours may be used in part: size bounds it.
 *
 * Every error is logged with the path.
 *   -EINVAL      size is 0 for a file, below STORE_SIZE_MIN or above the device; the path is
 *                neither a block device nor a regular file
 *   -ENOENT      no such path, or no directory to create the file in
 *   -EEXIST      it holds somebody else's data (or another version's store)
 *   -EBUSY       mounted, swapped to, behind a loop device, or opened by another zswapd
 *   -ELOOP       a symbolic link that does not lead to a block device
 *   -EPERM       the file is another user's or open to others.  The mode is not repaired: somebody
 *                may have the file open already, and would go on reading other people's memory
 *   -EOPNOTSUPP  no O_DIRECT there, or the file system is memory itself
 *   -ENOSPC      no room; a file that this call created is removed again
 *   -ESTALE      it is another store than the one to keep, or would have to be changed
 */
int store_open(struct store **ret, const struct store_options *o);

/*
 * Waits until @path is there, or for a file the directory that it would be made in; for @ms at
 * most. -ENOENT: it is not, which is not logged.  What else may be wrong with it store_open()
 * tells.
 */
int store_await(const char *path, unsigned ms);

/* Closes and thereby unlocks it.  @s may be NULL. */
void store_free(struct store *s);

#endif

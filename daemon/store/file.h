/* SPDX-License-Identifier: GPL-2.0-or-later */
/* clang-format off */
/*
 * A store that is a file: what makes it as good as a device while memory is short.
 *
 * A write into a hole or into a preallocated but never written extent makes the file system change
 * its metadata, for which it wants memory, which may be what the write is to free.  So every byte
 * is allocated first and then written once, at creation and, for the part added, at growth.
 *
 *	file on disk			superblock			what is done
 *	empty				-				head, allocate, write all, flag
 *	any size			ours, not WRITTEN or damaged	the same again
 *	size wanted			WRITTEN, same size		nothing
 *	smaller				WRITTEN, smaller		allocate and write the rest
 *	larger				WRITTEN, larger			superblock first, then cut
 *
 * The superblock changes after the bytes it vouches for are on the disk when the file grows, and
 * before they are gone when it shrinks, so wherever this is interrupted the next start falls into a
 * row of the table that redoes it.
 */
/* clang-format on */
#ifndef ZSWAPD_STORE_FILE_H
#define ZSWAPD_STORE_FILE_H

#include "daemon/store/store.h"

/*
 * s->fd is open, locked, known to hold nobody's data; s->path and s->dio_align are set.  @size is a
 * multiple of 1 MiB.  On failure the file keeps or gets back the length it had.  Errors are logged;
 * -ENOSPC with the bytes needed and available.
 */
int file_prepare(struct store *s, uint64_t size);

/*
 * -EPERM unless the file belongs to this user and is closed to all others; logged.
 */
int file_check_owner(int fd, const char *path);

#endif

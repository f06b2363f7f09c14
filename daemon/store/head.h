/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The store's first MiB, read and written with O_DIRECT through a buffer of its own.  Start-up
 * only, one thread.
 */
#ifndef ZSWAPD_STORE_HEAD_H
#define ZSWAPD_STORE_HEAD_H

#include "daemon/store/store.h"
#include "daemon/store/superblock.h"

/*
 * Reads the superblock of s->fd and says what it is.  *ret_sb is set for SUPERBLOCK_VALID only.
 * -EIO and the like are logged.  A store too short to hold one is foreign.
 */
int head_read(const struct store *s, struct superblock *ret_sb, enum superblock_state *ret_state);

/*
 * Writes @sb, and zeroes behind it up to the data when @whole, and waits until it is on the disk.
 * Errors are logged.
 */
int head_write(const struct store *s, const struct superblock *sb, bool whole);

#endif

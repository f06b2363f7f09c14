/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A loop device over the file that we serve, set up for swap.
 *
 * What swap needs of it, and who wants it:
 *
 *	logical block size 4096
 *		every request is whole slots
 *	direct I/O
 *		else each page sits in the page cache once more, which takes the very memory that
 *		swapping is to free; refused if it is not on
 *	discard
 *		the only way in which swap says that a slot is free; refused if not advertised
 *	what blockdev_tune() sets
 *
 * Not autoclear: when to go is decided by loopdev_detach(), not by who happens to have the device
 * open.
 *
 * Attaching, probing and detaching all make requests to the file.  The threads that serve it must
 * run already, and the caller must be none of them.  Errors are logged.
 */
#ifndef ZSWAPD_FUSE_LOOPDEV_H
#define ZSWAPD_FUSE_LOOPDEV_H

#define LOOPDEV_PATH_MAX 32

/*
 * Puts a free loop device over @backing_fd, opened for reading and writing, size a multiple of
 * 4096.  @name_for_info, at most 63 bytes, is what losetup shows in place of the path.  The device
 * keeps its own reference to the file.
 *
 * -EOPNOTSUPP: no direct I/O or no discard with that file; nothing stays attached.
 * -EBUSY: others took each device that was free, for a second.
 */
int loopdev_attach(int backing_fd, const char *name_for_info, char ret_path[LOOPDEV_PATH_MAX]);

/*
 * Detaches @path and waits up to five seconds until it is gone.  -EBUSY: somebody has it open, swap
 * for example; the kernel then detaches it when that ends.  0 if it was not attached.
 */
int loopdev_detach(const char *path);

/* As soon as nobody has @path open any more, it is detached.  Does not wait; logs nothing. */
void loopdev_forsake(const char *path);

#endif

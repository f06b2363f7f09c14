/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What every block device that swap is to use has in common, whoever made it. */
#ifndef ZSWAPD_TRANSPORT_BLOCKDEV_H
#define ZSWAPD_TRANSPORT_BLOCKDEV_H

/*
 * Sets @name ("loop0") up for swap:
 *
 *	not rotational
 *		only then does swap allocate in clusters per CPU
 *	no I/O scheduler
 *		swap merges its requests already, a queue only adds waiting
 *	read-ahead 0
 *		swap has its own.  The readers left are probes by udev and libblkid, a few KiB each,
 *		which would pull 128 KiB through the daemon every time
 *	no writeback throttling
 *		it makes kswapd wait, for the sake of readers that a queue here does not delay
 *	so many requests at a time that their pages are a 64th of memory
 *		pages on their way to swap can't be reclaimed otherwise.  If they are all that there
 *		is, reclaim finds nothing, and the OOM killer acts; if not, reclaim waits for a free
 *		request instead
 *
 * and never more than @requests_max at a time in a queue, whatever the memory (UINT_MAX: as many as
 * there are).  What can't be set is warned about, and the device works all the same.
 */
void blockdev_tune(const char *name, unsigned requests_max);

#endif

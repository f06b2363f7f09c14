/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * /proc/swaps: which devices and files the kernel swaps to.
 *
 * A line is "path type size used priority", sizes in KiB.  The path is the one the kernel resolved,
 * not the one given to swapon, with blanks, tabs, newlines and backslashes as \ooo.  Two paths name
 * the same swap area when they lead to the same block device or to the same inode, so entries are
 * compared by what stat says, never as strings.
 *
 * Who swaps on in a mount namespace of its own, as services of systemd do, takes its /dev along:
 * once the last process there has ended, /dev/loop0 is listed as /loop0, though it is swapped to as
 * before.  So a device's path is looked for below /dev, too.
 *
 * Not for data threads.  The parser takes text, so that it can be tested without any swap.
 */
#ifndef ZSWAPD_COMMON_SWAPS_H
#define ZSWAPD_COMMON_SWAPS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#define SWAPS_PATH "/proc/swaps"

struct swaps_entry {
	char path[PATH_MAX]; /* unescaped */
	uint64_t total;	     /* bytes */
	uint64_t used;	     /* bytes */
	int priority;
};

/*
 * Takes the next entry from *text, skipping the heading, and moves *text behind it.  1: an entry;
 * 0: the end; -EBADMSG: a line that is not in the form above.
 */
int swaps_next(const char **text, struct swaps_entry *ret);

/*
 * Whether @e is the block device or regular file that @st describes.  An entry whose path is gone
 * matches nothing.
 */
bool swaps_entry_is(const struct swaps_entry *e, const struct stat *st);

/*
 * Looks in @text for what @st describes.  1: found; 0: not swapped to; -EBADMSG as above.  @ret may
 * be NULL.
 */
int swaps_find(const char *text, const struct stat *st, struct swaps_entry *ret);

#endif

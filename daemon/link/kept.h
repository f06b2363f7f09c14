/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Descriptors by name: what has to outlive a process for its successor to go on.
 *
 * The table owns its descriptors, which are close-on-exec.  A child that is forked has the table
 * and the descriptors too, each its own.
 *
 * Main threads only.
 */
#ifndef ZSWAPD_LINK_KEPT_H
#define ZSWAPD_LINK_KEPT_H

#define KEPT_MAX      16u
#define KEPT_NAME_MAX 32u /* with its NUL */

/* Names that are more than one side's.  Those in parentheses no service manager is given. */
#define KEPT_STATE    "zswapd-state"
#define KEPT_FRONT    "zswapd-front"
#define KEPT_STORE    "zswapd-store"
#define KEPT_MOUNTS   "zswapd-mounts" /* the mount namespace in which swap was switched on */
#define KEPT_LOCK     "(lock)"	      /* of the device's name */
#define KEPT_LISTENER "(listener)"    /* where a new supervisor calls: see link.h */
#define KEPT_BUFFERS  "(buffers)"     /* requests' data; see daemon/transport/data_thread.h */
#define KEPT_WATCH    "(watch)"	      /* see daemon/watch/watch.h */

struct kept_entry {
	char name[KEPT_NAME_MAX];
	int fd;
};

struct kept {
	struct kept_entry entries[KEPT_MAX];
	unsigned n;
};

/*
 * Takes @fd, in place of another of that name.  -ENOSPC: the table is full; -ENAMETOOLONG.  @fd is
 * closed then.
 */
int kept_put(struct kept *k, const char *name, int fd);

/* The table's own descriptor, or -1. */
int kept_get(const struct kept *k, const char *name);

/* A copy for the caller, or a negative errno; -ENOENT: there is none. */
int kept_copy(const struct kept *k, const char *name);

void kept_drop(struct kept *k, const char *name);
void kept_deinit(struct kept *k);

/* Whether it is of this process family alone. */
static inline int kept_is_private(const char *name)
{
	return name[0] == '(';
}

#endif

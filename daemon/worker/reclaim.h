/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The one setting of the kernel's reclaim that a swap device in user space cannot live with.
 *
 * When the kernel has to mix movable and unmovable memory, it raises a zone's watermarks for a
 * while: by half of the high one, and by 2 MiB at least.  Everybody who then allocates waits for
 * kswapd to free so much, kswapd waits for pages that it has sent to us, and the kernel's own
 * threads between swap and us (loop's worker, FUSE) wait with everybody, since they have no access
 * to reserves: on a small machine nobody ever goes on.  Without the boost the margin that they need
 * is never taken away at one stroke.  So vm.watermark_boost_factor is 0 while a daemon serves.
 *
 * The setting is the machine's, and there may be several daemons.  Each holds a shared lock on a
 * file that has the former value; whoever stops and finds himself alone puts it back.  A daemon
 * that was killed leaves the file, and its successor finds the value there.
 *
 * Main thread.
 */
#ifndef ZSWAPD_WORKER_RECLAIM_H
#define ZSWAPD_WORKER_RECLAIM_H

#define RECLAIM_BOOST_PATH "/proc/sys/vm/watermark_boost_factor"
#define RECLAIM_VALUE_MAX  24

struct reclaim {
	/* set at the start */
	const char *boost; /* path of the setting */
	const char *file;  /* path of the file with its former value */
	int fd;		   /* holds the shared lock; -1: the setting was left alone */
};

/*
 * Switches the boost off.  What is not possible is warned about, with the risk; a kernel that has
 * no such setting does not do such a thing.
 */
void reclaim_adapt(struct reclaim *ret, const char *boost, const char *file);

/* Puts the former value back unless another daemon serves, or somebody has set another one since.
 */
void reclaim_restore(struct reclaim *r);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The exported device as the kernel's swap: formatted, on, how full, off.
 *
 * All of it ends in I/O on the device, so the threads that serve it must run already, and the
 * caller must be none of them: the main thread.
 */
#ifndef ZSWAPD_WORKER_SWAP_H
#define ZSWAPD_WORKER_SWAP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#define SWAP_PRIORITY_MAX 32767
/* The kernel chooses: below all devices that have a priority. */
#define SWAP_PRIORITY_DEFAULT (-1)

/*
 * Runs mkswap(8), @label may be NULL.  Within 30 seconds, else -ETIMEDOUT; -EIO when mkswap fails,
 * with what it said; -ENOENT when it is not installed.  Errors are logged.
 */
int swap_format(const char *dev, const char *label);

/*
 * @priority from 0 to SWAP_PRIORITY_MAX or SWAP_PRIORITY_DEFAULT.  @discard_pages: the kernel
 * discards freed clusters, which is how the daemon gets memory back; without the one big discard at
 * swapon, which a device that is new does not need.  Errors are logged; -EBUSY: it is on already.
 */
int swap_on(const char *dev, int priority, bool discard_pages);

#define SWAP_OFF_REPORT_S 10

/* @left: bytes that are still out. */
typedef void (*swap_progress_fn)(void *ctx, uint64_t left);

/* Bytes.  -ENOENT, not logged: @dev is not swapped to. */
int swap_usage(const char *dev, uint64_t *ret_total, uint64_t *ret_used);

/*
 * Whether all that is swapped to @dev fits elsewhere.  Bytes:
 *
 *	needed		used bytes of @dev
 *	available	MemAvailable + free bytes of the other swap areas - margin
 *	margin		1/32 of RAM, at most 64 MiB: what the system needs to go on meanwhile
 *
 * It errs to the safe side: the memory that the daemon itself gives back as its pages leave is not
 * counted.  0: fits.  -ENOMEM: does not, not logged; the outcome sets both figures too.  -ENOENT:
 * not on.
 */
int swap_off_check(const char *dev, uint64_t *ret_needed, uint64_t *ret_available);

/*
 * Brings every page back and takes @dev off, by swapoff(8) in a process of its own.  Not by the
 * system call from here, for two reasons: the kernel's OOM killer takes the process that is in
 * swapoff first, whatever its score, and it must not take the one that holds the pages; and a
 * daemon that dies while one of its threads waits in swapoff for its own device could not release
 * it.
 *
 * It takes as long as it takes while pages come back; progress is logged, and told by @progress,
 * which may be NULL, at least every SWAP_OFF_REPORT_S seconds.  Errors are logged:
 *   -ENOENT     not on
 *   -ENOMEM     the kernel had no room for the pages; still on
 *   -ETIMEDOUT  no page came back for two minutes; given up, still on
 *   -EINTR      ended from outside, the OOM killer for example; still on
 *   -EIO        anything else, with what swapoff said
 */
int swap_off(const char *dev, swap_progress_fn progress, void *ctx);

/* --- the texts behind it, for tests --- */

struct swap_meminfo {
	uint64_t total;	    /* bytes */
	uint64_t available; /* bytes */
};

/* /proc/meminfo; -EBADMSG if a figure is missing or is no number of kB. */
int swap_parse_meminfo(const char *text, struct swap_meminfo *ret);

/*
 * /proc/swaps: the area of @st, and in *ret_other_free the free bytes of all others.  -ENOENT,
 * -EBADMSG.
 */
int swap_parse_swaps(const char *text, const struct stat *st, uint64_t *ret_total,
		     uint64_t *ret_used, uint64_t *ret_other_free);

/* The sum above; never below 0. */
uint64_t swap_available(const struct swap_meminfo *mem, uint64_t other_free);

#endif

// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/worker/swap.h"
#include "common/log.h"
#include "common/swaps.h"
#include "common/textfile.h"
#include "common/util.h"
#include "daemon/worker/run.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/swap.h>

/* linux/swap.h is the kernel's own; the C library's header stops at SWAP_FLAG_DISCARD. */
#ifndef SWAP_FLAG_DISCARD_PAGES
#define SWAP_FLAG_DISCARD_PAGES 0x40000
#endif

#define FORMAT_TIMEOUT_MS  30000
#define OFF_REPORT_MS	   (SWAP_OFF_REPORT_S * 1000)
#define OFF_STALLED_ROUNDS 12 /* of OFF_REPORT_MS without a page */
#define MARGIN_MAX	   MIB(64)

/* --- texts --- */

int swap_parse_meminfo(const char *text, struct swap_meminfo *ret)
{
	struct swap_meminfo mem;
	int r;

	r = textfile_size(text, "MemTotal", &mem.total);
	if (r == 0)
		r = textfile_size(text, "MemAvailable", &mem.available);
	if (r == 0)
		*ret = mem;
	return r;
}

int swap_parse_swaps(const char *text, const struct stat *st, uint64_t *ret_total,
		     uint64_t *ret_used, uint64_t *ret_other_free)
{
	uint64_t total = 0, used = 0, other_free = 0;
	struct swaps_entry e;
	bool found = false;
	int r;

	while ((r = swaps_next(&text, &e)) > 0) {
		if (swaps_entry_is(&e, st)) {
			found = true;
			total = e.total;
			used = e.used;
		} else if (e.total > e.used) {
			other_free += e.total - e.used;
		}
	}
	if (r < 0)
		return r;
	if (!found)
		return -ENOENT;
	*ret_total = total;
	*ret_used = used;
	*ret_other_free = other_free;
	return 0;
}

uint64_t swap_available(const struct swap_meminfo *mem, uint64_t other_free)
{
	uint64_t margin = min_u64(mem->total / 32, MARGIN_MAX);
	uint64_t sum = mem->available + other_free;

	return sum > margin ? sum - margin : 0;
}

/* --- usage --- */

static int read_usage(const char *dev, uint64_t *ret_total, uint64_t *ret_used,
		      uint64_t *ret_other_free)
{
	cleanup_free char *text = NULL;
	struct stat st;
	int r;

	/* A device that is gone is not on: -ENOENT, the same answer. */
	r = stat(dev, &st) < 0 ? -errno : 0;
	if (r == 0)
		r = textfile_read(SWAPS_PATH, &text);
	if (r == 0)
		r = swap_parse_swaps(text, &st, ret_total, ret_used, ret_other_free);
	if (r < 0 && r != -ENOENT)
		log_err("cannot tell from " SWAPS_PATH " how full %s is: %s", dev, strerror(-r));
	return r;
}

int swap_usage(const char *dev, uint64_t *ret_total, uint64_t *ret_used)
{
	uint64_t other_free;

	return read_usage(dev, ret_total, ret_used, &other_free);
}

int swap_off_check(const char *dev, uint64_t *ret_needed, uint64_t *ret_available)
{
	uint64_t total, used, other_free, available;
	cleanup_free char *text = NULL;
	struct swap_meminfo mem = {0};
	int r;

	r = read_usage(dev, &total, &used, &other_free);
	if (r < 0)
		return r;
	r = textfile_read("/proc/meminfo", &text);
	if (r == 0)
		r = swap_parse_meminfo(text, &mem);
	if (r < 0) {
		log_err("cannot read /proc/meminfo: %s", strerror(-r));
		return r;
	}
	available = swap_available(&mem, other_free);
	*ret_needed = used;
	*ret_available = available;
	return used > available ? -ENOMEM : 0;
}

/* --- format, on, off --- */

int swap_format(const char *dev, const char *label)
{
	const char *with_label[] = {"mkswap", "-L", label, dev, NULL};
	const char *without_label[] = {"mkswap", dev, NULL};
	struct run run = RUN_NULL;
	int status, r;

	r = run_start(&run, label ? with_label : without_label);
	if (r < 0)
		return r;
	r = run_wait(&run, FORMAT_TIMEOUT_MS, &status);
	if (r == -ETIMEDOUT)
		log_err("mkswap %s did not end within %d s; killed", dev, FORMAT_TIMEOUT_MS / 1000);
	else if (r < 0)
		log_err("cannot wait for mkswap %s: %s", dev, strerror(-r));
	run_deinit(&run);
	if (r < 0)
		return r;
	if (status != 0) {
		log_err("mkswap %s failed (status %d): %s", dev, status, run.output);
		return -EIO;
	}
	return 0;
}

int swap_on(const char *dev, int priority, bool discard_pages)
{
	int flags = 0, r;

	if (priority < SWAP_PRIORITY_DEFAULT || priority > SWAP_PRIORITY_MAX) {
		log_err("swap %s: priority %d is not in -1 to %d", dev, priority,
			SWAP_PRIORITY_MAX);
		return -EINVAL;
	}
	if (priority >= 0)
		flags |= SWAP_FLAG_PREFER |
			 ((priority << SWAP_FLAG_PRIO_SHIFT) & SWAP_FLAG_PRIO_MASK);
	if (discard_pages)
		flags |= SWAP_FLAG_DISCARD | SWAP_FLAG_DISCARD_PAGES;
	if (swapon(dev, flags) == 0)
		return 0;
	r = -errno;
	if (r == -EBUSY)
		log_err("swapon %s: it is swapped to already", dev);
	else
		log_err("swapon %s: %s", dev, strerror(-r));
	return r;
}

/* Follows swapoff(8) until it ends, or until it gets nowhere. */
static int follow_off(struct run *run, const char *dev, int *ret_status, swap_progress_fn progress,
		      void *ctx)
{
	uint64_t total, used, last = UINT64_MAX;
	int r;

	for (int stalled = 0; stalled < OFF_STALLED_ROUNDS;) {
		r = run_wait(run, OFF_REPORT_MS, ret_status);
		if (r != -ETIMEDOUT)
			return r;
		r = swap_usage(dev, &total, &used);
		if (r == -ENOENT) { /* all pages are back, it is being torn down */
			total = 0;
			used = 0;
		} else if (r < 0) {
			return r;
		}
		stalled = used < last ? 0 : stalled + 1;
		if (progress && stalled == 0)
			progress(ctx, used);
		last = used;
		log_info("swapoff %s: %" PRIu64 " MiB to go", dev, used >> 20);
	}
	return -ETIMEDOUT;
}

static int report_off(const char *dev, const struct run *run, int status)
{
	if (status == 0)
		return 0;
	/* swapoff(8): 2 is ENOMEM from the system call. */
	if (status == 2) {
		log_err("swapoff %s: the kernel has no room for the pages; stop programs, raise "
			"the limit of a memory cgroup that is full (its pages come back into it), "
			"or add other swap, then try again",
			dev);
		return -ENOMEM;
	}
	if (status > 128) {
		log_err("swapoff %s was ended by signal %d, by the OOM killer if it is 9; it "
			"is still on",
			dev, status - 128);
		return -EINTR;
	}
	log_err("swapoff %s failed (status %d): %s", dev, status, run->output);
	return -EIO;
}

int swap_off(const char *dev, swap_progress_fn progress, void *ctx)
{
	const char *argv[] = {"swapoff", dev, NULL};
	struct run run = RUN_NULL;
	uint64_t total, used;
	int status, r;

	r = swap_usage(dev, &total, &used);
	if (r < 0) {
		if (r == -ENOENT)
			log_err("swapoff %s: it is not swapped to", dev);
		return r;
	}
	r = run_start(&run, argv);
	if (r < 0)
		return r;
	r = follow_off(&run, dev, &status, progress, ctx);
	if (r == -ETIMEDOUT)
		log_err("swapoff %s: no page came back for %d s; given up, it is still on", dev,
			OFF_REPORT_MS / 1000 * OFF_STALLED_ROUNDS);
	else if (r < 0)
		log_err("cannot wait for swapoff %s: %s", dev, strerror(-r));
	run_deinit(&run);
	if (r < 0)
		return r;
	return report_off(dev, &run, status);
}

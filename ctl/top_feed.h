/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Asks the daemon again and again on a thread of its own, so that a screen answers its keys while
 * the daemon answers nothing.  The daemon may go away and come back on another port.
 */
#ifndef ZSWAPD_CTL_TOP_FEED_H
#define ZSWAPD_CTL_TOP_FEED_H

#include <stdint.h>

#include "ctl/top_model.h"

struct top_feed;

/* The thread inherits the caller's signal mask.  Strings outlive the feed.  Negative errno. */
int top_feed_start(struct top_feed **ret, const char *run_dir, const char *device,
		   uint64_t interval_ns);

/* Readable when there is a sample. */
int top_feed_fd(const struct top_feed *f);

/* The newest sample; false if there was none since the last call. */
bool top_feed_take(struct top_feed *f, struct top_sample *ret);

/* Does not wait for the interval to pass this time. */
void top_feed_hurry(struct top_feed *f);

/*
 * Waits for the question under way, for a second at most: if the daemon hangs, the thread is left
 * behind with all that it has, for a program that is about to end.
 */
void top_feed_stop(struct top_feed *f);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Small texts made from values of which some may be unknown: "?" is a value that was not sent or
 * could not be read, "-" one that does not exist, such as the ratio of nothing.  Pure, any thread.
 */
#ifndef ZSWAPD_CTL_CELL_H
#define ZSWAPD_CTL_CELL_H

#include "ctl/reply.h"

#define CELL_MAX 32

struct cell {
	char s[CELL_MAX];
};

struct cell cell_text(const char *s);
struct cell cell_count(struct ctl_num n);
struct cell cell_bytes(struct ctl_num n);

/* @a / @b times @scale with @unit behind it; two decimals, one if @scale is 100. */
struct cell cell_ratio(double a, double b, bool known, double scale, const char *unit);
struct cell cell_percent(struct ctl_num a, struct ctl_num b);

/* Pages against the bytes they were compressed to. */
struct cell cell_compression(struct ctl_num pages, struct ctl_num bytes);

/* A time in nanoseconds, at most 7 columns: "383 ns", "3.8 us", "38 us", "1.2 ms", "2.5 s". */
struct cell cell_time(struct ctl_num ns);

/* The same for what share @share (0 to 1) of @h does not exceed; "-" of nothing, "?" of NULL. */
struct cell cell_percentile(const struct ctl_histogram *h, double share);

/* A number in at most 5 columns: "0.3", "17", "999", "1.2k", "812k", "3.4M". */
struct cell cell_short(double v);

struct ctl_num num_sum(struct ctl_num a, struct ctl_num b);

#endif

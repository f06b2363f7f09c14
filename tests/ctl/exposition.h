/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A strict reader of Prometheus' text format 0.0.4, stricter than scrapers are: every metric is
 * typed, its lines stand together, no series comes twice, and a histogram's buckets ascend, end in
 * +Inf, and agree with its count.
 */
#ifndef ZSWAPD_TESTS_CTL_EXPOSITION_H
#define ZSWAPD_TESTS_CTL_EXPOSITION_H

/* NULL if @text is right; else what is wrong, good until the next call. */
const char *exposition_fault(const char *text);

#endif

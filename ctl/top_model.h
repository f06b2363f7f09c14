/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What `zswapctl top` knows: the last answer, rates between answers and their history, and what was
 * counted during the last seconds.  Samples are taken one after the other; a sample may also be
 * "no answer", which leaves everything as it was and a gap in the history.  A daemon that was
 * restarted counts from 0 again: that too is a gap, and the window starts anew.
 *
 * Computing only: no clock, no socket, no screen.
 */
#ifndef ZSWAPD_CTL_TOP_MODEL_H
#define ZSWAPD_CTL_TOP_MODEL_H

#include "ctl/reply.h"

#define TOP_HISTORY   512
#define TOP_WINDOW_S  10
#define TOP_SNAPSHOTS (TOP_WINDOW_S + 2)

enum top_rate {
	TOP_SWAP_IN,
	TOP_SWAP_OUT,
	TOP_DISCARD,
	TOP_STORE_READ,
	TOP_STORE_WRITE,
	TOP_RATES,
};

/* What one round of questions brought. */
struct top_sample {
	uint64_t at_ns; /* CLOCK_MONOTONIC */
	bool answered;
	char why[NLPROTO_LINE_MAX]; /* not answered: why */
	char device[NLPROTO_NAME_MAX];
	struct ctl_status status;
	struct ctl_stats stats;
};

struct top_snapshot {
	uint64_t at_ns;
	struct ctl_stats stats;
};

struct top_model {
	bool ever;		/* there was an answer */
	bool silent;		/* but the last question had none */
	uint64_t answered_ns;	/* time of the last answer, or of the first try */
	uint64_t now_ns;	/* time of the last sample */
	struct top_sample last; /* the last answer; .why is that of the last silence */

	/* A ring; head is where the next goes.  NAN is a gap. */
	float history[TOP_RATES][TOP_HISTORY];
	unsigned head, filled;

	/* About one a second, the oldest first; all of one life of the daemon. */
	struct top_snapshot snapshot[TOP_SNAPSHOTS];
	unsigned snapshots;
	struct ctl_stats window; /* counters and histograms of the last TOP_WINDOW_S seconds */
	double window_s;	 /* that time, 0 before there is any */
};

void top_model_init(struct top_model *m);
void top_model_take(struct top_model *m, const struct top_sample *s);

/* @age samples ago, 0 being the last; NAN where there is none. */
double top_model_rate(const struct top_model *m, enum top_rate rate, unsigned age);

/* The greatest of the last @ages, 0 if there is none. */
double top_model_peak(const struct top_model *m, enum top_rate rate, unsigned ages);

#endif

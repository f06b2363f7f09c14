/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the daemon answered, as far as it could be read.  Messages are taken one after the other;
 * each field knows whether it is known, so that one that is missing, or in a form this program does
 * not understand, costs nothing but itself.  Pure functions, no sockets.
 */
#ifndef ZSWAPD_CTL_REPLY_H
#define ZSWAPD_CTL_REPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/nlproto.h"

#define CTL_COUNTERS_MAX   512
#define CTL_HISTOGRAMS_MAX 16
#define CTL_BUCKETS_MAX	   256
#define CTL_OPTIONS_MAX	   64
#define CTL_LINES_MAX	   64

struct ctl_num {
	bool known;
	uint64_t v;
};

struct ctl_text {
	bool known;
	char s[NLPROTO_LINE_MAX]; /* as sent: may hold any byte but NUL */
};

struct ctl_counter {
	char name[NLPROTO_NAME_MAX]; /* [a-z_][a-z0-9_]* */
	struct ctl_num kind;	     /* enum nlproto_kind */
	struct ctl_num unit;	     /* enum nlproto_unit */
	struct ctl_num value;
};

/* Buckets ascend and do not overlap; empty ones are left out. */
struct ctl_histogram {
	char name[NLPROTO_NAME_MAX]; /* [a-z_][a-z0-9_]* */
	struct ctl_num unit;	     /* enum nlproto_unit, of bounds and sum */
	uint64_t count;		     /* the sum of the buckets' counts, counted here */
	struct ctl_num sum;	     /* of the values */
	size_t n;
	struct nlproto_bucket b[CTL_BUCKETS_MAX];
};

struct ctl_stats {
	size_t n;
	/*
	 * Counters and histograms without a usable name, with broken buckets, or for which there is
	 * no room: left out.  And counters that are there but without their value.
	 */
	size_t unreadable;
	size_t nhistograms;
	struct ctl_counter c[CTL_COUNTERS_MAX];
	struct ctl_histogram h[CTL_HISTOGRAMS_MAX];
};

struct ctl_option {
	char key[NLPROTO_NAME_MAX]; /* "section.key": letters, digits, '.', '-', '_' */
	struct ctl_text value, in_force, def, origin, text, range;
	struct ctl_num live; /* 1: changes at run time, 0: with a restart */
};

struct ctl_options {
	size_t n;
	size_t unreadable; /* without a usable key, left out */
	struct ctl_option o[CTL_OPTIONS_MAX];
};

struct ctl_job {
	bool known; /* the answer had one */
	struct ctl_num id, kind, state, unit, done, total, found, error;
};

struct ctl_lines {
	size_t n;
	size_t unreadable; /* too long, or too many */
	char line[CTL_LINES_MAX][NLPROTO_LINE_MAX];
};

struct ctl_status {
	struct ctl_text daemon_version, path, transport, last_error, takeover;
	struct ctl_num protocol, pid, state, health, store_state;
	struct ctl_num supervisor, standby; /* pids; 0: there is none */
	struct ctl_num deaths, takeover_time, takeover_ns;
	char report[NLPROTO_REPORT_MAX]; /* empty: no worker has died */
};

enum ctl_take {
	CTL_TAKE_MORE,	  /* the answer goes on */
	CTL_TAKE_DONE,	  /* complete */
	CTL_TAKE_REFUSED, /* the daemon answered with .error and .error_text */
};

struct ctl_reply {
	/* Set by the asker. */
	uint8_t cmd;
	uint32_t seq;
	char want_device[NLPROTO_NAME_MAX]; /* empty: any */

	/* Filled in. */
	char device[NLPROTO_NAME_MAX];
	int error; /* negative errno */
	char error_text[NLPROTO_LINE_MAX];
	struct ctl_status status;   /* VERSION, STATUS */
	struct ctl_stats stats;	    /* STATS */
	struct ctl_options options; /* GET, SET */
	struct ctl_job job;	    /* JOB, WRITEBACK, COMPACT, CHECK, CANCEL */
	struct ctl_lines lines;	    /* SET: what changed; RELOAD: a line for each option */
	struct ctl_num partly;	    /* RELOAD: known and not 0: some could not be applied */
	struct ctl_num seconds;	    /* SUBSCRIBE: how long it holds; 0: there is none */
	struct ctl_num event_seq;   /* SUBSCRIBE: number of the last event, 0: none so far */
	struct ctl_num began;	    /* SUBSCRIBE: when these numbers began */
};

/* What happened.  Fields that the kind does not have are not known. */
struct ctl_event {
	char device[NLPROTO_NAME_MAX];
	struct ctl_num kind;	    /* enum nlproto_event */
	struct ctl_num seq;	    /* from 1, without gaps, as long as the daemon lives */
	struct ctl_num time;	    /* CLOCK_REALTIME in ns */
	struct ctl_num count;	    /* how many since the last event of this kind */
	struct ctl_num state;	    /* STATE_CHANGED: enum nlproto_state */
	struct ctl_num store_state; /* STORE_STATE: enum nlproto_store_state */
	struct ctl_text key;	    /* CONFIG_CHANGED: "section.key" */
	struct ctl_text text;	    /* a line for people */
	struct ctl_job job;	    /* JOB_FINISHED */
};

/*
 * Makes @r ready for the answer to @cmd.  Nothing is known then; the places of the lists keep what
 * they had, as they are many and each is filled as a whole.  -EINVAL: @device, which may be NULL or
 * empty, is longer than a name.
 */
int ctl_reply_init(struct ctl_reply *r, uint8_t cmd, uint32_t seq, const char *device);

/*
 * Takes one datagram, aligned to 4 bytes.  Returns an enum ctl_take, or -EPROTO with a reason in
 * .error_text if this is no answer to what was asked.  A message of another sequence number is
 * passed over (MORE): it belongs to a question that was given up.
 */
int ctl_reply_take(struct ctl_reply *r, const void *msg, size_t len);

/*
 * Takes one datagram that came unasked.  1: an event of @want_device (empty: any).  0: something
 * else.  -EPROTO: an event that cannot be read.  *ret is untouched but for 1.
 */
int ctl_event_take(struct ctl_event *ret, const char *want_device, const void *msg, size_t len);

/* The counter's value; not known if it was not sent. */
struct ctl_num ctl_stats_get(const struct ctl_stats *st, const char *name);

/* NULL if it was not sent. */
const struct ctl_histogram *ctl_stats_histogram(const struct ctl_stats *st, const char *name);
const struct ctl_option *ctl_options_get(const struct ctl_options *o, const char *key);

/*
 * What was counted between the snapshots @before and @now of the same histogram.  False: they do
 * not belong together (the daemon was restarted); *ret is then @now.  @ret may be neither of them.
 */
bool ctl_histogram_since(struct ctl_histogram *ret, const struct ctl_histogram *now,
			 const struct ctl_histogram *before);

/* The upper bound of the bucket in which the share @share (0 to 1) lies; not known of nothing. */
struct ctl_num ctl_histogram_percentile(const struct ctl_histogram *h, double share);

#endif

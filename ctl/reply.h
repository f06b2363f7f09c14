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

#define CTL_COUNTERS_MAX 512

struct ctl_num {
	bool known;
	uint64_t v;
};

struct ctl_text {
	bool known;
	char s[NLPROTO_TEXT_MAX]; /* as sent: may hold any byte but NUL */
};

struct ctl_counter {
	char name[NLPROTO_NAME_MAX]; /* [a-z_][a-z0-9_]* */
	struct ctl_num kind;	     /* enum nlproto_kind */
	struct ctl_num unit;	     /* enum nlproto_unit */
	struct ctl_num value;
};

struct ctl_stats {
	size_t n;
	size_t unreadable; /* counters without a usable name, left out, and known ones without value
			    */
	struct ctl_counter c[CTL_COUNTERS_MAX];
};

struct ctl_status {
	struct ctl_text daemon_version, path, transport, last_error;
	struct ctl_num protocol, pid, state, health;
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
	char error_text[NLPROTO_TEXT_MAX];
	struct ctl_status status;
	struct ctl_stats stats;
};

/*
 * Takes one datagram, aligned to 4 bytes.  Returns an enum ctl_take, or -EPROTO with a reason in
 * .error_text if this is no answer to what was asked.  A message of another sequence number is
 * passed over (MORE): it belongs to a question that was given up.
 */
int ctl_reply_take(struct ctl_reply *r, const void *msg, size_t len);

/* The counter's value; not known if it was not sent. */
struct ctl_num ctl_stats_get(const struct ctl_stats *st, const char *name);

#endif

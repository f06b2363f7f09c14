/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Is this machine fit for the swap device, and the daemon fit for this machine?
 *
 * A check looks at one thing, in the files below a root (the whole machine, or a tree that a test
 * made) and in what the daemon answered, and says one or more lines of four grades:
 *
 *  GOOD     looked at, all right
 *  NOTE     nothing to be done, worth knowing
 *  FINDING  costs speed, memory or safety; .todo says what to do
 *  UNSEEN   could not be looked at, .what says why: no right, no daemon, no such file
 *
 * Checks change nothing, need no root and no daemon, and do not depend on one another.  They read
 * files, so a hanging device does not hold them up: none opens or stats a device.
 */
#ifndef ZSWAPD_CTL_DOCTOR_H
#define ZSWAPD_CTL_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "ctl/reply.h"

#define DOCTOR_LINES_MAX 64
#define DOCTOR_TEXT_MAX	 480
#define DOCTOR_NODE_MAX	 64

enum doctor_grade {
	DOCTOR_GOOD,
	DOCTOR_NOTE,
	DOCTOR_FINDING,
	DOCTOR_UNSEEN,
	DOCTOR_GRADES,
};

struct doctor_line {
	enum doctor_grade grade;
	const char *topic;
	char what[DOCTOR_TEXT_MAX];
	char todo[DOCTOR_TEXT_MAX]; /* empty but for findings */
};

struct doctor_report {
	size_t count[DOCTOR_GRADES];
	size_t n;
	struct doctor_line line[DOCTOR_LINES_MAX];
};

struct doctor_machine {
	/* Set by the caller. */
	const char *root;    /* stands before /proc, /sys and /dev; "" is this machine */
	const char *run_dir; /* where port files lie; not below root */
	char device[NLPROTO_NAME_MAX];
	const struct ctl_status *status; /* NULL: the daemon did not answer */
	const struct ctl_stats *stats;	 /* NULL: as above */
	struct ctl_text swap_discard;	 /* the daemon's option of that name, where known */
	struct ctl_text swap_enable;
	char silence[NLPROTO_TEXT_MAX]; /* why there is no answer */
	bool other_protocol;		/* it is there, but of another version */

	/* Filled in by doctor_run(). */
	char node[DOCTOR_NODE_MAX]; /* "loop0"; empty if the device is not there */
	char proc[DOCTOR_NODE_MAX]; /* "/proc/PID" of the daemon, empty if unknown */
};

void doctor_run(struct doctor_machine *m, struct doctor_report *r);

/* All lines, wrapped at 80 columns, and a sum.  @quiet: without those that are good. */
void doctor_print(FILE *out, const struct doctor_machine *m, const struct doctor_report *r,
		  bool quiet);

#endif

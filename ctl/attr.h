/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One attribute of an answer.  No policies here: they refuse a message as a whole, and a daemon of
 * another version may have widened one field.  Each reader checks its own attribute's length
 * instead.  An attribute that is NULL or of a form that is not understood is not known.
 *
 * Private to ctl/reply.c, ctl/event.c and ctl/histogram.c.
 */
#ifndef ZSWAPD_CTL_ATTR_H
#define ZSWAPD_CTL_ATTR_H

#include "ctl/reply.h"

struct nlattr;

struct ctl_num ctl_attr_num(struct nlattr *a);

/* False if there is no string of at most @size - 1 bytes; @ret is then untouched. */
bool ctl_attr_string(struct nlattr *a, char *ret, size_t size);

/* Leaves @ret as it is if there is no such string. */
void ctl_attr_text(struct nlattr *a, struct ctl_text *ret);

/* The same for a nested NLPROTO_A_JOB. */
void ctl_attr_job(struct nlattr *a, struct ctl_job *ret);

/* Counter and histogram names become JSON keys and metric names: what all of these allow. */
bool ctl_metric_name_ok(const char *s);

/* Takes one NLPROTO_L_HISTOGRAM, whole or a piece. */
void ctl_take_histogram(struct ctl_stats *st, struct nlattr *nest);

/* After the last piece: what is not complete is taken out and counted as unreadable. */
void ctl_finish_histograms(struct ctl_stats *st);

#endif

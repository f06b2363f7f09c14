/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The daemon's numbers as people and programs read them.  Pure: what is given is written to @out.
 *
 * "?" and "-" mean what they do in ctl/cell.h.
 */
#ifndef ZSWAPD_CTL_RENDER_H
#define ZSWAPD_CTL_RENDER_H

#include <stdio.h>

#include "ctl/reply.h"

/*
 * The daemon's texts hold paths and messages of others; none of their bytes may steer a terminal.
 */
void put_printable(FILE *out, const char *s);

/* "2026-11-30 18:45:01.123"; @utc: "2026-11-30T18:45:01.123Z". */
void put_time(FILE *out, struct ctl_num ns, bool utc);

/*
 * One screen, 80 columns, but for the report of a crash if @whole_report.  @stats may be NULL: all
 * its values are unknown.
 */
void render_status(FILE *out, const char *device, const struct ctl_status *st,
		   const struct ctl_stats *stats, bool whole_report);

/* The daemon's side of `zswapctl version`. */
void render_version(FILE *out, const struct ctl_status *st);

/* Name, value and unit, one counter a line; then the histograms with their percentiles. */
void render_stats_text(FILE *out, const struct ctl_stats *stats);

/*
 * One flat object of numbers, null for an unreadable value; its member "histograms" has an object
 * for each, with "buckets" as [least, greatest, count].
 */
void render_stats_json(FILE *out, const struct ctl_stats *stats);

/*
 * Exposition format 0.0.4; an unreadable value is left out.  Histograms of times are in seconds and
 * named so.
 */
void render_stats_prometheus(FILE *out, const char *device, const struct ctl_stats *stats);

/* Key, value and origin, one option a line. */
void render_options_text(FILE *out, const struct ctl_options *options);

/* A paragraph for each, with what it does and may be. */
void render_options_verbose(FILE *out, const struct ctl_options *options);

/* {"section.key": {"value": ..., "default": ..., "origin": ..., "live": ...}}. */
void render_options_json(FILE *out, const struct ctl_options *options);

/* One line. */
void render_event_text(FILE *out, const struct ctl_event *e);
void render_event_json(FILE *out, const struct ctl_event *e);

#endif

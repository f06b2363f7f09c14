/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A job of the daemon as people read it: while it runs, and when it has ended.  Pure. */
#ifndef ZSWAPD_CTL_PROGRESS_H
#define ZSWAPD_CTL_PROGRESS_H

#include <stddef.h>

#include "ctl/reply.h"

#define PROGRESS_MAX	  256
#define PROGRESS_NAME_MAX 48

/*
 * "writeback [#####     ]  45 %  115.2 MiB of 256.0 MiB  31.0 MiB/s  5 s left" in at most @width
 * columns.  @first_done is what was done when the job was first seen, @seconds ago.
 */
void progress_line(char buf[static PROGRESS_MAX], int width, const struct ctl_job *j,
		   uint64_t first_done, double seconds);

/* One sentence about a job, whatever its state, without a full stop. */
void progress_result(char buf[static PROGRESS_MAX], const struct ctl_job *j);

/* The job's name; "job of kind 9" for one that is not known here. */
void progress_name(char buf[static PROGRESS_NAME_MAX], const struct ctl_job *j);

#endif

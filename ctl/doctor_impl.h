/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Between the files of the doctor: how a check reads and what it says. */
#ifndef ZSWAPD_CTL_DOCTOR_IMPL_H
#define ZSWAPD_CTL_DOCTOR_IMPL_H

#include "ctl/doctor.h"

#include <limits.h>

#define PRINTF(f, a) __attribute__((format(printf, f, a)))

PRINTF(3, 4) void doctor_good(struct doctor_report *r, const char *topic, const char *fmt, ...);
PRINTF(3, 4) void doctor_note(struct doctor_report *r, const char *topic, const char *fmt, ...);
PRINTF(3, 4) void doctor_unseen(struct doctor_report *r, const char *topic, const char *fmt, ...);

/* @todo: whole sentences. */
PRINTF(4, 5)
void doctor_finding(struct doctor_report *r, const char *topic, const char *todo, const char *fmt,
		    ...);

/* A path below the root.  Returns @buf. */
PRINTF(3, 4)
const char *doctor_path(const struct doctor_machine *m, char buf[static PATH_MAX], const char *fmt,
			...);

/* All of a file, to be freed; NULL with errno set. */
PRINTF(2, 3) char *doctor_text(const struct doctor_machine *m, const char *fmt, ...);

/* First line of a file.  Negative errno. */
PRINTF(4, 5)
int doctor_line(const struct doctor_machine *m, char *buf, size_t size, const char *fmt, ...);

/* A file that holds one whole number. */
PRINTF(3, 4)
int doctor_number(const struct doctor_machine *m, long long *ret, const char *fmt, ...);

PRINTF(2, 3) bool doctor_exists(const struct doctor_machine *m, const char *fmt, ...);

/* Where the links from @path, below the root, end: the last name, such as "loop0". */
bool doctor_node(const struct doctor_machine *m, const char *path,
		 char ret[static DOCTOR_NODE_MAX]);

/* The checks. */
void doctor_check_daemon(const struct doctor_machine *m, struct doctor_report *r);
void doctor_check_version(const struct doctor_machine *m, struct doctor_report *r);
void doctor_check_supervision(const struct doctor_machine *m, struct doctor_report *r);
void doctor_check_locked(const struct doctor_machine *m, struct doctor_report *r);
void doctor_check_flusher(const struct doctor_machine *m, struct doctor_report *r);
void doctor_check_oom(const struct doctor_machine *m, struct doctor_report *r);
void doctor_check_cgroup(const struct doctor_machine *m, struct doctor_report *r);
void doctor_check_limit(const struct doctor_machine *m, struct doctor_report *r);
void doctor_check_store(const struct doctor_machine *m, struct doctor_report *r);
void doctor_check_pages(const struct doctor_machine *m, struct doctor_report *r);
void doctor_check_device(const struct doctor_machine *m, struct doctor_report *r);
void doctor_check_swap(const struct doctor_machine *m, struct doctor_report *r);
void doctor_check_discard(const struct doctor_machine *m, struct doctor_report *r);
void doctor_check_hibernation(const struct doctor_machine *m, struct doctor_report *r);
void doctor_check_kernel(const struct doctor_machine *m, struct doctor_report *r);
void doctor_check_transports(const struct doctor_machine *m, struct doctor_report *r);
void doctor_check_uring(const struct doctor_machine *m, struct doctor_report *r);
void doctor_check_zswap(const struct doctor_machine *m, struct doctor_report *r);
void doctor_check_swappiness(const struct doctor_machine *m, struct doctor_report *r);
void doctor_check_readahead(const struct doctor_machine *m, struct doctor_report *r);

#endif

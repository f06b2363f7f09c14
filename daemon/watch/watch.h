/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The watch page: what a supervisor sees of its worker without asking, and what the next worker
 * finds of the last.  A memfd that both map, so that it is whole whatever happens to either.
 *
 * Beats.  Each data thread counts its turns, of which it makes one a second even when there is
 * nothing to do, and so does the main thread while it serves.  A count that stands still for long
 * is a thread that does not answer.
 *
 * Crash record.  A handler for the signals that end a process by its own fault writes down where;
 * SIGKILL leaves none.  The supervisor turns it into a report, one line for people, which stays on
 * the page for whoever asks the workers that follow.
 *
 * Configuration.  What runs, run-time changes included: two copies, of which the last one written
 * counts.
 *
 * The page has no layout that another version could rely on: watch_attach() takes it only if it was
 * made by this very version.
 */
#ifndef ZSWAPD_WATCH_WATCH_H
#define ZSWAPD_WATCH_WATCH_H

#include "common/beat.h"
#include "common/counters.h"
#include "daemon/config/config.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define WATCH_THREADS	 65u /* the main thread and as many data threads as there can be */
#define WATCH_FRAMES	 24u
#define WATCH_REPORT_MAX 640u /* bytes, with the NUL */

struct watch_crash {
	_Atomic bool taken; /* by the thread that crashed first */
	_Atomic bool whole; /* the rest is written */
	int signal;
	int code; /* siginfo's */
	uint64_t address;
	char thread[16];
	uint64_t start; /* where the program lies in memory */
	uint32_t nframes;
	uint64_t frames[WATCH_FRAMES]; /* addresses */
};

struct watch {
	char version[24];
	uint32_t size;
	/* the worker's */
	_Atomic int32_t worker;		  /* its pid; the last one's until the next serves */
	struct beat beats[WATCH_THREADS]; /* 0: the main thread */
	_Atomic uint64_t counters[COUNTER_COUNT];
	_Atomic uint64_t counted; /* when, CLOCK_MONOTONIC ns; 0: never */
	struct watch_crash crash;
	struct config configs[2];
	_Atomic uint32_t config; /* 0: none yet, else the copy's number + 1 */
	/* the supervisor's */
	_Atomic int32_t standby;  /* pid of the one that is prepared; 0: none is */
	_Atomic uint32_t deaths;  /* of workers, so far */
	_Atomic int32_t reported; /* pid of the last one of them */
	char reports[2][WATCH_REPORT_MAX];
	_Atomic uint32_t report; /* 0: none yet, else the copy's number + 1 */
};

/* A new page, all zero.  Sets *ret_fd, its memfd. */
int watch_new(struct watch **ret, int *ret_fd);
/* The page in @fd, which stays the caller's.  -EBADMSG: another version's. */
int watch_attach(struct watch **ret, int fd);
void watch_free(struct watch *w);

/* --- the worker's side --- */

/* Before the first beat: nobody is watched, there is no crash.  Counters and reports stay. */
void watch_begin(struct watch *w);

/*
 * Writes a record for SIGSEGV, SIGBUS, SIGILL, SIGFPE and SIGABRT, and lets the signal do what it
 * does then.  Main thread, once.
 */
void watch_catch_crashes(struct watch *w);

void watch_set_counters(struct watch *w, const uint64_t v[COUNTER_COUNT]);

/* What runs now.  One thread. */
void watch_set_config(struct watch *w, const struct config *c);
/* What ran last; false: that is not known. */
bool watch_config(const struct watch *w, struct config *ret);

/* The last report, "" if there is none.  Any thread. */
void watch_report(const struct watch *w, char ret[static WATCH_REPORT_MAX]);

/* --- the supervisor's --- */

/*
 * Makes the report of a worker that is dead, from how it ended and from its record, and counts it.
 * @status: as of waitpid(2), -1 if unknown; @note: what else there is to say, or NULL.
 */
void watch_make_report(struct watch *w, int pid, int status, const char *note);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the supervisor's files share.
 *
 *   super.c    the loop: what happens, and what follows from it
 *   start.c    how it gets a worker, and the end
 *   child.c    processes: forking, ending
 *   adopt.c    a worker that another supervisor has left
 *   beats.c    whether the worker answers
 *   upgrade.c  another program in place of this one
 *   lock.c, notify.c
 */
#ifndef ZSWAPD_SUPER_SUPER_IMPL_H
#define ZSWAPD_SUPER_SUPER_IMPL_H

#include "daemon/link/kept.h"
#include "daemon/link/link.h"
#include "daemon/super/notify.h"
#include "daemon/super/super.h"
#include "daemon/watch/watch.h"
#include "daemon/worker/run.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct child {
	pid_t pid; /* 0: there is none */
	int pidfd;
	int link;	/* -1: it is gone, or about to be */
	bool ready;	/* a worker: it serves.  A standby: it is prepared. */
	uint64_t since; /* now_ns(), when it was forked or told to go */
};

#define CHILD_NULL ((struct child){.pidfd = -1, .link = -1})

struct beats {
	uint64_t turns[WATCH_THREADS];
	uint64_t since[WATCH_THREADS]; /* when turns was last seen to change; now_ns() */
	uint64_t looked;	       /* when, last; now_ns() */
	uint64_t kill_at;	       /* the worker was told to abort; 0: it was not */
};

struct upgrade {
	struct run run; /* of the new program, which is asked; pid <= 0: no upgrade is under way */
	uint64_t deadline;
	bool follows;	   /* it can take over, and is asked about the configuration */
	char reason[400];  /* in words, that it can */
	char program[256]; /* where it is; empty: that is not known */
	struct kept left; /* by the program before, for the case that there is no worker any more */
	bool replace;	  /* this program has just come, and shall replace the worker */
};

struct super {
	const struct super_options *o;
	int signal_fd;
	struct kept kept;
	struct watch *watch;
	bool blind; /* the worker is another version's and does not use our page */
	struct notify notify;
	struct child worker;
	struct child standby;
	uint64_t go_at;	      /* when the next worker may go; 0: there is one */
	uint64_t fork_at;     /* when the next standby may be forked */
	unsigned in_a_row;    /* deaths, each soon after the last */
	bool replacing;	      /* the worker's death is our wish */
	bool went_unprepared; /* the worker was told to go before it was prepared */
	bool took_over;	      /* the worker is not the first one */
	unsigned
		unprepared; /* standbys that ended before they were prepared, one after the other */
	int stop_signal;    /* not obeyed or refused yet; 0: none */
	bool stop_told;	    /* the worker was passed it */
	bool stopping;	    /* the worker has said that it obeys */
	struct beats beats;
	struct upgrade upgrade;
	bool over;
	int status;
};

/* start.c */
/* A worker is there or on its way, and rights are given up.  Negative errno. */
int super_start(struct super *s);
/* Also after a start that has failed. */
void super_stop(struct super *s);

/* child.c */
/* In the child it does not return.  Negative errno, logged. */
int child_fork(struct super *s, struct child *ret, bool standby);
/* Nothing happens to a later process of the same pid. */
void child_signal(const struct child *c, int sig);
bool child_is_dead(const struct child *c);
/* True if it has ended: *ret_status as of waitpid(2), -1 if it is no child of ours. */
bool child_ended(struct child *c, int *ret_status);
/* Its end is not waited for for more than a second. */
void child_end(struct child *c);
/* Children of a former program of this process. */
void child_reap_others(const struct super *s);

/* adopt.c */
/*
 * -ENOENT: nobody answers; -EBUSY: it has a supervisor.  Neither is logged.  0 without a worker: it
 * has died meanwhile, and all that it kept is ours.
 */
int adopt(struct super *s, const char *path);

/* beats.c */
void beats_reset(struct beats *b);
/* Looks whether the worker's threads come round, and ends a worker one of whose does not. */
void beats_look(struct super *s);

/* upgrade.c */
void upgrade_init(struct super *s);
void upgrade_begin(struct super *s);
/* Goes on if one is under way; does not return if it succeeds. */
void upgrade_work(struct super *s);
/* What the program before has left becomes ours, if @take, or is let go. */
void upgrade_settle(struct super *s, bool take);

#endif

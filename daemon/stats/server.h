/* SPDX-License-Identifier: GPL-2.0-or-later */
/* clang-format off */
/*
 * The netlink endpoint: answers what common/nlproto.h describes, and sends its events.
 *
 * A thread of its own, under SCHED_OTHER, that no other thread ever waits for except in
 * stats_server_stop(), and that never waits for a client: an answer for which the asker's receive
 * buffer has no room is dropped, with the rest of its parts.  The kernel drops or holds back
 * requests that come faster than they are answered.  One request makes one answer, so nobody can
 * have more sent than he asks for.
 *
 * Every user may ask.  Who asks is known from the port and the credentials that the kernel stamped
 * on the datagram; what a message says about its sender is not looked at.  Changing something takes
 * uid 0.  What that guarantees: the kernel translates the uid into the user namespace of this
 * process, so in the initial one it is the machine's root, however many namespaces have a root of
 * their own; an unprivileged one shows as the user who made it.  Root without capabilities is root
 * all the same.
 *
 * Three ways for a request to be served:
 *
 *	reading         the ops, on the server's thread
 *	jobs            job_start() and job_cancel(), on the server's thread, which only hand over
 *	SET, RELOAD,    by the owner's main thread, since files are read and values applied: it polls
 *	UPGRADE         stats_server_change_fd(), takes the change, and finishes it.  The server goes
 *			on meanwhile and answers when it is finished.  One at a time, EBUSY for others,
 *			and for one that is not taken within a second.
 *
 * Events about counters are found by the server's thread, which compares two snapshots twice a
 * second: those who count do nothing for them.  Others are posted.
 */
/* clang-format on */
#ifndef ZSWAPD_DAEMON_STATS_SERVER_H
#define ZSWAPD_DAEMON_STATS_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/counters.h"
#include "common/histograms.h"
#include "common/nlproto.h"

struct nlmsghdr;
struct stats_server;

/* Strings end in a NUL and may be empty: an empty one is left out of the reply. */
struct stats_status {
	char path[NLPROTO_TEXT_MAX];	  /* the device node, /dev/zswap/NAME */
	char transport[NLPROTO_NAME_MAX]; /* "fuse", "ublk" */
	uint32_t pid;			  /* of the worker */
	enum nlproto_state state;
	uint32_t health; /* bits of enum nlproto_health */
	/* empty: the last event that was an error, if there was one */
	char last_error[NLPROTO_TEXT_MAX];
	bool supervision;    /* the four that follow are known */
	uint32_t supervisor; /* pids; 0: there is none */
	uint32_t standby;
	uint32_t deaths;
	char report[NLPROTO_REPORT_MAX]; /* of the last death */
	char takeover[NLPROTO_LINE_MAX]; /* a line about how this worker came; empty: as the first
					  */
	uint64_t takeover_time;		 /* CLOCK_REALTIME, ns; counts if there was one */
	uint64_t takeover_ns;
};

struct stats_option {
	char key[NLPROTO_NAME_MAX]; /* "section.key" */
	char value[NLPROTO_TEXT_MAX];
	char in_force[NLPROTO_NAME_MAX]; /* what comes of it, if that is another */
	char def[NLPROTO_TEXT_MAX];
	char origin[NLPROTO_NOTE_MAX];
	char range[NLPROTO_NOTE_MAX];
	char text[NLPROTO_TEXT_MAX];
	bool live; /* SET and RELOAD can change it */
};

struct stats_job {
	uint32_t id; /* 0: there was none, and the rest counts for nothing */
	enum nlproto_job_kind kind;
	enum nlproto_job_state state;
	enum nlproto_unit unit;
	uint64_t done, total, found;
	int error; /* positive errno if it failed */
};

#define STATS_JOB_ALL UINT64_MAX
#define STATS_JOBS    2u /* that are known of at once */

/*
 * Called on the server's thread, with 64 KiB of stack to spare.  They may not wait for anything
 * that a data thread holds, nor for files, nor call back into the server.  What they fill in is
 * zeroed before.  A NULL one makes its requests end with EOPNOTSUPP; the first two are never NULL.
 */
struct stats_server_ops {
	/* One consistent snapshot, indexed by enum counter_id. */
	void (*counters)(void *ctx, uint64_t values[COUNTER_COUNT]);
	void (*status)(void *ctx, struct stats_status *ret);
	/* Indexed by enum histogram_id. */
	void (*histograms)(void *ctx, struct histogram values[HISTOGRAM_COUNT]);
	/* Option number @index of those there are; false: no more. */
	bool (*option)(void *ctx, unsigned index, struct stats_option *ret);
	/* The one under way or that ended last, then others whose result is known. */
	void (*job)(void *ctx, struct stats_job ret[STATS_JOBS]);
	/*
	 * WRITEBACK, COMPACT or CHECK; @bytes is WRITEBACK's.  0: it has started and job() shows
	 * it.  A negative errno with the reason and the way out in @text.
	 */
	int (*job_start)(void *ctx, enum nlproto_job_kind kind, uint64_t bytes,
			 char text[static NLPROTO_LINE_MAX]);
	/* The job under way is told to end; it may run on for a moment.  Else as job_start(). */
	int (*job_cancel)(void *ctx, char text[static NLPROTO_LINE_MAX]);
	/* The owner takes changes. */
	bool changes;
};

/*
 * @ops and @ctx must outlive the server.  -EINVAL: @name is no device name, see nlproto_name_ok();
 * -ENOMEM, -EMFILE.  Logged.
 */
int stats_server_new(struct stats_server **ret, const char *name,
		     const struct stats_server_ops *ops, void *ctx);

/* Where the port file goes, instead of PORTFILE_DIR.  Before start; -ENAMETOOLONG. */
int stats_server_set_run_dir(struct stats_server *s, const char *dir);

/*
 * Binds the port, writes the port file, starts the thread.  Failure is logged and leaves the server
 * as it was.  A daemon can serve swap without this endpoint.
 */
int stats_server_start(struct stats_server *s);

/*
 * Sends what events there are still, ends the thread, closes the socket, removes the port file.
 * Waits for two seconds at most: -ETIMEDOUT if a callback has not returned by then; the thread is
 * then left behind with all that it uses, and stats_server_free() leaks it.  0 if it was not
 * running.
 */
int stats_server_stop(struct stats_server *s);

/* Stops first if needed.  @s may be NULL. */
void stats_server_free(struct stats_server *s);

/* The port that is bound, 0 when not running. */
uint32_t stats_server_port(const struct stats_server *s);

/* --- changes: the owner's side --- */

/* Holds what a reload did, a line each. */
#define STATS_REPORT_MAX 4096

enum stats_change_kind {
	STATS_CHANGE_SET,
	STATS_CHANGE_RELOAD,
	STATS_CHANGE_UPGRADE,
};

struct stats_change {
	enum stats_change_kind kind;
	char key[NLPROTO_NAME_MAX];   /* SET */
	char value[NLPROTO_TEXT_MAX]; /* SET */
};

/* An eventfd that is readable while a change waits.  The server's. */
int stats_server_change_fd(const struct stats_server *s);

/* True: *ret is to be done and finished.  False: nothing waits.  One thread. */
bool stats_server_take_change(struct stats_server *s, struct stats_change *ret);

/* Of a RELOAD: some of the options could not be changed. */
#define STATS_CHANGE_PARTLY 1

/*
 * @result: 0 or STATS_CHANGE_PARTLY, and @text is what became of the options, a line each, or what
 * an upgrade does; or a negative errno, and @text is the reason and the way out.  After the options
 * have their new values.
 */
void stats_server_finish_change(struct stats_server *s, int result, const char *text);

/* --- events --- */

/*
 * Posts an event, to be sent soon.  @key may be NULL.  STATE_CHANGED, JOB_FINISHED and all that
 * shows in counters need not be posted.  Any thread but data threads.
 */
void stats_server_post(struct stats_server *s, enum nlproto_event kind, const char *key,
		       const char *text);

/* --- without sockets --- */

/* Who asks, as stamped by the kernel. */
struct stats_peer {
	uint32_t port;
	uint32_t uid; /* in the daemon's user namespace; meaningless without has_creds */
	bool has_creds;
};

/*
 * Takes one message, good for the time of the call; nlmsg_pid is whom it is for, 0 the multicast
 * group.  0, or a negative errno: could not be delivered, the rest of this answer is not wanted.
 * -ECONNREFUSED: nobody has that port.
 */
typedef int (*stats_reply_fn)(void *ctx, const struct nlmsghdr *reply);

/*
 * Answers one datagram, without sockets or any state but what the ops return: the messages of the
 * answer go to @reply.  What is no request is passed over in silence.
 *
 * @msg is aligned to 4 bytes.  @len is the datagram's length; if it is above NLPROTO_REQUEST_MAX
 * only the first NLPROTO_REQUEST_MAX bytes are looked at.  Returns the negative errno that was
 * answered, or 0: a reply was given, or will be by stats_server_work(), or nothing was said.
 */
int stats_server_handle(struct stats_server *s, const struct stats_peer *peer, const void *msg,
			size_t len, stats_reply_fn reply, void *reply_ctx);

/*
 * What there is to do beside requests at the time @now (CLOCK_MONOTONIC, ns): answers a change that
 * is finished or was not taken, looks for events and sends them.  Returns the time at which it
 * wants to be called again, if nothing is posted or finished before.
 */
uint64_t stats_server_work(struct stats_server *s, uint64_t now, stats_reply_fn reply,
			   void *reply_ctx);

#endif

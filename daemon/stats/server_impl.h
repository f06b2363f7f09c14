/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The server's fields and what its files share.
 *
 *   server.c    socket and thread
 *   handle.c    a request, from the outside in
 *   answer.c    the answers that are read from the ops
 *   change.c    SET, RELOAD and UPGRADE, handed to the owner and back
 *   events.c    finding, posting and sending events; who follows them
 *   message.c   making messages
 */
#ifndef ZSWAPD_DAEMON_STATS_SERVER_IMPL_H
#define ZSWAPD_DAEMON_STATS_SERVER_IMPL_H

#include <limits.h>
#include <linux/netlink.h>
#include <pthread.h>

#include "common/log.h"
#include "daemon/stats/server.h"

#define STATS_FOLLOWERS 16 /* at a time */
#define STATS_POSTED	16 /* events waiting to be sent */

struct nl_msg;
struct nl_sock;
struct nlattr;

/* A request that is being answered.  Copies, so that it can wait. */
struct request {
	struct stats_server *s;
	struct stats_peer peer;
	struct nlmsghdr nlh;
	uint8_t cmd;
	stats_reply_fn reply;
	void *reply_ctx;
};

/* Of all that STATS shows; shared by all who ask within a few milliseconds. */
struct stats_snapshot {
	uint64_t at; /* CLOCK_MONOTONIC, ns; 0: none yet */
	uint64_t counters[COUNTER_COUNT];
	struct histogram histograms[HISTOGRAM_COUNT];
};

/*
 * The messages of an answer to STATS as it is until the next snapshot.  A list fills each of its
 * messages but the last by more than half; names and bookkeeping take at most 128 bytes.
 */
#define STATS_LIST_PARTS(bytes) (2 * (bytes) / (NLPROTO_PART_MAX - 256) + 1)
#define STATS_PARTS_MAX                                                                   \
	(STATS_LIST_PARTS(COUNTER_COUNT * 128) +                                          \
	 STATS_LIST_PARTS(HISTOGRAM_COUNT *                                               \
			  (HISTOGRAM_BUCKETS * (24 + 128 / STATS_PIECE_BUCKETS) + 128)) + \
	 1)

/* Buckets in a piece of a histogram: few enough that two pieces fill a message well. */
#define STATS_PIECE_BUCKETS 48u

struct stats_answer {
	uint64_t at; /* of the snapshot it was made from */
	unsigned n;
	union {
		struct nlmsghdr nlh;
		char bytes[NLPROTO_PART_MAX];
	} part[STATS_PARTS_MAX];
};

struct stats_changes {
	int fd; /* eventfd; set at start; readable: a change waits for the owner */
	pthread_mutex_t lock;
	/* under the lock */
	enum {
		CHANGE_NONE,
		CHANGE_WAITING,	 /* the server's thread put it there */
		CHANGE_TAKEN,	 /* the owner has it */
		CHANGE_FINISHED, /* the owner has left the result */
	} state;
	struct stats_change change;
	int result;
	char report[STATS_REPORT_MAX];
	/* server's thread only */
	struct request asker;
	uint64_t deadline; /* ns, for being taken; UINT64_MAX: nothing waits for that */
};

struct stats_posted {
	enum nlproto_event kind;
	char key[NLPROTO_NAME_MAX];
	char text[NLPROTO_LINE_MAX];
};

struct stats_follower {
	uint32_t port; /* 0: free */
	uint32_t uid;
	uint64_t until;
};

struct stats_events {
	pthread_mutex_t lock;
	/* under the lock */
	unsigned nposted;
	unsigned overflow; /* that found no place */
	struct stats_posted posted[STATS_POSTED];
	/* server's thread only */
	uint64_t began;	    /* CLOCK_REALTIME, ns; when the numbers began; set at start */
	uint64_t seq;	    /* of the last event */
	uint64_t next_tick; /* ns */
	uint64_t tokens_at; /* ns; when there was the last one added */
	unsigned tokens;    /* how many may be sent now */
	bool state_known;
	enum nlproto_state state;
	uint32_t jobs_told[STATS_JOBS]; /* ids of those known to have ended */
	bool takeovers_known;
	bool limit_told;	  /* and still there */
	uint64_t write_errors;	  /* of the store, at the last look */
	uint64_t write_failed_at; /* ns; when that rose; 0 never */
	bool store_failed;	  /* not long ago */
	bool store_known;
	enum nlproto_store_state store_state;
	uint64_t told[NLPROTO_EVENT_MAX + 1];	 /* what had been counted when last told */
	uint64_t sent_at[NLPROTO_EVENT_MAX + 1]; /* ns, 0 never */
	struct stats_follower followers[STATS_FOLLOWERS];
	char last_error[NLPROTO_TEXT_MAX];
};

struct stats_server {
	/* Set by new, read by all. */
	char name[NLPROTO_NAME_MAX];
	const struct stats_server_ops *ops;
	void *ctx;
	int wake_fd; /* eventfd; readable: there is something for stats_server_work() */

	/* The owner's only; start and stop are not called at the same time. */
	char run_dir[PATH_MAX];
	pthread_t thread;
	bool running;
	bool abandoned; /* stop timed out; the thread may still use everything here */

	/* Set by start before the thread exists, read by both. */
	struct nl_sock *sk;
	int stop_fd; /* eventfd; readable: the thread leaves */
	int done_fd; /* eventfd; readable: it has left */
	uint32_t port;

	/* Server's thread. */
	struct stats_snapshot snapshot;
	struct stats_answer answer;

	/* Both, each with its own rules. */
	struct stats_changes changes;
	struct stats_events events;
};

/* server.c: an eventfd that is at 0 or 1 takes a 1 without waiting. */
void stats_signal(int fd);

/* answer.c, change.c, events.c: 0: answered, or will be.  Else the negative errno that was. */
int answer_version(const struct request *rq, struct nlattr **attrs);
int answer_status(const struct request *rq, struct nlattr **attrs);
int answer_stats(const struct request *rq, struct nlattr **attrs);
int answer_get(const struct request *rq, struct nlattr **attrs);
int answer_job(const struct request *rq, struct nlattr **attrs);
int answer_job_start(const struct request *rq, struct nlattr **attrs);
int answer_cancel(const struct request *rq, struct nlattr **attrs);
int answer_change(const struct request *rq, struct nlattr **attrs);
int answer_subscribe(const struct request *rq, struct nlattr **attrs);

/* answer.c: one reply with option @key and @text, a line each; @key must exist. */
int answer_option(const struct request *rq, const char *key, const char *text);
/* The snapshot, taken anew if it is too old. */
const struct stats_snapshot *stats_snapshot(struct stats_server *s, uint64_t now);

/* change.c: returns when it wants to be called again. */
int stats_changes_init(struct stats_changes *c);
void stats_changes_deinit(struct stats_changes *c);
uint64_t stats_changes_work(struct stats_server *s, uint64_t now, stats_reply_fn reply,
			    void *reply_ctx);

/* events.c: the same.  @last: now or never, whatever the time. */
void stats_events_init(struct stats_events *e);
void stats_events_deinit(struct stats_events *e);
/* Before another job can begin: one that has ended is told of now, or it would be missed. */
void stats_events_before_job(const struct request *rq);
uint64_t stats_events_work(struct stats_server *s, uint64_t now, bool last, stats_reply_fn reply,
			   void *reply_ctx);

#endif

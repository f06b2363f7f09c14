/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A server without a socket, with ops whose figures are the test's, and the messages it sent.
 * One of it, since cmocka's tests run one after the other.
 */
#ifndef ZSWAPD_TESTS_STATS_RIG_H
#define ZSWAPD_TESTS_STATS_RIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/stats/server.h"
#include "tests/stats/packet.h"

#define RIG_NAME    "unit-test.0"
#define RIG_PORT    1234u
#define RIG_UID	    65534u
#define RIG_REPLIES 64u
#define RIG_OPTIONS 20u
#define RIG_SECOND  1000000000ull

struct rig {
	struct stats_server *server;
	/* what the ops give */
	uint64_t counters[COUNTER_COUNT];
	struct histogram histograms[HISTOGRAM_COUNT];
	enum nlproto_state state;
	struct stats_status status; /* of which the fields of the supervision count */
	struct stats_job job, other_job;
	int job_error; /* of job_start() */
	int cancel_error;
	/* what they were asked for */
	unsigned snapshots;
	unsigned starts, cancels;
	enum nlproto_job_kind kind;
	uint64_t bytes;
	/* who asks; what became of it */
	struct stats_peer peer;
	unsigned n;
	unsigned accept; /* deliver so many, then fail */
	uint32_t gone;	 /* nobody has this port */
	struct nlmsghdr *msg[RIG_REPLIES];
	uint64_t now; /* for rig_work() */
};

extern struct rig rig;

/* cmocka's: a new server before each test. */
int rig_set_up(void **state);
/* The same with nothing that counts as an event, and a first look that has seen it. */
int rig_set_up_quiet(void **state);
int rig_tear_down(void **state);

/* A server whose ops are only those that may not be missing. */
void rig_set_bare(void);

/* What STATS must say of counter @id and option @i unless the test changes it. */
uint64_t rig_value(unsigned id);
void rig_option_key(unsigned i, char *ret, size_t size);

/* As RIG_UID, or as root. */
int rig_handle(const void *msg, size_t len);
int rig_ask(struct packet *p);
int rig_ask_as_root(struct packet *p);

/* One stats_server_work() at rig.now + @ns; its messages are the new ones. */
void rig_work(uint64_t ns);

/* The one message is this refusal, and its text has @word. */
void rig_assert_refused(struct packet *p, int error, const char *word);
void rig_assert_refusal(const struct packet *p, int error, const char *word);

/* The attributes of a reply to @cmd. */
struct nlattr **rig_parse(struct nlmsghdr *nlh, uint8_t cmd);

#endif

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The answers that are read from the ops.
 *
 * Taking a snapshot walks over every segment record, so it is taken at most every SNAPSHOT_NS,
 * however many ask.  All the parts of an answer are made from one, and answers that follow closely
 * are the same messages to another port.
 */
#include "daemon/stats/message.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define SNAPSHOT_NS (10ull * 1000000)

#define PIECES_MAX  ((HISTOGRAM_BUCKETS / STATS_PIECE_BUCKETS + 1) * HISTOGRAM_COUNT)

_Static_assert(2 * (STATS_PIECE_BUCKETS * 24 + 128) < NLPROTO_PART_MAX - 256, "two pieces fit");
_Static_assert(sizeof(struct stats_status) + 512 < NLPROTO_PART_MAX, "STATUS is one message");
_Static_assert(sizeof(struct stats_option) + 512 + STATS_REPORT_MAX / 4 < NLPROTO_PART_MAX,
	       "an option and a line about it are one message");

static int unknown(const struct request *rq, const char *what)
{
	return refuse(rq, -EOPNOTSUPP, "this zswapd has no %s", what);
}

int answer_version(const struct request *rq, struct nlattr **attrs)
{
	struct nl_msg *msg = reply_new(rq, 0);

	if (!msg)
		return refuse_without_memory(rq);
	z_assert(nla_put_string(msg, NLPROTO_A_DAEMON_VERSION, ZSWAPD_VERSION) == 0);
	z_assert(nla_put_u8(msg, NLPROTO_A_PROTOCOL, NLPROTO_VERSION) == 0);
	reply_put_out(rq, msg);
	return 0;
}

/*
 * That all of it was written to is how a log works: what is dead in it is cleaned as room is
 * needed. It is full when so little is dead that cleaning gives next to nothing.  The last two
 * places are kept for cleaning.  Places that are retired are as if they were not there.
 */
static bool store_is_full(const uint64_t *v)
{
	uint64_t size = v[CTR_store_size_bytes] - v[CTR_store_retired_bytes];

	return size && v[CTR_store_used_bytes] + MIB(2) >= size &&
	       v[CTR_stored_compressed_bytes] >= size / 16 * 15;
}

/* What the counters say. */
static uint32_t stats_health(struct stats_server *s, uint64_t now)
{
	const uint64_t *v = stats_snapshot(s, now)->counters;
	uint32_t health = 0;

	if (store_is_full(v))
		health |= NLPROTO_HEALTH_STORE_FULL;
	if (v[CTR_store_state] == NLPROTO_STORE_LOST)
		health |= NLPROTO_HEALTH_STORE_LOST;
	else if (v[CTR_store_state] == NLPROTO_STORE_STALLED)
		health |= NLPROTO_HEALTH_STORE_STALLED;
	if (s->events.store_failed && v[CTR_store_state] != NLPROTO_STORE_LOST)
		health |= NLPROTO_HEALTH_STORE_FAILED;
	if (v[CTR_checksum_failures_total])
		health |= NLPROTO_HEALTH_CHECKSUM;
	if (v[CTR_slots_lost])
		health |= NLPROTO_HEALTH_PAGES_LOST;
	if (v[CTR_writes_rejected_total])
		health |= NLPROTO_HEALTH_WRITES_REJECTED;
	return health;
}

static void put_supervision(struct nl_msg *msg, const struct stats_status *st)
{
	if (st->supervision) {
		z_assert(nla_put_u32(msg, NLPROTO_A_SUPERVISOR, st->supervisor) == 0);
		z_assert(nla_put_u32(msg, NLPROTO_A_STANDBY, st->standby) == 0);
		z_assert(nla_put_u32(msg, NLPROTO_A_DEATHS, st->deaths) == 0);
		put_text(msg, NLPROTO_A_REPORT, st->report, sizeof(st->report));
	}
	if (!st->takeover[0])
		return;
	put_text(msg, NLPROTO_A_TAKEOVER, st->takeover, sizeof(st->takeover));
	z_assert(nla_put_u64(msg, NLPROTO_A_TAKEOVER_TIME, st->takeover_time) == 0);
	z_assert(nla_put_u64(msg, NLPROTO_A_TAKEOVER_NS, st->takeover_ns) == 0);
}

int answer_status(const struct request *rq, struct nlattr **attrs)
{
	struct nl_msg *msg = reply_new(rq, 0);
	uint64_t now = now_ns();
	struct stats_status st;

	if (!msg)
		return refuse_without_memory(rq);
	memset(&st, 0, sizeof(st));
	rq->s->ops->status(rq->s->ctx, &st);
	st.health |= stats_health(rq->s, now);
	if (!st.last_error[0])
		strcpy(st.last_error, rq->s->events.last_error);
	z_assert(nla_put_string(msg, NLPROTO_A_DAEMON_VERSION, ZSWAPD_VERSION) == 0);
	put_text(msg, NLPROTO_A_PATH, st.path, sizeof(st.path));
	put_text(msg, NLPROTO_A_TRANSPORT, st.transport, sizeof(st.transport));
	z_assert(nla_put_u32(msg, NLPROTO_A_PID, st.pid) == 0);
	z_assert(nla_put_u8(msg, NLPROTO_A_STATE, (uint8_t)st.state) == 0);
	z_assert(nla_put_u32(msg, NLPROTO_A_HEALTH, st.health) == 0);
	z_assert(nla_put_u8(msg, NLPROTO_A_STORE_STATE,
			    (uint8_t)stats_snapshot(rq->s, now)->counters[CTR_store_state]) == 0);
	put_text(msg, NLPROTO_A_LAST_ERROR, st.last_error, sizeof(st.last_error));
	put_supervision(msg, &st);
	reply_put_out(rq, msg);
	return 0;
}

/* --- statistics --- */

const struct stats_snapshot *stats_snapshot(struct stats_server *s, uint64_t now)
{
	struct stats_snapshot *snap = &s->snapshot;

	if (snap->at && now - snap->at < SNAPSHOT_NS)
		return snap;
	memset(snap, 0, sizeof(*snap));
	s->ops->counters(s->ctx, snap->counters);
	if (s->ops->histograms)
		s->ops->histograms(s->ctx, snap->histograms);
	snap->at = now;
	return snap;
}

static bool put_counter(struct nl_msg *msg, unsigned id, const void *from)
{
	const struct stats_snapshot *snap = from;
	const struct counter_info *info = &counter_table[id];
	struct nlattr *nest = nla_nest_start(msg, NLPROTO_L_COUNTER);

	if (!nest)
		return false;
	if (nla_put_string(msg, NLPROTO_C_NAME, info->name) < 0 ||
	    nla_put_u8(msg, NLPROTO_C_KIND, (uint8_t)info->kind) < 0 ||
	    nla_put_u8(msg, NLPROTO_C_UNIT, (uint8_t)info->unit) < 0 ||
	    nla_put_u64(msg, NLPROTO_C_VALUE, snap->counters[id]) < 0) {
		nla_nest_cancel(msg, nest);
		return false;
	}
	nla_nest_end(msg, nest);
	return true;
}

/* Some of the buckets of a histogram that are not empty, or none if all are. */
struct piece {
	unsigned id;
	unsigned n;
	uint64_t count; /* of the whole histogram */
	uint64_t sum;
	struct nlproto_bucket buckets[STATS_PIECE_BUCKETS];
};

struct pieces {
	unsigned n;
	struct piece p[PIECES_MAX]; /* some 20 KiB: the stack has 128 */
};

static struct piece *add_piece(struct pieces *ps, const struct piece *like)
{
	struct piece *p = &ps->p[ps->n++];

	z_assert(ps->n <= PIECES_MAX);
	p->id = like->id;
	p->count = like->count;
	p->sum = like->sum;
	p->n = 0;
	return p;
}

static void cut_histogram(struct pieces *ps, unsigned id, const struct histogram *h)
{
	struct piece head = {.id = id, .count = histogram_count(h), .sum = h->sum};
	struct piece *p = add_piece(ps, &head);

	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
		if (!h->buckets[i])
			continue;
		if (p->n == STATS_PIECE_BUCKETS)
			p = add_piece(ps, &head);
		p->buckets[p->n++] = (struct nlproto_bucket){histogram_lower(i), histogram_upper(i),
							     h->buckets[i]};
	}
}

static bool put_piece(struct nl_msg *msg, unsigned index, const void *from)
{
	const struct piece *p = &((const struct pieces *)from)->p[index];
	const struct histogram_info *info = &histogram_table[p->id];
	struct nlattr *nest = nla_nest_start(msg, NLPROTO_L_HISTOGRAM);

	if (!nest)
		return false;
	if (nla_put_string(msg, NLPROTO_H_NAME, info->name) < 0 ||
	    nla_put_u8(msg, NLPROTO_H_UNIT, (uint8_t)info->unit) < 0 ||
	    nla_put_u64(msg, NLPROTO_H_COUNT, p->count) < 0 ||
	    nla_put_u64(msg, NLPROTO_H_SUM, p->sum) < 0 ||
	    nla_put(msg, NLPROTO_H_BUCKETS, (int)(p->n * sizeof(p->buckets[0])), p->buckets) < 0) {
		nla_nest_cancel(msg, nest);
		return false;
	}
	nla_nest_end(msg, nest);
	return true;
}

/* A stats_reply_fn that keeps what it is given. */
static int keep_part(void *ctx, const struct nlmsghdr *part)
{
	struct stats_answer *a = ctx;

	z_assert(a->n < STATS_PARTS_MAX && part->nlmsg_len <= sizeof(a->part[0]));
	memcpy(a->part[a->n++].bytes, part, part->nlmsg_len);
	return 0;
}

/* Makes the answer from @snap.  -ENOMEM. */
static int make_answer(struct stats_server *s, const struct stats_snapshot *snap)
{
	struct request rq = {
		.s = s, .cmd = NLPROTO_CMD_STATS, .reply = keep_part, .reply_ctx = &s->answer};
	struct pieces pieces = {0};
	int r;

	s->answer.n = 0;
	s->answer.at = 0;
	for (unsigned i = 0; s->ops->histograms && i < HISTOGRAM_COUNT; i++)
		cut_histogram(&pieces, i, &snap->histograms[i]);
	r = put_list(&rq, NLPROTO_A_COUNTERS, COUNTER_COUNT, put_counter, snap);
	if (r == 0)
		r = put_list(&rq, NLPROTO_A_HISTOGRAMS, pieces.n, put_piece, &pieces);
	if (r == 0)
		r = put_done(&rq);
	if (r == 0)
		s->answer.at = snap->at;
	return r;
}

int answer_stats(const struct request *rq, struct nlattr **attrs)
{
	const struct stats_snapshot *snap = stats_snapshot(rq->s, now_ns());
	struct stats_answer *a = &rq->s->answer;

	if (a->at != snap->at && make_answer(rq->s, snap) < 0)
		return refuse_without_memory(rq);
	for (unsigned i = 0; i < a->n; i++) {
		a->part[i].nlh.nlmsg_seq = rq->nlh.nlmsg_seq;
		a->part[i].nlh.nlmsg_pid = rq->peer.port;
		if (rq->reply(rq->reply_ctx, &a->part[i].nlh) < 0)
			break; /* the asker does not read: the rest would be lost as well */
	}
	return 0;
}

/* --- options --- */

static bool put_option(struct nl_msg *msg, unsigned index, const void *from)
{
	const struct stats_server *s = from;
	struct nlattr *nest;
	struct stats_option o = {0};

	z_assert(s->ops->option(s->ctx, index, &o));
	nest = nla_nest_start(msg, NLPROTO_L_OPTION);
	/* So much that no single attribute can fail. */
	if (!nest || nlmsg_get_max_size(msg) - nlmsg_hdr(msg)->nlmsg_len < sizeof(o) + 64) {
		if (nest)
			nla_nest_cancel(msg, nest);
		return false;
	}
	put_text(msg, NLPROTO_O_KEY, o.key, sizeof(o.key));
	/* An empty value is one, too. */
	o.value[sizeof(o.value) - 1] = '\0';
	z_assert(nla_put_string(msg, NLPROTO_O_VALUE, o.value) == 0);
	put_text(msg, NLPROTO_O_IN_FORCE, o.in_force, sizeof(o.in_force));
	put_text(msg, NLPROTO_O_DEFAULT, o.def, sizeof(o.def));
	put_text(msg, NLPROTO_O_ORIGIN, o.origin, sizeof(o.origin));
	z_assert(nla_put_u8(msg, NLPROTO_O_LIVE, o.live) == 0);
	put_text(msg, NLPROTO_O_TEXT, o.text, sizeof(o.text));
	put_text(msg, NLPROTO_O_RANGE, o.range, sizeof(o.range));
	nla_nest_end(msg, nest);
	return true;
}

/* How many there are, and in *ret_index the one that is @key, or -1. */
static unsigned find_option(const struct stats_server *s, const char *key, int *ret_index)
{
	struct stats_option o;
	unsigned n = 0;

	*ret_index = -1;
	while (true) {
		memset(&o, 0, sizeof(o));
		if (!s->ops->option(s->ctx, n, &o))
			return n;
		if (key && !strcmp(o.key, key))
			*ret_index = (int)n;
		n++;
	}
}

int answer_option(const struct request *rq, const char *key, const char *text)
{
	struct nl_msg *msg = reply_new(rq, 0);
	struct nlattr *list;
	int index;

	if (!msg)
		return refuse_without_memory(rq);
	find_option(rq->s, key, &index);
	if (index < 0) {
		nlmsg_free(msg);
		return refuse(rq, -ENOENT, "there is no option '%s'; ask for all to see them", key);
	}
	list = nla_nest_start(msg, NLPROTO_A_OPTIONS);
	z_assert(list && put_option(msg, (unsigned)index, rq->s));
	nla_nest_end(msg, list);
	if (text[0]) {
		list = nla_nest_start(msg, NLPROTO_A_LINES);
		z_assert(list);
		put_text(msg, NLPROTO_L_LINE, text, NLPROTO_LINE_MAX);
		nla_nest_end(msg, list);
	}
	reply_put_out(rq, msg);
	return 0;
}

int answer_get(const struct request *rq, struct nlattr **attrs)
{
	int r, index;

	if (!rq->s->ops->option)
		return unknown(rq, "options to read");
	if (attrs[NLPROTO_A_KEY])
		return answer_option(rq, nla_get_string(attrs[NLPROTO_A_KEY]), "");
	r = put_list(rq, NLPROTO_A_OPTIONS, find_option(rq->s, NULL, &index), put_option, rq->s);
	if (r == 0)
		return put_done(rq);
	return r < 0 ? refuse_without_memory(rq) : 0;
}

/* --- jobs --- */

static int reply_job(const struct request *rq, const struct stats_job *job)
{
	struct nl_msg *msg = reply_new(rq, 0);

	if (!msg)
		return refuse_without_memory(rq);
	put_job(msg, job);
	reply_put_out(rq, msg);
	return 0;
}

/* The one that is shown to who names none. */
static int reply_current_job(const struct request *rq)
{
	struct stats_job jobs[STATS_JOBS] = {0};

	rq->s->ops->job(rq->s->ctx, jobs);
	return reply_job(rq, &jobs[0]);
}

int answer_job(const struct request *rq, struct nlattr **attrs)
{
	struct stats_job jobs[STATS_JOBS] = {0};
	const struct nlattr *id = NULL;

	if (!rq->s->ops->job)
		return unknown(rq, "jobs");
	if (!attrs[NLPROTO_A_JOB])
		return reply_current_job(rq);
	id = nla_find(nla_data(attrs[NLPROTO_A_JOB]), nla_len(attrs[NLPROTO_A_JOB]), NLPROTO_J_ID);
	if (!id || nla_len(id) != 4)
		return refuse(rq, -EINVAL, "no number in the attribute for a job");
	rq->s->ops->job(rq->s->ctx, jobs);
	for (unsigned i = 0; i < STATS_JOBS; i++) {
		if (jobs[i].id == nla_get_u32(id))
			return reply_job(rq, &jobs[i]);
	}
	return refuse(rq, -ENOENT,
		      "nothing is known of job %" PRIu32 " any more; its end is in the log",
		      nla_get_u32(id));
}

int answer_job_start(const struct request *rq, struct nlattr **attrs)
{
	enum nlproto_job_kind kind = rq->cmd == NLPROTO_CMD_WRITEBACK ? NLPROTO_JOB_WRITEBACK
				     : rq->cmd == NLPROTO_CMD_COMPACT ? NLPROTO_JOB_COMPACT
								      : NLPROTO_JOB_CHECK;
	uint64_t bytes = STATS_JOB_ALL;
	char text[NLPROTO_LINE_MAX] = "";
	int r;

	if (!rq->s->ops->job_start || !rq->s->ops->job)
		return unknown(rq, "jobs");
	if (attrs[NLPROTO_A_BYTES])
		bytes = nla_get_u64(attrs[NLPROTO_A_BYTES]);
	if (bytes == 0)
		return refuse(rq, -EINVAL, "0 bytes are nothing to write back");
	stats_events_before_job(rq);
	r = rq->s->ops->job_start(rq->s->ctx, kind, bytes, text);
	if (r < 0)
		return refuse(rq, r, "%s", text[0] ? text : strerror(-r));
	return reply_current_job(rq);
}

int answer_cancel(const struct request *rq, struct nlattr **attrs)
{
	struct stats_job jobs[STATS_JOBS] = {0};
	char text[NLPROTO_LINE_MAX] = "";
	int r;

	if (!rq->s->ops->job || !rq->s->ops->job_cancel)
		return unknown(rq, "jobs to cancel");
	rq->s->ops->job(rq->s->ctx, jobs);
	if (!jobs[0].id || jobs[0].state != NLPROTO_JOB_STATE_RUNNING)
		return refuse(rq, -ESRCH, "no job is under way");
	r = rq->s->ops->job_cancel(rq->s->ctx, text);
	if (r < 0)
		return refuse(rq, r, "%s", text[0] ? text : strerror(-r));
	return reply_current_job(rq);
}

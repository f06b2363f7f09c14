// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Events: what is found by comparing two looks, what others have posted, and to whom it goes.
 *
 * Each event has the next number.  One that is not sent, since there were too many, takes its
 * number all the same: so a reader sees that something is missing, whatever the reason.
 *
 * Everything goes to the multicast group and, one by one, to the followers.  A follower is a port
 * that has subscribed.  It is kept until its time is over or until nobody has that port; so the
 * table holds no more than who is there, and one user can have only a part of it.
 */
#include "common/size.h"
#include "daemon/stats/message.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define SECOND	     1000000000ull
#define TICK_NS	     (SECOND / 2)
#define KIND_GAP_NS  SECOND	   /* between two of a kind that is found in counters */
#define LIMIT_GAP_NS (10 * SECOND) /* memory is at its limit most of the time */
#define FAILED_NS    (60 * SECOND) /* after its last failed write the store counts as failed */
#define TOKENS_MAX   32u	   /* events in a row */
#define TOKEN_NS     (SECOND / 8)  /* and one each */
#define USER_MAX     4u		   /* followers of one user who is not root */
#define ROOT_KEPT    4u		   /* places that only root gets */

struct event {
	enum nlproto_event kind;
	uint64_t count;	 /* 0: left out */
	const char *key; /* NULL: left out */
	const struct stats_job *job;
	bool has_state, has_store_state;
	enum nlproto_state state;
	enum nlproto_store_state store_state;
	char text[NLPROTO_LINE_MAX];
};

struct out {
	struct stats_server *s;
	uint64_t now;
	stats_reply_fn reply;
	void *reply_ctx;
};

static uint64_t real_time_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * SECOND + (uint64_t)ts.tv_nsec;
}

void stats_events_init(struct stats_events *e)
{
	e->began = real_time_ns();
	pthread_mutex_init(&e->lock, NULL);
	e->tokens = TOKENS_MAX;
}

void stats_events_deinit(struct stats_events *e)
{
	pthread_mutex_destroy(&e->lock);
}

/* --- followers --- */

static int send_to(const struct out *o, struct nlmsghdr *nlh, struct stats_follower *f)
{
	int r;

	nlh->nlmsg_pid = f->port;
	r = o->reply(o->reply_ctx, nlh);
	if (r == -ECONNREFUSED)
		f->port = 0;
	return r;
}

static void drop_late(struct stats_events *e, uint64_t now)
{
	for (unsigned i = 0; i < STATS_FOLLOWERS; i++)
		if (e->followers[i].port && now >= e->followers[i].until)
			e->followers[i].port = 0;
}

static struct stats_follower *find_follower(struct stats_events *e, uint32_t port)
{
	for (unsigned i = 0; i < STATS_FOLLOWERS; i++)
		if (e->followers[i].port == port)
			return &e->followers[i];
	return NULL;
}

/* Of users other than root, who may take all places but some. */
static unsigned followers_beside_root(const struct stats_events *e)
{
	unsigned n = 0;

	for (unsigned i = 0; i < STATS_FOLLOWERS; i++)
		n += e->followers[i].port && e->followers[i].uid != 0;
	return n;
}

static unsigned followers_of(const struct stats_events *e, uint32_t uid)
{
	unsigned n = 0;

	for (unsigned i = 0; i < STATS_FOLLOWERS; i++)
		n += e->followers[i].port && e->followers[i].uid == uid;
	return n;
}

/* Finds out who is gone, by a message that says nothing. */
static void drop_gone(const struct out *o)
{
	struct nlmsghdr nop = {.nlmsg_len = sizeof(nop), .nlmsg_type = NLMSG_NOOP};

	for (unsigned i = 0; i < STATS_FOLLOWERS; i++)
		if (o->s->events.followers[i].port)
			send_to(o, &nop, &o->s->events.followers[i]);
}

static bool has_room(struct stats_events *e, const struct stats_peer *peer)
{
	/* Who has no credentials is nobody in particular, and all of them are one. */
	uint32_t uid = peer->has_creds ? peer->uid : UINT32_MAX;

	if (!find_follower(e, 0))
		return false;
	return uid == 0 || (followers_of(e, uid) < USER_MAX &&
			    followers_beside_root(e) < STATS_FOLLOWERS - ROOT_KEPT);
}

static int follow(const struct request *rq, uint64_t now, uint32_t seconds)
{
	struct out o = {rq->s, now, rq->reply, rq->reply_ctx};
	struct stats_events *e = &rq->s->events;
	struct stats_follower *f = find_follower(e, rq->peer.port);

	drop_late(e, now);
	if (!f && !has_room(e, &rq->peer))
		drop_gone(&o);
	if (!f && !has_room(e, &rq->peer))
		return refuse(rq, -EUSERS,
			      "at most %u may follow the events, %u of one user, and %u places are "
			      "root's; ask for the counters instead",
			      STATS_FOLLOWERS, USER_MAX, ROOT_KEPT);
	if (!f)
		f = find_follower(e, 0);
	*f = (struct stats_follower){rq->peer.port, rq->peer.has_creds ? rq->peer.uid : UINT32_MAX,
				     now + seconds * SECOND};
	return 0;
}

int answer_subscribe(const struct request *rq, struct nlattr **attrs)
{
	struct stats_events *e = &rq->s->events;
	uint32_t seconds = NLPROTO_SUBSCRIBE_SECONDS;
	struct stats_follower *f;
	struct nl_msg *msg;
	int r;

	if (attrs[NLPROTO_A_SECONDS])
		seconds = nla_get_u32(attrs[NLPROTO_A_SECONDS]);
	seconds = (uint32_t)min_u64(seconds, NLPROTO_SUBSCRIBE_SECONDS_MAX);
	if (seconds) {
		r = follow(rq, now_ns(), seconds);
		if (r < 0)
			return r;
	} else if ((f = find_follower(e, rq->peer.port))) {
		f->port = 0;
	}
	msg = reply_new(rq, 0);
	if (!msg)
		return refuse_without_memory(rq);
	z_assert(nla_put_u32(msg, NLPROTO_A_SECONDS, seconds) == 0);
	z_assert(nla_put_u64(msg, NLPROTO_A_EVENT_SEQ, e->seq) == 0);
	z_assert(nla_put_u64(msg, NLPROTO_A_TIME, e->began) == 0);
	reply_put_out(rq, msg);
	return 0;
}

/* --- sending --- */

static bool may_send(struct stats_events *e, uint64_t now)
{
	uint64_t more = (now - e->tokens_at) / TOKEN_NS;

	if (more) {
		e->tokens = (unsigned)min_u64(e->tokens + more, TOKENS_MAX);
		e->tokens_at = now;
	}
	if (e->tokens == 0)
		return false;
	e->tokens--;
	return true;
}

static struct nl_msg *event_message(const struct stats_server *s, const struct event *ev)
{
	struct nl_msg *msg = message_new(s, 0, 0, NLPROTO_CMD_EVENT, 0);

	if (!msg)
		return NULL;
	z_assert(nla_put_u8(msg, NLPROTO_A_EVENT, (uint8_t)ev->kind) == 0);
	z_assert(nla_put_u64(msg, NLPROTO_A_EVENT_SEQ, s->events.seq) == 0);
	z_assert(nla_put_u64(msg, NLPROTO_A_TIME, real_time_ns()) == 0);
	if (ev->count)
		z_assert(nla_put_u64(msg, NLPROTO_A_COUNT, ev->count) == 0);
	if (ev->key)
		put_text(msg, NLPROTO_A_KEY, ev->key, NLPROTO_NAME_MAX);
	if (ev->has_state)
		z_assert(nla_put_u8(msg, NLPROTO_A_STATE, (uint8_t)ev->state) == 0);
	if (ev->has_store_state)
		z_assert(nla_put_u8(msg, NLPROTO_A_STORE_STATE, (uint8_t)ev->store_state) == 0);
	if (ev->job)
		put_job(msg, ev->job);
	put_text(msg, NLPROTO_A_TEXT, ev->text, sizeof(ev->text));
	return msg;
}

static void send_event(const struct out *o, const struct event *ev)
{
	struct stats_events *e = &o->s->events;
	struct nl_msg *msg;

	e->seq++;
	e->sent_at[ev->kind] = o->now;
	if (!may_send(e, o->now))
		return;
	msg = event_message(o->s, ev);
	if (!msg)
		return;
	o->reply(o->reply_ctx, nlmsg_hdr(msg));
	for (unsigned i = 0; i < STATS_FOLLOWERS; i++)
		if (e->followers[i].port)
			send_to(o, nlmsg_hdr(msg), &e->followers[i]);
	nlmsg_free(msg);
}

/* --- finding --- */

struct rule {
	enum nlproto_event kind;
	enum counter_id counters[2]; /* their sum; the same twice: that one */
	bool error;
	const char *text; /* completes a number */
};

static const struct rule rules[] = {
	{NLPROTO_EVENT_STORE_ERROR,
	 {CTR_store_read_errors_total, CTR_store_write_errors_total},
	 true,
	 "requests to the store failed"},
	{NLPROTO_EVENT_CHECKSUM_FAILURE,
	 {CTR_checksum_failures_total, CTR_checksum_failures_total},
	 true,
	 "pages failed their checksum and were answered with an I/O error"},
	{NLPROTO_EVENT_WRITES_REJECTED,
	 {CTR_writes_rejected_total, CTR_writes_rejected_total},
	 true,
	 "pages were refused, since neither memory nor store had room"},
	{NLPROTO_EVENT_TAKEOVER,
	 {CTR_takeovers_total, CTR_takeovers_total},
	 false,
	 "takeover of the state from another worker"},
};

static bool is_due(const struct stats_events *e, enum nlproto_event kind, uint64_t gap,
		   uint64_t now)
{
	return e->sent_at[kind] == 0 || now - e->sent_at[kind] >= gap;
}

static void remember_error(struct stats_events *e, const char *text)
{
	time_t now = time(NULL);
	char when[32] = "";
	struct tm tm;

	if (gmtime_r(&now, &tm))
		strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &tm);
	snprintf(e->last_error, sizeof(e->last_error), "%s: %.220s", when, text);
}

/* In the words of the worker that has taken over, if it has some. */
static void tell_takeover(const struct out *o, struct event *ev)
{
	struct stats_status st;

	memset(&st, 0, sizeof(st));
	o->s->ops->status(o->s->ctx, &st);
	if (st.takeover[0])
		snprintf(ev->text, sizeof(ev->text), "%s", st.takeover);
}

static void look_at_counter(const struct out *o, const struct rule *rule, const uint64_t *values)
{
	struct stats_events *e = &o->s->events;
	uint64_t all = values[rule->counters[0]];
	struct event ev = {.kind = rule->kind};

	if (rule->counters[1] != rule->counters[0])
		all += values[rule->counters[1]];
	if (all <= e->told[rule->kind] || !is_due(e, rule->kind, KIND_GAP_NS, o->now))
		return;
	ev.count = all - e->told[rule->kind];
	e->told[rule->kind] = all;
	snprintf(ev.text, sizeof(ev.text), "%" PRIu64 " %s (%" PRIu64 " in all)", ev.count,
		 rule->text, all);
	if (rule->error)
		remember_error(e, ev.text);
	if (rule->kind == NLPROTO_EVENT_TAKEOVER)
		tell_takeover(o, &ev);
	send_event(o, &ev);
}

/* What it was at the first look is no change. */
static void look_at_store_state(const struct out *o, const uint64_t *values)
{
	static const char *const texts[] = {
		[NLPROTO_STORE_NONE] = "there is no store",
		[NLPROTO_STORE_OK] = "the store is in order again",
		[NLPROTO_STORE_DEGRADED] = "requests to the store fail or have failed lately",
		[NLPROTO_STORE_STALLED] = "the store has not answered for seconds; what needs it "
					  "waits, and nothing is dropped",
		[NLPROTO_STORE_LOST] = "the store is lost; no page leaves memory any more, and "
				       "those in the store can't be read",
	};
	enum nlproto_store_state state = (enum nlproto_store_state)values[CTR_store_state];
	struct event ev = {
		.kind = NLPROTO_EVENT_STORE_STATE, .has_store_state = true, .store_state = state};
	struct stats_events *e = &o->s->events;
	bool known = e->store_known && e->store_state != state;

	e->store_known = true;
	e->store_state = state;
	if (!known)
		return;
	snprintf(ev.text, sizeof(ev.text), "%s",
		 state < ARRAY_SIZE(texts) ? texts[state] : "the store is in another state");
	if (state == NLPROTO_STORE_STALLED || state == NLPROTO_STORE_LOST)
		remember_error(e, ev.text);
	send_event(o, &ev);
}

/* For the health: failed writes of the last minute. */
static void look_at_store(const struct out *o, const uint64_t *values)
{
	struct stats_events *e = &o->s->events;

	if (values[CTR_store_write_errors_total] > e->write_errors)
		e->write_failed_at = o->now;
	e->write_errors = values[CTR_store_write_errors_total];
	e->store_failed = e->write_failed_at && o->now - e->write_failed_at < FAILED_NS;
}

/* Told when memory comes to its limit, and again only after it has been an eighth below. */
static void look_at_limit(const struct out *o, const uint64_t *values)
{
	uint64_t used = values[CTR_memory_used_bytes], limit = values[CTR_memory_limit_bytes];
	struct event ev = {.kind = NLPROTO_EVENT_LIMIT_REACHED};
	struct stats_events *e = &o->s->events;
	char text[SIZE_TEXT_MAX];

	if (used < limit - limit / 8)
		e->limit_told = false;
	if (e->limit_told || limit == 0 || used < limit ||
	    !is_due(e, NLPROTO_EVENT_LIMIT_REACHED, LIMIT_GAP_NS, o->now))
		return;
	e->limit_told = true;
	snprintf(ev.text, sizeof(ev.text), "memory has reached its limit of %s; %s",
		 size_format(text, limit),
		 values[CTR_store_size_bytes]
			 ? "what is oldest goes to the store"
			 : "there is no store, so writes are refused when nothing is freed");
	send_event(o, &ev);
}

static void look_at_state(const struct out *o)
{
	struct event ev = {.kind = NLPROTO_EVENT_STATE_CHANGED, .has_state = true};
	struct stats_events *e = &o->s->events;
	struct stats_status st;
	const char *name;

	memset(&st, 0, sizeof(st));
	o->s->ops->status(o->s->ctx, &st);
	if (e->state_known && st.state == e->state)
		return;
	ev.state = e->state = st.state;
	name = nlproto_state_text(st.state);
	snprintf(ev.text, sizeof(ev.text), "the daemon is %s", name ? name : "in another state");
	/* What it was at the first look is no change. */
	if (e->state_known)
		send_event(o, &ev);
	e->state_known = true;
}

static void tell_job(const struct out *o, const struct stats_job *job)
{
	const char *kind = nlproto_job_name(job->kind), *state = nlproto_job_state_name(job->state);
	struct event ev = {.kind = NLPROTO_EVENT_JOB_FINISHED, .job = job};

	snprintf(ev.text, sizeof(ev.text), "job %" PRIu32 ", %s: %s%s%s", job->id,
		 kind ? kind : "?", state ? state : "?", job->error ? ", " : "",
		 job->error ? strerror(job->error) : "");
	send_event(o, &ev);
}

static bool told_of_job(const struct stats_events *e, uint32_t id)
{
	for (unsigned i = 0; i < STATS_JOBS; i++) {
		if (e->jobs_told[i] == id)
			return true;
	}
	return false;
}

static void look_at_jobs(const struct out *o)
{
	struct stats_events *e = &o->s->events;
	struct stats_job jobs[STATS_JOBS] = {0};
	uint32_t told[STATS_JOBS] = {0};

	if (!o->s->ops->job)
		return;
	o->s->ops->job(o->s->ctx, jobs);
	for (unsigned i = 0; i < STATS_JOBS; i++) {
		if (!jobs[i].id || jobs[i].state == NLPROTO_JOB_STATE_RUNNING)
			continue;
		told[i] = jobs[i].id;
		if (!told_of_job(e, jobs[i].id))
			tell_job(o, &jobs[i]);
	}
	memcpy(e->jobs_told, told, sizeof(told));
}

void stats_events_before_job(const struct request *rq)
{
	struct out o = {rq->s, now_ns(), rq->reply, rq->reply_ctx};

	look_at_jobs(&o);
}

/*
 * The number of takeovers outlives the processes.  One that finds some has just made the last of
 * them, and the others were told of by those before it.
 */
static void know_takeovers(struct stats_events *e, const uint64_t *values)
{
	uint64_t all = values[CTR_takeovers_total];

	if (!e->takeovers_known)
		e->told[NLPROTO_EVENT_TAKEOVER] = all ? all - 1 : 0;
	e->takeovers_known = true;
}

/* --- posting --- */

void stats_server_post(struct stats_server *s, enum nlproto_event kind, const char *key,
		       const char *text)
{
	struct stats_events *e = &s->events;
	struct stats_posted *p;

	z_assert(kind > 0 && kind <= NLPROTO_EVENT_MAX);
	pthread_mutex_lock(&e->lock);
	if (e->nposted == STATS_POSTED) {
		e->overflow++;
	} else {
		p = &e->posted[e->nposted++];
		p->kind = kind;
		snprintf(p->key, sizeof(p->key), "%s", key ? key : "");
		snprintf(p->text, sizeof(p->text), "%s", text);
	}
	pthread_mutex_unlock(&e->lock);
	stats_signal(s->wake_fd);
}

static void send_posted(const struct out *o)
{
	struct stats_events *e = &o->s->events;
	struct stats_posted posted[STATS_POSTED];
	unsigned n, overflow;

	pthread_mutex_lock(&e->lock);
	n = e->nposted;
	overflow = e->overflow;
	memcpy(posted, e->posted, n * sizeof(posted[0]));
	e->nposted = e->overflow = 0;
	pthread_mutex_unlock(&e->lock);
	for (unsigned i = 0; i < n; i++) {
		struct event ev = {.kind = posted[i].kind,
				   .key = posted[i].key[0] ? posted[i].key : NULL};

		strcpy(ev.text, posted[i].text);
		send_event(o, &ev);
	}
	e->seq += overflow;
}

uint64_t stats_events_work(struct stats_server *s, uint64_t now, bool last, stats_reply_fn reply,
			   void *reply_ctx)
{
	struct out o = {s, now, reply, reply_ctx};
	struct stats_events *e = &s->events;
	const struct stats_snapshot *snap;

	drop_late(e, now);
	send_posted(&o);
	if (now < e->next_tick && !last)
		return e->next_tick;
	snap = stats_snapshot(s, now);
	know_takeovers(e, snap->counters);
	for (size_t i = 0; i < ARRAY_SIZE(rules); i++)
		look_at_counter(&o, &rules[i], snap->counters);
	look_at_store(&o, snap->counters);
	look_at_store_state(&o, snap->counters);
	look_at_limit(&o, snap->counters);
	look_at_state(&o);
	look_at_jobs(&o);
	e->next_tick = now + TICK_NS;
	return e->next_tick;
}

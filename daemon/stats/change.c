// SPDX-License-Identifier: GPL-2.0-or-later
/* clang-format off */
/*
 * SET, RELOAD and UPGRADE: one box, through which a change goes to the owner and its result comes back.
 *
 *	NONE -> WAITING    the server's thread puts a change in and wakes the owner
 *	WAITING -> TAKEN   the owner takes it
 *	WAITING -> NONE    or does not in time: the asker is told EBUSY, and it will not happen later
 *	TAKEN -> FINISHED  the owner leaves the result and wakes the server's thread
 *	FINISHED -> NONE   the server's thread answers
 *
 * The lock is held to copy, never to wait or to send.
 */
/* clang-format on */
#include "daemon/stats/message.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>

#define TAKE_NS	  1000000000ull /* less than a client waits */
#define LINES_MAX 64u

int stats_changes_init(struct stats_changes *c)
{
	c->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (c->fd < 0)
		return -errno;
	c->deadline = UINT64_MAX;
	pthread_mutex_init(&c->lock, NULL);
	return 0;
}

void stats_changes_deinit(struct stats_changes *c)
{
	c->fd = close_fd(c->fd);
	pthread_mutex_destroy(&c->lock);
}

static bool put_in(struct stats_changes *c, const struct stats_change *change)
{
	bool free;

	pthread_mutex_lock(&c->lock);
	free = c->state == CHANGE_NONE;
	if (free) {
		c->change = *change;
		c->state = CHANGE_WAITING;
	}
	pthread_mutex_unlock(&c->lock);
	return free;
}

static void copy_text(char *to, size_t size, struct nlattr *from)
{
	snprintf(to, size, "%s", nla_get_string(from));
}

int answer_change(const struct request *rq, struct nlattr **attrs)
{
	struct stats_changes *c = &rq->s->changes;
	struct stats_change change = {.kind = STATS_CHANGE_RELOAD};

	if (!rq->s->ops->changes || (!rq->s->ops->option && rq->cmd != NLPROTO_CMD_UPGRADE))
		return refuse(rq, -EOPNOTSUPP, "this zswapd's options can't be changed");
	if (rq->cmd == NLPROTO_CMD_UPGRADE) {
		change.kind = STATS_CHANGE_UPGRADE;
	} else if (rq->cmd == NLPROTO_CMD_SET) {
		if (!attrs[NLPROTO_A_KEY] || !attrs[NLPROTO_A_VALUE])
			return refuse(rq, -EINVAL, "SET takes a KEY and a VALUE");
		change.kind = STATS_CHANGE_SET;
		copy_text(change.key, sizeof(change.key), attrs[NLPROTO_A_KEY]);
		copy_text(change.value, sizeof(change.value), attrs[NLPROTO_A_VALUE]);
	}
	stats_events_before_job(rq); /* a lower limit is a job */
	if (!put_in(c, &change))
		return refuse(rq, -EBUSY, "another change is under way; try again");
	c->asker = *rq;
	c->deadline = now_ns() + TAKE_NS;
	stats_signal(c->fd);
	return 0;
}

/* --- the owner's side --- */

int stats_server_change_fd(const struct stats_server *s)
{
	return s->changes.fd;
}

bool stats_server_take_change(struct stats_server *s, struct stats_change *ret)
{
	struct stats_changes *c = &s->changes;
	uint64_t count;
	bool waiting;

	/* Reset before the look: a change that comes after it sets it again. */
	if (read(c->fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
		return false;
	pthread_mutex_lock(&c->lock);
	waiting = c->state == CHANGE_WAITING;
	if (waiting) {
		*ret = c->change;
		c->state = CHANGE_TAKEN;
	}
	pthread_mutex_unlock(&c->lock);
	return waiting;
}

void stats_server_finish_change(struct stats_server *s, int result, const char *text)
{
	struct stats_changes *c = &s->changes;

	pthread_mutex_lock(&c->lock);
	z_assert(c->state == CHANGE_TAKEN);
	c->result = result;
	snprintf(c->report, sizeof(c->report), "%s", text);
	c->state = CHANGE_FINISHED;
	pthread_mutex_unlock(&c->lock);
	stats_signal(s->wake_fd);
}

/* --- the answer --- */

struct lines {
	unsigned n;
	char *line[LINES_MAX];
};

/* Cuts @report, which it changes, at its newlines. */
static void cut_lines(struct lines *ret, char *report)
{
	char *save;

	ret->n = 0;
	for (char *l = strtok_r(report, "\n", &save); l && ret->n < LINES_MAX;
	     l = strtok_r(NULL, "\n", &save)) {
		if (strlen(l) >= NLPROTO_LINE_MAX)
			l[NLPROTO_LINE_MAX - 1] = '\0';
		ret->line[ret->n++] = l;
	}
}

static bool put_line(struct nl_msg *msg, unsigned index, const void *from)
{
	return nla_put_string(msg, NLPROTO_L_LINE, ((const struct lines *)from)->line[index]) == 0;
}

/* As put_list(). */
static int put_partly(const struct request *rq)
{
	struct nl_msg *msg = reply_new(rq, NLM_F_MULTI);

	if (!msg)
		return -ENOMEM;
	z_assert(nla_put_u8(msg, NLPROTO_A_PARTLY, 1) == 0);
	return reply_put_out(rq, msg) < 0;
}

static void answer_reload(const struct request *rq, int result, char *report)
{
	struct lines lines;
	int r;

	cut_lines(&lines, report);
	r = put_list(rq, NLPROTO_A_LINES, lines.n, put_line, &lines);
	if (r == 0 && result == STATS_CHANGE_PARTLY)
		r = put_partly(rq);
	if (r == 0)
		put_done(rq);
	else if (r < 0)
		refuse_without_memory(rq);
}

/* One message: what comes of it is asked for, not waited for. */
static void answer_upgrade(const struct request *rq, char *report)
{
	struct nl_msg *msg = reply_new(rq, 0);
	struct nlattr *list;
	struct lines lines;

	if (!msg) {
		refuse_without_memory(rq);
		return;
	}
	cut_lines(&lines, report);
	list = nla_nest_start(msg, NLPROTO_A_LINES);
	z_assert(list);
	for (unsigned i = 0; i < lines.n && put_line(msg, i, &lines); i++)
		;
	nla_nest_end(msg, list);
	reply_put_out(rq, msg);
}

/* Empties the box if there is something to say, and leaves the result in @c. */
static bool take_result(struct stats_changes *c, uint64_t now, struct stats_change *ret_change,
			int *ret_result, char ret_report[static STATS_REPORT_MAX])
{
	bool out = true;

	pthread_mutex_lock(&c->lock);
	*ret_change = c->change;
	*ret_result = c->result;
	if (c->state == CHANGE_FINISHED) {
		strcpy(ret_report, c->report);
	} else if (c->state == CHANGE_WAITING && now >= c->deadline) {
		*ret_result = -EBUSY;
		strcpy(ret_report,
		       "zswapd is busy with starting or stopping; nothing was changed, try again");
	} else {
		out = false;
	}
	if (out)
		c->state = CHANGE_NONE;
	if (c->state != CHANGE_WAITING)
		c->deadline = UINT64_MAX;
	pthread_mutex_unlock(&c->lock);
	return out;
}

uint64_t stats_changes_work(struct stats_server *s, uint64_t now, stats_reply_fn reply,
			    void *reply_ctx)
{
	struct stats_changes *c = &s->changes;
	char report[STATS_REPORT_MAX];
	struct stats_change change;
	struct request rq;
	int result;

	if (!take_result(c, now, &change, &result, report))
		return c->deadline;
	rq = c->asker;
	rq.reply = reply;
	rq.reply_ctx = reply_ctx;
	s->snapshot.at = 0; /* who asks next wants to see what came of it */
	if (result < 0)
		refuse(&rq, result, "%s", report[0] ? report : strerror(-result));
	else if (change.kind == STATS_CHANGE_SET)
		answer_option(&rq, change.key, report);
	else if (change.kind == STATS_CHANGE_UPGRADE)
		answer_upgrade(&rq, report);
	else
		answer_reload(&rq, result, report);
	return UINT64_MAX;
}

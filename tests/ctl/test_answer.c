// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Histograms, options, jobs, lines and events as the client reads them: what is right, and what is
 * broken in each way there is.
 */
#include "common/util.h"
#include "ctl/reply.h"

#include <errno.h>
#include <linux/netlink.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SEQ 9

static struct ctl_reply reply;
static struct ctl_event event;

static void ask(uint8_t cmd)
{
	memset(&reply, 0, sizeof(reply));
	reply.cmd = cmd;
	reply.seq = SEQ;
}

static struct nl_msg *message(uint8_t cmd, uint32_t seq, int flags)
{
	struct nl_msg *msg = nlmsg_alloc_size(8192);
	struct nlproto_hdr hdr = {.cmd = cmd, .version = NLPROTO_VERSION};
	struct nlmsghdr *nlh;

	nlh = nlmsg_put(msg, 1, seq, NLPROTO_MSG_TYPE, sizeof(hdr), flags);
	nlh->nlmsg_seq = seq; /* libnl takes 0 for its own choice */
	memcpy(nlmsg_data(nlh), &hdr, sizeof(hdr));
	assert_int_equal(nla_put_string(msg, NLPROTO_A_DEVICE, "dev"), 0);
	return msg;
}

static struct nl_msg *part(void)
{
	return message(reply.cmd, SEQ, NLM_F_MULTI);
}

/* Frees @msg. */
static int take(struct nl_msg *msg)
{
	int r = ctl_reply_take(&reply, nlmsg_hdr(msg), nlmsg_hdr(msg)->nlmsg_len);

	nlmsg_free(msg);
	return r;
}

static void take_done(void)
{
	struct nlmsghdr done = {
		.nlmsg_len = sizeof(done), .nlmsg_type = NLMSG_DONE, .nlmsg_seq = SEQ};

	assert_int_equal(ctl_reply_take(&reply, &done, sizeof(done)), CTL_TAKE_DONE);
}

/* --- histograms --- */

struct buckets {
	unsigned n;
	struct nlproto_bucket b[4];
};

static void take_piece(const char *name, uint64_t count, const struct buckets *buckets)
{
	struct nl_msg *msg = part();
	struct nlattr *list = nla_nest_start(msg, NLPROTO_A_HISTOGRAMS);
	struct nlattr *nest = nla_nest_start(msg, NLPROTO_L_HISTOGRAM);

	nla_put_string(msg, NLPROTO_H_NAME, name);
	nla_put_u8(msg, NLPROTO_H_UNIT, NLPROTO_UNIT_NANOSECONDS);
	nla_put_u64(msg, NLPROTO_H_COUNT, count);
	nla_put_u64(msg, NLPROTO_H_SUM, 1000);
	nla_put(msg, NLPROTO_H_BUCKETS, (int)(buckets->n * sizeof(buckets->b[0])), buckets->b);
	nla_nest_end(msg, nest);
	nla_nest_end(msg, list);
	assert_int_equal(take(msg), CTL_TAKE_MORE);
}

static void pieces_of_a_histogram_are_put_together(void **state)
{
	struct buckets first = {2, {{0, 9, 5}, {10, 19, 3}}}, second = {1, {{40, 49, 2}}},
		       none = {0};
	const struct ctl_histogram *h;

	ask(NLPROTO_CMD_STATS);
	take_piece("a", 10, &first);
	take_piece("nothing", 0, &none);
	take_piece("a", 10, &second);
	take_done();
	assert_int_equal(reply.stats.unreadable, 0);
	assert_int_equal(reply.stats.nhistograms, 2);
	h = ctl_stats_histogram(&reply.stats, "a");
	assert_non_null(h);
	assert_int_equal(h->n, 3);
	assert_int_equal(h->count, 10);
	assert_int_equal(h->sum.v, 1000);
	assert_int_equal(h->unit.v, NLPROTO_UNIT_NANOSECONDS);
	assert_int_equal(h->b[2].lower, 40);
	assert_int_equal(ctl_stats_histogram(&reply.stats, "nothing")->n, 0);
	assert_null(ctl_stats_histogram(&reply.stats, "b"));
}

static void a_broken_histogram_costs_itself(void **state)
{
	static const struct {
		uint64_t count;
		struct buckets buckets;
	} broken[] = {
		{6, {1, {{0, 9, 5}}}},			     /* a piece is missing */
		{5, {2, {{0, 9, 5}, {10, 19, 1}}}},	     /* one too many */
		{6, {2, {{10, 19, 5}, {0, 9, 1}}}},	     /* order */
		{6, {2, {{0, 9, 5}, {9, 19, 1}}}},	     /* overlap */
		{6, {2, {{0, 9, 5}, {19, 10, 1}}}},	     /* upside down */
		{4, {2, {{0, 9, UINT64_MAX}, {10, 19, 5}}}}, /* their sum wraps */
	};
	struct buckets good = {1, {{0, UINT64_MAX, 1}}};

	for (size_t i = 0; i < ARRAY_SIZE(broken); i++) {
		ask(NLPROTO_CMD_STATS);
		take_piece("broken", broken[i].count, &broken[i].buckets);
		take_piece("good", 1, &good);
		take_piece("9lives", 1, &good);
		take_done();
		assert_int_equal(reply.stats.unreadable, 2);
		assert_int_equal(reply.stats.nhistograms, 1);
		assert_non_null(ctl_stats_histogram(&reply.stats, "good"));
	}
}

static void too_many_histograms_and_buckets(void **state)
{
	struct buckets one = {1, {{0, 9, 1}}};
	char name[16];

	ask(NLPROTO_CMD_STATS);
	for (unsigned i = 0; i < CTL_HISTOGRAMS_MAX + 2; i++) {
		snprintf(name, sizeof(name), "h%u", i);
		take_piece(name, 1, &one);
	}
	take_done();
	assert_int_equal(reply.stats.nhistograms, CTL_HISTOGRAMS_MAX);
	assert_int_equal(reply.stats.unreadable, 2);
	ask(NLPROTO_CMD_STATS);
	for (unsigned i = 0; i <= CTL_BUCKETS_MAX; i++) {
		struct buckets b = {1, {{i, i, 1}}};

		take_piece("long", CTL_BUCKETS_MAX + 1, &b);
	}
	take_done();
	assert_int_equal(reply.stats.nhistograms, 0);
	assert_int_equal(reply.stats.unreadable, 1);
}

static void percentiles_and_differences(void **state)
{
	static struct ctl_histogram before = {
		.count = 3, .sum = {true, 30}, .n = 2, .b = {{0, 9, 1}, {10, 19, 2}}};
	static struct ctl_histogram now = {.count = 103,
					   .sum = {true, 1030},
					   .n = 3,
					   .b = {{0, 9, 1}, {10, 19, 101}, {20, 29, 1}}};
	static struct ctl_histogram since, other;

	assert_true(ctl_histogram_since(&since, &now, &before));
	assert_int_equal(since.n, 2); /* what did not rise is empty, and left out */
	assert_int_equal(since.count, 100);
	assert_int_equal(since.sum.v, 1000);
	assert_int_equal(ctl_histogram_percentile(&since, 0).v, 19);
	assert_int_equal(ctl_histogram_percentile(&since, 0.5).v, 19);
	assert_int_equal(ctl_histogram_percentile(&since, 0.99).v, 19);
	assert_int_equal(ctl_histogram_percentile(&since, 1).v, 29);
	assert_true(ctl_histogram_since(&since, &now, &now));
	assert_int_equal(since.count, 0);
	assert_false(ctl_histogram_percentile(&since, 0.5).known);
	/* A daemon that was restarted counts from 0. */
	assert_false(ctl_histogram_since(&since, &before, &now));
	assert_int_equal(since.count, before.count);
	/* Or has other bounds. */
	other = before;
	other.b[1].upper = 18;
	assert_false(ctl_histogram_since(&since, &now, &other));
}

/* --- options, jobs, lines --- */

static void put_option(struct nl_msg *msg, const char *key, const char *value)
{
	struct nlattr *nest = nla_nest_start(msg, NLPROTO_L_OPTION);

	nla_put_string(msg, NLPROTO_O_KEY, key);
	if (value)
		nla_put_string(msg, NLPROTO_O_VALUE, value);
	nla_put_string(msg, NLPROTO_O_ORIGIN, "default");
	nla_put_u8(msg, NLPROTO_O_LIVE, 1);
	nla_nest_end(msg, nest);
}

static void options_are_read(void **state)
{
	static const char *const bad[] = {"", "a b", "new\nline", "esc\x1b", "first.one"};
	const struct ctl_option *o;
	struct nl_msg *msg;
	struct nlattr *list;

	ask(NLPROTO_CMD_GET);
	msg = part();
	list = nla_nest_start(msg, NLPROTO_A_OPTIONS);
	put_option(msg, "first.one", "");
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		put_option(msg, bad[i], "x"); /* the last one is there already */
	put_option(msg, "second.one", NULL);
	nla_nest_end(msg, list);
	assert_int_equal(take(msg), CTL_TAKE_MORE);
	take_done();
	assert_int_equal(reply.options.n, 2);
	assert_int_equal(reply.options.unreadable, ARRAY_SIZE(bad));
	o = ctl_options_get(&reply.options, "first.one");
	assert_true(o->value.known);
	assert_string_equal(o->value.s, "");
	assert_string_equal(o->origin.s, "default");
	assert_int_equal(o->live.v, 1);
	assert_false(o->text.known);
	assert_false(ctl_options_get(&reply.options, "second.one")->value.known);
	assert_null(ctl_options_get(&reply.options, "third.one"));
}

static void too_many_options_and_lines(void **state)
{
	char text[NLPROTO_LINE_MAX + 1];
	struct nlattr *list;
	struct nl_msg *msg;

	ask(NLPROTO_CMD_RELOAD);
	for (unsigned i = 0; i < CTL_OPTIONS_MAX + 3; i++) {
		msg = part();
		list = nla_nest_start(msg, NLPROTO_A_OPTIONS);
		snprintf(text, sizeof(text), "a.k%u", i);
		put_option(msg, text, "v");
		nla_nest_end(msg, list);
		list = nla_nest_start(msg, NLPROTO_A_LINES);
		nla_put_string(msg, NLPROTO_L_LINE, text);
		nla_nest_end(msg, list);
		assert_int_equal(take(msg), CTL_TAKE_MORE);
	}
	assert_int_equal(reply.options.n, CTL_OPTIONS_MAX);
	assert_int_equal(reply.options.unreadable, 3);
	assert_int_equal(reply.lines.n, CTL_LINES_MAX);
	assert_int_equal(reply.lines.unreadable, 3);
	assert_string_equal(reply.lines.line[1], "a.k1");
	memset(text, 'x', sizeof(text));
	text[NLPROTO_LINE_MAX] = '\0';
	ask(NLPROTO_CMD_RELOAD);
	msg = part();
	list = nla_nest_start(msg, NLPROTO_A_LINES);
	nla_put_string(msg, NLPROTO_L_LINE, text);
	nla_nest_end(msg, list);
	assert_int_equal(take(msg), CTL_TAKE_MORE);
	assert_int_equal(reply.lines.n, 0);
	assert_int_equal(reply.lines.unreadable, 1);
}

static void put_job(struct nl_msg *msg)
{
	struct nlattr *nest = nla_nest_start(msg, NLPROTO_A_JOB);

	nla_put_u32(msg, NLPROTO_J_ID, 3);
	nla_put_u8(msg, NLPROTO_J_KIND, NLPROTO_JOB_CHECK);
	nla_put(msg, NLPROTO_J_STATE, 3, "abc"); /* of no known width */
	nla_put_u64(msg, NLPROTO_J_TOTAL, 1ull << 40);
	nla_nest_end(msg, nest);
}

static void a_job_is_read(void **state)
{
	struct nl_msg *msg;

	ask(NLPROTO_CMD_JOB);
	msg = message(NLPROTO_CMD_JOB, SEQ, 0);
	put_job(msg);
	assert_int_equal(take(msg), CTL_TAKE_DONE);
	assert_true(reply.job.known);
	assert_int_equal(reply.job.id.v, 3);
	assert_int_equal(reply.job.kind.v, NLPROTO_JOB_CHECK);
	assert_false(reply.job.state.known);
	assert_true(reply.job.total.v == 1ull << 40);
	assert_false(reply.job.error.known);
	ask(NLPROTO_CMD_JOB);
	assert_int_equal(take(message(NLPROTO_CMD_JOB, SEQ, 0)), CTL_TAKE_DONE);
	assert_false(reply.job.known);
}

/* --- events --- */

static int take_event(struct nl_msg *msg, const char *device)
{
	int r;

	memset(&event, 0, sizeof(event));
	r = ctl_event_take(&event, device, nlmsg_hdr(msg), nlmsg_hdr(msg)->nlmsg_len);
	nlmsg_free(msg);
	return r;
}

static struct nl_msg *event_message(void)
{
	struct nl_msg *msg = message(NLPROTO_CMD_EVENT, 0, 0);

	nla_put_u8(msg, NLPROTO_A_EVENT, 200); /* of a newer daemon */
	nla_put_u64(msg, NLPROTO_A_EVENT_SEQ, 1ull << 33);
	nla_put_string(msg, NLPROTO_A_TEXT, "something happened");
	return msg;
}

static void events_are_read(void **state)
{
	struct nl_msg *msg = event_message();

	put_job(msg);
	nla_put_u32(msg, NLPROTO_A_MAX + 7, 1);
	assert_int_equal(take_event(msg, ""), 1);
	assert_string_equal(event.device, "dev");
	assert_int_equal(event.kind.v, 200);
	assert_true(event.seq.v == 1ull << 33);
	assert_string_equal(event.text.s, "something happened");
	assert_true(event.job.known);
	assert_false(event.count.known);
	assert_false(event.key.known);
	assert_int_equal(take_event(event_message(), "dev"), 1);
	/* Another device, and what is no event. */
	assert_int_equal(take_event(event_message(), "other"), 0);
	assert_int_equal(take_event(message(NLPROTO_CMD_STATUS, 0, 0), ""), 0);
	msg = event_message();
	nlmsg_hdr(msg)->nlmsg_type = NLMSG_DONE;
	assert_int_equal(take_event(msg, ""), 0);
}

static void broken_events_are_refused(void **state)
{
	struct nl_msg *msg = message(NLPROTO_CMD_EVENT, 0, 0);
	size_t len;

	assert_int_equal(take_event(msg, ""), -EPROTO); /* no kind, no number */
	msg = event_message();
	((struct nlproto_hdr *)nlmsg_data(nlmsg_hdr(msg)))->version = 9;
	assert_int_equal(take_event(msg, ""), -EPROTO);
	msg = event_message();
	len = nlmsg_hdr(msg)->nlmsg_len;
	for (size_t n = 0; n < len; n++) {
		void *exact = aligned_alloc(4, align_up(n + 1, 4));

		memcpy(exact, nlmsg_hdr(msg), n);
		assert_int_equal(ctl_event_take(&event, "", exact, n), -EPROTO);
		free(exact);
	}
	nlmsg_free(msg);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pieces_of_a_histogram_are_put_together),
		cmocka_unit_test(a_broken_histogram_costs_itself),
		cmocka_unit_test(too_many_histograms_and_buckets),
		cmocka_unit_test(percentiles_and_differences),
		cmocka_unit_test(options_are_read),
		cmocka_unit_test(too_many_options_and_lines),
		cmocka_unit_test(a_job_is_read),
		cmocka_unit_test(events_are_read),
		cmocka_unit_test(broken_events_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/* SET, RELOAD and UPGRADE on their way to the owner and back, both sides played by the test. */
#include "common/util.h"
#include "tests/stats/rig.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static bool is_readable(int fd)
{
	struct pollfd pfd = {.fd = fd, .events = POLLIN};

	return poll(&pfd, 1, 0) == 1;
}

static void packet_set(struct packet *p, const char *key, const char *value)
{
	packet_init(p, NLPROTO_CMD_SET);
	packet_attr(p, NLPROTO_A_KEY, key, (uint16_t)(strlen(key) + 1));
	packet_attr(p, NLPROTO_A_VALUE, value, (uint16_t)(strlen(value) + 1));
}

/* Asks, and takes it as the owner does. */
static void ask_and_take(struct packet *p, struct stats_change *ret)
{
	assert_int_equal(rig_ask_as_root(p), 0);
	assert_int_equal(rig.n, 0); /* answered later */
	assert_true(is_readable(stats_server_change_fd(rig.server)));
	assert_true(stats_server_take_change(rig.server, ret));
	assert_false(is_readable(stats_server_change_fd(rig.server)));
	assert_false(stats_server_take_change(rig.server, ret));
}

static const char *line_of(struct nlattr **a, unsigned i)
{
	struct nlattr *l;
	int rem;

	nla_for_each_nested(l, a[NLPROTO_A_LINES], rem)
	{
		assert_int_equal(nla_type(l), NLPROTO_L_LINE);
		if (i-- == 0)
			return nla_get_string(l);
	}
	fail_msg("there is no such line");
	return NULL;
}

static void a_value_is_set(void **state)
{
	struct stats_change change;
	struct nlattr **a;
	struct packet p;
	char key[NLPROTO_NAME_MAX];

	rig_option_key(3, key, sizeof(key));
	packet_set(&p, key, "64M");
	ask_and_take(&p, &change);
	assert_int_equal(change.kind, STATS_CHANGE_SET);
	assert_string_equal(change.key, key);
	assert_string_equal(change.value, "64M");
	rig_work(0);
	assert_int_equal(rig.n, 0);
	stats_server_finish_change(rig.server, 0, "section0.key3: 1 -> 67108864");
	rig_work(0);
	assert_int_equal(rig.n, 1);
	assert_int_equal(rig.msg[0]->nlmsg_pid, RIG_PORT);
	a = rig_parse(rig.msg[0], NLPROTO_CMD_SET);
	assert_string_equal(line_of(a, 0), "section0.key3: 1 -> 67108864");
	assert_string_equal(
		nla_get_string(nla_find(nla_data(nla_data(a[NLPROTO_A_OPTIONS])),
					nla_len(nla_data(a[NLPROTO_A_OPTIONS])), NLPROTO_O_KEY)),
		key);
	/* The box is free again, and nothing is said twice. */
	rig_work(0);
	assert_int_equal(rig.n, 0);
	ask_and_take(&p, &change);
	stats_server_finish_change(rig.server, 0, "");
	rig_work(0);
	assert_null(rig_parse(rig.msg[0], NLPROTO_CMD_SET)[NLPROTO_A_LINES]);
}

static void an_empty_value_is_handed_on(void **state)
{
	struct stats_change change;
	struct packet p;

	packet_set(&p, "section0.key0", "");
	ask_and_take(&p, &change);
	assert_string_equal(change.value, "");
}

static void what_the_owner_refuses_is_refused(void **state)
{
	struct stats_change change;
	struct packet p;

	packet_set(&p, "section0.key0", "purple");
	ask_and_take(&p, &change);
	stats_server_finish_change(rig.server, -EINVAL, "'purple' is no number");
	rig_work(0);
	rig_assert_refusal(&p, -EINVAL, "'purple' is no number");
	ask_and_take(&p, &change);
	stats_server_finish_change(rig.server, -ERANGE, "");
	rig_work(0);
	rig_assert_refusal(&p, -ERANGE, "range");
	/* Said to be done, but there is no such option. */
	packet_set(&p, "no.such", "1");
	ask_and_take(&p, &change);
	stats_server_finish_change(rig.server, 0, "");
	rig_work(0);
	rig_assert_refusal(&p, -ENOENT, "no.such");
}

static void set_takes_key_and_value(void **state)
{
	struct stats_change change;
	struct packet p;

	packet_init(&p, NLPROTO_CMD_SET);
	packet_attr(&p, NLPROTO_A_KEY, "a.b", 4);
	assert_int_equal(rig_ask_as_root(&p), -EINVAL);
	rig_assert_refusal(&p, -EINVAL, "VALUE");
	packet_init(&p, NLPROTO_CMD_SET);
	packet_attr(&p, NLPROTO_A_VALUE, "1", 2);
	assert_int_equal(rig_ask_as_root(&p), -EINVAL);
	assert_false(stats_server_take_change(rig.server, &change));
}

static void one_change_at_a_time(void **state)
{
	struct stats_change change;
	struct packet p, other;

	packet_set(&p, "section0.key0", "1");
	packet_init(&other, NLPROTO_CMD_RELOAD);
	assert_int_equal(rig_ask_as_root(&p), 0);
	assert_int_equal(rig_ask_as_root(&other), -EBUSY);
	rig_assert_refusal(&other, -EBUSY, "under way");
	assert_true(stats_server_take_change(rig.server, &change));
	assert_int_equal(change.kind, STATS_CHANGE_SET);
	assert_int_equal(rig_ask_as_root(&other), -EBUSY);
	stats_server_finish_change(rig.server, 0, "");
	assert_int_equal(rig_ask_as_root(&other), -EBUSY);
	rig_work(0);
	ask_and_take(&other, &change);
	assert_int_equal(change.kind, STATS_CHANGE_RELOAD);
}

/* Refused means that it will not happen. */
static void a_change_nobody_takes_is_withdrawn(void **state)
{
	struct stats_change change;
	struct packet p;

	packet_set(&p, "section0.key0", "1");
	assert_int_equal(rig_ask_as_root(&p), 0);
	rig_work(RIG_SECOND / 2);
	assert_int_equal(rig.n, 0);
	rig_work(RIG_SECOND);
	rig_assert_refusal(&p, -EBUSY, "busy");
	assert_false(stats_server_take_change(rig.server, &change));
	/* One that was taken is waited for. */
	ask_and_take(&p, &change);
	rig_work(10 * RIG_SECOND);
	assert_int_equal(rig.n, 0);
	stats_server_finish_change(rig.server, 0, "");
	rig_work(0);
	assert_int_equal(rig.n, 1);
	rig_parse(rig.msg[0], NLPROTO_CMD_SET);
}

static void a_reload_tells_line_by_line(void **state)
{
	static char report[STATS_REPORT_MAX];
	struct stats_change change;
	struct packet p;
	char want[64];
	unsigned n = 0;
	size_t len = 0;

	for (unsigned i = 0; i < 50; i++)
		len += (size_t)snprintf(report + len, sizeof(report) - len,
					"section.key%u: %060u -> 2\n", i, i);
	packet_init(&p, NLPROTO_CMD_RELOAD);
	ask_and_take(&p, &change);
	stats_server_finish_change(rig.server, 0, report);
	rig_work(0);
	assert_true(rig.n > 2);
	assert_int_equal(rig.msg[rig.n - 1]->nlmsg_type, NLMSG_DONE);
	for (unsigned i = 0; i + 1 < rig.n; i++) {
		struct nlattr *list = rig_parse(rig.msg[i], NLPROTO_CMD_RELOAD)[NLPROTO_A_LINES],
			      *l;
		int rem;

		nla_for_each_nested(l, list, rem)
		{
			snprintf(want, sizeof(want), "section.key%u: ", n++);
			assert_memory_equal(nla_get_string(l), want, strlen(want));
		}
	}
	assert_true(n >= 50 * len / STATS_REPORT_MAX && n <= 50);
}

/* What changed and what did not comes as lines, whole, and the answer says that it is not all. */
static void a_reload_that_fails_in_part(void **state)
{
	struct stats_change change;
	struct nlattr **a;
	struct packet p;

	packet_init(&p, NLPROTO_CMD_RELOAD);
	ask_and_take(&p, &change);
	stats_server_finish_change(rig.server, STATS_CHANGE_PARTLY,
				   "a.b: 1 -> 2\nc.d: stays 3: the store has no room");
	rig_work(0);
	assert_int_equal(rig.n, 3);
	a = rig_parse(rig.msg[0], NLPROTO_CMD_RELOAD);
	assert_string_equal(line_of(a, 0), "a.b: 1 -> 2");
	assert_string_equal(line_of(a, 1), "c.d: stays 3: the store has no room");
	a = rig_parse(rig.msg[1], NLPROTO_CMD_RELOAD);
	assert_non_null(a[NLPROTO_A_PARTLY]);
	assert_int_equal(nla_get_u8(a[NLPROTO_A_PARTLY]), 1);
	assert_int_equal(rig.msg[2]->nlmsg_type, NLMSG_DONE);
}

static void a_reload_without_changes(void **state)
{
	struct stats_change change;
	struct packet p;

	packet_init(&p, NLPROTO_CMD_RELOAD);
	ask_and_take(&p, &change);
	stats_server_finish_change(rig.server, 0, "");
	rig_work(0);
	assert_int_equal(rig.n, 1);
	assert_int_equal(rig.msg[0]->nlmsg_type, NLMSG_DONE);
}

#define T(name) cmocka_unit_test_setup_teardown(name, rig_set_up_quiet, rig_tear_down)

static void an_upgrade_is_answered_in_words(void **state)
{
	struct stats_change change;
	struct nlattr **a;
	struct packet p;

	packet_init(&p, NLPROTO_CMD_UPGRADE);
	ask_and_take(&p, &change);
	assert_int_equal(change.kind, STATS_CHANGE_UPGRADE);
	/* The new program takes its time to say what it is. */
	rig_work(15 * RIG_SECOND);
	assert_int_equal(rig.n, 0);
	stats_server_finish_change(rig.server, 0, "0.2.0 takes over from 0.1.0");
	rig_work(0);
	assert_int_equal(rig.n, 1);
	assert_int_equal(rig.msg[0]->nlmsg_flags & NLM_F_MULTI, 0);
	a = rig_parse(rig.msg[0], NLPROTO_CMD_UPGRADE);
	assert_string_equal(line_of(a, 0), "0.2.0 takes over from 0.1.0");
	ask_and_take(&p, &change);
	stats_server_finish_change(rig.server, -EPROTONOSUPPORT, "version 0.0.9 is older");
	rig_work(0);
	rig_assert_refusal(&p, -EPROTONOSUPPORT, "0.0.9 is older");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_value_is_set),
		T(an_empty_value_is_handed_on),
		T(what_the_owner_refuses_is_refused),
		T(set_takes_key_and_value),
		T(one_change_at_a_time),
		T(a_change_nobody_takes_is_withdrawn),
		T(a_reload_tells_line_by_line),
		T(a_reload_that_fails_in_part),
		T(a_reload_without_changes),
		T(an_upgrade_is_answered_in_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

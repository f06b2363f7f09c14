// SPDX-License-Identifier: GPL-2.0-or-later
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

static void ask(uint8_t cmd, const char *device)
{
	memset(&reply, 0, sizeof(reply));
	reply.cmd = cmd;
	reply.seq = SEQ;
	strcpy(reply.want_device, device);
}

static struct nl_msg *answer(uint8_t cmd, int flags, const char *device)
{
	struct nl_msg *msg = nlmsg_alloc_size(8192);
	struct nlproto_hdr hdr = {.cmd = cmd, .version = NLPROTO_VERSION};
	struct nlmsghdr *nlh;

	nlh = nlmsg_put(msg, 1, SEQ, NLPROTO_MSG_TYPE, sizeof(hdr), flags);
	memcpy(nlmsg_data(nlh), &hdr, sizeof(hdr));
	if (device)
		assert_int_equal(nla_put_string(msg, NLPROTO_A_DEVICE, device), 0);
	return msg;
}

/* Frees @msg. */
static int take(struct nl_msg *msg)
{
	int r = ctl_reply_take(&reply, nlmsg_hdr(msg), nlmsg_hdr(msg)->nlmsg_len);

	nlmsg_free(msg);
	return r;
}

static void put_counter(struct nl_msg *msg, const char *name, uint64_t value)
{
	struct nlattr *nest = nla_nest_start(msg, NLPROTO_L_COUNTER);

	assert_int_equal(nla_put_string(msg, NLPROTO_C_NAME, name), 0);
	assert_int_equal(nla_put_u8(msg, NLPROTO_C_KIND, NLPROTO_KIND_GAUGE), 0);
	assert_int_equal(nla_put_u8(msg, NLPROTO_C_UNIT, NLPROTO_UNIT_BYTES), 0);
	assert_int_equal(nla_put_u64(msg, NLPROTO_C_VALUE, value), 0);
	nla_nest_end(msg, nest);
}

static void parts_add_up(void **state)
{
	struct nlmsghdr done = {
		.nlmsg_len = sizeof(done), .nlmsg_type = NLMSG_DONE, .nlmsg_seq = SEQ};

	ask(NLPROTO_CMD_STATS, "dev");
	for (unsigned part = 0; part < 3; part++) {
		struct nl_msg *msg = answer(NLPROTO_CMD_STATS, NLM_F_MULTI, "dev");
		struct nlattr *list = nla_nest_start(msg, NLPROTO_A_COUNTERS);
		char name[] = "part_0";

		name[5] = (char)('0' + part);
		put_counter(msg, name, UINT64_MAX - part);
		nla_nest_end(msg, list);
		assert_int_equal(take(msg), CTL_TAKE_MORE);
	}
	assert_int_equal(ctl_reply_take(&reply, &done, sizeof(done)), CTL_TAKE_DONE);
	assert_string_equal(reply.device, "dev");
	assert_int_equal(reply.stats.n, 3);
	assert_int_equal(reply.stats.unreadable, 0);
	for (unsigned part = 0; part < 3; part++)
		assert_true(reply.stats.c[part].value.v == UINT64_MAX - part);
	assert_int_equal(reply.stats.c[2].kind.v, NLPROTO_KIND_GAUGE);
	assert_int_equal(reply.stats.c[2].unit.v, NLPROTO_UNIT_BYTES);
	assert_true(ctl_stats_get(&reply.stats, "part_1").v == UINT64_MAX - 1);
	assert_false(ctl_stats_get(&reply.stats, "part_9").known);
}

static void one_bad_counter_costs_itself(void **state)
{
	static const char *const bad_names[] = {"",	     "9lives", "Upper", "quo\"te",
						"new\nline", "a-b",    "first"};
	struct nl_msg *msg = answer(NLPROTO_CMD_STATS, NLM_F_MULTI, "dev");
	struct nlattr *list = nla_nest_start(msg, NLPROTO_A_COUNTERS), *nest;
	char longest[NLPROTO_NAME_MAX + 1];

	put_counter(msg, "first", 1);
	/* No value, a value of no known width, no name, nothing. */
	nest = nla_nest_start(msg, NLPROTO_L_COUNTER);
	nla_put_string(msg, NLPROTO_C_NAME, "empty");
	nla_nest_end(msg, nest);
	nest = nla_nest_start(msg, NLPROTO_L_COUNTER);
	nla_put_string(msg, NLPROTO_C_NAME, "odd");
	nla_put(msg, NLPROTO_C_VALUE, 3, "abc");
	nla_nest_end(msg, nest);
	nest = nla_nest_start(msg, NLPROTO_L_COUNTER);
	nla_put_u64(msg, NLPROTO_C_VALUE, 5);
	nla_nest_end(msg, nest);
	nla_put(msg, NLPROTO_L_COUNTER, 0, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(bad_names); i++)
		put_counter(msg, bad_names[i], 1); /* the last one is there already */
	memset(longest, 'a', sizeof(longest));
	longest[NLPROTO_NAME_MAX] = '\0';
	put_counter(msg, longest, 1);
	nla_put_u32(msg, NLPROTO_L_LINE + 1, 1); /* of a later list: not ours to judge */
	put_counter(msg, "last", 2);
	nla_nest_end(msg, list);

	ask(NLPROTO_CMD_STATS, "dev");
	assert_int_equal(take(msg), CTL_TAKE_MORE);
	assert_int_equal(reply.stats.unreadable, 4 + ARRAY_SIZE(bad_names) + 1);
	assert_int_equal(reply.stats.n, 4);
	assert_int_equal(ctl_stats_get(&reply.stats, "first").v, 1);
	assert_int_equal(ctl_stats_get(&reply.stats, "last").v, 2);
	assert_false(ctl_stats_get(&reply.stats, "empty").known);
	assert_false(ctl_stats_get(&reply.stats, "odd").known);
}

static void too_many_counters_are_counted(void **state)
{
	ask(NLPROTO_CMD_STATS, "");
	for (unsigned i = 0; i < CTL_COUNTERS_MAX + 3; i++) {
		struct nl_msg *msg = answer(NLPROTO_CMD_STATS, NLM_F_MULTI, "dev");
		struct nlattr *list = nla_nest_start(msg, NLPROTO_A_COUNTERS);
		char name[16];

		snprintf(name, sizeof(name), "c%u", i);
		put_counter(msg, name, i);
		nla_nest_end(msg, list);
		assert_int_equal(take(msg), CTL_TAKE_MORE);
	}
	assert_int_equal(reply.stats.n, CTL_COUNTERS_MAX);
	assert_int_equal(reply.stats.unreadable, 3);
}

static void status_fields(void **state)
{
	struct nl_msg *msg = answer(NLPROTO_CMD_STATUS, 0, "dev");
	char text[NLPROTO_LINE_MAX + 1];

	memset(text, 'x', sizeof(text));
	text[NLPROTO_LINE_MAX] = '\0';
	nla_put_string(msg, NLPROTO_A_PATH, text);    /* too long by one: unknown */
	nla_put(msg, NLPROTO_A_TRANSPORT, 4, "fuse"); /* without NUL: still readable */
	nla_put_u64(msg, NLPROTO_A_PID, 1ull << 40);  /* wider than today */
	nla_put(msg, NLPROTO_A_HEALTH, 2, "ab");      /* of no known width */
	nla_put_u8(msg, NLPROTO_A_STATE, NLPROTO_STATE_RUNNING);
	nla_put_u32(msg, NLPROTO_A_MAX + 1, 1); /* of a newer daemon */
	ask(NLPROTO_CMD_STATUS, "");
	assert_int_equal(take(msg), CTL_TAKE_DONE);
	assert_false(reply.status.path.known);
	assert_true(reply.status.transport.known);
	assert_string_equal(reply.status.transport.s, "fuse");
	assert_true(reply.status.pid.known);
	assert_true(reply.status.pid.v == 1ull << 40);
	assert_false(reply.status.health.known);
	assert_int_equal(reply.status.state.v, NLPROTO_STATE_RUNNING);
	assert_false(reply.status.last_error.known);
}

static struct nl_msg *error_message(int error, int flags, const char *text)
{
	struct nl_msg *msg = nlmsg_alloc_size(1024);
	struct nlmsgerr err = {.error = error};
	struct nlmsghdr *nlh = nlmsg_put(msg, 1, SEQ, NLMSG_ERROR, sizeof(err), flags);

	memcpy(nlmsg_data(nlh), &err, sizeof(err));
	nla_put_string(msg, NLMSGERR_ATTR_MSG, text);
	return msg;
}

static void refusals_say_why(void **state)
{
	ask(NLPROTO_CMD_STATS, "");
	assert_int_equal(take(error_message(-EINVAL, NLM_F_CAPPED | NLM_F_ACK_TLVS, "because")),
			 CTL_TAKE_REFUSED);
	assert_int_equal(reply.error, -EINVAL);
	assert_string_equal(reply.error_text, "because");
	ask(NLPROTO_CMD_STATS, "");
	assert_int_equal(take(error_message(-ENODEV, 0, "not announced")), CTL_TAKE_REFUSED);
	assert_string_equal(reply.error_text, "error 19");
	ask(NLPROTO_CMD_STATS, "");
	assert_int_equal(take(error_message(INT32_MIN, 0, "")), CTL_TAKE_REFUSED);
	assert_string_equal(reply.error_text, "error 2147483648");
	ask(NLPROTO_CMD_STATS, "");
	assert_int_equal(take(error_message(0, 0, "")), -EPROTO);
}

static void assert_no_answer(struct nl_msg *msg, const char *word)
{
	assert_int_equal(take(msg), -EPROTO);
	if (!strstr(reply.error_text, word))
		fail_msg("'%s' is not in '%s'", word, reply.error_text);
}

static void what_was_not_asked_is_no_answer(void **state)
{
	struct nl_msg *msg;

	ask(NLPROTO_CMD_STATUS, "dev");
	assert_no_answer(answer(NLPROTO_CMD_STATS, 0, "dev"), "command 3");
	assert_no_answer(answer(NLPROTO_CMD_STATUS, 0, "other"), "'other'");
	assert_no_answer(answer(NLPROTO_CMD_STATUS, 0, NULL), "name its device");
	assert_no_answer(answer(NLPROTO_CMD_STATUS, 0, "a\"b"), "name its device");
	msg = answer(NLPROTO_CMD_STATUS, 0, "dev");
	((struct nlproto_hdr *)nlmsg_data(nlmsg_hdr(msg)))->version = 9;
	assert_no_answer(msg, "version 9");
	msg = answer(NLPROTO_CMD_STATUS, 0, "dev");
	nlmsg_hdr(msg)->nlmsg_type = 0x1234;
	assert_no_answer(msg, "0x1234");
	msg = answer(NLPROTO_CMD_STATUS, 0, "dev");
	nlmsg_hdr(msg)->nlmsg_len = NLMSG_HDRLEN + 2;
	assert_no_answer(msg, "cut off");
	/* Left over from an earlier question. */
	msg = answer(NLPROTO_CMD_STATUS, 0, "dev");
	nlmsg_hdr(msg)->nlmsg_seq = SEQ - 1;
	assert_int_equal(take(msg), CTL_TAKE_MORE);
	assert_string_equal(reply.device, "");
}

static void version_is_read_across_versions(void **state)
{
	struct nl_msg *msg = answer(NLPROTO_CMD_VERSION, 0, "dev");

	((struct nlproto_hdr *)nlmsg_data(nlmsg_hdr(msg)))->version = 9;
	nla_put_string(msg, NLPROTO_A_DAEMON_VERSION, "9.0");
	nla_put_u8(msg, NLPROTO_A_PROTOCOL, 9);
	ask(NLPROTO_CMD_VERSION, "dev");
	assert_int_equal(take(msg), CTL_TAKE_DONE);
	assert_string_equal(reply.status.daemon_version.s, "9.0");
	assert_int_equal(reply.status.protocol.v, 9);
}

static void cut_off_messages(void **state)
{
	struct nl_msg *msg = answer(NLPROTO_CMD_STATS, NLM_F_MULTI, "dev");
	struct nlattr *list = nla_nest_start(msg, NLPROTO_A_COUNTERS);
	size_t len;

	put_counter(msg, "one", 1);
	nla_nest_end(msg, list);
	len = nlmsg_hdr(msg)->nlmsg_len;
	for (size_t n = 0; n < len; n++) {
		void *exact = aligned_alloc(4, align_up(n + 1, 4));

		memcpy(exact, nlmsg_hdr(msg), n);
		ask(NLPROTO_CMD_STATS, "dev");
		assert_int_equal(ctl_reply_take(&reply, exact, n), -EPROTO);
		free(exact);
	}
	ask(NLPROTO_CMD_STATS, "dev");
	assert_int_equal(take(msg), CTL_TAKE_MORE);
	assert_int_equal(reply.stats.n, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts_add_up),
		cmocka_unit_test(one_bad_counter_costs_itself),
		cmocka_unit_test(too_many_counters_are_counted),
		cmocka_unit_test(status_fields),
		cmocka_unit_test(refusals_say_why),
		cmocka_unit_test(what_was_not_asked_is_no_answer),
		cmocka_unit_test(version_is_read_across_versions),
		cmocka_unit_test(cut_off_messages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

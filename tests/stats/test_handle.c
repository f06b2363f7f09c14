// SPDX-License-Identifier: GPL-2.0-or-later
/* Requests through stats_server_handle(), with every broken kind by itself. */
#include "common/util.h"
#include "daemon/stats/server.h"
#include "tests/stats/packet.h"

#include <errno.h>
#include <linux/netlink.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define NAME	  "unit-test.0"
#define REPLY_MAX 16
#define ASKER	  65534

/* Distinct and above 32 bits, so that a truncated or misplaced value shows. */
static uint64_t value_of(unsigned id)
{
	return 0x100000000ull * (id + 1) + id;
}

static unsigned snapshots;

static void give_counters(void *ctx, uint64_t values[COUNTER_COUNT])
{
	snapshots++;
	for (unsigned i = 0; i < COUNTER_COUNT; i++)
		values[i] = value_of(i);
}

static void give_status(void *ctx, struct stats_status *ret)
{
	strcpy(ret->path, "/dev/zswap/" NAME);
	strcpy(ret->transport, "fuse");
	ret->pid = 4711;
	ret->state = NLPROTO_STATE_RECOVERING;
	ret->health = NLPROTO_HEALTH_STORE_FULL | NLPROTO_HEALTH_NO_DISCARD;
	/* Longest text, and the NUL forgotten. */
	memset(ret->last_error, 'e', sizeof(ret->last_error));
}

static const struct stats_server_ops ops = {give_counters, give_status};

struct replies {
	unsigned n;
	unsigned accept; /* deliver so many, then fail */
	struct nlmsghdr *msg[REPLY_MAX];
};

static bool keep_reply(void *ctx, const struct nlmsghdr *reply)
{
	struct replies *r = ctx;

	assert_true(r->n < REPLY_MAX);
	assert_true(reply->nlmsg_len <= NLPROTO_PART_MAX);
	if (r->n >= r->accept)
		return false;
	r->msg[r->n] = malloc(reply->nlmsg_len);
	memcpy(r->msg[r->n++], reply, reply->nlmsg_len);
	return true;
}

static void drop_replies(struct replies *r)
{
	for (unsigned i = 0; i < r->n; i++)
		free(r->msg[i]);
	r->n = 0;
}

static struct stats_server *server;
static struct replies got = {.accept = REPLY_MAX};

static int handle(const void *msg, size_t len)
{
	struct stats_peer peer = {.port = 1234, .uid = ASKER, .has_creds = true};

	drop_replies(&got);
	return stats_server_handle(server, &peer, msg, len, keep_reply, &got);
}

static void assert_refused(const struct packet *p, int error, const char *word)
{
	struct nlattr *a[NLMSGERR_ATTR_MSG + 1] = {0};
	const struct nlmsgerr *err;

	assert_int_equal(handle(p->bytes, p->len), error);
	assert_int_equal(got.n, 1);
	assert_int_equal(got.msg[0]->nlmsg_type, NLMSG_ERROR);
	assert_int_equal(got.msg[0]->nlmsg_seq, p->nlh.nlmsg_seq);
	assert_int_equal(got.msg[0]->nlmsg_pid, 1234);
	assert_int_equal(got.msg[0]->nlmsg_flags, NLM_F_CAPPED | NLM_F_ACK_TLVS);
	err = nlmsg_data(got.msg[0]);
	assert_int_equal(err->error, error);
	assert_memory_equal(&err->msg, &p->nlh, sizeof(err->msg));
	assert_int_equal(nlmsg_parse(got.msg[0], sizeof(*err), a, NLMSGERR_ATTR_MSG, NULL), 0);
	assert_non_null(a[NLMSGERR_ATTR_MSG]);
	if (!strstr(nla_get_string(a[NLMSGERR_ATTR_MSG]), word))
		fail_msg("'%s' is not in '%s'", word, nla_get_string(a[NLMSGERR_ATTR_MSG]));
}

static void assert_silent(const void *msg, size_t len)
{
	assert_int_equal(handle(msg, len), 0);
	assert_int_equal(got.n, 0);
}

static struct nlattr **parse_reply(struct nlmsghdr *nlh, uint8_t cmd)
{
	static struct nlattr *a[NLPROTO_A_MAX + 1];
	const struct nlproto_hdr *hdr = nlmsg_data(nlh);

	assert_int_equal(nlh->nlmsg_type, NLPROTO_MSG_TYPE);
	assert_int_equal(nlh->nlmsg_seq, 77);
	assert_int_equal(nlh->nlmsg_flags & NLM_F_REQUEST, 0);
	assert_int_equal(hdr->cmd, cmd);
	assert_int_equal(hdr->version, NLPROTO_VERSION);
	assert_int_equal(nlmsg_parse(nlh, sizeof(*hdr), a, NLPROTO_A_MAX, NULL), 0);
	assert_string_equal(nla_get_string(a[NLPROTO_A_DEVICE]), NAME);
	return a;
}

static void version_is_answered(void **state)
{
	struct nlattr **a;
	struct packet p;

	packet_init(&p, NLPROTO_CMD_VERSION);
	assert_int_equal(handle(p.bytes, p.len), 0);
	assert_int_equal(got.n, 1);
	a = parse_reply(got.msg[0], NLPROTO_CMD_VERSION);
	assert_string_equal(nla_get_string(a[NLPROTO_A_DAEMON_VERSION]), ZSWAPD_VERSION);
	assert_int_equal(nla_get_u8(a[NLPROTO_A_PROTOCOL]), NLPROTO_VERSION);
}

static void status_is_answered(void **state)
{
	struct nlattr **a;
	struct packet p;

	packet_init(&p, NLPROTO_CMD_STATUS);
	packet_attr(&p, NLPROTO_A_DEVICE, NAME, sizeof(NAME));
	assert_int_equal(handle(p.bytes, p.len), 0);
	assert_int_equal(got.n, 1);
	a = parse_reply(got.msg[0], NLPROTO_CMD_STATUS);
	assert_string_equal(nla_get_string(a[NLPROTO_A_PATH]), "/dev/zswap/" NAME);
	assert_string_equal(nla_get_string(a[NLPROTO_A_TRANSPORT]), "fuse");
	assert_int_equal(nla_get_u32(a[NLPROTO_A_PID]), 4711);
	assert_int_equal(nla_get_u8(a[NLPROTO_A_STATE]), NLPROTO_STATE_RECOVERING);
	assert_int_equal(nla_get_u32(a[NLPROTO_A_HEALTH]),
			 NLPROTO_HEALTH_STORE_FULL | NLPROTO_HEALTH_NO_DISCARD);
	assert_int_equal(strlen(nla_get_string(a[NLPROTO_A_LAST_ERROR])), NLPROTO_TEXT_MAX - 1);
}

static void check_counter(struct nlattr *nest, unsigned id)
{
	struct nlattr *a[NLPROTO_C_MAX + 1];

	assert_true(id < COUNTER_COUNT);
	assert_int_equal(nla_parse_nested(a, NLPROTO_C_MAX, nest, NULL), 0);
	assert_string_equal(nla_get_string(a[NLPROTO_C_NAME]), counter_table[id].name);
	assert_int_equal(nla_get_u8(a[NLPROTO_C_KIND]), counter_table[id].kind);
	assert_int_equal(nla_get_u8(a[NLPROTO_C_UNIT]), counter_table[id].unit);
	assert_true(nla_get_u64(a[NLPROTO_C_VALUE]) == value_of(id));
}

static void stats_come_in_parts(void **state)
{
	unsigned id = 0;
	struct packet p;

	packet_init(&p, NLPROTO_CMD_STATS);
	snapshots = 0;
	assert_int_equal(handle(p.bytes, p.len), 0);
	assert_int_equal(snapshots, 1); /* all parts from one */
	assert_true(got.n >= 3);
	for (unsigned i = 0; i + 1 < got.n; i++) {
		struct nlattr **a = parse_reply(got.msg[i], NLPROTO_CMD_STATS), *c;
		int rem;

		assert_int_equal(got.msg[i]->nlmsg_flags, NLM_F_MULTI);
		nla_for_each_nested(c, a[NLPROTO_A_COUNTERS], rem) check_counter(c, id++);
		assert_int_equal(rem, 0);
	}
	assert_int_equal(id, COUNTER_COUNT);
	assert_int_equal(got.msg[got.n - 1]->nlmsg_type, NLMSG_DONE);
	assert_int_equal(got.msg[got.n - 1]->nlmsg_flags, NLM_F_MULTI);
	assert_int_equal(got.msg[got.n - 1]->nlmsg_seq, 77);
}

static void undelivered_part_ends_the_answer(void **state)
{
	struct packet p;

	packet_init(&p, NLPROTO_CMD_STATS);
	got.accept = 1;
	assert_int_equal(handle(p.bytes, p.len), 0);
	got.accept = REPLY_MAX;
	assert_int_equal(got.n, 1);
	assert_int_equal(got.msg[0]->nlmsg_type, NLPROTO_MSG_TYPE);
}

static void other_version_is_refused(void **state)
{
	struct packet p;

	packet_init(&p, NLPROTO_CMD_STATS);
	packet_hdr(&p)->version = NLPROTO_VERSION + 1;
	assert_refused(&p, -EPROTONOSUPPORT, "version 2");
	packet_hdr(&p)->version = 0;
	assert_refused(&p, -EPROTONOSUPPORT, "version 0");
	/* A command this version does not have may be one of the other. */
	packet_hdr(&p)->cmd = 200;
	assert_refused(&p, -EPROTONOSUPPORT, "version 0");
	/* The way to find out. */
	packet_hdr(&p)->cmd = NLPROTO_CMD_VERSION;
	assert_int_equal(handle(p.bytes, p.len), 0);
	parse_reply(got.msg[0], NLPROTO_CMD_VERSION);
}

static void unknown_commands_are_refused(void **state)
{
	static const uint8_t cmds[] = {NLPROTO_CMD_UNSPEC, NLPROTO_CMD_STATS + 1, 255};
	struct packet p;

	for (size_t i = 0; i < ARRAY_SIZE(cmds); i++) {
		packet_init(&p, cmds[i]);
		assert_refused(&p, -EOPNOTSUPP, "command");
	}
}

static void foreign_type_is_refused(void **state)
{
	struct packet p;

	packet_init(&p, NLPROTO_CMD_STATS);
	p.nlh.nlmsg_type = NLPROTO_MSG_TYPE + 1;
	assert_refused(&p, -EOPNOTSUPP, "type");
}

static void wrong_lengths_are_refused(void **state)
{
	struct packet p;

	packet_init(&p, NLPROTO_CMD_STATS);
	p.len -= 1;
	assert_refused(&p, -EINVAL, "truncated");
	packet_init(&p, NLPROTO_CMD_STATS);
	p.nlh.nlmsg_len = UINT32_MAX;
	assert_refused(&p, -EINVAL, "truncated");
	packet_init(&p, NLPROTO_CMD_STATS);
	p.nlh.nlmsg_len = 0;
	assert_refused(&p, -EINVAL, "too short");
	p.nlh.nlmsg_len = NLMSG_HDRLEN + 3;
	assert_refused(&p, -EINVAL, "too short");
	/* Header only. */
	p.nlh.nlmsg_len = NLMSG_HDRLEN;
	p.len = NLMSG_HDRLEN;
	assert_refused(&p, -EINVAL, "too short");
	/* A second request behind the first. */
	packet_init(&p, NLPROTO_CMD_STATS);
	memcpy(p.bytes + p.len, p.bytes, p.len);
	p.len *= 2;
	assert_refused(&p, -EINVAL, "one a datagram");
}

static void oversized_is_refused(void **state)
{
	char filler[NLPROTO_REQUEST_MAX] = {0};
	struct packet p;

	packet_init(&p, NLPROTO_CMD_STATS);
	packet_attr(&p, 999, filler, sizeof(filler) - 28);
	assert_int_equal(p.len, NLPROTO_REQUEST_MAX - 4);
	assert_int_equal(handle(p.bytes, p.len), 0);
	packet_attr(&p, 999, filler, 4);
	assert_refused(&p, -EMSGSIZE, "at most 4096");
}

static void broken_attributes_are_refused(void **state)
{
	char long_name[NLPROTO_NAME_MAX + 1] = {0};
	struct packet p;

	/* Says more than there is. */
	packet_init(&p, NLPROTO_CMD_STATS);
	packet_attr(&p, NLPROTO_A_DEVICE, NAME, sizeof(NAME));
	((struct nlattr *)(p.bytes + 20))->nla_len = 200;
	assert_refused(&p, -EINVAL, "cut off");
	/* Says less than its own header, which would make a walk stand still. */
	((struct nlattr *)(p.bytes + 20))->nla_len = 0;
	assert_refused(&p, -EINVAL, "cut off");
	/* A part of an attribute's header. */
	packet_init(&p, NLPROTO_CMD_STATS);
	p.len += 2;
	p.nlh.nlmsg_len += 2;
	assert_refused(&p, -EINVAL, "cut off");
	/* Empty, without NUL, too long. */
	packet_init(&p, NLPROTO_CMD_STATS);
	packet_attr(&p, NLPROTO_A_DEVICE, NAME, 0);
	assert_refused(&p, -EINVAL, "length");
	packet_init(&p, NLPROTO_CMD_STATS);
	packet_attr(&p, NLPROTO_A_DEVICE, NAME, sizeof(NAME) - 1);
	assert_refused(&p, -EINVAL, "NUL");
	packet_init(&p, NLPROTO_CMD_STATS);
	packet_attr(&p, NLPROTO_A_DEVICE, long_name, sizeof(long_name));
	assert_refused(&p, -EINVAL, "length");
}

static void reserved_bits_are_refused(void **state)
{
	struct packet p;

	packet_init(&p, NLPROTO_CMD_STATS);
	packet_hdr(&p)->reserved = 0x8000;
	assert_refused(&p, -EINVAL, "reserved");
}

static void other_device_is_refused(void **state)
{
	struct packet p;

	packet_init(&p, NLPROTO_CMD_STATUS);
	packet_attr(&p, NLPROTO_A_DEVICE, "other", sizeof("other"));
	assert_refused(&p, -ENODEV, "'" NAME "'");
}

static void unknown_attributes_are_passed_over(void **state)
{
	struct packet p;

	packet_init(&p, NLPROTO_CMD_STATUS);
	packet_attr(&p, NLPROTO_A_MAX + 5, "new", 4);
	assert_int_equal(handle(p.bytes, p.len), 0);
	parse_reply(got.msg[0], NLPROTO_CMD_STATUS);
}

static void answers_are_never_answered(void **state)
{
	struct stats_peer kernel = {0};
	struct packet p;

	packet_init(&p, NLPROTO_CMD_STATS);
	p.nlh.nlmsg_flags = NLM_F_MULTI;
	assert_silent(p.bytes, p.len);
	for (uint16_t type = 0; type < NLMSG_MIN_TYPE; type++) {
		packet_init(&p, NLPROTO_CMD_STATS);
		p.nlh.nlmsg_type = type;
		assert_silent(p.bytes, p.len);
	}
	for (size_t len = 0; len < NLMSG_HDRLEN; len++) {
		packet_init(&p, NLPROTO_CMD_STATS);
		assert_silent(p.bytes, len);
	}
	packet_init(&p, NLPROTO_CMD_STATS);
	drop_replies(&got);
	assert_int_equal(stats_server_handle(server, &kernel, p.bytes, p.len, keep_reply, &got), 0);
	assert_int_equal(got.n, 0);
}

/* Every prefix of a good request, then every single byte of it changed. */
static void damaged_requests_do_no_harm(void **state)
{
	struct packet p;

	packet_init(&p, NLPROTO_CMD_STATS);
	packet_attr(&p, NLPROTO_A_DEVICE, NAME, sizeof(NAME));
	for (size_t len = 0; len < p.len; len++) {
		void *exact = aligned_alloc(4, align_up(len + 1, 4));

		memcpy(exact, p.bytes, len);
		assert_true(handle(exact, len) == 0 ? got.n == 0 : got.n == 1);
		free(exact);
	}
	for (size_t at = 0; at < p.len; at++)
		for (unsigned flip = 1; flip < 256; flip++) {
			p.bytes[at] ^= (char)flip;
			handle(p.bytes, p.len);
			p.bytes[at] ^= (char)flip;
		}
	assert_int_equal(handle(p.bytes, p.len), 0);
	assert_true(got.n >= 3);
}

static int set_up(void **state)
{
	return stats_server_new(&server, NAME, &ops, NULL);
}

static int tear_down(void **state)
{
	drop_replies(&got);
	stats_server_free(server);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(version_is_answered),
		cmocka_unit_test(status_is_answered),
		cmocka_unit_test(stats_come_in_parts),
		cmocka_unit_test(undelivered_part_ends_the_answer),
		cmocka_unit_test(other_version_is_refused),
		cmocka_unit_test(unknown_commands_are_refused),
		cmocka_unit_test(foreign_type_is_refused),
		cmocka_unit_test(wrong_lengths_are_refused),
		cmocka_unit_test(oversized_is_refused),
		cmocka_unit_test(broken_attributes_are_refused),
		cmocka_unit_test(reserved_bits_are_refused),
		cmocka_unit_test(other_device_is_refused),
		cmocka_unit_test(unknown_attributes_are_passed_over),
		cmocka_unit_test(answers_are_never_answered),
		cmocka_unit_test(damaged_requests_do_no_harm),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}

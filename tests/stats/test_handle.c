// SPDX-License-Identifier: GPL-2.0-or-later
/* Requests through stats_server_handle(), with every broken kind by itself. */
#include "common/util.h"
#include "tests/stats/rig.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void assert_silent(const void *msg, size_t len)
{
	assert_int_equal(rig_handle(msg, len), 0);
	assert_int_equal(rig.n, 0);
}

static void version_is_answered(void **state)
{
	struct nlattr **a;
	struct packet p;

	packet_init(&p, NLPROTO_CMD_VERSION);
	assert_int_equal(rig_ask(&p), 0);
	assert_int_equal(rig.n, 1);
	a = rig_parse(rig.msg[0], NLPROTO_CMD_VERSION);
	assert_string_equal(nla_get_string(a[NLPROTO_A_DAEMON_VERSION]), ZSWAPD_VERSION);
	assert_int_equal(nla_get_u8(a[NLPROTO_A_PROTOCOL]), NLPROTO_VERSION);
}

static void status_is_answered(void **state)
{
	struct nlattr **a;
	struct packet p;

	memset(rig.counters, 0, sizeof(rig.counters));
	packet_init(&p, NLPROTO_CMD_STATUS);
	packet_attr(&p, NLPROTO_A_DEVICE, RIG_NAME, sizeof(RIG_NAME));
	assert_int_equal(rig_ask(&p), 0);
	assert_int_equal(rig.n, 1);
	a = rig_parse(rig.msg[0], NLPROTO_CMD_STATUS);
	assert_string_equal(nla_get_string(a[NLPROTO_A_PATH]), "/dev/zswap/" RIG_NAME);
	assert_string_equal(nla_get_string(a[NLPROTO_A_TRANSPORT]), "fuse");
	assert_int_equal(nla_get_u32(a[NLPROTO_A_PID]), 4711);
	assert_int_equal(nla_get_u8(a[NLPROTO_A_STATE]), NLPROTO_STATE_RECOVERING);
	assert_int_equal(nla_get_u32(a[NLPROTO_A_HEALTH]),
			 NLPROTO_HEALTH_OOM_EXPOSED | NLPROTO_HEALTH_NO_DISCARD);
	assert_null(a[NLPROTO_A_LAST_ERROR]);
}

static struct nlattr **ask_status(void)
{
	struct packet p;

	packet_init(&p, NLPROTO_CMD_STATUS);
	assert_int_equal(rig_ask(&p), 0);
	return rig_parse(rig.msg[0], NLPROTO_CMD_STATUS);
}

static void supervision_is_part_of_the_status(void **state)
{
	struct nlattr **a = ask_status();

	/* What is not known is not said. */
	for (int i = NLPROTO_A_SUPERVISOR; i <= NLPROTO_A_TAKEOVER_NS; i++)
		assert_null(a[i]);
	rig.status = (struct stats_status){.supervision = true};
	a = ask_status();
	assert_int_equal(nla_get_u32(a[NLPROTO_A_SUPERVISOR]), 0);
	assert_int_equal(nla_get_u32(a[NLPROTO_A_STANDBY]), 0);
	assert_int_equal(nla_get_u32(a[NLPROTO_A_DEATHS]), 0);
	for (int i = NLPROTO_A_REPORT; i <= NLPROTO_A_TAKEOVER_NS; i++)
		assert_null(a[i]);
	rig.status = (struct stats_status){
		.supervision = true,
		.supervisor = 700,
		.standby = 812,
		.deaths = 3,
		.takeover = "worker 4711 took over",
		.takeover_time = 1796077503000000000,
		.takeover_ns = 45000000,
	};
	memset(rig.status.report, 'r', sizeof(rig.status.report)); /* the NUL forgotten */
	a = ask_status();
	assert_int_equal(nla_get_u32(a[NLPROTO_A_SUPERVISOR]), 700);
	assert_int_equal(nla_get_u32(a[NLPROTO_A_STANDBY]), 812);
	assert_int_equal(nla_get_u32(a[NLPROTO_A_DEATHS]), 3);
	assert_int_equal(strlen(nla_get_string(a[NLPROTO_A_REPORT])), NLPROTO_REPORT_MAX - 1);
	assert_string_equal(nla_get_string(a[NLPROTO_A_TAKEOVER]), "worker 4711 took over");
	assert_true(nla_get_u64(a[NLPROTO_A_TAKEOVER_TIME]) == 1796077503000000000);
	assert_int_equal(nla_get_u64(a[NLPROTO_A_TAKEOVER_NS]), 45000000);
}

static void check_counter(struct nlattr *nest, unsigned id)
{
	struct nlattr *a[NLPROTO_C_MAX + 1];

	assert_true(id < COUNTER_COUNT);
	assert_int_equal(nla_parse_nested(a, NLPROTO_C_MAX, nest, NULL), 0);
	assert_string_equal(nla_get_string(a[NLPROTO_C_NAME]), counter_table[id].name);
	assert_int_equal(nla_get_u8(a[NLPROTO_C_KIND]), counter_table[id].kind);
	assert_int_equal(nla_get_u8(a[NLPROTO_C_UNIT]), counter_table[id].unit);
	assert_true(nla_get_u64(a[NLPROTO_C_VALUE]) == rig_value(id));
}

/* Buckets of @id from message @i on must be those of its histogram; returns how many they were. */
static unsigned check_histogram(struct nlattr *nest, unsigned id, unsigned seen)
{
	const struct histogram *h = &rig.histograms[id];
	struct nlattr *a[NLPROTO_H_MAX + 1];
	struct nlproto_bucket b;
	unsigned n, skip = seen, bucket = 0;

	assert_int_equal(nla_parse_nested(a, NLPROTO_H_MAX, nest, NULL), 0);
	assert_string_equal(nla_get_string(a[NLPROTO_H_NAME]), histogram_table[id].name);
	assert_int_equal(nla_get_u8(a[NLPROTO_H_UNIT]), NLPROTO_UNIT_NANOSECONDS);
	assert_true(nla_get_u64(a[NLPROTO_H_COUNT]) == histogram_count(h));
	assert_true(nla_get_u64(a[NLPROTO_H_SUM]) == h->sum);
	assert_int_equal(nla_len(a[NLPROTO_H_BUCKETS]) % sizeof(b), 0);
	n = (unsigned)nla_len(a[NLPROTO_H_BUCKETS]) / sizeof(b);
	for (unsigned i = 0; i < n; i++) {
		memcpy(&b, (char *)nla_data(a[NLPROTO_H_BUCKETS]) + i * sizeof(b), sizeof(b));
		while (!h->buckets[bucket] || skip) {
			skip -= h->buckets[bucket] != 0;
			bucket++;
		}
		assert_true(b.lower == histogram_lower(bucket));
		assert_true(b.upper == histogram_upper(bucket));
		assert_true(b.count == h->buckets[bucket]);
		bucket++;
	}
	return n;
}

/* One that is full, one that is empty, and some in between. */
static void fill_histograms(void)
{
	for (unsigned i = 0; i < HISTOGRAM_COUNT; i++)
		for (unsigned b = 0; i && b < HISTOGRAM_BUCKETS; b += i) {
			rig.histograms[i].buckets[b] = rig_value(b);
			rig.histograms[i].sum += rig_value(b) * histogram_lower(b);
		}
}

static void check_done(const struct nlmsghdr *nlh)
{
	assert_int_equal(nlh->nlmsg_type, NLMSG_DONE);
	assert_int_equal(nlh->nlmsg_flags, NLM_F_MULTI);
	assert_int_equal(nlh->nlmsg_seq, 77);
}

static void stats_come_in_parts(void **state)
{
	unsigned id = 0, seen[HISTOGRAM_COUNT] = {0}, hist = 0;
	struct packet p;

	fill_histograms();
	packet_init(&p, NLPROTO_CMD_STATS);
	assert_int_equal(rig_ask(&p), 0);
	assert_int_equal(rig.snapshots, 1); /* all parts from one */
	assert_true(rig.n >= 4);
	for (unsigned i = 0; i + 1 < rig.n; i++) {
		struct nlattr **a = rig_parse(rig.msg[i], NLPROTO_CMD_STATS), *c;
		int rem;

		assert_int_equal(rig.msg[i]->nlmsg_flags, NLM_F_MULTI);
		if (a[NLPROTO_A_COUNTERS])
			nla_for_each_nested(c, a[NLPROTO_A_COUNTERS], rem) check_counter(c, id++);
		if (!a[NLPROTO_A_HISTOGRAMS])
			continue;
		nla_for_each_nested(c, a[NLPROTO_A_HISTOGRAMS], rem)
		{
			struct nlattr *name = nla_find(nla_data(c), nla_len(c), NLPROTO_H_NAME);

			if (strcmp(nla_get_string(name), histogram_table[hist].name))
				hist++;
			seen[hist] += check_histogram(c, hist, seen[hist]);
		}
	}
	assert_int_equal(id, COUNTER_COUNT);
	assert_int_equal(hist, HISTOGRAM_COUNT - 1);
	assert_int_equal(seen[0], 0);
	assert_int_equal(seen[1], HISTOGRAM_BUCKETS);
	assert_int_equal(seen[2], HISTOGRAM_BUCKETS / 2);
	check_done(rig.msg[rig.n - 1]);
}

/* Walking all records eight thousand times a second would be felt. */
static void snapshots_are_shared(void **state)
{
	uint64_t start = now_ns();
	struct packet p;

	packet_init(&p, NLPROTO_CMD_STATS);
	for (unsigned i = 0; i < 1000; i++)
		assert_int_equal(rig_ask(&p), 0);
	assert_true(rig.snapshots >= 1);
	assert_true(rig.snapshots <= 2 + (now_ns() - start) / 10000000);
}

static void undelivered_part_ends_the_answer(void **state)
{
	struct packet p;

	packet_init(&p, NLPROTO_CMD_STATS);
	rig.accept = 1;
	assert_int_equal(rig_ask(&p), 0);
	rig.accept = RIG_REPLIES;
	assert_int_equal(rig.n, 1);
	assert_int_equal(rig.msg[0]->nlmsg_type, NLPROTO_MSG_TYPE);
}

static void other_version_is_refused(void **state)
{
	struct packet p;

	packet_init(&p, NLPROTO_CMD_STATS);
	packet_hdr(&p)->version = NLPROTO_VERSION + 1;
	rig_assert_refused(&p, -EPROTONOSUPPORT, "version 2");
	packet_hdr(&p)->version = 0;
	rig_assert_refused(&p, -EPROTONOSUPPORT, "version 0");
	/* A command this version does not have may be one of the other. */
	packet_hdr(&p)->cmd = 200;
	rig_assert_refused(&p, -EPROTONOSUPPORT, "version 0");
	/* The way to find out. */
	packet_hdr(&p)->cmd = NLPROTO_CMD_VERSION;
	assert_int_equal(rig_ask(&p), 0);
	rig_parse(rig.msg[0], NLPROTO_CMD_VERSION);
}

static void unknown_commands_are_refused(void **state)
{
	static const uint8_t cmds[] = {NLPROTO_CMD_UNSPEC, NLPROTO_CMD_EVENT,
				       NLPROTO_CMD_UPGRADE + 1, 255};
	struct packet p;

	for (size_t i = 0; i < ARRAY_SIZE(cmds); i++) {
		packet_init(&p, cmds[i]);
		rig_assert_refused(&p, -EOPNOTSUPP, "command");
	}
}

static void foreign_type_is_refused(void **state)
{
	struct packet p;

	packet_init(&p, NLPROTO_CMD_STATS);
	p.nlh.nlmsg_type = NLPROTO_MSG_TYPE + 1;
	rig_assert_refused(&p, -EOPNOTSUPP, "type");
}

static void wrong_lengths_are_refused(void **state)
{
	struct packet p;

	packet_init(&p, NLPROTO_CMD_STATS);
	p.len -= 1;
	rig_assert_refused(&p, -EINVAL, "truncated");
	packet_init(&p, NLPROTO_CMD_STATS);
	p.nlh.nlmsg_len = UINT32_MAX;
	rig_assert_refused(&p, -EINVAL, "truncated");
	packet_init(&p, NLPROTO_CMD_STATS);
	p.nlh.nlmsg_len = 0;
	rig_assert_refused(&p, -EINVAL, "too short");
	p.nlh.nlmsg_len = NLMSG_HDRLEN + 3;
	rig_assert_refused(&p, -EINVAL, "too short");
	/* Header only. */
	p.nlh.nlmsg_len = NLMSG_HDRLEN;
	p.len = NLMSG_HDRLEN;
	rig_assert_refused(&p, -EINVAL, "too short");
	/* A second request behind the first. */
	packet_init(&p, NLPROTO_CMD_STATS);
	memcpy(p.bytes + p.len, p.bytes, p.len);
	p.len *= 2;
	rig_assert_refused(&p, -EINVAL, "one a datagram");
}

static void oversized_is_refused(void **state)
{
	char filler[NLPROTO_REQUEST_MAX] = {0};
	struct packet p;

	packet_init(&p, NLPROTO_CMD_STATS);
	packet_attr(&p, 999, filler, sizeof(filler) - 28);
	assert_int_equal(p.len, NLPROTO_REQUEST_MAX - 4);
	assert_int_equal(rig_ask(&p), 0);
	packet_attr(&p, 999, filler, 4);
	rig_assert_refused(&p, -EMSGSIZE, "at most 4096");
}

static void broken_attributes_are_refused(void **state)
{
	char long_name[NLPROTO_NAME_MAX + 1] = {0};
	struct packet p;

	/* Says more than there is. */
	packet_init(&p, NLPROTO_CMD_STATS);
	packet_attr(&p, NLPROTO_A_DEVICE, RIG_NAME, sizeof(RIG_NAME));
	((struct nlattr *)(p.bytes + 20))->nla_len = 200;
	rig_assert_refused(&p, -EINVAL, "cut off");
	/* Says less than its own header, which would make a walk stand still. */
	((struct nlattr *)(p.bytes + 20))->nla_len = 0;
	rig_assert_refused(&p, -EINVAL, "cut off");
	/* A part of an attribute's header. */
	packet_init(&p, NLPROTO_CMD_STATS);
	p.len += 2;
	p.nlh.nlmsg_len += 2;
	rig_assert_refused(&p, -EINVAL, "cut off");
	/* Empty, without NUL, too long. */
	packet_init(&p, NLPROTO_CMD_STATS);
	packet_attr(&p, NLPROTO_A_DEVICE, RIG_NAME, 0);
	rig_assert_refused(&p, -EINVAL, "length");
	packet_init(&p, NLPROTO_CMD_STATS);
	packet_attr(&p, NLPROTO_A_DEVICE, RIG_NAME, sizeof(RIG_NAME) - 1);
	rig_assert_refused(&p, -EINVAL, "NUL");
	packet_init(&p, NLPROTO_CMD_STATS);
	packet_attr(&p, NLPROTO_A_DEVICE, long_name, sizeof(long_name));
	rig_assert_refused(&p, -EINVAL, "length");
}

/* Every attribute that has a form, in forms that it has not. */
static void broken_values_are_refused(void **state)
{
	static const uint16_t strings[] = {NLPROTO_A_DEVICE, NLPROTO_A_KEY, NLPROTO_A_VALUE};
	static const struct {
		uint16_t type, len;
	} numbers[] = {{NLPROTO_A_BYTES, 8}, {NLPROTO_A_SECONDS, 4}};
	char text[NLPROTO_TEXT_MAX + 1];
	struct packet p;

	memset(text, 'x', sizeof(text));
	for (size_t i = 0; i < ARRAY_SIZE(strings); i++) {
		packet_init(&p, NLPROTO_CMD_GET);
		packet_attr(&p, strings[i], text, sizeof(text));
		rig_assert_refused(&p, -EINVAL, "length");
		packet_init(&p, NLPROTO_CMD_GET);
		packet_attr(&p, strings[i], text, 8); /* without NUL */
		rig_assert_refused(&p, -EINVAL, "NUL");
		packet_init(&p, NLPROTO_CMD_GET);
		packet_attr(&p, strings[i], text, 0);
		rig_assert_refused(&p, -EINVAL, "length");
	}
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		for (uint16_t len = 0; len <= 16; len++) {
			if (len == numbers[i].len)
				continue;
			packet_init(&p, NLPROTO_CMD_GET);
			packet_attr(&p, numbers[i].type, text, len);
			rig_assert_refused(&p, -EINVAL, "length");
		}
}

static void reserved_bits_are_refused(void **state)
{
	struct packet p;

	packet_init(&p, NLPROTO_CMD_STATS);
	packet_hdr(&p)->reserved = 0x8000;
	rig_assert_refused(&p, -EINVAL, "reserved");
}

static void other_device_is_refused(void **state)
{
	struct packet p;

	packet_init(&p, NLPROTO_CMD_STATUS);
	packet_attr(&p, NLPROTO_A_DEVICE, "other", sizeof("other"));
	rig_assert_refused(&p, -ENODEV, "'" RIG_NAME "'");
}

static void unknown_attributes_are_passed_over(void **state)
{
	struct packet p;

	packet_init(&p, NLPROTO_CMD_STATUS);
	packet_attr(&p, NLPROTO_A_MAX + 5, "new", 4);
	assert_int_equal(rig_ask(&p), 0);
	rig_parse(rig.msg[0], NLPROTO_CMD_STATUS);
}

static void answers_are_never_answered(void **state)
{
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
	rig.peer.port = 0; /* the kernel's */
	assert_silent(p.bytes, p.len);
}

/* --- options --- */

static struct nlattr **parse_member(struct nlattr *list, int max)
{
	static struct nlattr *a[16];

	assert_non_null(list);
	assert_true(max < (int)ARRAY_SIZE(a));
	assert_int_equal(nla_parse_nested(a, max, nla_data(list), NULL), 0);
	return a;
}

static void an_option_is_read(void **state)
{
	struct nlattr **a;
	struct packet p;
	char key[NLPROTO_NAME_MAX];

	rig_option_key(3, key, sizeof(key));
	packet_init(&p, NLPROTO_CMD_GET);
	packet_attr(&p, NLPROTO_A_KEY, key, (uint16_t)(strlen(key) + 1));
	assert_int_equal(rig_ask(&p), 0);
	assert_int_equal(rig.n, 1);
	assert_int_equal(rig.msg[0]->nlmsg_flags, 0);
	a = rig_parse(rig.msg[0], NLPROTO_CMD_GET);
	assert_null(a[NLPROTO_A_LINES]);
	a = parse_member(a[NLPROTO_A_OPTIONS], NLPROTO_O_MAX);
	assert_string_equal(nla_get_string(a[NLPROTO_O_KEY]), key);
	assert_int_equal(strlen(nla_get_string(a[NLPROTO_O_VALUE])), NLPROTO_TEXT_MAX - 1);
	assert_int_equal(nla_get_string(a[NLPROTO_O_DEFAULT])[0], 'd');
	assert_int_equal(nla_get_string(a[NLPROTO_O_ORIGIN])[0], 'o');
	assert_int_equal(nla_get_string(a[NLPROTO_O_RANGE])[0], 'r');
	assert_int_equal(nla_get_string(a[NLPROTO_O_TEXT])[0], 't');
	assert_int_equal(nla_get_u8(a[NLPROTO_O_LIVE]), 1);
	/* An empty value is a value. */
	rig_option_key(1, key, sizeof(key));
	packet_init(&p, NLPROTO_CMD_GET);
	packet_attr(&p, NLPROTO_A_KEY, key, (uint16_t)(strlen(key) + 1));
	assert_int_equal(rig_ask(&p), 0);
	a = parse_member(rig_parse(rig.msg[0], NLPROTO_CMD_GET)[NLPROTO_A_OPTIONS], NLPROTO_O_MAX);
	assert_string_equal(nla_get_string(a[NLPROTO_O_VALUE]), "");
	assert_null(a[NLPROTO_O_DEFAULT]);
}

static void all_options_are_read(void **state)
{
	char key[NLPROTO_NAME_MAX];
	struct packet p;
	unsigned n = 0;

	packet_init(&p, NLPROTO_CMD_GET);
	assert_int_equal(rig_ask(&p), 0);
	assert_true(rig.n > 2);
	check_done(rig.msg[rig.n - 1]);
	for (unsigned i = 0; i + 1 < rig.n; i++) {
		struct nlattr *list = rig_parse(rig.msg[i], NLPROTO_CMD_GET)[NLPROTO_A_OPTIONS], *o;
		int rem;

		assert_int_equal(rig.msg[i]->nlmsg_flags, NLM_F_MULTI);
		nla_for_each_nested(o, list, rem)
		{
			rig_option_key(n++, key, sizeof(key));
			assert_string_equal(
				nla_get_string(nla_find(nla_data(o), nla_len(o), NLPROTO_O_KEY)),
				key);
		}
	}
	assert_int_equal(n, RIG_OPTIONS);
}

static void an_unknown_option_is_refused(void **state)
{
	struct packet p;

	packet_init(&p, NLPROTO_CMD_GET);
	packet_attr(&p, NLPROTO_A_KEY, "no.such", sizeof("no.such"));
	rig_assert_refused(&p, -ENOENT, "'no.such'");
}

/* --- jobs --- */

static void check_job(const struct stats_job *job, uint8_t cmd)
{
	struct nlattr *a[NLPROTO_J_MAX + 1];

	assert_int_equal(rig.n, 1);
	assert_int_equal(
		nla_parse_nested(a, NLPROTO_J_MAX, rig_parse(rig.msg[0], cmd)[NLPROTO_A_JOB], NULL),
		0);
	assert_int_equal(nla_get_u32(a[NLPROTO_J_ID]), job->id);
	assert_int_equal(nla_get_u8(a[NLPROTO_J_KIND]), job->kind);
	assert_int_equal(nla_get_u8(a[NLPROTO_J_STATE]), job->state);
	assert_int_equal(nla_get_u8(a[NLPROTO_J_UNIT]), job->unit);
	assert_true(nla_get_u64(a[NLPROTO_J_DONE]) == job->done);
	assert_true(nla_get_u64(a[NLPROTO_J_TOTAL]) == job->total);
	assert_true(nla_get_u64(a[NLPROTO_J_FOUND]) == job->found);
	if (job->error)
		assert_int_equal(nla_get_u32(a[NLPROTO_J_ERROR]), job->error);
	else
		assert_null(a[NLPROTO_J_ERROR]);
}

static const struct stats_job running = {
	.id = 7,
	.kind = NLPROTO_JOB_CHECK,
	.state = NLPROTO_JOB_STATE_RUNNING,
	.unit = NLPROTO_UNIT_PAGES,
	.done = 1ull << 40,
	.total = 1ull << 41,
	.found = 3,
};

static void the_job_is_shown(void **state)
{
	struct packet p;

	packet_init(&p, NLPROTO_CMD_JOB);
	assert_int_equal(rig_ask(&p), 0);
	check_job(&rig.job, NLPROTO_CMD_JOB); /* none so far: all zero */
	rig.job = running;
	assert_int_equal(rig_ask(&p), 0);
	check_job(&running, NLPROTO_CMD_JOB);
	rig.job.state = NLPROTO_JOB_STATE_FAILED;
	rig.job.error = ENOSPC;
	assert_int_equal(rig_ask(&p), 0);
	check_job(&rig.job, NLPROTO_CMD_JOB);
}

static int ask_for_job(struct packet *p, uint32_t id, uint16_t len)
{
	struct {
		struct nlattr a;
		uint32_t id;
	} job = {{.nla_len = (uint16_t)(NLA_HDRLEN + len), .nla_type = NLPROTO_J_ID}, id};

	packet_init(p, NLPROTO_CMD_JOB);
	packet_attr(p, NLPROTO_A_JOB, &job, job.a.nla_len);
	return rig_ask(p);
}

static void jobs_are_asked_for_by_number(void **state)
{
	struct stats_job other = running;
	struct packet p;

	rig.job = running;
	other.id = rig.job.id + 1;
	other.kind = NLPROTO_JOB_SHRINK;
	rig.other_job = other;
	assert_int_equal(ask_for_job(&p, running.id, 4), 0);
	check_job(&running, NLPROTO_CMD_JOB);
	assert_int_equal(ask_for_job(&p, other.id, 4), 0);
	check_job(&other, NLPROTO_CMD_JOB);
	assert_int_equal(ask_for_job(&p, other.id + 1, 4), -ENOENT);
	rig_assert_refusal(&p, -ENOENT, "nothing is known of job");
	assert_int_equal(ask_for_job(&p, running.id, 2), -EINVAL);
	rig_assert_refusal(&p, -EINVAL, "no number");
}

static void jobs_are_started(void **state)
{
	static const uint8_t cmds[] = {NLPROTO_CMD_WRITEBACK, NLPROTO_CMD_COMPACT,
				       NLPROTO_CMD_CHECK};
	static const enum nlproto_job_kind kinds[] = {NLPROTO_JOB_WRITEBACK, NLPROTO_JOB_COMPACT,
						      NLPROTO_JOB_CHECK};
	uint64_t bytes = 1ull << 33;
	struct packet p;

	rig.job = running;
	for (size_t i = 0; i < ARRAY_SIZE(cmds); i++) {
		packet_init(&p, cmds[i]);
		assert_int_equal(rig_ask_as_root(&p), 0);
		assert_int_equal(rig.starts, i + 1);
		assert_int_equal(rig.kind, kinds[i]);
		assert_true(rig.bytes == STATS_JOB_ALL);
		check_job(&running, cmds[i]);
	}
	packet_init(&p, NLPROTO_CMD_WRITEBACK);
	packet_attr(&p, NLPROTO_A_BYTES, &bytes, sizeof(bytes));
	assert_int_equal(rig_ask_as_root(&p), 0);
	assert_true(rig.bytes == bytes);
	rig.job_error = -EBUSY;
	assert_int_equal(rig_ask_as_root(&p), -EBUSY);
	rig_assert_refusal(&p, -EBUSY, "job 7 is under way");
	rig.starts = 0;
	bytes = 0;
	packet_init(&p, NLPROTO_CMD_WRITEBACK);
	packet_attr(&p, NLPROTO_A_BYTES, &bytes, sizeof(bytes));
	assert_int_equal(rig_ask_as_root(&p), -EINVAL);
	assert_int_equal(rig.starts, 0);
}

static void jobs_are_cancelled(void **state)
{
	struct packet p;

	packet_init(&p, NLPROTO_CMD_CANCEL);
	assert_int_equal(rig_ask_as_root(&p), -ESRCH);
	rig_assert_refusal(&p, -ESRCH, "no job");
	rig.job = running;
	rig.job.state = NLPROTO_JOB_STATE_DONE;
	assert_int_equal(rig_ask_as_root(&p), -ESRCH);
	assert_int_equal(rig.cancels, 0);
	rig.job = running;
	assert_int_equal(rig_ask_as_root(&p), 0);
	assert_int_equal(rig.cancels, 1);
	check_job(&running, NLPROTO_CMD_CANCEL);
	rig.cancel_error = -EOPNOTSUPP;
	assert_int_equal(rig_ask_as_root(&p), -EOPNOTSUPP);
	rig_assert_refusal(&p, -EOPNOTSUPP, "can't be ended");
}

/* --- rights --- */

static void changing_takes_root(void **state)
{
	static const uint8_t cmds[] = {
		NLPROTO_CMD_SET,    NLPROTO_CMD_WRITEBACK, NLPROTO_CMD_COMPACT, NLPROTO_CMD_CHECK,
		NLPROTO_CMD_RELOAD, NLPROTO_CMD_CANCEL,	   NLPROTO_CMD_UPGRADE};
	struct stats_change change;
	struct packet p;

	rig.job = running;
	for (size_t i = 0; i < ARRAY_SIZE(cmds); i++) {
		packet_init(&p, cmds[i]);
		packet_attr(&p, NLPROTO_A_KEY, "a.b", 4);
		packet_attr(&p, NLPROTO_A_VALUE, "1", 2);
		p.nlh.nlmsg_pid = 0; /* what a message says counts for nothing */
		rig_assert_refused(&p, -EPERM, "uid 65534");
		/* Not even a uid of 0 counts if the kernel did not stamp it. */
		rig.peer = (struct stats_peer){.port = RIG_PORT, .uid = 0, .has_creds = false};
		rig_assert_refused(&p, -EPERM, "not known");
		rig.peer = (struct stats_peer){RIG_PORT, RIG_UID, true};
	}
	assert_int_equal(rig.starts, 0);
	assert_int_equal(rig.cancels, 0);
	assert_false(stats_server_take_change(rig.server, &change));
}

static void what_is_not_there_is_said(void **state)
{
	static const uint8_t cmds[] = {
		NLPROTO_CMD_GET,     NLPROTO_CMD_SET,	 NLPROTO_CMD_WRITEBACK,
		NLPROTO_CMD_COMPACT, NLPROTO_CMD_CHECK,	 NLPROTO_CMD_JOB,
		NLPROTO_CMD_RELOAD,  NLPROTO_CMD_CANCEL, NLPROTO_CMD_UPGRADE};
	struct packet p;

	rig_set_bare();
	for (size_t i = 0; i < ARRAY_SIZE(cmds); i++) {
		packet_init(&p, cmds[i]);
		assert_int_equal(rig_ask_as_root(&p), -EOPNOTSUPP);
		rig_assert_refusal(&p, -EOPNOTSUPP, "this zswapd");
	}
	packet_init(&p, NLPROTO_CMD_STATS);
	assert_int_equal(rig_ask(&p), 0);
	check_done(rig.msg[rig.n - 1]);
}

/* Every prefix of a good request, then every single byte of it changed. */
static void damaged_requests_do_no_harm(void **state)
{
	struct packet p;

	packet_init(&p, NLPROTO_CMD_STATS);
	packet_attr(&p, NLPROTO_A_DEVICE, RIG_NAME, sizeof(RIG_NAME));
	for (size_t len = 0; len < p.len; len++) {
		void *exact = aligned_alloc(4, align_up(len + 1, 4));

		memcpy(exact, p.bytes, len);
		assert_true(rig_handle(exact, len) == 0 ? rig.n == 0 : rig.n == 1);
		free(exact);
	}
	for (size_t at = 0; at < p.len; at++)
		for (unsigned flip = 1; flip < 256; flip++) {
			p.bytes[at] ^= (char)flip;
			rig_ask(&p);
			p.bytes[at] ^= (char)flip;
		}
	assert_int_equal(rig_ask(&p), 0);
	assert_true(rig.n >= 3);
}

#define T(name) cmocka_unit_test_setup_teardown(name, rig_set_up, rig_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(version_is_answered),
		T(status_is_answered),
		T(supervision_is_part_of_the_status),
		T(stats_come_in_parts),
		T(snapshots_are_shared),
		T(undelivered_part_ends_the_answer),
		T(other_version_is_refused),
		T(unknown_commands_are_refused),
		T(foreign_type_is_refused),
		T(wrong_lengths_are_refused),
		T(oversized_is_refused),
		T(broken_attributes_are_refused),
		T(broken_values_are_refused),
		T(reserved_bits_are_refused),
		T(other_device_is_refused),
		T(unknown_attributes_are_passed_over),
		T(answers_are_never_answered),
		T(an_option_is_read),
		T(all_options_are_read),
		T(an_unknown_option_is_refused),
		T(the_job_is_shown),
		T(jobs_are_asked_for_by_number),
		T(jobs_are_started),
		T(jobs_are_cancelled),
		T(changing_takes_root),
		T(what_is_not_there_is_said),
		T(damaged_requests_do_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/stats/rig.h"
#include "common/util.h"

#include <errno.h>
#include <netlink/msg.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct rig rig;

/* Distinct and above 32 bits, so that a truncated or misplaced value shows. */
uint64_t rig_value(unsigned id)
{
	return 0x100000000ull * (id + 1) + id;
}

void rig_option_key(unsigned i, char *ret, size_t size)
{
	snprintf(ret, size, "section%u.key%u", i / 4, i);
}

static void give_counters(void *ctx, uint64_t values[COUNTER_COUNT])
{
	rig.snapshots++;
	memcpy(values, rig.counters, sizeof(rig.counters));
}

static void give_histograms(void *ctx, struct histogram values[HISTOGRAM_COUNT])
{
	memcpy(values, rig.histograms, sizeof(rig.histograms));
}

static void give_status(void *ctx, struct stats_status *ret)
{
	*ret = rig.status;
	strcpy(ret->path, "/dev/zswap/" RIG_NAME);
	strcpy(ret->transport, "fuse");
	ret->pid = 4711;
	ret->state = rig.state;
	ret->health = NLPROTO_HEALTH_OOM_EXPOSED | NLPROTO_HEALTH_NO_DISCARD;
}

/* The longest there can be, and one whose value is empty. */
static bool give_option(void *ctx, unsigned index, struct stats_option *ret)
{
	if (index >= RIG_OPTIONS)
		return false;
	rig_option_key(index, ret->key, sizeof(ret->key));
	ret->live = index % 2;
	if (index == 1)
		return true;
	memset(ret->value, 'v', sizeof(ret->value)); /* the NUL forgotten */
	memset(ret->def, 'd', sizeof(ret->def) - 1);
	memset(ret->origin, 'o', sizeof(ret->origin) - 1);
	memset(ret->range, 'r', sizeof(ret->range) - 1);
	memset(ret->text, 't', sizeof(ret->text) - 1);
	return true;
}

static void give_job(void *ctx, struct stats_job ret[STATS_JOBS])
{
	ret[0] = rig.job;
	ret[1] = rig.other_job;
}

static int start_job(void *ctx, enum nlproto_job_kind kind, uint64_t bytes,
		     char text[static NLPROTO_LINE_MAX])
{
	rig.starts++;
	rig.kind = kind;
	rig.bytes = bytes;
	if (rig.job_error)
		snprintf(text, NLPROTO_LINE_MAX, "job %u is under way", rig.job.id);
	return rig.job_error;
}

static int cancel_job(void *ctx, char text[static NLPROTO_LINE_MAX])
{
	rig.cancels++;
	if (rig.cancel_error)
		snprintf(text, NLPROTO_LINE_MAX, "that can't be ended");
	return rig.cancel_error;
}

static const struct stats_server_ops all_ops = {
	.counters = give_counters,
	.status = give_status,
	.histograms = give_histograms,
	.option = give_option,
	.job = give_job,
	.job_start = start_job,
	.job_cancel = cancel_job,
	.changes = true,
};

static const struct stats_server_ops bare_ops = {.counters = give_counters, .status = give_status};

static void drop_replies(void)
{
	for (unsigned i = 0; i < rig.n; i++)
		free(rig.msg[i]);
	rig.n = 0;
}

int rig_set_up(void **state)
{
	rig = (struct rig){
		.peer = {.port = RIG_PORT, .uid = RIG_UID, .has_creds = true},
		.accept = RIG_REPLIES,
		.state = NLPROTO_STATE_RECOVERING,
		.now = now_ns(),
	};
	for (unsigned i = 0; i < COUNTER_COUNT; i++)
		rig.counters[i] = rig_value(i);
	return stats_server_new(&rig.server, RIG_NAME, &all_ops, NULL);
}

int rig_set_up_quiet(void **state)
{
	int r = rig_set_up(state);

	memset(rig.counters, 0, sizeof(rig.counters));
	rig.counters[CTR_memory_limit_bytes] = MIB(64);
	rig.state = NLPROTO_STATE_STARTING;
	rig_work(0);
	assert_int_equal(rig.n, 0);
	return r;
}

int rig_tear_down(void **state)
{
	drop_replies();
	stats_server_free(rig.server);
	return 0;
}

void rig_set_bare(void)
{
	stats_server_free(rig.server);
	assert_int_equal(stats_server_new(&rig.server, RIG_NAME, &bare_ops, NULL), 0);
}

static int keep_reply(void *ctx, const struct nlmsghdr *reply)
{
	assert_true(rig.n < RIG_REPLIES);
	assert_true(reply->nlmsg_len <= NLPROTO_PART_MAX);
	if (rig.n >= rig.accept)
		return -EAGAIN;
	if (rig.gone && reply->nlmsg_pid == rig.gone)
		return -ECONNREFUSED;
	rig.msg[rig.n] = malloc(reply->nlmsg_len);
	memcpy(rig.msg[rig.n++], reply, reply->nlmsg_len);
	return 0;
}

int rig_handle(const void *msg, size_t len)
{
	drop_replies();
	return stats_server_handle(rig.server, &rig.peer, msg, len, keep_reply, NULL);
}

int rig_ask(struct packet *p)
{
	return rig_handle(p->bytes, p->len);
}

int rig_ask_as_root(struct packet *p)
{
	int r;

	rig.peer.uid = 0;
	r = rig_ask(p);
	rig.peer.uid = RIG_UID;
	return r;
}

void rig_work(uint64_t ns)
{
	drop_replies();
	rig.now += ns;
	stats_server_work(rig.server, rig.now, keep_reply, NULL);
}

void rig_assert_refusal(const struct packet *p, int error, const char *word)
{
	struct nlattr *a[NLMSGERR_ATTR_MSG + 1] = {0};
	const struct nlmsgerr *err;

	assert_int_equal(rig.n, 1);
	assert_int_equal(rig.msg[0]->nlmsg_type, NLMSG_ERROR);
	assert_int_equal(rig.msg[0]->nlmsg_seq, p->nlh.nlmsg_seq);
	assert_int_equal(rig.msg[0]->nlmsg_pid, RIG_PORT);
	assert_int_equal(rig.msg[0]->nlmsg_flags, NLM_F_CAPPED | NLM_F_ACK_TLVS);
	err = nlmsg_data(rig.msg[0]);
	assert_int_equal(err->error, error);
	assert_memory_equal(&err->msg, &p->nlh, sizeof(err->msg));
	assert_int_equal(nlmsg_parse(rig.msg[0], sizeof(*err), a, NLMSGERR_ATTR_MSG, NULL), 0);
	assert_non_null(a[NLMSGERR_ATTR_MSG]);
	if (!strstr(nla_get_string(a[NLMSGERR_ATTR_MSG]), word))
		fail_msg("'%s' is not in '%s'", word, nla_get_string(a[NLMSGERR_ATTR_MSG]));
}

void rig_assert_refused(struct packet *p, int error, const char *word)
{
	assert_int_equal(rig_ask(p), error);
	rig_assert_refusal(p, error, word);
}

struct nlattr **rig_parse(struct nlmsghdr *nlh, uint8_t cmd)
{
	static struct nlattr *a[NLPROTO_A_MAX + 1];
	const struct nlproto_hdr *hdr = nlmsg_data(nlh);

	assert_int_equal(nlh->nlmsg_type, NLPROTO_MSG_TYPE);
	assert_int_equal(nlh->nlmsg_flags & NLM_F_REQUEST, 0);
	assert_int_equal(hdr->cmd, cmd);
	assert_int_equal(hdr->version, NLPROTO_VERSION);
	assert_int_equal(nlmsg_parse(nlh, sizeof(*hdr), a, NLPROTO_A_MAX, NULL), 0);
	assert_string_equal(nla_get_string(a[NLPROTO_A_DEVICE]), RIG_NAME);
	if (cmd != NLPROTO_CMD_EVENT)
		assert_int_equal(nlh->nlmsg_seq, 77);
	return a;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Both ends of the protocol.  The first byte chooses: an even one makes the rest a request to the
 * server, whose answer must keep the protocol's promises and be understood by the client; an odd
 * one makes it datagrams of an answer or events, each behind a 16-bit length, for the client.
 *
 * Of an even byte, bit 1 makes the asker root and bits 2 and 3 say what the owner does with a
 * change: leaves it, refuses it, makes it.
 */
#include "common/util.h"
#include "ctl/render.h"
#include "ctl/reply.h"
#include "daemon/stats/server.h"

#include <errno.h>
#include <linux/netlink.h>
#include <stdlib.h>
#include <string.h>

#define NAME	"fuzz"
#define OPTIONS 30u
#define PORT	1u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void give_counters(void *ctx, uint64_t values[COUNTER_COUNT])
{
	for (unsigned i = 0; i < COUNTER_COUNT; i++)
		values[i] = UINT64_MAX - i;
}

static void give_histograms(void *ctx, struct histogram values[HISTOGRAM_COUNT])
{
	for (unsigned i = 0; i < HISTOGRAM_COUNT; i++)
		for (unsigned b = 0; b < HISTOGRAM_BUCKETS; b += i + 1)
			values[i].buckets[b] = b + 1;
}

static void give_status(void *ctx, struct stats_status *ret)
{
	strcpy(ret->path, "/dev/zswap/" NAME);
	ret->state = NLPROTO_STATE_RUNNING;
	ret->supervision = true;
	ret->standby = ret->deaths = UINT32_MAX;
	memset(ret->report, 'r', sizeof(ret->report));
	memset(ret->takeover, 't', sizeof(ret->takeover));
	ret->takeover_time = ret->takeover_ns = UINT64_MAX;
}

static bool give_option(void *ctx, unsigned index, struct stats_option *ret)
{
	if (index >= OPTIONS)
		return false;
	snprintf(ret->key, sizeof(ret->key), "section.key%u", index);
	memset(ret->value, 'v', index * 8);
	memset(ret->text, 't', sizeof(ret->text) - 1);
	return true;
}

static void give_job(void *ctx, struct stats_job *ret)
{
	*ret = (struct stats_job){.id = 1, .state = NLPROTO_JOB_STATE_RUNNING, .total = UINT64_MAX};
}

static int start_job(void *ctx, enum nlproto_job_kind kind, uint64_t bytes,
		     char text[static NLPROTO_LINE_MAX])
{
	z_assert(kind >= NLPROTO_JOB_WRITEBACK && kind <= NLPROTO_JOB_CHECK && bytes);
	return bytes & 1 ? 0 : -EBUSY;
}

static int cancel_job(void *ctx, char text[static NLPROTO_LINE_MAX])
{
	return 0;
}

static const struct stats_server_ops ops = {
	.counters = give_counters,
	.histograms = give_histograms,
	.status = give_status,
	.option = give_option,
	.job = give_job,
	.job_start = start_job,
	.job_cancel = cancel_job,
	.changes = true,
};

static struct ctl_reply reply;
static struct ctl_event event;

struct check {
	const struct nlmsghdr *request;
	unsigned n;
	bool ended;
};

/* What the client must be able to read; @c is of the answer that is expected, or NULL. */
static int check_reply(void *ctx, const struct nlmsghdr *nlh)
{
	struct check *c = ctx;
	int r;

	z_assert(nlh->nlmsg_len <= NLPROTO_PART_MAX);
	z_assert(!(nlh->nlmsg_flags & NLM_F_REQUEST));
	if (nlh->nlmsg_type == NLMSG_NOOP)
		return 0;
	r = ctl_event_take(&event, NAME, nlh, nlh->nlmsg_len);
	z_assert(r >= 0);
	if (r == 1) {
		z_assert(nlh->nlmsg_seq == 0 && event.kind.known);
		return 0;
	}
	z_assert(!c->ended && nlh->nlmsg_pid == PORT);
	z_assert(nlh->nlmsg_seq == c->request->nlmsg_seq);
	r = ctl_reply_take(&reply, nlh, nlh->nlmsg_len);
	z_assert(r >= 0);
	c->ended = r != CTL_TAKE_MORE;
	c->n++;
	return 0;
}

static void check_answer(void)
{
	if (reply.error)
		return;
	switch (reply.cmd) {
	case NLPROTO_CMD_STATUS:
		z_assert(strlen(reply.status.report) == NLPROTO_REPORT_MAX - 1);
		z_assert(reply.status.takeover.known && reply.status.deaths.v == UINT32_MAX);
		break;
	case NLPROTO_CMD_STATS:
		z_assert(reply.stats.n == COUNTER_COUNT && reply.stats.unreadable == 0);
		z_assert(reply.stats.nhistograms == HISTOGRAM_COUNT);
		break;
	case NLPROTO_CMD_GET:
		z_assert(reply.options.n == 1 || reply.options.n == OPTIONS);
		z_assert(reply.options.unreadable == 0);
		break;
	case NLPROTO_CMD_SET:
		z_assert(reply.options.n == 1 && reply.lines.n == 1);
		break;
	case NLPROTO_CMD_RELOAD:
	case NLPROTO_CMD_UPGRADE:
		z_assert(reply.lines.n == 2);
		break;
	case NLPROTO_CMD_SUBSCRIBE:
		z_assert(reply.seconds.known && reply.event_seq.known);
		break;
	case NLPROTO_CMD_WRITEBACK:
	case NLPROTO_CMD_COMPACT:
	case NLPROTO_CMD_CHECK:
	case NLPROTO_CMD_CANCEL:
	case NLPROTO_CMD_JOB:
		z_assert(reply.job.known && reply.job.total.v == UINT64_MAX);
		break;
	}
}

/* Whatever the owner does, what he took is answered once. */
static void be_owner(struct stats_server *s, unsigned does, struct check *c)
{
	struct stats_change change;
	uint64_t later = now_ns() + 2000000000ull;

	if (does == 0 || !stats_server_take_change(s, &change)) {
		stats_server_work(s, later, check_reply, c);
		return;
	}
	z_assert(strlen(change.key) < sizeof(change.key));
	z_assert(strlen(change.value) < sizeof(change.value));
	if (does == 1)
		stats_server_finish_change(s, -EINVAL, change.value);
	else
		stats_server_finish_change(s, 0, "one line\nanother");
	stats_server_post(s, NLPROTO_EVENT_CONFIG_CHANGED, change.key, change.value);
	stats_server_work(s, later, check_reply, c);
}

static void ask_server(uint8_t how, const void *msg, size_t len)
{
	static struct stats_server *server;
	struct stats_peer peer = {.port = PORT, .uid = how & 2 ? 0 : 1000, .has_creds = true};
	struct check c = {.request = msg};
	int r;

	if (!server)
		z_assert(stats_server_new(&server, NAME, &ops, NULL) == 0);
	memset(&reply, 0, sizeof(reply));
	if (len >= NLMSG_HDRLEN)
		reply.seq = c.request->nlmsg_seq;
	if (len >= NLMSG_HDRLEN + sizeof(struct nlproto_hdr))
		reply.cmd = ((const struct nlproto_hdr *)((const char *)msg + NLMSG_HDRLEN))->cmd;
	r = stats_server_handle(server, &peer, msg, len, check_reply, &c);
	z_assert(r <= 0);
	z_assert(c.n == 0 ? r == 0 : c.ended);
	z_assert(r == 0 || (c.n == 1 && reply.error == r));
	be_owner(server, how >> 2 & 3, &c);
	z_assert(c.n == 0 || c.ended);
	if (c.n)
		check_answer();
}

/* In a block of just its size, so that a byte too far is seen. */
static void take_copy(const uint8_t *data, size_t len)
{
	void *exact = malloc(len ? len : 1);

	z_assert(exact);
	memcpy(exact, data, len);
	ctl_reply_take(&reply, exact, len);
	ctl_event_take(&event, "", exact, len);
	free(exact);
}

static void answer_client(uint8_t cmd, const uint8_t *data, size_t size)
{
	static FILE *null;

	if (!null)
		null = fopen("/dev/null", "w");
	z_assert(null);
	memset(&reply, 0, sizeof(reply));
	reply.cmd = cmd;
	while (size >= 2) {
		size_t len = min_u64(size - 2, (size_t)(data[0] | data[1] << 8));

		take_copy(data + 2, len);
		data += 2 + len;
		size -= 2 + len;
	}
	render_status(null, reply.device, &reply.status, &reply.stats, true);
	render_stats_json(null, &reply.stats);
	render_stats_text(null, &reply.stats);
	render_stats_prometheus(null, reply.device, &reply.stats);
	for (size_t i = 0; i < reply.stats.nhistograms; i++) {
		const struct ctl_histogram *h = &reply.stats.h[i], *other = &reply.stats.h[0];
		static struct ctl_histogram since;

		ctl_histogram_percentile(h, 0.99);
		ctl_histogram_since(&since, h, other);
		z_assert(i || since.count == 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	void *msg;

	if (size == 0)
		return 0;
	if (data[0] & 1) {
		answer_client(data[0] >> 1 & 15, data + 1, size - 1);
		return 0;
	}
	msg = malloc(size - 1 ? size - 1 : 1); /* aligned, unlike data + 1 */
	z_assert(msg);
	memcpy(msg, data + 1, size - 1);
	ask_server(data[0], msg, size - 1);
	free(msg);
	return 0;
}

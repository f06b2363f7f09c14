// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Both ends of the protocol.  The first byte chooses: an even one makes the rest a request to the
 * server, whose answer must keep the protocol's promises and be understood by the client; an odd
 * one makes it datagrams of an answer, each behind a 16-bit length, for the client.
 */
#include "common/util.h"
#include "ctl/render.h"
#include "ctl/reply.h"
#include "daemon/stats/server.h"

#include <linux/netlink.h>
#include <stdlib.h>
#include <string.h>

#define NAME "fuzz"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void give_counters(void *ctx, uint64_t values[COUNTER_COUNT])
{
	for (unsigned i = 0; i < COUNTER_COUNT; i++)
		values[i] = UINT64_MAX - i;
}

static void give_status(void *ctx, struct stats_status *ret)
{
	strcpy(ret->path, "/dev/zswap/" NAME);
	ret->state = NLPROTO_STATE_RUNNING;
}

static const struct stats_server_ops ops = {give_counters, give_status};

static struct ctl_reply reply;

struct check {
	const struct nlmsghdr *request;
	unsigned n;
	bool ended;
};

static bool check_reply(void *ctx, const struct nlmsghdr *nlh)
{
	struct check *c = ctx;
	int r;

	z_assert(!c->ended);
	z_assert(nlh->nlmsg_len <= NLPROTO_PART_MAX);
	z_assert(nlh->nlmsg_seq == c->request->nlmsg_seq);
	z_assert(!(nlh->nlmsg_flags & NLM_F_REQUEST));
	r = ctl_reply_take(&reply, nlh, nlh->nlmsg_len);
	z_assert(r >= 0);
	c->ended = r != CTL_TAKE_MORE;
	c->n++;
	return true;
}

static void ask_server(const void *msg, size_t len)
{
	static struct stats_server *server;
	struct stats_peer peer = {.port = 1, .uid = 1000, .has_creds = true};
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
	if (r == 0 && c.n && reply.cmd == NLPROTO_CMD_STATS)
		z_assert(reply.stats.n == COUNTER_COUNT && reply.stats.unreadable == 0);
}

/* In a block of just its size, so that a byte too far is seen. */
static void take_copy(const uint8_t *data, size_t len)
{
	void *exact = malloc(len ? len : 1);

	z_assert(exact);
	memcpy(exact, data, len);
	ctl_reply_take(&reply, exact, len);
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
	render_status(null, reply.device, &reply.status, &reply.stats);
	render_stats_json(null, &reply.stats);
	render_stats_text(null, &reply.stats);
	render_stats_prometheus(null, reply.device, &reply.stats);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	void *msg;

	if (size == 0)
		return 0;
	if (data[0] & 1) {
		answer_client(data[0] >> 1 & 3, data + 1, size - 1);
		return 0;
	}
	msg = malloc(size - 1 ? size - 1 : 1); /* aligned, unlike data + 1 */
	z_assert(msg);
	memcpy(msg, data + 1, size - 1);
	ask_server(msg, size - 1);
	free(msg);
	return 0;
}

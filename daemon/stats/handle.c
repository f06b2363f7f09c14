// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Messages in, messages out.  A request is checked from the outside in: frame, header, attributes;
 * whoever fails a check is told which one, in words, provided that the frame was good enough to
 * show a request.  After that a table says what the command takes and who answers it.
 *
 * A snapshot of the counters is taken once for an answer, and all its parts are made from it.
 */
#include "common/util.h"
#include "daemon/stats/server_impl.h"

#include <errno.h>
#include <linux/netlink.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct request {
	struct stats_server *s;
	const struct stats_peer *peer;
	const struct nlmsghdr *nlh;
	uint8_t cmd;
	stats_reply_fn reply;
	void *reply_ctx;
};

struct command {
	/* Puts the whole answer out, or returns the negative errno to be answered. */
	int (*answer)(const struct request *rq, struct nlattr **attrs);
	bool any_version;
};

/* What a request may carry; anything else in the range of known attributes is passed over. */
static const struct nla_policy request_policy[NLPROTO_A_MAX + 1] = {
	/* The minimum keeps libnl from looking for the NUL of an empty payload. */
	[NLPROTO_A_DEVICE] = {.type = NLA_STRING, .minlen = 1, .maxlen = NLPROTO_NAME_MAX},
};

_Static_assert(sizeof(struct stats_status) + 512 < NLPROTO_PART_MAX, "STATUS is one message");

static bool put_out(const struct request *rq, struct nl_msg *msg)
{
	bool ok = rq->reply(rq->reply_ctx, nlmsg_hdr(msg));

	nlmsg_free(msg);
	return ok;
}

__attribute__((format(printf, 3, 4))) static int refuse(const struct request *rq, int error,
							const char *fmt, ...)
{
	struct nl_msg *msg = nlmsg_alloc_size(NLPROTO_PART_MAX);
	struct nlmsghdr *nlh;
	struct nlmsgerr *err;
	char text[NLPROTO_TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (!msg)
		return error; /* no memory for an answer: silence */
	nlh = nlmsg_put(msg, rq->peer->port, rq->nlh->nlmsg_seq, NLMSG_ERROR, sizeof(*err),
			NLM_F_CAPPED | NLM_F_ACK_TLVS);
	z_assert(nlh);
	err = nlmsg_data(nlh);
	err->error = error;
	err->msg = *rq->nlh;
	z_assert(nla_put_string(msg, NLMSGERR_ATTR_MSG, text) == 0);
	put_out(rq, msg);
	return error;
}

/* A message with header and device name; NULL without memory. */
static struct nl_msg *reply_new(const struct request *rq, int flags)
{
	struct nl_msg *msg = nlmsg_alloc_size(NLPROTO_PART_MAX);
	struct nlproto_hdr *hdr;
	struct nlmsghdr *nlh;

	if (!msg)
		return NULL;
	nlh = nlmsg_put(msg, rq->peer->port, rq->nlh->nlmsg_seq, NLPROTO_MSG_TYPE, sizeof(*hdr),
			flags);
	z_assert(nlh);
	hdr = nlmsg_data(nlh);
	*hdr = (struct nlproto_hdr){.cmd = rq->cmd, .version = NLPROTO_VERSION};
	z_assert(nla_put_string(msg, NLPROTO_A_DEVICE, rq->s->name) == 0);
	return msg;
}

static int answer_version(const struct request *rq, struct nlattr **attrs)
{
	struct nl_msg *msg = reply_new(rq, 0);

	if (!msg)
		return -ENOMEM;
	z_assert(nla_put_string(msg, NLPROTO_A_DAEMON_VERSION, ZSWAPD_VERSION) == 0);
	z_assert(nla_put_u8(msg, NLPROTO_A_PROTOCOL, NLPROTO_VERSION) == 0);
	put_out(rq, msg);
	return 0;
}

/* @size is that of the array, whose last byte is made the NUL that a callback may have left out. */
static void put_text(struct nl_msg *msg, int attr, char *text, size_t size)
{
	text[size - 1] = '\0';
	if (text[0])
		z_assert(nla_put_string(msg, attr, text) == 0);
}

static int answer_status(const struct request *rq, struct nlattr **attrs)
{
	struct nl_msg *msg = reply_new(rq, 0);
	struct stats_status st;

	if (!msg)
		return -ENOMEM;
	memset(&st, 0, sizeof(st));
	rq->s->ops->status(rq->s->ctx, &st);
	z_assert(nla_put_string(msg, NLPROTO_A_DAEMON_VERSION, ZSWAPD_VERSION) == 0);
	put_text(msg, NLPROTO_A_PATH, st.path, sizeof(st.path));
	put_text(msg, NLPROTO_A_TRANSPORT, st.transport, sizeof(st.transport));
	z_assert(nla_put_u32(msg, NLPROTO_A_PID, st.pid) == 0);
	z_assert(nla_put_u8(msg, NLPROTO_A_STATE, (uint8_t)st.state) == 0);
	z_assert(nla_put_u32(msg, NLPROTO_A_HEALTH, st.health) == 0);
	put_text(msg, NLPROTO_A_LAST_ERROR, st.last_error, sizeof(st.last_error));
	put_out(rq, msg);
	return 0;
}

/* False if the message has no room for this counter; the message is then as it was. */
static bool put_counter(struct nl_msg *msg, unsigned id, uint64_t value)
{
	const struct counter_info *info = &counter_table[id];
	struct nlattr *nest = nla_nest_start(msg, NLPROTO_L_COUNTER);

	if (!nest)
		return false;
	if (nla_put_string(msg, NLPROTO_C_NAME, info->name) < 0 ||
	    nla_put_u8(msg, NLPROTO_C_KIND, (uint8_t)info->kind) < 0 ||
	    nla_put_u8(msg, NLPROTO_C_UNIT, (uint8_t)info->unit) < 0 ||
	    nla_put_u64(msg, NLPROTO_C_VALUE, value) < 0) {
		nla_nest_cancel(msg, nest);
		return false;
	}
	nla_nest_end(msg, nest);
	return true;
}

/* As many counters from @id on as one message holds.  Returns the next one, negative on failure. */
static int put_part(const struct request *rq, unsigned id, const uint64_t *values)
{
	struct nl_msg *msg = reply_new(rq, NLM_F_MULTI);
	unsigned first = id;
	struct nlattr *list;

	if (!msg)
		return -ENOMEM;
	list = nla_nest_start(msg, NLPROTO_A_COUNTERS);
	z_assert(list);
	while (id < COUNTER_COUNT && put_counter(msg, id, values[id]))
		id++;
	z_assert(id > first);
	nla_nest_end(msg, list);
	return put_out(rq, msg) ? (int)id : -EAGAIN;
}

static int answer_stats(const struct request *rq, struct nlattr **attrs)
{
	uint64_t values[COUNTER_COUNT] = {0};
	struct nl_msg *done;
	struct nlmsghdr *nlh;

	rq->s->ops->counters(rq->s->ctx, values);
	for (int id = 0; id < COUNTER_COUNT;) {
		id = put_part(rq, (unsigned)id, values);
		if (id == -EAGAIN)
			return 0; /* the asker does not read: the rest would be lost as well */
		if (id < 0)
			return id;
	}
	done = nlmsg_alloc_size(NLPROTO_PART_MAX);
	if (!done)
		return -ENOMEM;
	nlh = nlmsg_put(done, rq->peer->port, rq->nlh->nlmsg_seq, NLMSG_DONE, sizeof(int),
			NLM_F_MULTI);
	z_assert(nlh);
	*(int *)nlmsg_data(nlh) = 0;
	put_out(rq, done);
	return 0;
}

static const struct command commands[] = {
	[NLPROTO_CMD_VERSION] = {.answer = answer_version, .any_version = true},
	[NLPROTO_CMD_STATUS] = {.answer = answer_status},
	[NLPROTO_CMD_STATS] = {.answer = answer_stats},
};

/* Length of the attributes, or the negative errno that was answered. */
static int check_frame(const struct request *rq, size_t len)
{
	const size_t fixed = NLMSG_HDRLEN + sizeof(struct nlproto_hdr);

	if (len > NLPROTO_REQUEST_MAX)
		return refuse(rq, -EMSGSIZE, "request of %zu bytes, at most %u are taken", len,
			      NLPROTO_REQUEST_MAX);
	if (rq->nlh->nlmsg_type != NLPROTO_MSG_TYPE)
		return refuse(rq, -EOPNOTSUPP, "message type 0x%x is not zswapd's (0x%x)",
			      rq->nlh->nlmsg_type, NLPROTO_MSG_TYPE);
	if (rq->nlh->nlmsg_len > len)
		return refuse(rq, -EINVAL, "truncated: says %u bytes, has %zu", rq->nlh->nlmsg_len,
			      len);
	if (rq->nlh->nlmsg_len < fixed)
		return refuse(rq, -EINVAL, "too short: %u bytes, the headers take %zu",
			      rq->nlh->nlmsg_len, fixed);
	if (len > NLMSG_ALIGN(rq->nlh->nlmsg_len))
		return refuse(rq, -EINVAL, "%zu bytes after the request; one a datagram",
			      len - rq->nlh->nlmsg_len);
	return (int)(rq->nlh->nlmsg_len - fixed);
}

/* @attrs has NLPROTO_A_MAX + 1 places.  0, or the negative errno that was answered. */
static int parse_attrs(const struct request *rq, int len, struct nlattr **attrs)
{
	struct nlattr *head = nlmsg_attrdata(rq->nlh, sizeof(struct nlproto_hdr)), *a;
	int rem, r;

	/* nla_parse() passes over what is left at the end; here it is a broken request. */
	nla_for_each_attr(a, head, len, rem);
	if (rem > 0)
		return refuse(rq, -EINVAL, "the last attribute is cut off, %d bytes are left", rem);
	/* libnl does not write to the attributes, it only lacks the const. */
	r = nla_parse(attrs, NLPROTO_A_MAX, head, len, (struct nla_policy *)request_policy);
	if (r < 0)
		return refuse(rq, -EINVAL, "attribute of a wrong length or without its NUL");
	if (attrs[NLPROTO_A_DEVICE] && strcmp(nla_get_string(attrs[NLPROTO_A_DEVICE]), rq->s->name))
		return refuse(rq, -ENODEV, "this port serves device '%s'", rq->s->name);
	return 0;
}

int stats_server_handle(struct stats_server *s, const struct stats_peer *peer, const void *msg,
			size_t len, stats_reply_fn reply, void *reply_ctx)
{
	struct request rq = {s, peer, msg, 0, reply, reply_ctx};
	struct nlattr *attrs[NLPROTO_A_MAX + 1];
	const struct nlproto_hdr *hdr;
	const struct command *cmd;
	int r, attr_len;

	/*
	 * Answers are never answered, and what is too short to show a request cannot be one.  Nor
	 * does port 0, the kernel, ask.
	 */
	if (len < sizeof(struct nlmsghdr) || peer->port == 0 ||
	    !(rq.nlh->nlmsg_flags & NLM_F_REQUEST) || rq.nlh->nlmsg_type < NLMSG_MIN_TYPE)
		return 0;
	attr_len = check_frame(&rq, len);
	if (attr_len < 0)
		return attr_len;
	hdr = nlmsg_data(rq.nlh);
	cmd = hdr->cmd < ARRAY_SIZE(commands) ? &commands[hdr->cmd] : NULL;
	/* The version comes first: another one may know other commands. */
	if (hdr->version != NLPROTO_VERSION && !(cmd && cmd->any_version))
		return refuse(&rq, -EPROTONOSUPPORT,
			      "protocol version %u is not spoken here, version %u is", hdr->version,
			      NLPROTO_VERSION);
	if (!cmd || !cmd->answer)
		return refuse(&rq, -EOPNOTSUPP, "command %u is not known to zswapd " ZSWAPD_VERSION,
			      hdr->cmd);
	rq.cmd = hdr->cmd;
	if (hdr->reserved && !cmd->any_version)
		return refuse(&rq, -EINVAL, "the reserved field is 0x%x, not 0", hdr->reserved);
	r = parse_attrs(&rq, attr_len, attrs);
	if (r < 0)
		return r;
	r = cmd->answer(&rq, attrs);
	return r < 0 ? refuse(&rq, r, "%s", strerror(-r)) : 0;
}

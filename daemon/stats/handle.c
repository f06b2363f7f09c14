// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A request is checked from the outside in: frame, header, rights, attributes; whoever fails a
 * check is told which one, in words, provided that the frame was good enough to show a request.
 * After that a table says who answers it.
 */
#include "daemon/stats/message.h"

#include <errno.h>
#include <string.h>

struct command {
	int (*answer)(const struct request *rq, struct nlattr **attrs);
	bool any_version;
	bool changes; /* takes uid 0 */
};

/*
 * What a request may carry; anything else in the range of known attributes is passed over.  The
 * minimum of strings keeps libnl from looking for the NUL of an empty payload.
 */
static const struct nla_policy request_policy[NLPROTO_A_MAX + 1] = {
	[NLPROTO_A_DEVICE] = {.type = NLA_STRING, .minlen = 1, .maxlen = NLPROTO_NAME_MAX},
	[NLPROTO_A_KEY] = {.type = NLA_STRING, .minlen = 1, .maxlen = NLPROTO_NAME_MAX},
	[NLPROTO_A_VALUE] = {.type = NLA_STRING, .minlen = 1, .maxlen = NLPROTO_TEXT_MAX},
	[NLPROTO_A_BYTES] = {.type = NLA_U64, .minlen = 8, .maxlen = 8},
	[NLPROTO_A_JOB] = {.type = NLA_NESTED},
	[NLPROTO_A_SECONDS] = {.type = NLA_U32, .minlen = 4, .maxlen = 4},
};

static const struct command commands[] = {
	[NLPROTO_CMD_VERSION] = {.answer = answer_version, .any_version = true},
	[NLPROTO_CMD_STATUS] = {.answer = answer_status},
	[NLPROTO_CMD_STATS] = {.answer = answer_stats},
	[NLPROTO_CMD_GET] = {.answer = answer_get},
	[NLPROTO_CMD_SET] = {.answer = answer_change, .changes = true},
	[NLPROTO_CMD_WRITEBACK] = {.answer = answer_job_start, .changes = true},
	[NLPROTO_CMD_COMPACT] = {.answer = answer_job_start, .changes = true},
	[NLPROTO_CMD_CHECK] = {.answer = answer_job_start, .changes = true},
	[NLPROTO_CMD_JOB] = {.answer = answer_job},
	[NLPROTO_CMD_RELOAD] = {.answer = answer_change, .changes = true},
	[NLPROTO_CMD_SUBSCRIBE] = {.answer = answer_subscribe},
	[NLPROTO_CMD_CANCEL] = {.answer = answer_cancel, .changes = true},
	[NLPROTO_CMD_UPGRADE] = {.answer = answer_change, .changes = true},
};

/* Length of the attributes, or the negative errno that was answered. */
static int check_frame(const struct request *rq, size_t len)
{
	const size_t fixed = NLMSG_HDRLEN + sizeof(struct nlproto_hdr);

	if (len > NLPROTO_REQUEST_MAX)
		return refuse(rq, -EMSGSIZE, "request of %zu bytes, at most %u are taken", len,
			      NLPROTO_REQUEST_MAX);
	if (rq->nlh.nlmsg_type != NLPROTO_MSG_TYPE)
		return refuse(rq, -EOPNOTSUPP, "message type 0x%x is not zswapd's (0x%x)",
			      rq->nlh.nlmsg_type, NLPROTO_MSG_TYPE);
	if (rq->nlh.nlmsg_len > len)
		return refuse(rq, -EINVAL, "truncated: says %u bytes, has %zu", rq->nlh.nlmsg_len,
			      len);
	if (rq->nlh.nlmsg_len < fixed)
		return refuse(rq, -EINVAL, "too short: %u bytes, the headers take %zu",
			      rq->nlh.nlmsg_len, fixed);
	if (len > NLMSG_ALIGN(rq->nlh.nlmsg_len))
		return refuse(rq, -EINVAL, "%zu bytes after the request; one a datagram",
			      len - rq->nlh.nlmsg_len);
	return (int)(rq->nlh.nlmsg_len - fixed);
}

/* @attrs has NLPROTO_A_MAX + 1 places.  0, or the negative errno that was answered. */
static int parse_attrs(const struct request *rq, const struct nlmsghdr *msg, int len,
		       struct nlattr **attrs)
{
	struct nlattr *head = nlmsg_attrdata(msg, sizeof(struct nlproto_hdr)), *a;
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

/* 0, or the negative errno that was answered. */
static int check_rights(const struct request *rq, const struct command *cmd)
{
	if (!cmd->changes || (rq->peer.has_creds && rq->peer.uid == 0))
		return 0;
	if (!rq->peer.has_creds)
		return refuse(rq, -EPERM, "changing something takes uid 0; yours is not known");
	return refuse(rq, -EPERM, "changing something takes uid 0, and you are uid %u",
		      rq->peer.uid);
}

/* The command that @hdr names, or NULL: *ret_error was answered. */
static const struct command *check_header(struct request *rq, const struct nlproto_hdr *hdr,
					  int *ret_error)
{
	const struct command *cmd = hdr->cmd < ARRAY_SIZE(commands) ? &commands[hdr->cmd] : NULL;

	rq->cmd = hdr->cmd;
	*ret_error = 0;
	/* The version comes first: another one may know other commands. */
	if (hdr->version != NLPROTO_VERSION && !(cmd && cmd->any_version))
		*ret_error = refuse(rq, -EPROTONOSUPPORT,
				    "protocol version %u is not spoken here, version %u is",
				    hdr->version, NLPROTO_VERSION);
	else if (!cmd || !cmd->answer)
		*ret_error = refuse(rq, -EOPNOTSUPP,
				    "command %u is not known to zswapd " ZSWAPD_VERSION, hdr->cmd);
	else if (hdr->reserved && !cmd->any_version)
		*ret_error =
			refuse(rq, -EINVAL, "the reserved field is 0x%x, not 0", hdr->reserved);
	else
		*ret_error = check_rights(rq, cmd);
	return *ret_error ? NULL : cmd;
}

int stats_server_handle(struct stats_server *s, const struct stats_peer *peer, const void *msg,
			size_t len, stats_reply_fn reply, void *reply_ctx)
{
	struct request rq = {.s = s, .peer = *peer, .reply = reply, .reply_ctx = reply_ctx};
	struct nlattr *attrs[NLPROTO_A_MAX + 1];
	const struct command *cmd;
	int r, attr_len;

	if (len < sizeof(rq.nlh))
		return 0;
	memcpy(&rq.nlh, msg, sizeof(rq.nlh));
	/*
	 * Answers are never answered, and what is too short to show a request cannot be one.  Nor
	 * does port 0, the kernel, ask.
	 */
	if (peer->port == 0 || !(rq.nlh.nlmsg_flags & NLM_F_REQUEST) ||
	    rq.nlh.nlmsg_type < NLMSG_MIN_TYPE)
		return 0;
	attr_len = check_frame(&rq, len);
	if (attr_len < 0)
		return attr_len;
	cmd = check_header(&rq, nlmsg_data(msg), &r);
	if (!cmd)
		return r;
	r = parse_attrs(&rq, msg, attr_len, attrs);
	return r < 0 ? r : cmd->answer(&rq, attrs);
}

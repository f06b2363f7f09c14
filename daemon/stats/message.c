// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/stats/message.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct nl_msg *message_new(const struct stats_server *s, uint32_t port, uint32_t seq, uint8_t cmd,
			   int flags)
{
	struct nl_msg *msg = nlmsg_alloc_size(NLPROTO_PART_MAX);
	struct nlproto_hdr *hdr;
	struct nlmsghdr *nlh;

	if (!msg)
		return NULL;
	nlh = nlmsg_put(msg, port, seq, NLPROTO_MSG_TYPE, sizeof(*hdr), flags);
	z_assert(nlh);
	nlh->nlmsg_pid = port; /* libnl takes 0 for its own choice */
	hdr = nlmsg_data(nlh);
	*hdr = (struct nlproto_hdr){.cmd = cmd, .version = NLPROTO_VERSION};
	z_assert(nla_put_string(msg, NLPROTO_A_DEVICE, s->name) == 0);
	return msg;
}

struct nl_msg *reply_new(const struct request *rq, int flags)
{
	return message_new(rq->s, rq->peer.port, rq->nlh.nlmsg_seq, rq->cmd, flags);
}

int reply_put_out(const struct request *rq, struct nl_msg *msg)
{
	int r = rq->reply(rq->reply_ctx, nlmsg_hdr(msg));

	nlmsg_free(msg);
	return r;
}

int refuse(const struct request *rq, int error, const char *fmt, ...)
{
	struct nl_msg *msg = nlmsg_alloc_size(NLPROTO_PART_MAX);
	struct nlmsghdr *nlh;
	struct nlmsgerr *err;
	char text[NLPROTO_LINE_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (!msg)
		return error; /* no memory for an answer: silence */
	nlh = nlmsg_put(msg, rq->peer.port, rq->nlh.nlmsg_seq, NLMSG_ERROR, sizeof(*err),
			NLM_F_CAPPED | NLM_F_ACK_TLVS);
	z_assert(nlh);
	err = nlmsg_data(nlh);
	err->error = error;
	err->msg = rq->nlh;
	z_assert(nla_put_string(msg, NLMSGERR_ATTR_MSG, text) == 0);
	reply_put_out(rq, msg);
	return error;
}

int refuse_without_memory(const struct request *rq)
{
	return refuse(rq, -ENOMEM, "no memory for the answer");
}

void put_text(struct nl_msg *msg, int attr, const char *text, size_t size)
{
	char copy[NLPROTO_REPORT_MAX];

	z_assert(size <= sizeof(copy));
	snprintf(copy, size, "%.*s", (int)size - 1, text);
	if (copy[0])
		z_assert(nla_put_string(msg, attr, copy) == 0);
}

void put_job(struct nl_msg *msg, const struct stats_job *job)
{
	struct nlattr *nest = nla_nest_start(msg, NLPROTO_A_JOB);

	z_assert(nest);
	z_assert(nla_put_u32(msg, NLPROTO_J_ID, job->id) == 0);
	z_assert(nla_put_u8(msg, NLPROTO_J_KIND, (uint8_t)job->kind) == 0);
	z_assert(nla_put_u8(msg, NLPROTO_J_STATE, (uint8_t)job->state) == 0);
	z_assert(nla_put_u8(msg, NLPROTO_J_UNIT, (uint8_t)job->unit) == 0);
	z_assert(nla_put_u64(msg, NLPROTO_J_DONE, job->done) == 0);
	z_assert(nla_put_u64(msg, NLPROTO_J_TOTAL, job->total) == 0);
	z_assert(nla_put_u64(msg, NLPROTO_J_FOUND, job->found) == 0);
	if (job->error)
		z_assert(nla_put_u32(msg, NLPROTO_J_ERROR, (uint32_t)job->error) == 0);
	nla_nest_end(msg, nest);
}

/* One message with members from @index on.  Returns the next one, negative on failure. */
static int put_part(const struct request *rq, int attr, unsigned index, unsigned n,
		    put_member_fn put, const void *from)
{
	struct nl_msg *msg = reply_new(rq, NLM_F_MULTI);
	unsigned first = index;
	struct nlattr *list;

	if (!msg)
		return -ENOMEM;
	list = nla_nest_start(msg, attr);
	z_assert(list);
	while (index < n && put(msg, index, from))
		index++;
	z_assert(index > first);
	nla_nest_end(msg, list);
	return reply_put_out(rq, msg) < 0 ? -EAGAIN : (int)index;
}

int put_list(const struct request *rq, int attr, unsigned n, put_member_fn put, const void *from)
{
	for (int index = 0; index < (int)n;) {
		index = put_part(rq, attr, (unsigned)index, n, put, from);
		if (index == -EAGAIN)
			return 1; /* the rest would be lost as well */
		if (index < 0)
			return index;
	}
	return 0;
}

int put_done(const struct request *rq)
{
	struct nl_msg *done = nlmsg_alloc_size(NLPROTO_PART_MAX);
	struct nlmsghdr *nlh;

	if (!done)
		return refuse_without_memory(rq);
	nlh = nlmsg_put(done, rq->peer.port, rq->nlh.nlmsg_seq, NLMSG_DONE, sizeof(int),
			NLM_F_MULTI);
	z_assert(nlh);
	*(int *)nlmsg_data(nlh) = 0;
	reply_put_out(rq, done);
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Messages of an answer, each checked from the outside in.  What is wrong with the frame, or is no
 * answer to what was asked, ends it; what is wrong with one field costs only that field.
 */
#include "ctl/reply.h"
#include "common/util.h"
#include "ctl/attr.h"

#include <errno.h>
#include <linux/netlink.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

__attribute__((format(printf, 2, 3))) static int broken(struct ctl_reply *r, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(r->error_text, sizeof(r->error_text), fmt, ap);
	va_end(ap);
	return -EPROTO;
}

static void take_counter(struct ctl_stats *st, struct nlattr *nest)
{
	struct nlattr *a[NLPROTO_C_MAX + 1] = {0};
	struct ctl_counter c = {0};

	if (nla_parse_nested(a, NLPROTO_C_MAX, nest, NULL) < 0 ||
	    !ctl_attr_string(a[NLPROTO_C_NAME], c.name, sizeof(c.name)) ||
	    !ctl_metric_name_ok(c.name) || st->n == CTL_COUNTERS_MAX) {
		st->unreadable++;
		return;
	}
	/* A second one of the same name would make JSON and Prometheus text invalid. */
	for (size_t i = 0; i < st->n; i++)
		if (!strcmp(st->c[i].name, c.name)) {
			st->unreadable++;
			return;
		}
	c.kind = ctl_attr_num(a[NLPROTO_C_KIND]);
	c.unit = ctl_attr_num(a[NLPROTO_C_UNIT]);
	c.value = ctl_attr_num(a[NLPROTO_C_VALUE]);
	if (!c.value.known)
		st->unreadable++;
	st->c[st->n++] = c;
}

static void take_option(struct ctl_options *os, struct nlattr *nest)
{
	struct nlattr *a[NLPROTO_O_MAX + 1] = {0};
	struct ctl_option o = {0};

	if (nla_parse_nested(a, NLPROTO_O_MAX, nest, NULL) < 0 ||
	    !ctl_attr_string(a[NLPROTO_O_KEY], o.key, sizeof(o.key)) || !nlproto_name_ok(o.key) ||
	    os->n == CTL_OPTIONS_MAX || ctl_options_get(os, o.key)) {
		os->unreadable++;
		return;
	}
	ctl_attr_text(a[NLPROTO_O_VALUE], &o.value);
	ctl_attr_text(a[NLPROTO_O_IN_FORCE], &o.in_force);
	ctl_attr_text(a[NLPROTO_O_DEFAULT], &o.def);
	ctl_attr_text(a[NLPROTO_O_ORIGIN], &o.origin);
	ctl_attr_text(a[NLPROTO_O_TEXT], &o.text);
	ctl_attr_text(a[NLPROTO_O_RANGE], &o.range);
	o.live = ctl_attr_num(a[NLPROTO_O_LIVE]);
	os->o[os->n++] = o;
}

static void take_line(struct ctl_lines *l, struct nlattr *a)
{
	if (l->n == CTL_LINES_MAX || !ctl_attr_string(a, l->line[l->n], sizeof(l->line[0])))
		l->unreadable++;
	else
		l->n++;
}

/* The members of one of the lists, each of which may be missing. */
static void take_list(struct ctl_reply *r, struct nlattr *list)
{
	struct nlattr *a;
	int rem;

	if (!list)
		return;
	nla_for_each_nested(a, list, rem)
	{
		switch (nla_type(a)) {
		case NLPROTO_L_COUNTER:
			take_counter(&r->stats, a);
			break;
		case NLPROTO_L_HISTOGRAM:
			ctl_take_histogram(&r->stats, a);
			break;
		case NLPROTO_L_OPTION:
			take_option(&r->options, a);
			break;
		case NLPROTO_L_LINE:
			take_line(&r->lines, a);
			break;
		}
	}
}

static void take_status(struct ctl_status *st, struct nlattr **a)
{
	ctl_attr_text(a[NLPROTO_A_DAEMON_VERSION], &st->daemon_version);
	ctl_attr_text(a[NLPROTO_A_PATH], &st->path);
	ctl_attr_text(a[NLPROTO_A_TRANSPORT], &st->transport);
	ctl_attr_text(a[NLPROTO_A_LAST_ERROR], &st->last_error);
	st->protocol = ctl_attr_num(a[NLPROTO_A_PROTOCOL]);
	st->pid = ctl_attr_num(a[NLPROTO_A_PID]);
	st->state = ctl_attr_num(a[NLPROTO_A_STATE]);
	st->health = ctl_attr_num(a[NLPROTO_A_HEALTH]);
	st->store_state = ctl_attr_num(a[NLPROTO_A_STORE_STATE]);
	st->supervisor = ctl_attr_num(a[NLPROTO_A_SUPERVISOR]);
	st->standby = ctl_attr_num(a[NLPROTO_A_STANDBY]);
	st->deaths = ctl_attr_num(a[NLPROTO_A_DEATHS]);
	ctl_attr_string(a[NLPROTO_A_REPORT], st->report, sizeof(st->report));
	ctl_attr_text(a[NLPROTO_A_TAKEOVER], &st->takeover);
	st->takeover_time = ctl_attr_num(a[NLPROTO_A_TAKEOVER_TIME]);
	st->takeover_ns = ctl_attr_num(a[NLPROTO_A_TAKEOVER_NS]);
}

/* Whatever there is of what the commands answer; none of it depends on which command it was. */
static void take_attrs(struct ctl_reply *r, struct nlattr **a)
{
	static const int lists[] = {NLPROTO_A_COUNTERS, NLPROTO_A_HISTOGRAMS, NLPROTO_A_OPTIONS,
				    NLPROTO_A_LINES};

	if (r->cmd == NLPROTO_CMD_VERSION || r->cmd == NLPROTO_CMD_STATUS)
		take_status(&r->status, a);
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
		take_list(r, a[lists[i]]);
	ctl_attr_job(a[NLPROTO_A_JOB], &r->job);
	if (a[NLPROTO_A_PARTLY])
		r->partly = ctl_attr_num(a[NLPROTO_A_PARTLY]);
	if (r->cmd == NLPROTO_CMD_SUBSCRIBE) {
		r->seconds = ctl_attr_num(a[NLPROTO_A_SECONDS]);
		r->event_seq = ctl_attr_num(a[NLPROTO_A_EVENT_SEQ]);
		r->began = ctl_attr_num(a[NLPROTO_A_TIME]);
	}
}

static int take_error(struct ctl_reply *r, struct nlmsghdr *nlh)
{
	struct nlattr *a[NLMSGERR_ATTR_MSG + 1] = {0};
	struct nlmsgerr *err = nlmsg_data(nlh);

	if (nlmsg_datalen(nlh) < (int)sizeof(*err))
		return broken(r, "error message cut off");
	/* Only a capped message has its attributes right behind the header, and ours are. */
	if ((nlh->nlmsg_flags & NLM_F_ACK_TLVS) && (nlh->nlmsg_flags & NLM_F_CAPPED))
		nlmsg_parse(nlh, sizeof(*err), a, NLMSGERR_ATTR_MSG, NULL);
	if (err->error >= 0)
		return broken(r, "acknowledged instead of answered");
	r->error = err->error;
	if (!ctl_attr_string(a[NLMSGERR_ATTR_MSG], r->error_text, sizeof(r->error_text)))
		snprintf(r->error_text, sizeof(r->error_text), "error %u", 0u - (unsigned)r->error);
	return CTL_TAKE_REFUSED;
}

static int take_reply(struct ctl_reply *r, struct nlmsghdr *nlh)
{
	struct nlattr *a[NLPROTO_A_MAX + 1] = {0};
	struct nlproto_hdr *hdr = nlmsg_data(nlh);
	char device[NLPROTO_NAME_MAX];

	if (nlmsg_datalen(nlh) < (int)sizeof(*hdr))
		return broken(r, "header cut off");
	/* VERSION is what a mismatch is named with, so it is read across versions. */
	if (hdr->version != NLPROTO_VERSION && r->cmd != NLPROTO_CMD_VERSION)
		return broken(r, "protocol version %u, this program speaks %u", hdr->version,
			      NLPROTO_VERSION);
	if (hdr->cmd != r->cmd)
		return broken(r, "answer to command %u, asked was %u", hdr->cmd, r->cmd);
	if (nlmsg_parse(nlh, sizeof(*hdr), a, NLPROTO_A_MAX, NULL) < 0)
		return broken(r, "attributes cannot be read");
	if (!ctl_attr_string(a[NLPROTO_A_DEVICE], device, sizeof(device)) ||
	    !nlproto_name_ok(device))
		return broken(r, "the answer does not name its device");
	if (r->want_device[0] && strcmp(device, r->want_device))
		return broken(r, "this port serves device '%s'", device);
	strcpy(r->device, device);
	take_attrs(r, a);
	if (nlh->nlmsg_flags & NLM_F_MULTI)
		return CTL_TAKE_MORE;
	ctl_finish_histograms(&r->stats);
	return CTL_TAKE_DONE;
}

int ctl_reply_init(struct ctl_reply *r, uint8_t cmd, uint32_t seq, const char *device)
{
	r->cmd = cmd;
	r->seq = seq;
	r->want_device[0] = r->device[0] = r->error_text[0] = '\0';
	r->error = 0;
	memset(&r->status, 0, sizeof(r->status));
	r->stats.n = r->stats.unreadable = r->stats.nhistograms = 0;
	r->options.n = r->options.unreadable = 0;
	memset(&r->job, 0, sizeof(r->job));
	r->lines.n = r->lines.unreadable = 0;
	r->partly = r->began = r->seconds = r->event_seq = (struct ctl_num){0};
	if (device && strlen(device) >= sizeof(r->want_device))
		return -EINVAL;
	if (device)
		strcpy(r->want_device, device);
	return 0;
}

int ctl_reply_take(struct ctl_reply *r, const void *msg, size_t len)
{
	struct nlmsghdr *nlh = (struct nlmsghdr *)msg; /* libnl reads only, it lacks the const */

	if (len > INT32_MAX || !nlmsg_ok(nlh, (int)len) || nlh->nlmsg_len < NLMSG_HDRLEN)
		return broken(r, "message cut off");
	if (nlh->nlmsg_seq != r->seq)
		return CTL_TAKE_MORE;
	switch (nlh->nlmsg_type) {
	case NLMSG_DONE:
		ctl_finish_histograms(&r->stats);
		return CTL_TAKE_DONE;
	case NLMSG_ERROR:
		return take_error(r, nlh);
	case NLPROTO_MSG_TYPE:
		return take_reply(r, nlh);
	default:
		return broken(r, "message of type 0x%x", nlh->nlmsg_type);
	}
}

struct ctl_num ctl_stats_get(const struct ctl_stats *st, const char *name)
{
	for (size_t i = 0; i < st->n; i++)
		if (!strcmp(st->c[i].name, name))
			return st->c[i].value;
	return (struct ctl_num){0};
}

const struct ctl_option *ctl_options_get(const struct ctl_options *o, const char *key)
{
	for (size_t i = 0; i < o->n; i++)
		if (!strcmp(o->o[i].key, key))
			return &o->o[i];
	return NULL;
}

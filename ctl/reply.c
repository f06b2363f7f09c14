// SPDX-License-Identifier: GPL-2.0-or-later
#include "ctl/reply.h"

#include <errno.h>
#include <linux/netlink.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/*
 * No policies here: they refuse a message as a whole, and a daemon of another version may have
 * widened one field.  Each reader below checks its own attribute's length instead.
 */
static struct ctl_num get_num(struct nlattr *a)
{
	struct ctl_num n = {0};
	uint64_t v64;
	uint32_t v32;

	if (!a)
		return n;
	n.known = true;
	switch (nla_len(a)) {
	case 1:
		n.v = *(const uint8_t *)nla_data(a);
		break;
	case 4:
		memcpy(&v32, nla_data(a), sizeof(v32));
		n.v = v32;
		break;
	case 8:
		memcpy(&v64, nla_data(a), sizeof(v64)); /* attributes are aligned to 4 only */
		n.v = v64;
		break;
	default:
		n.known = false;
	}
	return n;
}

/* False if there is no string of at most @size - 1 bytes; @ret is then untouched. */
static bool get_string(struct nlattr *a, char *ret, size_t size)
{
	size_t len, n;

	if (!a)
		return false;
	len = (size_t)nla_len(a);
	n = strnlen(nla_data(a), len);
	if (n >= size)
		return false;
	memcpy(ret, nla_data(a), n);
	ret[n] = '\0';
	return true;
}

static void get_text(struct nlattr *a, struct ctl_text *ret)
{
	if (get_string(a, ret->s, sizeof(ret->s)))
		ret->known = true;
}

__attribute__((format(printf, 2, 3))) static int broken(struct ctl_reply *r, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(r->error_text, sizeof(r->error_text), fmt, ap);
	va_end(ap);
	return -EPROTO;
}

/* Names become JSON keys and metric names, so only what all of these allow is taken. */
static bool metric_name_ok(const char *s)
{
	if (!*s || (*s >= '0' && *s <= '9'))
		return false;
	for (; *s; s++)
		if (!(*s >= 'a' && *s <= 'z') && !(*s >= '0' && *s <= '9') && *s != '_')
			return false;
	return true;
}

static void take_counter(struct ctl_stats *st, struct nlattr *nest)
{
	struct nlattr *a[NLPROTO_C_MAX + 1] = {0};
	struct ctl_counter c = {0};

	if (nla_parse_nested(a, NLPROTO_C_MAX, nest, NULL) < 0 ||
	    !get_string(a[NLPROTO_C_NAME], c.name, sizeof(c.name)) || !metric_name_ok(c.name) ||
	    st->n == CTL_COUNTERS_MAX) {
		st->unreadable++;
		return;
	}
	/* A second one of the same name would make JSON and Prometheus text invalid. */
	for (size_t i = 0; i < st->n; i++)
		if (!strcmp(st->c[i].name, c.name)) {
			st->unreadable++;
			return;
		}
	c.kind = get_num(a[NLPROTO_C_KIND]);
	c.unit = get_num(a[NLPROTO_C_UNIT]);
	c.value = get_num(a[NLPROTO_C_VALUE]);
	if (!c.value.known)
		st->unreadable++;
	st->c[st->n++] = c;
}

static void take_counters(struct ctl_stats *st, struct nlattr *list)
{
	struct nlattr *a;
	int rem;

	if (!list)
		return;
	nla_for_each_nested(a, list, rem) if (nla_type(a) == NLPROTO_L_COUNTER) take_counter(st, a);
}

static void take_status(struct ctl_status *st, struct nlattr **a)
{
	get_text(a[NLPROTO_A_DAEMON_VERSION], &st->daemon_version);
	get_text(a[NLPROTO_A_PATH], &st->path);
	get_text(a[NLPROTO_A_TRANSPORT], &st->transport);
	get_text(a[NLPROTO_A_LAST_ERROR], &st->last_error);
	st->protocol = get_num(a[NLPROTO_A_PROTOCOL]);
	st->pid = get_num(a[NLPROTO_A_PID]);
	st->state = get_num(a[NLPROTO_A_STATE]);
	st->health = get_num(a[NLPROTO_A_HEALTH]);
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
	if (!get_string(a[NLMSGERR_ATTR_MSG], r->error_text, sizeof(r->error_text)))
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
	if (!get_string(a[NLPROTO_A_DEVICE], device, sizeof(device)) || !nlproto_name_ok(device))
		return broken(r, "the answer does not name its device");
	if (r->want_device[0] && strcmp(device, r->want_device))
		return broken(r, "this port serves device '%s'", device);
	strcpy(r->device, device);
	if (r->cmd == NLPROTO_CMD_STATS)
		take_counters(&r->stats, a[NLPROTO_A_COUNTERS]);
	else
		take_status(&r->status, a);
	return nlh->nlmsg_flags & NLM_F_MULTI ? CTL_TAKE_MORE : CTL_TAKE_DONE;
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

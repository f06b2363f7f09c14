// SPDX-License-Identifier: GPL-2.0-or-later
/* An event's message, taken apart. */
#include "ctl/attr.h"

#include <errno.h>
#include <linux/netlink.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <string.h>

int ctl_event_take(struct ctl_event *ret, const char *want_device, const void *msg, size_t len)
{
	struct nlmsghdr *nlh = (struct nlmsghdr *)msg; /* libnl reads only, it lacks the const */
	struct nlattr *a[NLPROTO_A_MAX + 1] = {0};
	struct ctl_event ev = {0};
	struct nlproto_hdr *hdr;

	if (len > INT32_MAX || !nlmsg_ok(nlh, (int)len) || nlh->nlmsg_len < NLMSG_HDRLEN)
		return -EPROTO;
	if (nlh->nlmsg_type != NLPROTO_MSG_TYPE || nlmsg_datalen(nlh) < (int)sizeof(*hdr))
		return 0;
	hdr = nlmsg_data(nlh);
	if (hdr->cmd != NLPROTO_CMD_EVENT)
		return 0;
	if (hdr->version != NLPROTO_VERSION ||
	    nlmsg_parse(nlh, sizeof(*hdr), a, NLPROTO_A_MAX, NULL) < 0 ||
	    !ctl_attr_string(a[NLPROTO_A_DEVICE], ev.device, sizeof(ev.device)) ||
	    !nlproto_name_ok(ev.device))
		return -EPROTO;
	if (want_device[0] && strcmp(ev.device, want_device))
		return 0;
	ev.kind = ctl_attr_num(a[NLPROTO_A_EVENT]);
	ev.seq = ctl_attr_num(a[NLPROTO_A_EVENT_SEQ]);
	if (!ev.kind.known || !ev.seq.known)
		return -EPROTO;
	ev.time = ctl_attr_num(a[NLPROTO_A_TIME]);
	ev.count = ctl_attr_num(a[NLPROTO_A_COUNT]);
	ev.state = ctl_attr_num(a[NLPROTO_A_STATE]);
	ev.store_state = ctl_attr_num(a[NLPROTO_A_STORE_STATE]);
	ctl_attr_text(a[NLPROTO_A_KEY], &ev.key);
	ctl_attr_text(a[NLPROTO_A_TEXT], &ev.text);
	ctl_attr_job(a[NLPROTO_A_JOB], &ev.job);
	*ret = ev;
	return 1;
}

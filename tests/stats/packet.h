/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ZSWAPD_TESTS_STATS_PACKET_H
#define ZSWAPD_TESTS_STATS_PACKET_H

#include <linux/netlink.h>
#include <netlink/attr.h>
#include <string.h>

#include "common/nlproto.h"

/* A request under construction; the tests break it by hand. */
struct packet {
	union {
		struct nlmsghdr nlh;
		char bytes[2 * NLPROTO_REQUEST_MAX];
	};
	size_t len;
};

static inline struct nlproto_hdr *packet_hdr(struct packet *p)
{
	return (struct nlproto_hdr *)(p->bytes + NLMSG_HDRLEN);
}

static inline void packet_init(struct packet *p, uint8_t cmd)
{
	memset(p, 0, sizeof(*p));
	p->len = NLMSG_HDRLEN + sizeof(struct nlproto_hdr);
	p->nlh = (struct nlmsghdr){.nlmsg_len = (uint32_t)p->len,
				   .nlmsg_type = NLPROTO_MSG_TYPE,
				   .nlmsg_flags = NLM_F_REQUEST,
				   .nlmsg_seq = 77};
	*packet_hdr(p) = (struct nlproto_hdr){.cmd = cmd, .version = NLPROTO_VERSION};
}

static inline void packet_attr(struct packet *p, uint16_t type, const void *data, uint16_t len)
{
	struct nlattr a = {.nla_len = (uint16_t)(NLA_HDRLEN + len), .nla_type = type};

	memcpy(p->bytes + p->len, &a, sizeof(a));
	memcpy(p->bytes + p->len + NLA_HDRLEN, data, len);
	p->len += NLA_ALIGN(a.nla_len);
	p->nlh.nlmsg_len = (uint32_t)p->len;
}

#endif

// SPDX-License-Identifier: GPL-2.0-or-later
#include "ctl/attr.h"

#include <netlink/attr.h>
#include <string.h>

struct ctl_num ctl_attr_num(struct nlattr *a)
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

bool ctl_attr_string(struct nlattr *a, char *ret, size_t size)
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

void ctl_attr_text(struct nlattr *a, struct ctl_text *ret)
{
	if (ctl_attr_string(a, ret->s, sizeof(ret->s)))
		ret->known = true;
}

void ctl_attr_job(struct nlattr *nest, struct ctl_job *ret)
{
	struct nlattr *a[NLPROTO_J_MAX + 1] = {0};

	if (!nest || nla_parse_nested(a, NLPROTO_J_MAX, nest, NULL) < 0)
		return;
	ret->known = true;
	ret->id = ctl_attr_num(a[NLPROTO_J_ID]);
	ret->kind = ctl_attr_num(a[NLPROTO_J_KIND]);
	ret->state = ctl_attr_num(a[NLPROTO_J_STATE]);
	ret->unit = ctl_attr_num(a[NLPROTO_J_UNIT]);
	ret->done = ctl_attr_num(a[NLPROTO_J_DONE]);
	ret->total = ctl_attr_num(a[NLPROTO_J_TOTAL]);
	ret->found = ctl_attr_num(a[NLPROTO_J_FOUND]);
	ret->error = ctl_attr_num(a[NLPROTO_J_ERROR]);
}

bool ctl_metric_name_ok(const char *s)
{
	if (!*s || (*s >= '0' && *s <= '9'))
		return false;
	for (; *s; s++)
		if (!(*s >= 'a' && *s <= 'z') && !(*s >= '0' && *s <= '9') && *s != '_')
			return false;
	return true;
}

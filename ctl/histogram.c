// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Histograms come in pieces, of which any may be missing or broken.  The pieces' buckets are put
 * together as they come; in the end a histogram is kept only if its buckets hold all that the
 * daemon says it has counted.
 */
#include "ctl/attr.h"

#include <netlink/attr.h>
#include <string.h>

static struct ctl_histogram *find_or_add(struct ctl_stats *st, const char *name)
{
	struct ctl_histogram *h;

	for (size_t i = 0; i < st->nhistograms; i++)
		if (!strcmp(st->h[i].name, name))
			return &st->h[i];
	if (st->nhistograms == CTL_HISTOGRAMS_MAX)
		return NULL;
	h = &st->h[st->nhistograms++];
	*h = (struct ctl_histogram){0};
	strcpy(h->name, name);
	return h;
}

/* What does not fit is left out, which shows in the end. */
static void add_buckets(struct ctl_histogram *h, struct nlattr *a)
{
	struct nlproto_bucket b;
	const char *at;

	if (!a)
		return;
	at = nla_data(a);
	for (size_t left = (size_t)nla_len(a); left >= sizeof(b); left -= sizeof(b)) {
		memcpy(&b, at, sizeof(b));
		at += sizeof(b);
		if (b.lower > b.upper || h->n == CTL_BUCKETS_MAX ||
		    (h->n && b.lower <= h->b[h->n - 1].upper))
			return;
		h->b[h->n++] = b;
	}
}

void ctl_take_histogram(struct ctl_stats *st, struct nlattr *nest)
{
	struct nlattr *a[NLPROTO_H_MAX + 1] = {0};
	char name[NLPROTO_NAME_MAX];
	struct ctl_histogram *h;
	struct ctl_num count;

	if (nla_parse_nested(a, NLPROTO_H_MAX, nest, NULL) < 0 ||
	    !ctl_attr_string(a[NLPROTO_H_NAME], name, sizeof(name)) || !ctl_metric_name_ok(name)) {
		st->unreadable++;
		return;
	}
	h = find_or_add(st, name);
	count = ctl_attr_num(a[NLPROTO_H_COUNT]);
	if (!h || !count.known) {
		st->unreadable++;
		return;
	}
	h->unit = ctl_attr_num(a[NLPROTO_H_UNIT]);
	h->sum = ctl_attr_num(a[NLPROTO_H_SUM]);
	h->count = count.v;
	add_buckets(h, a[NLPROTO_H_BUCKETS]);
}

static bool is_whole(const struct ctl_histogram *h)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < h->n; i++)
		if (__builtin_add_overflow(sum, h->b[i].count, &sum))
			return false;
	return sum == h->count;
}

void ctl_finish_histograms(struct ctl_stats *st)
{
	size_t n = 0;

	for (size_t i = 0; i < st->nhistograms; i++) {
		if (!is_whole(&st->h[i]))
			st->unreadable++;
		else if (n++ != i)
			st->h[n - 1] = st->h[i];
	}
	st->nhistograms = n;
}

const struct ctl_histogram *ctl_stats_histogram(const struct ctl_stats *st, const char *name)
{
	for (size_t i = 0; i < st->nhistograms; i++)
		if (!strcmp(st->h[i].name, name))
			return &st->h[i];
	return NULL;
}

/* Takes @before's buckets off *ret; false if one of them is not in it. */
static bool subtract(struct ctl_histogram *ret, const struct ctl_histogram *before)
{
	size_t at = 0;

	for (size_t i = 0; i < before->n; i++) {
		const struct nlproto_bucket *b = &before->b[i];

		while (at < ret->n && ret->b[at].lower < b->lower)
			at++;
		if (at == ret->n || ret->b[at].lower != b->lower || ret->b[at].upper != b->upper ||
		    ret->b[at].count < b->count)
			return false;
		ret->b[at].count -= b->count;
	}
	return true;
}

static void drop_empty(struct ctl_histogram *h)
{
	size_t n = 0;

	for (size_t i = 0; i < h->n; i++)
		if (h->b[i].count)
			h->b[n++] = h->b[i];
	h->n = n;
}

bool ctl_histogram_since(struct ctl_histogram *ret, const struct ctl_histogram *now,
			 const struct ctl_histogram *before)
{
	*ret = *now;
	if (!subtract(ret, before)) {
		*ret = *now;
		return false;
	}
	drop_empty(ret);
	ret->count -= before->count;
	ret->sum.known = now->sum.known && before->sum.known && now->sum.v >= before->sum.v;
	ret->sum.v = ret->sum.known ? now->sum.v - before->sum.v : 0;
	return true;
}

struct ctl_num ctl_histogram_percentile(const struct ctl_histogram *h, double share)
{
	double want = share * (double)h->count;
	uint64_t sum = 0;

	for (size_t i = 0; i < h->n; i++) {
		sum += h->b[i].count;
		if (h->b[i].count && (double)sum >= want)
			return (struct ctl_num){true, h->b[i].upper};
	}
	return (struct ctl_num){0};
}

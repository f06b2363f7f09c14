// SPDX-License-Identifier: GPL-2.0-or-later
#include "ctl/top_model.h"
#include "common/util.h"

#include <math.h>
#include <string.h>

#define NS_PER_S 1000000000ull

static const char *const rate_counters[TOP_RATES] = {
	[TOP_SWAP_IN] = "pages_read_total",
	[TOP_SWAP_OUT] = "pages_written_total",
	[TOP_DISCARD] = "pages_discarded_total",
	[TOP_STORE_READ] = "store_read_bytes_total",
	[TOP_STORE_WRITE] = "store_write_bytes_total",
};

void top_model_init(struct top_model *m)
{
	memset(m, 0, sizeof(*m));
}

double top_model_rate(const struct top_model *m, enum top_rate rate, unsigned age)
{
	if (age >= m->filled)
		return NAN;
	return (double)m->history[rate][(m->head + TOP_HISTORY - 1 - age) % TOP_HISTORY];
}

double top_model_peak(const struct top_model *m, enum top_rate rate, unsigned ages)
{
	double peak = 0;

	for (unsigned age = 0; age < ages && age < m->filled; age++)
		peak = fmax(peak, top_model_rate(m, rate, age)); /* fmax() passes NAN over */
	return peak;
}

static double rate_between(const struct top_sample *a, const struct top_sample *b,
			   const char *counter)
{
	struct ctl_num from = ctl_stats_get(&a->stats, counter);
	struct ctl_num to = ctl_stats_get(&b->stats, counter);

	if (!from.known || !to.known || to.v < from.v || b->at_ns <= a->at_ns)
		return NAN;
	return (double)(to.v - from.v) * (double)NS_PER_S / (double)(b->at_ns - a->at_ns);
}

/* @s NULL: a gap. */
static void push_history(struct top_model *m, const struct top_sample *s)
{
	for (unsigned i = 0; i < TOP_RATES; i++)
		m->history[i][m->head] =
			s ? (float)rate_between(&m->last, s, rate_counters[i]) : NAN;
	m->head = (m->head + 1) % TOP_HISTORY;
	if (m->filled < TOP_HISTORY)
		m->filled++;
}

/* A counter that falls belongs to another life, even if the process' number is the same. */
static bool same_life(const struct top_sample *a, const struct top_sample *b)
{
	if (a->status.pid.known && b->status.pid.known && a->status.pid.v != b->status.pid.v)
		return false;
	for (size_t i = 0; i < a->stats.n; i++) {
		const struct ctl_counter *c = &a->stats.c[i];
		struct ctl_num now;

		if (!c->kind.known || c->kind.v != NLPROTO_KIND_COUNTER || !c->value.known)
			continue;
		now = ctl_stats_get(&b->stats, c->name);
		if (now.known && now.v < c->value.v)
			return false;
	}
	return true;
}

static void push_snapshot(struct top_model *m, const struct top_sample *s)
{
	unsigned drop = 0;

	/* Much older than the window is of no use, but one must be at least as old. */
	while (drop + 1 < m->snapshots &&
	       s->at_ns - m->snapshot[drop + 1].at_ns >= TOP_WINDOW_S * NS_PER_S)
		drop++;
	if (m->snapshots - drop == TOP_SNAPSHOTS)
		drop++;
	m->snapshots -= drop;
	memmove(m->snapshot, m->snapshot + drop, m->snapshots * sizeof(m->snapshot[0]));
	m->snapshot[m->snapshots].at_ns = s->at_ns;
	m->snapshot[m->snapshots++].stats = s->stats;
}

/* Counters and histograms since @before; gauges as they are now. */
static void subtract(struct ctl_stats *ret, const struct ctl_stats *now,
		     const struct ctl_stats *before)
{
	*ret = *now;
	for (size_t i = 0; i < ret->n; i++) {
		struct ctl_counter *c = &ret->c[i];
		struct ctl_num old = ctl_stats_get(before, c->name);

		if (c->kind.known && c->kind.v == NLPROTO_KIND_GAUGE)
			continue;
		c->value.known = c->value.known && old.known && c->value.v >= old.v;
		c->value.v -= c->value.known ? old.v : 0;
	}
	for (size_t i = 0; i < ret->nhistograms; i++) {
		const struct ctl_histogram *h = ctl_stats_histogram(before, now->h[i].name);

		if (h)
			ctl_histogram_since(&ret->h[i], &now->h[i], h);
	}
}

static void update_window(struct top_model *m, const struct top_sample *s)
{
	const struct top_snapshot *first = &m->snapshot[0];

	m->window_s = (double)(s->at_ns - first->at_ns) / (double)NS_PER_S;
	subtract(&m->window, &s->stats, &first->stats);
}

void top_model_take(struct top_model *m, const struct top_sample *s)
{
	bool goes_on = m->ever && !m->silent;

	if (!m->now_ns)
		m->answered_ns = s->at_ns;
	m->now_ns = s->at_ns;
	m->silent = !s->answered;
	if (!s->answered) {
		strcpy(m->last.why, s->why);
		push_history(m, NULL);
		return;
	}
	if (m->ever && !same_life(&m->last, s)) {
		m->snapshots = 0;
		goes_on = false;
	}
	push_history(m, goes_on ? s : NULL);
	if (!m->snapshots ||
	    /* A bit less than a second, as samples do not come exactly in time. */
	    s->at_ns - m->snapshot[m->snapshots - 1].at_ns >= NS_PER_S * 9 / 10)
		push_snapshot(m, s);
	update_window(m, s);
	m->ever = true;
	m->answered_ns = s->at_ns;
	m->last = *s;
}

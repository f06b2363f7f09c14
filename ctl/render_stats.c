// SPDX-License-Identifier: GPL-2.0-or-later
/* All numbers, for people, as JSON and for Prometheus. */
#include "common/counters.h"
#include "common/histograms.h"
#include "common/util.h"
#include "ctl/cell.h"
#include "ctl/render.h"

#include <inttypes.h>
#include <string.h>

static const struct {
	const char *heading, *key;
	double share;
} shares[] = {
	{"p50", "p50", 0.5},	  {"p90", "p90", 0.9}, {"p99", "p99", 0.99},
	{"p99.9", "p999", 0.999}, {"max", "max", 1},
};

static const char *const unit_words[] = {
	[NLPROTO_UNIT_NONE] = "none",
	[NLPROTO_UNIT_PAGES] = "pages",
	[NLPROTO_UNIT_BYTES] = "bytes",
	[NLPROTO_UNIT_NANOSECONDS] = "nanoseconds",
};

/* NULL for a unit that is not known here. */
static const char *unit_word(struct ctl_num unit)
{
	return unit.known && unit.v < ARRAY_SIZE(unit_words) ? unit_words[unit.v] : NULL;
}

/* --- text --- */

static void put_histograms(FILE *out, const struct ctl_stats *stats)
{
	if (!stats->nhistograms)
		return;
	fprintf(out, "\n%-20s %10s", "", "count");
	for (size_t i = 0; i < ARRAY_SIZE(shares); i++)
		fprintf(out, " %8s", shares[i].heading);
	fputc('\n', out);
	for (size_t i = 0; i < stats->nhistograms; i++) {
		const struct ctl_histogram *h = &stats->h[i];

		fprintf(out, "%-20s %10" PRIu64, h->name, h->count);
		for (size_t j = 0; j < ARRAY_SIZE(shares); j++)
			fprintf(out, " %8s", cell_percentile(h, shares[j].share).s);
		fputc('\n', out);
	}
}

void render_stats_text(FILE *out, const struct ctl_stats *stats)
{
	for (size_t i = 0; i < stats->n; i++) {
		const struct ctl_counter *c = &stats->c[i];
		const char *unit = unit_word(c->unit);
		bool has_unit = c->value.known && unit && c->unit.v != NLPROTO_UNIT_NONE;

		fprintf(out, "%-32s %20s%s%s\n", c->name, cell_count(c->value).s,
			has_unit ? " " : "", has_unit ? unit : "");
	}
	put_histograms(out, stats);
}

/* --- JSON --- */

static const char *json_number(struct ctl_num n, struct cell *buf)
{
	if (!n.known)
		return "null";
	*buf = cell_count(n);
	return buf->s;
}

static void put_json_histogram(FILE *out, const struct ctl_histogram *h)
{
	const char *unit = unit_word(h->unit);
	struct cell buf;

	fprintf(out, "\"%s\": {\"unit\": %s%s%s, \"count\": %" PRIu64 ", \"sum\": %s", h->name,
		unit ? "\"" : "", unit ? unit : "null", unit ? "\"" : "", h->count,
		json_number(h->sum, &buf));
	for (size_t i = 0; i < ARRAY_SIZE(shares); i++)
		fprintf(out, ", \"%s\": %s", shares[i].key,
			json_number(ctl_histogram_percentile(h, shares[i].share), &buf));
	fputs(", \"buckets\": [", out);
	for (size_t i = 0; i < h->n; i++)
		fprintf(out, "%s[%" PRIu64 ", %" PRIu64 ", %" PRIu64 "]", i ? ", " : "",
			h->b[i].lower, h->b[i].upper, h->b[i].count);
	fputs("]}", out);
}

/* Names are [a-z0-9_] (ctl/reply.h), so nothing needs an escape. */
void render_stats_json(FILE *out, const struct ctl_stats *stats)
{
	struct cell buf;

	fputs("{", out);
	for (size_t i = 0; i < stats->n; i++)
		fprintf(out, "%s\n  \"%s\": %s", i ? "," : "", stats->c[i].name,
			json_number(stats->c[i].value, &buf));
	if (stats->nhistograms) {
		fprintf(out, "%s\n  \"histograms\": {", stats->n ? "," : "");
		for (size_t i = 0; i < stats->nhistograms; i++) {
			fputs(i ? ",\n    " : "\n    ", out);
			put_json_histogram(out, &stats->h[i]);
		}
		fputs("\n  }", out);
	}
	fputs(stats->n || stats->nhistograms ? "\n}\n" : "}\n", out);
}

/* --- Prometheus --- */

/* The daemon may know more than this program's tables do. */
static const char *counter_help(const char *name)
{
	for (size_t i = 0; i < COUNTER_COUNT; i++)
		if (!strcmp(counter_table[i].name, name))
			return counter_table[i].text;
	return NULL;
}

static const char *histogram_help(const char *name)
{
	for (size_t i = 0; i < HISTOGRAM_COUNT; i++)
		if (!strcmp(histogram_table[i].name, name))
			return histogram_table[i].text;
	return NULL;
}

static const char *type_of(struct ctl_num kind)
{
	if (kind.known && kind.v == NLPROTO_KIND_COUNTER)
		return "counter";
	if (kind.known && kind.v == NLPROTO_KIND_GAUGE)
		return "gauge";
	return "untyped";
}

static void put_metric_head(FILE *out, const char *name, const char *suffix, const char *help,
			    const char *type)
{
	if (help)
		fprintf(out, "# HELP zswapd_%s%s %s\n", name, suffix, help);
	fprintf(out, "# TYPE zswapd_%s%s %s\n", name, suffix, type);
}

static uint64_t count_up_to(const struct ctl_histogram *h, uint64_t limit)
{
	uint64_t n = 0;

	for (size_t i = 0; i < h->n && h->b[i].upper <= limit; i++)
		n += h->b[i].count;
	return n;
}

/*
 * The daemon's buckets come and go with what they count; a series must not.  So its bounds are
 * fixed ones: the last value of each power of two.  Times are in seconds, as is usual there.
 */
static void put_prometheus_histogram(FILE *out, const char *device, const struct ctl_histogram *h)
{
	bool time = h->unit.known && h->unit.v == NLPROTO_UNIT_NANOSECONDS;
	const char *suffix = time ? "_seconds" : "";
	double scale = time ? 1e-9 : 1;

	/* A histogram without its sum is not allowed. */
	if (!h->sum.known)
		return;
	put_metric_head(out, h->name, suffix, histogram_help(h->name), "histogram");
	for (unsigned b = HISTOGRAM_SUB - 1; b < HISTOGRAM_BUCKETS - 1; b += HISTOGRAM_SUB)
		fprintf(out, "zswapd_%s%s_bucket{device=\"%s\",le=\"%.12g\"} %" PRIu64 "\n",
			h->name, suffix, device, (double)histogram_upper(b) * scale,
			count_up_to(h, histogram_upper(b)));
	fprintf(out, "zswapd_%s%s_bucket{device=\"%s\",le=\"+Inf\"} %" PRIu64 "\n", h->name, suffix,
		device, h->count);
	fprintf(out, "zswapd_%s%s_sum{device=\"%s\"} %.12g\n", h->name, suffix, device,
		(double)h->sum.v * scale);
	fprintf(out, "zswapd_%s%s_count{device=\"%s\"} %" PRIu64 "\n", h->name, suffix, device,
		h->count);
}

/* @device passed nlproto_name_ok(), so the label needs no escapes. */
void render_stats_prometheus(FILE *out, const char *device, const struct ctl_stats *stats)
{
	for (size_t i = 0; i < stats->n; i++) {
		const struct ctl_counter *c = &stats->c[i];

		if (!c->value.known)
			continue;
		put_metric_head(out, c->name, "", counter_help(c->name), type_of(c->kind));
		fprintf(out, "zswapd_%s{device=\"%s\"} %" PRIu64 "\n", c->name, device, c->value.v);
	}
	for (size_t i = 0; i < stats->nhistograms; i++)
		put_prometheus_histogram(out, device, &stats->h[i]);
}

// SPDX-License-Identifier: GPL-2.0-or-later
#include "ctl/render.h"
#include "common/counters.h"
#include "common/size.h"
#include "common/util.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#define PAGE_BYTES 4096.0
#define CELL_MAX   32

/* A small text made from values of which some may be unknown. */
struct cell {
	char s[CELL_MAX];
};

static struct cell cell_text(const char *s)
{
	struct cell c;

	snprintf(c.s, sizeof(c.s), "%s", s);
	return c;
}

static struct cell cell_count(struct ctl_num n)
{
	struct cell c = {"?"};

	if (n.known)
		snprintf(c.s, sizeof(c.s), "%" PRIu64, n.v);
	return c;
}

static struct cell cell_bytes(struct ctl_num n)
{
	char text[SIZE_TEXT_MAX];

	return n.known ? cell_text(size_format(text, n.v)) : cell_text("?");
}

/* @a / @b times @scale with @unit behind it; "-" where there is nothing to divide by. */
static struct cell cell_ratio(double a, double b, bool known, double scale, const char *unit)
{
	struct cell c;

	if (!known)
		return cell_text("?");
	if (b == 0)
		return cell_text("-");
	snprintf(c.s, sizeof(c.s), scale == 100 ? "%.1f%s" : "%.2f%s", a / b * scale, unit);
	return c;
}

static struct cell cell_percent(struct ctl_num a, struct ctl_num b)
{
	return cell_ratio((double)a.v, (double)b.v, a.known && b.known, 100, " %");
}

/* Pages against the bytes they were compressed to. */
static struct cell cell_compression(struct ctl_num pages, struct ctl_num bytes)
{
	bool known = pages.known && bytes.known;

	/* The two counters are not of one instant, so one may say empty before the other. */
	if (known && pages.v == 0)
		return cell_text("-");
	return cell_ratio((double)pages.v * PAGE_BYTES, (double)bytes.v, known, 1, "");
}

static struct ctl_num sum(struct ctl_num a, struct ctl_num b)
{
	return (struct ctl_num){a.known && b.known, a.v + b.v};
}

void put_printable(FILE *out, const char *s)
{
	for (; *s; s++)
		fputc((unsigned char)*s < 0x20 || *s == 0x7f ? '?' : *s, out);
}

static void put_text(FILE *out, const struct ctl_text *t)
{
	put_printable(out, t->known ? t->s : "?");
}

__attribute__((format(printf, 3, 4))) static void row(FILE *out, const char *label, const char *fmt,
						      ...)
{
	va_list ap;

	fprintf(out, "%-13s", label);
	va_start(ap, fmt);
	vfprintf(out, fmt, ap);
	va_end(ap);
	fputc('\n', out);
}

static void put_state(FILE *out, struct ctl_num state)
{
	const char *text = state.known ? nlproto_state_text(state.v) : "?";

	if (text)
		fputs(text, out);
	else
		fprintf(out, "state %" PRIu64, state.v);
}

static void put_head(FILE *out, const char *device, const struct ctl_status *st)
{
	fprintf(out, "%-13s", "device");
	put_printable(out, device);
	fputs("  ", out);
	put_text(out, &st->path);
	fprintf(out, "\n%-13s", "transport");
	put_text(out, &st->transport);
	fprintf(out, "\n%-13s", "daemon");
	put_state(out, st->state);
	fprintf(out, ", pid %s, version ", cell_count(st->pid).s);
	put_text(out, &st->daemon_version);
	fputc('\n', out);
}

/* One finding a line; bits of a newer daemon are shown by number. */
static void put_health(FILE *out, struct ctl_num health)
{
	const char *label = "health";

	if (!health.known || !health.v) {
		row(out, label, "%s", health.known ? "good" : "?");
		return;
	}
	for (unsigned bit = 0; bit < 64; bit++) {
		const char *text = nlproto_health_text(bit);

		if (!(health.v >> bit & 1))
			continue;
		if (text)
			row(out, label, "%s", text);
		else
			row(out, label, "finding number %u, unknown to this version", bit);
		label = "";
	}
}

#define N(name) ctl_stats_get(stats, #name)

static void put_tiers(FILE *out, const struct ctl_stats *stats)
{
	struct ctl_num pages = sum(N(slots_resident), N(slots_stored));
	struct ctl_num bytes = sum(N(resident_compressed_bytes), N(stored_compressed_bytes));

	row(out, "size", "%s", cell_bytes(N(device_bytes)).s);
	row(out, "used", "%s of %s pages (%s), %s same-filled, %s lost",
	    cell_count(N(slots_used)).s, cell_count(N(slots_total)).s,
	    cell_percent(N(slots_used), N(slots_total)).s, cell_count(N(slots_same_filled)).s,
	    cell_count(N(slots_lost)).s);
	row(out, "ratio", "%s (same-filled pages left out)", cell_compression(pages, bytes).s);
	row(out, "memory", "%s of %s (%s), metadata %s", cell_bytes(N(memory_used_bytes)).s,
	    cell_bytes(N(memory_limit_bytes)).s,
	    cell_percent(N(memory_used_bytes), N(memory_limit_bytes)).s,
	    cell_bytes(N(memory_metadata_bytes)).s);
	row(out, "", "%s pages in %s, ratio %s", cell_count(N(slots_resident)).s,
	    cell_bytes(N(resident_compressed_bytes)).s,
	    cell_compression(N(slots_resident), N(resident_compressed_bytes)).s);
	row(out, "store", "%s of %s (%s)", cell_bytes(N(store_used_bytes)).s,
	    cell_bytes(N(store_size_bytes)).s,
	    cell_percent(N(store_used_bytes), N(store_size_bytes)).s);
	row(out, "", "%s pages in %s, ratio %s", cell_count(N(slots_stored)).s,
	    cell_bytes(N(stored_compressed_bytes)).s,
	    cell_compression(N(slots_stored), N(stored_compressed_bytes)).s);
}

static void put_traffic(FILE *out, const struct ctl_stats *stats)
{
	struct ctl_num reads = N(pages_read_total);
	struct ctl_num back = N(pages_written_back_total), writes = N(store_write_requests_total);

	row(out, "reads", "%s pages: memory %s, store %s,", cell_count(reads).s,
	    cell_percent(N(pages_read_resident_total), reads).s,
	    cell_percent(N(pages_read_stored_total), reads).s);
	row(out, "", "same-filled %s, empty %s",
	    cell_percent(N(pages_read_same_filled_total), reads).s,
	    cell_percent(N(pages_read_empty_total), reads).s);
	row(out, "writes", "%s pages: incompressible %s; discarded %s",
	    cell_count(N(pages_written_total)).s,
	    cell_percent(N(pages_incompressible_total), N(pages_written_total)).s,
	    cell_count(N(pages_discarded_total)).s);
	row(out, "writeback", "%s pages in %s requests, %s pages a request", cell_count(back).s,
	    cell_count(writes).s,
	    cell_ratio((double)back.v, (double)writes.v, back.known && writes.known, 1, "").s);
	row(out, "readahead", "%s pages, %s were asked for", cell_count(N(readahead_pages_total)).s,
	    cell_percent(N(readahead_hits_total), N(readahead_pages_total)).s);
	row(out, "batches", "%s, %s overlapped with store reads", cell_count(N(batches_total)).s,
	    cell_percent(N(batches_overlapped_total), N(batches_total)).s);
	row(out, "errors", "store reads %s, store writes %s, checksums %s, rejected %s",
	    cell_count(N(store_read_errors_total)).s, cell_count(N(store_write_errors_total)).s,
	    cell_count(N(checksum_failures_total)).s, cell_count(N(writes_rejected_total)).s);
}

#undef N

void render_status(FILE *out, const char *device, const struct ctl_status *st,
		   const struct ctl_stats *stats)
{
	static const struct ctl_stats none;

	if (!stats)
		stats = &none;
	put_head(out, device, st);
	put_tiers(out, stats);
	put_traffic(out, stats);
	put_health(out, st->health);
	fprintf(out, "%-13s", "last error");
	put_printable(out, st->last_error.known ? st->last_error.s : "-");
	fputc('\n', out);
}

void render_version(FILE *out, const struct ctl_status *st)
{
	fputs("zswapd ", out);
	put_text(out, &st->daemon_version);
	fprintf(out, ", protocol %s\n", cell_count(st->protocol).s);
}

void render_stats_text(FILE *out, const struct ctl_stats *stats)
{
	static const char *const units[] = {
		[NLPROTO_UNIT_NONE] = "",
		[NLPROTO_UNIT_PAGES] = " pages",
		[NLPROTO_UNIT_BYTES] = " bytes",
	};

	for (size_t i = 0; i < stats->n; i++) {
		const struct ctl_counter *c = &stats->c[i];
		bool has_unit = c->value.known && c->unit.known && c->unit.v < ARRAY_SIZE(units);

		fprintf(out, "%-32s %20s%s\n", c->name, cell_count(c->value).s,
			has_unit ? units[c->unit.v] : "");
	}
}

/* Names are [a-z0-9_] (ctl/reply.h), so nothing needs an escape. */
void render_stats_json(FILE *out, const struct ctl_stats *stats)
{
	fputs("{", out);
	for (size_t i = 0; i < stats->n; i++) {
		const struct ctl_counter *c = &stats->c[i];

		fprintf(out, "%s\n  \"%s\": %s", i ? "," : "", c->name,
			c->value.known ? cell_count(c->value).s : "null");
	}
	fputs(stats->n ? "\n}\n" : "}\n", out);
}

/* The daemon may know counters that this program's table does not have. */
static const char *help_of(const char *name)
{
	for (size_t i = 0; i < COUNTER_COUNT; i++)
		if (!strcmp(counter_table[i].name, name))
			return counter_table[i].text;
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

/* @device passed nlproto_name_ok(), so the label needs no escapes. */
void render_stats_prometheus(FILE *out, const char *device, const struct ctl_stats *stats)
{
	for (size_t i = 0; i < stats->n; i++) {
		const struct ctl_counter *c = &stats->c[i];
		const char *help = help_of(c->name);

		if (!c->value.known)
			continue;
		if (help)
			fprintf(out, "# HELP zswapd_%s %s\n", c->name, help);
		fprintf(out, "# TYPE zswapd_%s %s\n", c->name, type_of(c->kind));
		fprintf(out, "zswapd_%s{device=\"%s\"} %" PRIu64 "\n", c->name, device, c->value.v);
	}
}

// SPDX-License-Identifier: GPL-2.0-or-later
#include "ctl/render.h"
#include "common/util.h"
#include "ctl/cell.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

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

/* "supervisor 700", "no supervisor". */
static void put_process(FILE *out, const char *what, struct ctl_num pid)
{
	if (pid.known && !pid.v)
		fprintf(out, "no %s", what);
	else
		fprintf(out, "%s %s", what, cell_count(pid).s);
}

#define LABEL_COLUMNS 13

/* At most what is left of a line. */
static void put_cut(FILE *out, const char *text)
{
	char cut[80 - LABEL_COLUMNS + 1];

	snprintf(cut, sizeof(cut), "%.*s", (int)sizeof(cut) - 1, text);
	if (strlen(text) >= sizeof(cut))
		strcpy(cut + sizeof(cut) - 4, "...");
	put_printable(out, cut);
}

/* Who stands by, and what it was good for so far. */
static void put_processes(FILE *out, const struct ctl_status *st, bool whole_report)
{
	fprintf(out, "%-13s", "processes");
	put_process(out, "supervisor", st->supervisor);
	fputs(", ", out);
	put_process(out, "standby", st->standby);
	if (st->standby.known)
		fputs(" prepared", out);
	fprintf(out, "; workers died: %s\n", cell_count(st->deaths).s);
	if (st->takeover.known) {
		fprintf(out, "%-13s", "takeover");
		put_time(out, st->takeover_time, false);
		fprintf(out, ", in %s\n", cell_time(st->takeover_ns).s);
	}
	if (!st->report[0])
		return;
	fprintf(out, "%-13s", "last crash");
	if (whole_report)
		put_printable(out, st->report);
	else
		put_cut(out, st->report);
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

/* "lost", "state 7", "?". */
static void store_state_text(char *buf, size_t size, struct ctl_num state)
{
	const char *name = state.known ? nlproto_store_state_name(state.v) : "?";

	if (name)
		snprintf(buf, size, "%s", name);
	else
		snprintf(buf, size, "state %" PRIu64, state.v);
}

static void put_store(FILE *out, const struct ctl_stats *stats, struct ctl_num state)
{
	struct ctl_num retired = N(store_retired_bytes);
	char text[32], more[CELL_MAX + 16] = "";

	store_state_text(text, sizeof(text), state);
	if (retired.known && retired.v)
		snprintf(more, sizeof(more), ", %s retired", cell_bytes(retired).s);
	row(out, "store", "%s of %s (%s)%s; %s", cell_bytes(N(store_used_bytes)).s,
	    cell_bytes(N(store_size_bytes)).s,
	    cell_percent(N(store_used_bytes), N(store_size_bytes)).s, more, text);
	row(out, "", "%s pages in %s, ratio %s", cell_count(N(slots_stored)).s,
	    cell_bytes(N(stored_compressed_bytes)).s,
	    cell_compression(N(slots_stored), N(stored_compressed_bytes)).s);
}

static void put_tiers(FILE *out, const struct ctl_stats *stats)
{
	struct ctl_num pages = num_sum(N(slots_resident), N(slots_stored));
	struct ctl_num bytes = num_sum(N(resident_compressed_bytes), N(stored_compressed_bytes));

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

static void put_latency(FILE *out, const struct ctl_stats *stats)
{
	static const struct {
		const char *label, *name[2], *text[2];
	} rows[] = {
		{"latency", {"read_latency", "write_latency"}, {"swap-in", "swap-out"}},
		{"", {"store_read_latency", "store_write_latency"}, {"store read", "store write"}},
		{"", {"decompress_time", "compress_time"}, {"decompress", "compress"}},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		fprintf(out, "%-13s", rows[i].label);
		for (size_t j = 0; j < 2; j++) {
			const struct ctl_histogram *h = ctl_stats_histogram(stats, rows[i].name[j]);

			fprintf(out, "%s%s p50 %s, p99 %s", j ? "; " : "", rows[i].text[j],
				cell_percentile(h, 0.5).s, cell_percentile(h, 0.99).s);
		}
		fputc('\n', out);
	}
}

void render_status(FILE *out, const char *device, const struct ctl_status *st,
		   const struct ctl_stats *stats, bool whole_report)
{
	static const struct ctl_stats none;

	if (!stats)
		stats = &none;
	put_head(out, device, st);
	put_processes(out, st, whole_report);
	put_tiers(out, stats);
	put_store(out, stats, st->store_state);
	put_traffic(out, stats);
	put_latency(out, stats);
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

// SPDX-License-Identifier: GPL-2.0-or-later
#include "ctl/top_view.h"
#include "common/util.h"
#include "ctl/cell.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define LABEL_X	       1
#define VALUE_X	       12
#define VALUE_W	       13
#define CURVE_X	       (VALUE_X + VALUE_W + 1)
#define PEAK_W	       17
#define PEAK_WIDTH     76 /* canvases from this width on show the curves' peaks */
#define BAR_WIDTH      56 /* from here on bars have both of their numbers beside them */
#define CURVE_ROWS_MAX 6
#define TIMES_X	       (VALUE_X + 9)

/* Behind findings. */
#define SEE_DOCTOR "  see doctor"

#define N(m, name) ctl_stats_get(&(m)->last.stats, #name)
#define W(m, name) ctl_stats_get(&(m)->window, #name)

struct view {
	struct canvas *c;
	const struct top_model *m;
	const char *device;
	double interval_s;
	int curve_rows;
};

/* --- rows --- */

static void draw_head(const struct view *v, int y, int arg)
{
	const struct ctl_status *st = &v->m->last.status;
	const char *state = st->state.known ? nlproto_state_text(st->state.v) : NULL;
	struct ctl_num pages = num_sum(N(v->m, slots_resident), N(v->m, slots_stored));
	struct ctl_num bytes =
		num_sum(N(v->m, resident_compressed_bytes), N(v->m, stored_compressed_bytes));
	char right[64];
	int x, room;

	for (x = 0; x < v->c->width; x++)
		canvas_put(v->c, x, y, STYLE_HEAD, ' ');
	x = canvas_printf(v->c, LABEL_X, y, STYLE_HEAD, "zswapd %s", v->m->last.device);
	if (v->m->silent) {
		snprintf(right, sizeof(right), "NO ANSWER for %.0f s ",
			 (double)(v->m->now_ns - v->m->answered_ns) / 1e9);
	} else {
		snprintf(right, sizeof(right), "%s  ratio %s ", state ? state : "?",
			 cell_compression(pages, bytes).s);
		room = v->c->width - x - (int)strlen(right) - 4;
		if (2 + (int)strlen(st->path.s) + (int)strlen(st->transport.s) <= room)
			x = canvas_text(v->c, x + 2, y, STYLE_HEAD, st->path.s);
		if ((int)strlen(st->transport.s) <= room)
			canvas_text(v->c, x + 2, y, STYLE_HEAD, st->transport.s);
	}
	canvas_text_right(v->c, v->c->width, y, STYLE_HEAD, right);
}

static double share(struct ctl_num a, struct ctl_num b)
{
	return a.known && b.known && b.v ? (double)a.v / (double)b.v : 0;
}

/* A bar with "used of total  percent" behind it. */
static void draw_bar(const struct view *v, int y, const char *label,
		     const struct canvas_part *parts, unsigned n, struct ctl_num used,
		     struct ctl_num total)
{
	bool narrow = v->c->width < BAR_WIDTH;
	char text[3 * CELL_MAX];

	snprintf(text, sizeof(text), "%.24s%s%.24s %8s", cell_bytes(used).s, narrow ? "" : " of ",
		 narrow ? "" : cell_bytes(total).s, cell_percent(used, total).s);
	canvas_text(v->c, LABEL_X, y, STYLE_LABEL, label);
	canvas_bar(v->c, VALUE_X, y, v->c->width - VALUE_X - 1 - (narrow ? 20 : 33), parts, n);
	canvas_text_right(v->c, v->c->width - 1, y, STYLE_VALUE, text);
}

static void draw_memory(const struct view *v, int y, int arg)
{
	struct canvas_part part = {share(N(v->m, memory_used_bytes), N(v->m, memory_limit_bytes)),
				   STYLE_MEMORY, 0};

	draw_bar(v, y, "memory", &part, 1, N(v->m, memory_used_bytes), N(v->m, memory_limit_bytes));
}

static void draw_store(const struct view *v, int y, int arg)
{
	struct ctl_num size = N(v->m, store_size_bytes);
	struct canvas_part part = {share(N(v->m, store_used_bytes), size), STYLE_STORE, 0};

	if (size.known && !size.v) {
		canvas_text(v->c, LABEL_X, y, STYLE_LABEL, "store");
		canvas_text(v->c, VALUE_X, y, STYLE_DIM, "none");
		return;
	}
	draw_bar(v, y, "store", &part, 1, N(v->m, store_used_bytes), size);
}

static const struct {
	const char *name, *counter;
	enum canvas_style style;
	unsigned fill;
} kinds[] = {
	{"memory", "slots_resident", STYLE_MEMORY, 0},
	{"store", "slots_stored", STYLE_STORE, 1},
	{"same-filled", "slots_same_filled", STYLE_SAME, 2},
	{"lost", "slots_lost", STYLE_BAD, 3},
};

static struct ctl_num in_bytes(struct ctl_num pages)
{
	return (struct ctl_num){pages.known, pages.v * 4096};
}

static void draw_device(const struct view *v, int y, int arg)
{
	struct canvas_part parts[ARRAY_SIZE(kinds)];

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		parts[i] = (struct canvas_part){
			share(ctl_stats_get(&v->m->last.stats, kinds[i].counter),
			      N(v->m, slots_total)),
			kinds[i].style, kinds[i].fill};
	draw_bar(v, y, "device", parts, ARRAY_SIZE(kinds), in_bytes(N(v->m, slots_used)),
		 N(v->m, device_bytes));
}

/* What the device's bar is made of. */
static void draw_legend(const struct view *v, int y, int arg)
{
	int x = VALUE_X;

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct ctl_num n = ctl_stats_get(&v->m->last.stats, kinds[i].counter);

		if (i == 3 && n.known && !n.v)
			continue;
		canvas_put(v->c, x, y, kinds[i].style, canvas_fill(v->c, kinds[i].fill));
		x = canvas_printf(v->c, x + 2, y, STYLE_LABEL, "%s ", kinds[i].name);
		x = canvas_text(v->c, x, y, STYLE_VALUE,
				n.known ? cell_short((double)n.v).s : "?") +
		    3;
	}
	if (x + 5 < v->c->width)
		canvas_text_right(v->c, v->c->width - 1, y, STYLE_LABEL, "pages");
}

static const struct {
	const char *label;
	bool bytes;
	enum canvas_style style;
} curves[TOP_RATES] = {
	[TOP_SWAP_IN] = {"swap-in", false, STYLE_IN},
	[TOP_SWAP_OUT] = {"swap-out", false, STYLE_OUT},
	[TOP_DISCARD] = {"discard", false, STYLE_OUT},
	[TOP_STORE_READ] = {"store read", true, STYLE_IN},
	[TOP_STORE_WRITE] = {"store write", true, STYLE_OUT},
};

static struct cell rate_text(enum top_rate rate, double v)
{
	struct cell c;

	if (isnan(v))
		return cell_text("-");
	if (curves[rate].bytes)
		snprintf(c.s, sizeof(c.s), "%.15s/s",
			 cell_bytes((struct ctl_num){true, (uint64_t)v}).s);
	else
		snprintf(c.s, sizeof(c.s), "%.15s pages/s", cell_short(v).s);
	return c;
}

static void draw_rate(const struct view *v, int y, int rate)
{
	bool peaks = v->c->width >= PEAK_WIDTH;
	int end = v->c->width - 1 - (peaks ? PEAK_W : 0);
	double peak = top_model_peak(v->m, rate, (unsigned)(end - CURVE_X));
	/* Tall curves stand apart. */
	int height = v->curve_rows - (v->curve_rows > 2);
	struct cell text = rate_text(rate, top_model_rate(v->m, rate, 0));

	canvas_text(v->c, LABEL_X, y, STYLE_LABEL, curves[rate].label);
	canvas_text_right(v->c, VALUE_X + VALUE_W, y, STYLE_VALUE, text.s);
	for (int x = end - 1; x >= CURVE_X; x--) {
		double r = top_model_rate(v->m, rate, (unsigned)(end - 1 - x));

		if (r > 0 && peak > 0)
			canvas_column(v->c, x, y + height - 1, height, curves[rate].style,
				      r / peak);
	}
	if (peaks && peak > 0) {
		snprintf(text.s, sizeof(text.s), "max %.24s", rate_text(rate, peak).s);
		canvas_text_right(v->c, v->c->width - 1, y, STYLE_DIM, text.s);
	}
}

static int draw_part(const struct view *v, int x, int y, const char *label, struct cell value)
{
	/* A part that does not fit is left out rather than cut off. */
	if (x + (int)strlen(label) + 1 + (int)strlen(value.s) > v->c->width)
		return v->c->width;
	x = canvas_text(v->c, x, y, STYLE_LABEL, label) + 1;
	return canvas_text(v->c, x, y, STYLE_VALUE, value.s) + 2;
}

/* Where what was read during the last seconds came from. */
static void draw_reads(const struct view *v, int y, int arg)
{
	struct ctl_num reads = W(v->m, pages_read_total);
	int x = VALUE_X;

	canvas_text(v->c, LABEL_X, y, STYLE_LABEL, "reads from");
	x = draw_part(v, x, y, "memory", cell_percent(W(v->m, pages_read_resident_total), reads));
	x = draw_part(v, x, y, "store", cell_percent(W(v->m, pages_read_stored_total), reads));
	x = draw_part(v, x, y, "same-filled",
		      cell_percent(W(v->m, pages_read_same_filled_total), reads));
	draw_part(v, x, y, "overlapped",
		  cell_percent(W(v->m, batches_overlapped_total), W(v->m, batches_total)));
}

static const double shares[] = {0.5, 0.9, 0.99, 0.999, 1};

/* Where column @i of the times ends; the widest time has seven columns. */
static int time_end(const struct view *v, int i)
{
	return TIMES_X + (i + 1) * (v->c->width < 62 ? 7 : 8);
}

static void draw_times_head(const struct view *v, int y, int arg)
{
	static const char *const heads[] = {"p50", "p90", "p99", "p99.9", "max"};

	canvas_printf(v->c, LABEL_X, y, STYLE_DIM, "last %.0f s", v->m->window_s);
	canvas_text_right(v->c, TIMES_X, y, STYLE_DIM, "a second");
	for (int i = 0; i < (int)ARRAY_SIZE(heads); i++)
		canvas_text_right(v->c, time_end(v, i), y, STYLE_DIM, heads[i]);
}

static const struct {
	const char *label, *histogram;
	bool all; /* each is timed, so that their number is how many there were */
} times[] = {
	{"read", "read_latency", true},
	{"write", "write_latency", true},
	{"store read", "store_read_latency", true},
	{"store write", "store_write_latency", true},
	{"decompress", "decompress_time", false},
	{"compress", "compress_time", false},
};

static void draw_times(const struct view *v, int y, int row)
{
	const struct ctl_histogram *h = ctl_stats_histogram(&v->m->window, times[row].histogram);
	bool known = h && times[row].all && v->m->window_s > 0;

	canvas_text(v->c, LABEL_X, y, STYLE_LABEL, times[row].label);
	canvas_text_right(v->c, TIMES_X, y, STYLE_VALUE,
			  known ? cell_short((double)h->count / v->m->window_s).s : "-");
	for (int i = 0; i < (int)ARRAY_SIZE(shares); i++) {
		struct cell t = cell_percentile(h, shares[i]);

		canvas_text_right(v->c, time_end(v, i), y, STYLE_VALUE, t.s);
	}
}

/* What the finding is, without what comes of it. */
static void finding_text(char *buf, size_t size, unsigned bit)
{
	const char *text = nlproto_health_text(bit);

	if (text)
		snprintf(buf, size, "%.*s", (int)strcspn(text, ":"), text);
	else
		snprintf(buf, size, "finding number %u", bit);
}

static void draw_health(const struct view *v, int y, int arg)
{
	struct ctl_num health = v->m->last.status.health;
	int x = VALUE_X, end = v->c->width - 1 - (int)strlen(SEE_DOCTOR);
	unsigned more = 0;
	char text[80];

	canvas_text(v->c, LABEL_X, y, STYLE_LABEL, "health");
	if (!health.known || !health.v) {
		canvas_text(v->c, VALUE_X, y, health.known ? STYLE_GOOD : STYLE_WARN,
			    health.known ? "good" : "?");
		return;
	}
	for (unsigned bit = 0; bit < 64; bit++) {
		if (!(health.v >> bit & 1))
			continue;
		finding_text(text, sizeof(text), bit);
		/* Whole ones only, but for the first. */
		if (x > VALUE_X && x + 2 + (int)strlen(text) + 4 > end) {
			more++;
			continue;
		}
		if (x > VALUE_X)
			x = canvas_text(v->c, x, y, STYLE_LABEL, ", ");
		x = canvas_text(v->c, x, y, STYLE_BAD, text);
	}
	if (more)
		canvas_printf(v->c, x, y, STYLE_BAD, " +%u", more);
	canvas_text(v->c, end, y, STYLE_DIM, SEE_DOCTOR);
}

static void draw_foot(const struct view *v, int y, int arg)
{
	if (v->m->silent) {
		canvas_text(v->c, LABEL_X, y, STYLE_BAD, v->m->last.why);
		return;
	}
	canvas_printf(v->c, LABEL_X, y, STYLE_DIM, "q quit   space now   every %g s",
		      v->interval_s);
	if (v->m->last.status.pid.known && v->m->last.status.daemon_version.known) {
		char right[96];

		snprintf(right, sizeof(right), "version %.20s  pid %" PRIu64,
			 v->m->last.status.daemon_version.s, v->m->last.status.pid.v);
		if (v->c->width >= 66)
			canvas_text_right(v->c, v->c->width - 1, y, STYLE_DIM, right);
	}
}

static void draw_nothing(const struct view *v, int y, int arg)
{
}

/* --- layout --- */

/* From top to bottom.  When rows are short, those with the highest @drop go first; 0 stays. */
static const struct row {
	void (*draw)(const struct view *v, int y, int arg);
	int arg, drop;
	bool curve;
} rows[] = {
	{draw_head, 0, 0, false},
	{draw_nothing, 0, 20, false},
	{draw_memory, 0, 0, false},
	{draw_store, 0, 0, false},
	{draw_device, 0, 1, false},
	{draw_legend, 0, 9, false},
	{draw_nothing, 0, 19, false},
	{draw_rate, TOP_SWAP_IN, 0, true},
	{draw_rate, TOP_SWAP_OUT, 0, true},
	{draw_rate, TOP_DISCARD, 13, true},
	{draw_rate, TOP_STORE_READ, 5, true},
	{draw_rate, TOP_STORE_WRITE, 6, true},
	{draw_nothing, 0, 18, false},
	{draw_reads, 0, 12, false},
	{draw_nothing, 0, 17, false},
	{draw_times_head, 0, 2, false},
	{draw_times, 0, 2, false},
	{draw_times, 1, 4, false},
	{draw_times, 2, 7, false},
	{draw_times, 3, 8, false},
	{draw_times, 4, 10, false},
	{draw_times, 5, 11, false},
	{draw_health, 0, 1, false},
	{draw_foot, 0, 0, false},
};

/* Rows with a drop above the result are left out. */
static int fit_rows(int height, int *ret_used)
{
	int limit = 20, used;

	for (;; limit--) {
		used = 0;
		for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
			used += rows[i].drop <= limit;
		if (used <= height || limit == 0)
			break;
	}
	*ret_used = used;
	return limit;
}

static void draw_rows(struct view *v)
{
	int used, limit = fit_rows(v->c->height, &used), ncurves = 0, y = 0;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		ncurves += rows[i].curve && rows[i].drop <= limit;
	v->curve_rows = 1;
	while (v->curve_rows < CURVE_ROWS_MAX && used + ncurves <= v->c->height) {
		v->curve_rows++;
		used += ncurves;
	}
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (rows[i].drop > limit)
			continue;
		/* The last line is the screen's last, however much is left above it. */
		rows[i].draw(v, i + 1 == ARRAY_SIZE(rows) ? v->c->height - 1 : y, rows[i].arg);
		y += rows[i].curve ? v->curve_rows : 1;
	}
}

static void draw_waiting(const struct view *v)
{
	int y = v->c->height / 2;

	canvas_printf(v->c, LABEL_X, y - 1, STYLE_VALUE, "waiting for zswapd (%s)", v->device);
	canvas_text(v->c, LABEL_X, y, STYLE_DIM, v->m->last.why);
	canvas_text(v->c, LABEL_X, v->c->height - 1, STYLE_DIM, "q quit");
}

void top_view_draw(struct canvas *c, const struct top_model *m, const char *device,
		   double interval_s)
{
	struct view v = {.c = c, .m = m, .device = device, .interval_s = interval_s};

	if (c->width < TOP_WIDTH_MIN || c->height < TOP_HEIGHT_MIN)
		canvas_printf(c, 0, 0, STYLE_WARN, "%dx%d is too small: %dx%d", c->width, c->height,
			      TOP_WIDTH_MIN, TOP_HEIGHT_MIN);
	else if (!m->ever)
		draw_waiting(&v);
	else
		draw_rows(&v);
}

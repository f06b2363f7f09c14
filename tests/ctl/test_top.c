// SPDX-License-Identifier: GPL-2.0-or-later
/* The model from made-up answers, and its pictures at several sizes, as text. */
#include "common/counters.h"
#include "common/histograms.h"
#include "common/util.h"
#include "ctl/top_view.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SECOND 1000000000ull

static struct top_model model;
static struct top_sample sample;

static void set(const char *name, uint64_t v)
{
	for (size_t i = 0; i < sample.stats.n; i++)
		if (!strcmp(sample.stats.c[i].name, name)) {
			sample.stats.c[i].value = (struct ctl_num){true, v};
			return;
		}
	fail_msg("no counter %s", name);
}

/* Reads that took some 30 us, and one in a hundred that took a millisecond. */
static void set_reads(uint64_t fast, uint64_t slow)
{
	struct ctl_histogram *h = &sample.stats.h[HIST_read_latency];

	h->n = 2;
	h->b[0] = (struct nlproto_bucket){28672, 32767, fast};
	h->b[1] = (struct nlproto_bucket){983040, 1048575, slow};
	h->count = fast + slow;
	h->sum = (struct ctl_num){true, fast * 30000 + slow * 1000000};
}

static int set_up(void **state)
{
	top_model_init(&model);
	memset(&sample, 0, sizeof(sample));
	sample.answered = true;
	sample.at_ns = SECOND;
	strcpy(sample.device, "zswap0");
	sample.status.path.known = sample.status.transport.known = true;
	strcpy(sample.status.path.s, "/dev/zswap/zswap0");
	strcpy(sample.status.transport.s, "ublk");
	strcpy(sample.status.daemon_version.s, "0.1.0");
	sample.status.daemon_version.known = true;
	sample.status.pid = (struct ctl_num){true, 4711};
	sample.status.state = (struct ctl_num){true, NLPROTO_STATE_RUNNING};
	sample.status.health = (struct ctl_num){true, 0};
	for (size_t i = 0; i < COUNTER_COUNT; i++) {
		struct ctl_counter *c = &sample.stats.c[sample.stats.n++];

		strcpy(c->name, counter_table[i].name);
		c->kind = (struct ctl_num){true, counter_table[i].kind};
		c->unit = (struct ctl_num){true, counter_table[i].unit};
		c->value = (struct ctl_num){true, 0};
	}
	for (size_t i = 0; i < HISTOGRAM_COUNT; i++)
		strcpy(sample.stats.h[sample.stats.nhistograms++].name, histogram_table[i].name);
	return 0;
}

static void take_at(double seconds)
{
	sample.at_ns = (uint64_t)(seconds * (double)SECOND);
	top_model_take(&model, &sample);
}

static void silence_at(double seconds, const char *why)
{
	static struct top_sample none;

	memset(&none, 0, sizeof(none));
	none.at_ns = (uint64_t)(seconds * (double)SECOND);
	strcpy(none.why, why);
	top_model_take(&model, &none);
}

static void assert_near(double got, double want)
{
	if (!(fabs(got - want) <= fabs(want) * 1e-6))
		fail_msg("%g is not %g", got, want);
}

/* --- model --- */

static void rates_are_per_second(void **state)
{
	set("pages_read_total", 1000);
	take_at(1);
	/* One answer makes no rate. */
	assert_true(isnan(top_model_rate(&model, TOP_SWAP_IN, 0)));
	set("pages_read_total", 1500);
	set("store_read_bytes_total", 4096);
	take_at(1.5);
	assert_near(top_model_rate(&model, TOP_SWAP_IN, 0), 1000);
	assert_near(top_model_rate(&model, TOP_STORE_READ, 0), 8192);
	set("pages_read_total", 1700);
	take_at(2.5);
	assert_near(top_model_rate(&model, TOP_SWAP_IN, 0), 200);
	assert_near(top_model_rate(&model, TOP_SWAP_IN, 1), 1000);
	assert_near(top_model_rate(&model, TOP_STORE_READ, 0), 0);
	assert_near(top_model_peak(&model, TOP_SWAP_IN, 1), 200);
	assert_near(top_model_peak(&model, TOP_SWAP_IN, 99), 1000);
	assert_true(isnan(top_model_rate(&model, TOP_SWAP_IN, 3)));
	/* Two answers of one instant, and one that lacks the counter. */
	take_at(2.5);
	assert_true(isnan(top_model_rate(&model, TOP_SWAP_IN, 0)));
	sample.stats.c[CTR_pages_read_total].value.known = false;
	take_at(3.5);
	assert_true(isnan(top_model_rate(&model, TOP_SWAP_IN, 0)));
	assert_near(top_model_rate(&model, TOP_STORE_READ, 0), 0);
}

static void silence_is_a_gap(void **state)
{
	take_at(1);
	set("pages_read_total", 10);
	take_at(2);
	silence_at(3, "gone");
	assert_true(model.silent && model.ever);
	assert_string_equal(model.last.why, "gone");
	assert_string_equal(model.last.device, "zswap0");
	assert_int_equal(model.answered_ns, 2 * SECOND);
	assert_true(isnan(top_model_rate(&model, TOP_SWAP_IN, 0)));
	/* The first after it has no neighbour to be measured against. */
	set("pages_read_total", 1000);
	take_at(4);
	assert_false(model.silent);
	assert_true(isnan(top_model_rate(&model, TOP_SWAP_IN, 0)));
	set("pages_read_total", 1100);
	take_at(5);
	assert_near(top_model_rate(&model, TOP_SWAP_IN, 0), 100);
	assert_near(top_model_rate(&model, TOP_SWAP_IN, 3), 10);
	assert_near(model.window_s, 4);
}

static void a_restarted_daemon_starts_anew(void **state)
{
	set("pages_read_total", 1000);
	set_reads(100, 0);
	take_at(1);
	take_at(2);
	assert_near(model.window_s, 1);
	set("pages_read_total", 5);
	set_reads(5, 0);
	take_at(3); /* the same pid: in a container it may well be */
	assert_true(isnan(top_model_rate(&model, TOP_SWAP_IN, 0)));
	assert_near(model.window_s, 0);
	take_at(4);
	sample.status.pid.v++;
	set("pages_read_total", 50);
	take_at(5);
	assert_true(isnan(top_model_rate(&model, TOP_SWAP_IN, 0)));
	assert_near(model.window_s, 0);
	/* Gauges may fall. */
	set("slots_used", 100);
	take_at(6);
	set("slots_used", 10);
	take_at(7);
	assert_near(model.window_s, 2);
}

static void the_window_is_ten_seconds(void **state)
{
	for (int i = 0; i <= 400; i++) {
		set("pages_read_total", (uint64_t)i * 10);
		set("slots_used", 77);
		set_reads((uint64_t)i * 99, (uint64_t)i);
		take_at(1 + i / 10.0);
	}
	assert_true(model.window_s >= TOP_WINDOW_S && model.window_s < TOP_WINDOW_S + 1.1);
	assert_near((double)ctl_stats_get(&model.window, "pages_read_total").v,
		    model.window_s * 100);
	assert_int_equal(ctl_stats_get(&model.window, "slots_used").v, 77);
	assert_near((double)ctl_stats_histogram(&model.window, "read_latency")->count,
		    model.window_s * 1000);
	assert_int_equal(
		ctl_histogram_percentile(ctl_stats_histogram(&model.window, "read_latency"), 0.5).v,
		32767);
	/* Rare samples: whatever there is, two of them at least. */
	set("pages_read_total", 5000);
	take_at(100);
	set("pages_read_total", 5600);
	take_at(160);
	assert_near(model.window_s, 60);
	assert_int_equal(ctl_stats_get(&model.window, "pages_read_total").v, 600);
}

static void history_goes_round(void **state)
{
	for (unsigned i = 0; i <= 2 * TOP_HISTORY; i++) {
		set("pages_written_total", (uint64_t)i * i);
		take_at(1 + i);
	}
	for (unsigned age = 0; age < TOP_HISTORY; age++) {
		double i = 2.0 * TOP_HISTORY - age;

		assert_near(top_model_rate(&model, TOP_SWAP_OUT, age), i * i - (i - 1) * (i - 1));
	}
	assert_true(isnan(top_model_rate(&model, TOP_SWAP_OUT, TOP_HISTORY)));
}

/* --- pictures --- */

static char *picture(int width, int height, bool utf8)
{
	struct canvas c;
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	assert_int_equal(canvas_init(&c, width, height, utf8), 0);
	top_view_draw(&c, &model, "zswap0", 1);
	canvas_print(out, &c);
	fclose(out);
	for (int y = 0; y < height; y++)
		for (int x = 0; x < width; x++) {
			const struct canvas_cell *cell = canvas_at(&c, x, y);

			if (cell->ch < ' ' || (!utf8 && cell->ch > '~') || cell->style >= STYLES)
				fail_msg("0x%x in style %u", cell->ch, cell->style);
		}
	canvas_deinit(&c);
	return text;
}

static void assert_picture(int width, int height, bool utf8, const char *expected)
{
	char *text = picture(width, height, utf8);

	if (strcmp(text, expected)) {
		fputs(text, stderr);
		fail_msg("not:\n%s", expected);
	}
	free(text);
}

static void assert_shows(int width, int height, const char *word, bool shown)
{
	char *text = picture(width, height, false);

	if (!strstr(text, word) == shown)
		fail_msg("'%s' is %sin:\n%s", word, shown ? "not " : "", text);
	free(text);
}

/* Swap-in from 0 to 1900 pages/s and back, swap-out now and then. */
static void some_seconds(void)
{
	uint64_t in = 0, out = 0;

	set("device_bytes", MIB(512));
	set("slots_total", 131072);
	set("slots_used", 43690);
	set("slots_resident", 20000);
	set("slots_stored", 23000);
	set("slots_same_filled", 690);
	set("memory_limit_bytes", MIB(32));
	set("memory_used_bytes", MIB(24));
	set("resident_compressed_bytes", 20480000);
	set("stored_compressed_bytes", 23552000);
	set("store_size_bytes", MIB(254));
	set("store_used_bytes", MIB(90));
	for (int i = 0; i < 30; i++) {
		in += (uint64_t)(i < 20 ? i : 39 - i) * 100;
		out += i % 5 ? 0 : 12345;
		set("pages_read_total", in);
		set("pages_read_resident_total", in / 4);
		set("pages_read_stored_total", in / 2);
		set("pages_read_same_filled_total", in / 4);
		set("pages_written_total", out);
		set("store_read_bytes_total", in * 512);
		set("batches_total", in / 2);
		set("batches_overlapped_total", in / 8);
		set_reads(in * 99 / 100, in / 100);
		take_at(1 + i);
	}
}

static void everything_at_80x24(void **state)
{
	some_seconds();
	sample.status.health.v = NLPROTO_HEALTH_STORE_FULL | NLPROTO_HEALTH_OOM_EXPOSED;
	take_at(31);
	assert_picture(
		80, 24, false,
		" zswapd zswap0  /dev/zswap/zswap0  ublk                     running  ratio 4.00\n"
		"\n"
		" memory     [########################        ]    24.0 MiB of 32.0 MiB   75.0 %\n"
		" store      [###########                     ]   90.0 MiB of 254.0 MiB   35.4 %\n"
		" device     [####======                      ]  170.7 MiB of 512.0 MiB   33.3 %\n"
		"            # memory 20k   = store 23k   - same-filled 690                pages\n"
		"\n"
		" swap-in        0 pages/s       ..,,:::--==+++**######**+++==  max 1.9k pages/s\n"
		" swap-out       0 pages/s           #    #    #    #    #       max 12k pages/s\n"
		" discard        0 pages/s\n"
		" store read         0 B/s       ..,,:::--==+++**######**+++==   max 950.0 KiB/s\n"
		" store write        0 B/s\n"
		"\n"
		" reads from memory 25.0 %  store 50.0 %  same-filled 25.0 %  overlapped 25.0 %\n"
		"\n"
		" last 10 s   a second     p50     p90     p99   p99.9     max\n"
		" read            1.3k   33 us   33 us   33 us  1.0 ms  1.0 ms\n"
		" write              0       -       -       -       -       -\n"
		" store read         0       -       -       -       -       -\n"
		" store write        0       -       -       -       -       -\n"
		" decompress         -       -       -       -       -       -\n"
		" compress           -       -       -       -       -       -\n"
		" health     OOM score not lowered, store full                        see doctor\n"
		" q quit   space now   every 1 s                         version 0.1.0  pid 4711\n");
}

static void narrow_and_low(void **state)
{
	some_seconds();
	assert_picture(60, 20, true,
		       " zswapd zswap0  ublk                    running  ratio 4.00\n"
		       " memory     [█████████   ]    24.0 MiB of 32.0 MiB   75.0 %\n"
		       " store      [████▎       ]   90.0 MiB of 254.0 MiB   35.4 %\n"
		       " device     [█▓▓         ]  170.7 MiB of 512.0 MiB   33.3 %\n"
		       "            █ memory 20k   ▓ store 23k   ░ same-filled 690\n"
		       " swap-in     1.0k pages/s     ▁▁▂▂▃▃▃▄▄▅▅▆▆▆▇▇██████▇▇▆▆▆▅▅\n"
		       " swap-out       0 pages/s         █    █    █    █    █\n"
		       " discard        0 pages/s\n"
		       " store read   500.0 KiB/s     ▁▁▂▂▃▃▃▄▄▅▅▆▆▆▇▇██████▇▇▆▆▆▅▅\n"
		       " store write        0 B/s\n"
		       " reads from memory 25.0 %  store 50.0 %  same-filled 25.0 %\n"
		       " last 10 s   a second    p50    p90    p99  p99.9    max\n"
		       " read            1.4k  33 us  33 us  33 us 1.0 ms 1.0 ms\n"
		       " write              0      -      -      -      -      -\n"
		       " store read         0      -      -      -      -      -\n"
		       " store write        0      -      -      -      -      -\n"
		       " decompress         -      -      -      -      -      -\n"
		       " compress           -      -      -      -      -      -\n"
		       " health     good\n"
		       " q quit   space now   every 1 s\n");
}

/* What is dropped first is what is missed least; the essential stays to the last. */
static void what_small_screens_show(void **state)
{
	some_seconds();
	assert_shows(80, 19, "compress", true);
	assert_shows(80, 18, "discard", false);
	assert_shows(80, 12, "store read", true);
	assert_shows(TOP_WIDTH_MIN, TOP_HEIGHT_MIN, "memory", true);
	assert_shows(TOP_WIDTH_MIN, TOP_HEIGHT_MIN, "swap-out", true);
	assert_shows(TOP_WIDTH_MIN, TOP_HEIGHT_MIN, "q quit", true);
	assert_shows(TOP_WIDTH_MIN, TOP_HEIGHT_MIN - 1, "44x7 is too small: 44x8", true);
	assert_shows(TOP_WIDTH_MIN - 1, TOP_HEIGHT_MIN, "43x8 is too small", true);
}

static void large_screens_have_tall_curves(void **state)
{
	char *text, *line;
	int rows = 0;

	some_seconds();
	text = picture(200, 50, false);
	line = strstr(text, " swap-in ");
	assert_non_null(line);
	while (strncmp(line, " swap-out", 9)) {
		/* Nothing but the curve at the right of its values. */
		assert_true(!rows || *line == '\n' || strspn(line, " ") > 26);
		line = strchr(line, '\n') + 1;
		rows++;
	}
	assert_int_equal(rows, 6);
	free(text);
}

static void silence_is_shown(void **state)
{
	silence_at(1, "nobody answers for device 'zswap0'; trying again");
	assert_shows(80, 24, "waiting for zswapd (zswap0)", true);
	assert_shows(80, 24, "nobody answers", true);
	set_up(NULL);
	some_seconds();
	silence_at(42, "it is \x1b[31mgone");
	assert_shows(80, 24, "NO ANSWER for 12 s", true);
	assert_shows(80, 24, "it is ?[31mgone", true);
	/* What was known last stays. */
	assert_shows(80, 24, "24.0 MiB of 32.0 MiB", true);
	take_at(43);
	assert_shows(80, 24, "NO ANSWER", false);
}

static void unknown_values_hide_no_others(void **state)
{
	some_seconds();
	for (size_t i = 0; i < sample.stats.n; i += 2)
		sample.stats.c[i].value.known = false;
	sample.stats.nhistograms = 0;
	sample.status.state.known = sample.status.health.known = false;
	take_at(31);
	assert_shows(80, 24, "[                                ]           ? of 32.0 MiB        ?",
		     true);
	assert_shows(80, 24, " 90.0 MiB of ?        ?", true);
	assert_shows(80, 24, "swap-out", true);
	assert_shows(80, 24, " health     ?", true);
	memset(&sample.stats, 0, sizeof(sample.stats));
	take_at(32);
	assert_shows(80, 24, "ratio ?", true);
}

static void findings_that_do_not_fit_are_counted(void **state)
{
	some_seconds();
	sample.status.health.v = 0x3ff | 1ull << 40;
	take_at(31);
	assert_shows(80, 24, " health     memory not locked, PR_SET_IO_FLUSHER refused +9 ", true);
	sample.status.health.v = 1ull << 40;
	take_at(32);
	assert_shows(80, 24, " health     finding number 40 ", true);
	assert_shows(TOP_WIDTH_MIN, 24, "  see doctor\n", true);
}

static void no_store_and_lost_pages(void **state)
{
	some_seconds();
	set("store_size_bytes", 0);
	set("slots_lost", 20000);
	take_at(31);
	assert_shows(80, 24, " store      none", true);
	assert_shows(80, 24, "! lost 20k", true);
	assert_shows(80, 24, "[####======!!!!! ", true);
}

/* With ASan: nothing is drawn outside. */
static void every_size_can_be_drawn(void **state)
{
	for (int round = 0; round < 3; round++) {
		for (int width = 1; width <= 130; width += 1 + width / 40)
			for (int height = 1; height <= 70; height += 1 + height / 20)
				free(picture(width, height, round & 1));
		if (round == 0)
			silence_at(1, "gone");
		if (round == 1)
			some_seconds();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(rates_are_per_second, set_up),
		cmocka_unit_test_setup(silence_is_a_gap, set_up),
		cmocka_unit_test_setup(a_restarted_daemon_starts_anew, set_up),
		cmocka_unit_test_setup(the_window_is_ten_seconds, set_up),
		cmocka_unit_test_setup(history_goes_round, set_up),
		cmocka_unit_test_setup(everything_at_80x24, set_up),
		cmocka_unit_test_setup(narrow_and_low, set_up),
		cmocka_unit_test_setup(what_small_screens_show, set_up),
		cmocka_unit_test_setup(large_screens_have_tall_curves, set_up),
		cmocka_unit_test_setup(silence_is_shown, set_up),
		cmocka_unit_test_setup(unknown_values_hide_no_others, set_up),
		cmocka_unit_test_setup(findings_that_do_not_fit_are_counted, set_up),
		cmocka_unit_test_setup(no_store_and_lost_pages, set_up),
		cmocka_unit_test_setup(every_size_can_be_drawn, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

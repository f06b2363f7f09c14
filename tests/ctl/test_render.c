// SPDX-License-Identifier: GPL-2.0-or-later
/* The renderers against whole texts, from fixed values. */
#include "common/counters.h"
#include "common/histograms.h"
#include "common/util.h"
#include "ctl/render.h"
#include "tests/ctl/exposition.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct ctl_stats stats;
static struct ctl_status status;

static void set_text(struct ctl_text *t, const char *s)
{
	t->known = true;
	strcpy(t->s, s);
}

static void set_num(struct ctl_num *n, uint64_t v)
{
	*n = (struct ctl_num){true, v};
}

static struct ctl_counter *counter(const char *name)
{
	for (size_t i = 0; i < stats.n; i++)
		if (!strcmp(stats.c[i].name, name))
			return &stats.c[i];
	fail_msg("no counter %s", name);
	return NULL;
}

static void set(const char *name, uint64_t v)
{
	set_num(&counter(name)->value, v);
}

/* All counters and histograms of the tables, with nothing counted. */
static int set_up(void **state)
{
	memset(&stats, 0, sizeof(stats));
	memset(&status, 0, sizeof(status));
	for (size_t i = 0; i < COUNTER_COUNT; i++) {
		struct ctl_counter *c = &stats.c[stats.n++];

		strcpy(c->name, counter_table[i].name);
		set_num(&c->kind, counter_table[i].kind);
		set_num(&c->unit, counter_table[i].unit);
		set_num(&c->value, 0);
	}
	for (size_t i = 0; i < HISTOGRAM_COUNT; i++) {
		struct ctl_histogram *h = &stats.h[stats.nhistograms++];

		strcpy(h->name, histogram_table[i].name);
		set_num(&h->unit, histogram_table[i].unit);
		set_num(&h->sum, 0);
	}
	set_text(&status.daemon_version, "0.1.0");
	set_text(&status.path, "/dev/zswap/zswap0");
	set_text(&status.transport, "fuse");
	set_num(&status.protocol, 1);
	set_num(&status.pid, 4711);
	set_num(&status.state, NLPROTO_STATE_RUNNING);
	set_num(&status.health, 0);
	set_num(&status.supervisor, 4700);
	set_num(&status.standby, 4720);
	set_num(&status.deaths, 0);
	return 0;
}

static void fill(void)
{
	set("device_bytes", GIB(4));
	set("slots_total", 1048576);
	set("slots_used", 262144);
	set("slots_same_filled", 12144);
	set("slots_resident", 200000);
	set("slots_stored", 50000);
	set("memory_limit_bytes", MIB(256));
	set("memory_used_bytes", MIB(230));
	set("memory_metadata_bytes", KIB(8448));
	set("resident_compressed_bytes", 204800000);
	set("stored_compressed_bytes", 40960000);
	set("store_size_bytes", GIB(8));
	set("store_used_bytes", MIB(40));
	set("pages_read_total", 1000);
	set("pages_read_resident_total", 700);
	set("pages_read_stored_total", 200);
	set("pages_read_same_filled_total", 90);
	set("pages_read_empty_total", 10);
	set("pages_written_total", 300000);
	set("pages_incompressible_total", 3000);
	set("pages_discarded_total", 1234);
	set("pages_written_back_total", 50000);
	set("store_write_requests_total", 160);
	set("readahead_pages_total", 400);
	set("readahead_hits_total", 300);
	set("batches_total", 500);
	set("batches_overlapped_total", 125);
	set("checksum_failures_total", 2);
}

static char *text_of(void (*render)(FILE *out))
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	render(out);
	fclose(out);
	return text;
}

static void assert_text(void (*render)(FILE *out), const char *expected)
{
	char *text = text_of(render);

	assert_string_equal(text, expected);
	free(text);
}

static void status_of_all(FILE *out)
{
	render_status(out, "zswap0", &status, &stats, false);
}

static void status_with_the_report(FILE *out)
{
	render_status(out, "zswap0", &status, &stats, true);
}

static void status_without_stats(FILE *out)
{
	render_status(out, "zswap0", &status, NULL, false);
}

/* Ten reads; the other histogram is there and empty, the rest was not sent. */
static void two_histograms(void)
{
	stats.nhistograms = 2;
	stats.h[0].n = 3;
	stats.h[0].b[0] = (struct nlproto_bucket){0, 63, 1};
	stats.h[0].b[1] = (struct nlproto_bucket){32768, 38400, 8};
	stats.h[0].b[2] = (struct nlproto_bucket){1000000, 1190000, 1};
	stats.h[0].count = 10;
	set_num(&stats.h[0].sum, 1500000);
}

static void status_screen(void **state)
{
	fill();
	two_histograms();
	status.health.v = NLPROTO_HEALTH_CHECKSUM | NLPROTO_HEALTH_NO_DISCARD | 1u << 31;
	set("store_retired_bytes", MIB(3));
	set_num(&status.store_state, NLPROTO_STORE_DEGRADED);
	set_text(&status.last_error, "store: \x1b[31mbad\nsector");
	assert_text(status_of_all,
		    "device       zswap0  /dev/zswap/zswap0\n"
		    "transport    fuse\n"
		    "daemon       running, pid 4711, version 0.1.0\n"
		    "processes    supervisor 4700, standby 4720 prepared; workers died: 0\n"
		    "size         4.0 GiB\n"
		    "used         262144 of 1048576 pages (25.0 %), 12144 same-filled, 0 lost\n"
		    "ratio        4.17 (same-filled pages left out)\n"
		    "memory       230.0 MiB of 256.0 MiB (89.8 %), metadata 8.3 MiB\n"
		    "             200000 pages in 195.3 MiB, ratio 4.00\n"
		    "store        40.0 MiB of 8.0 GiB (0.5 %), 3.0 MiB retired; degraded\n"
		    "             50000 pages in 39.1 MiB, ratio 5.00\n"
		    "reads        1000 pages: memory 70.0 %, store 20.0 %,\n"
		    "             same-filled 9.0 %, empty 1.0 %\n"
		    "writes       300000 pages: incompressible 1.0 %; discarded 1234\n"
		    "writeback    50000 pages in 160 requests, 312.50 pages a request\n"
		    "readahead    400 pages, 75.0 % were asked for\n"
		    "batches      500, 25.0 % overlapped with store reads\n"
		    "errors       store reads 0, store writes 0, checksums 2, rejected 0\n"
		    "latency      swap-in p50 38 us, p99 1.2 ms; swap-out p50 -, p99 -\n"
		    "             store read p50 ?, p99 ?; store write p50 ?, p99 ?\n"
		    "             decompress p50 ?, p99 ?; compress p50 ?, p99 ?\n"
		    "health       pages failed their checksum\n"
		    "             swap used without discard: freed pages keep their space\n"
		    "             finding number 31, unknown to this version\n"
		    "last error   store: ?[31mbad?sector\n");
}

static void nothing_stored_is_a_dash(void **state)
{
	status.state.v = 77;
	set_num(&status.store_state, NLPROTO_STORE_NONE);
	assert_text(status_of_all,
		    "device       zswap0  /dev/zswap/zswap0\n"
		    "transport    fuse\n"
		    "daemon       state 77, pid 4711, version 0.1.0\n"
		    "processes    supervisor 4700, standby 4720 prepared; workers died: 0\n"
		    "size         0 B\n"
		    "used         0 of 0 pages (-), 0 same-filled, 0 lost\n"
		    "ratio        - (same-filled pages left out)\n"
		    "memory       0 B of 0 B (-), metadata 0 B\n"
		    "             0 pages in 0 B, ratio -\n"
		    "store        0 B of 0 B (-); none\n"
		    "             0 pages in 0 B, ratio -\n"
		    "reads        0 pages: memory -, store -,\n"
		    "             same-filled -, empty -\n"
		    "writes       0 pages: incompressible -; discarded 0\n"
		    "writeback    0 pages in 0 requests, - pages a request\n"
		    "readahead    0 pages, - were asked for\n"
		    "batches      0, - overlapped with store reads\n"
		    "errors       store reads 0, store writes 0, checksums 0, rejected 0\n"
		    "latency      swap-in p50 -, p99 -; swap-out p50 -, p99 -\n"
		    "             store read p50 -, p99 -; store write p50 -, p99 -\n"
		    "             decompress p50 -, p99 -; compress p50 -, p99 -\n"
		    "health       good\n"
		    "last error   -\n");
	/* Bytes that outlive their pages for an instant are no ratio of 0. */
	set("resident_compressed_bytes", 100);
	assert_text(status_of_all,
		    "device       zswap0  /dev/zswap/zswap0\n"
		    "transport    fuse\n"
		    "daemon       state 77, pid 4711, version 0.1.0\n"
		    "processes    supervisor 4700, standby 4720 prepared; workers died: 0\n"
		    "size         0 B\n"
		    "used         0 of 0 pages (-), 0 same-filled, 0 lost\n"
		    "ratio        - (same-filled pages left out)\n"
		    "memory       0 B of 0 B (-), metadata 0 B\n"
		    "             0 pages in 100 B, ratio -\n"
		    "store        0 B of 0 B (-); none\n"
		    "             0 pages in 0 B, ratio -\n"
		    "reads        0 pages: memory -, store -,\n"
		    "             same-filled -, empty -\n"
		    "writes       0 pages: incompressible -; discarded 0\n"
		    "writeback    0 pages in 0 requests, - pages a request\n"
		    "readahead    0 pages, - were asked for\n"
		    "batches      0, - overlapped with store reads\n"
		    "errors       store reads 0, store writes 0, checksums 0, rejected 0\n"
		    "latency      swap-in p50 -, p99 -; swap-out p50 -, p99 -\n"
		    "             store read p50 -, p99 -; store write p50 -, p99 -\n"
		    "             decompress p50 -, p99 -; compress p50 -, p99 -\n"
		    "health       good\n"
		    "last error   -\n");
}

static void unreadable_values_hide_no_others(void **state)
{
	memset(&status, 0, sizeof(status));
	set_text(&status.transport, "ublk");
	assert_text(status_without_stats,
		    "device       zswap0  ?\n"
		    "transport    ublk\n"
		    "daemon       ?, pid ?, version ?\n"
		    "processes    supervisor ?, standby ?; workers died: ?\n"
		    "size         ?\n"
		    "used         ? of ? pages (?), ? same-filled, ? lost\n"
		    "ratio        ? (same-filled pages left out)\n"
		    "memory       ? of ? (?), metadata ?\n"
		    "             ? pages in ?, ratio ?\n"
		    "store        ? of ? (?); ?\n"
		    "             ? pages in ?, ratio ?\n"
		    "reads        ? pages: memory ?, store ?,\n"
		    "             same-filled ?, empty ?\n"
		    "writes       ? pages: incompressible ?; discarded ?\n"
		    "writeback    ? pages in ? requests, ? pages a request\n"
		    "readahead    ? pages, ? were asked for\n"
		    "batches      ?, ? overlapped with store reads\n"
		    "errors       store reads ?, store writes ?, checksums ?, rejected ?\n"
		    "latency      swap-in p50 ?, p99 ?; swap-out p50 ?, p99 ?\n"
		    "             store read p50 ?, p99 ?; store write p50 ?, p99 ?\n"
		    "             decompress p50 ?, p99 ?; compress p50 ?, p99 ?\n"
		    "health       ?\n"
		    "last error   -\n");
}

static void assert_in(void (*render)(FILE *out), const char *expected)
{
	char *text = text_of(render);

	if (!strstr(text, expected))
		fail_msg("'%s' is not in '%s'", expected, text);
	free(text);
}

static void crashes_and_takeovers_are_shown(void **state)
{
	setenv("TZ", "UTC", 1);
	set_num(&status.supervisor, 0);
	set_num(&status.standby, 0);
	set_num(&status.deaths, 2);
	assert_in(status_of_all,
		  "processes    no supervisor, no standby prepared; workers died: 2\nsize ");
	set_text(&status.takeover, "worker 4711 took over");
	set_num(&status.takeover_time, 1796077503012000000);
	set_num(&status.takeover_ns, 45100000);
	assert_in(status_of_all, "\ntakeover     2026-11-30 22:25:03.012, in 45 ms\nsize ");
	strcpy(status.report,
	       "2026-11-30 22:05:02 UTC: worker 4690 was ended by SIGSEGV; \x1b[1m SIGSEGV in q0");
	assert_in(status_of_all, "\nlast crash   2026-11-30 22:05:02 UTC: worker 4690 was ended by "
				 "SIGSEGV; ?[1m ...\nsize ");
	assert_in(status_with_the_report, " was ended by SIGSEGV; ?[1m SIGSEGV in q0\nsize ");
	/* What fits is not cut. */
	strcpy(status.report, "2026-11-30 22:05:02 UTC: worker 4690 was ended by SIGKILL;  12345 ");
	strcat(status.report, "7");
	assert_in(status_of_all, "SIGKILL;  12345 7\nsize ");
	strcat(status.report, "8");
	assert_in(status_of_all, "SIGKILL;  1234...\nsize ");
}

/* Three counters: one known to the table, one unreadable, one of a newer daemon. */
static void three(void)
{
	struct ctl_counter c[] = {
		{"slots_used", {true, NLPROTO_KIND_GAUGE}, {true, NLPROTO_UNIT_PAGES}, {true, 7}},
		{"slots_stored", {true, NLPROTO_KIND_GAUGE}, {true, NLPROTO_UNIT_PAGES}, {0}},
		{"novelty_total", {true, NLPROTO_KIND_COUNTER}, {true, 99}, {true, UINT64_MAX}},
		{"mystery", {0}, {true, NLPROTO_UNIT_BYTES}, {true, 5}},
	};

	memcpy(stats.c, c, sizeof(c));
	stats.n = ARRAY_SIZE(c);
	stats.nhistograms = 0;
}

static void as_text(FILE *out)
{
	render_stats_text(out, &stats);
}

static void as_json(FILE *out)
{
	render_stats_json(out, &stats);
}

static void as_prometheus(FILE *out)
{
	render_stats_prometheus(out, "zswap0", &stats);
}

static void stats_text(void **state)
{
	three();
	assert_text(as_text, "slots_used                                          7 pages\n"
			     "slots_stored                                        ?\n"
			     "novelty_total                    18446744073709551615\n"
			     "mystery                                             5 bytes\n");
}

static void stats_json(void **state)
{
	three();
	assert_text(as_json, "{\n"
			     "  \"slots_used\": 7,\n"
			     "  \"slots_stored\": null,\n"
			     "  \"novelty_total\": 18446744073709551615,\n"
			     "  \"mystery\": 5\n"
			     "}\n");
	stats.n = 0;
	assert_text(as_json, "{}\n");
}

static void stats_prometheus(void **state)
{
	three();
	assert_text(as_prometheus, "# HELP zswapd_slots_used slots that hold a page\n"
				   "# TYPE zswapd_slots_used gauge\n"
				   "zswapd_slots_used{device=\"zswap0\"} 7\n"
				   "# TYPE zswapd_novelty_total counter\n"
				   "zswapd_novelty_total{device=\"zswap0\"} 18446744073709551615\n"
				   "# TYPE zswapd_mystery untyped\n"
				   "zswapd_mystery{device=\"zswap0\"} 5\n");
}

static void assert_has(const char *text, const char *word)
{
	if (!text || !strstr(text, word))
		fail_msg("'%s' is not in:\n%s", word, text ? text : "");
}

static void histograms_text(void **state)
{
	two_histograms();
	stats.n = 0;
	assert_text(as_text,
		    "\n"
		    "                          count      p50      p90      p99    p99.9      "
		    "max\n"
		    "read_latency                 10    38 us    38 us   1.2 ms   1.2 ms   "
		    "1.2 ms\n"
		    "write_latency                 0        -        -        -        -        "
		    "-\n");
}

static void histograms_json(void **state)
{
	two_histograms();
	three();
	stats.nhistograms = 2;
	stats.n = 1;
	stats.h[1].sum.known = false;
	stats.h[1].unit.v = 99;
	assert_text(as_json,
		    "{\n"
		    "  \"slots_used\": 7,\n"
		    "  \"histograms\": {\n"
		    "    \"read_latency\": {\"unit\": \"nanoseconds\", \"count\": 10, \"sum\": "
		    "1500000, \"p50\": 38400, \"p90\": 38400, \"p99\": 1190000, \"p999\": "
		    "1190000, \"max\": 1190000, \"buckets\": [[0, 63, 1], [32768, 38400, 8], "
		    "[1000000, 1190000, 1]]},\n"
		    "    \"write_latency\": {\"unit\": null, \"count\": 0, \"sum\": null, "
		    "\"p50\": null, \"p90\": null, \"p99\": null, \"p999\": null, \"max\": null, "
		    "\"buckets\": []}\n"
		    "  }\n"
		    "}\n");
}

static void histograms_prometheus(void **state)
{
	char *text;

	/* Whole, as the daemon would send it. */
	fill();
	two_histograms();
	stats.nhistograms = HISTOGRAM_COUNT;
	text = text_of(as_prometheus);
	assert_null(exposition_fault(text));
	assert_has(text, "# HELP zswapd_read_latency_seconds read requests, from taken");
	assert_has(text,
		   "# TYPE zswapd_read_latency_seconds histogram\n"
		   "zswapd_read_latency_seconds_bucket{device=\"zswap0\",le=\"2.55e-07\"} 1\n");
	assert_has(text, "_bucket{device=\"zswap0\",le=\"3.2767e-05\"} 1\n");
	assert_has(text, "_bucket{device=\"zswap0\",le=\"6.5535e-05\"} 9\n");
	assert_has(text, "_bucket{device=\"zswap0\",le=\"+Inf\"} 10\n");
	assert_has(text, "zswapd_read_latency_seconds_sum{device=\"zswap0\"} 0.0015\n");
	assert_has(text, "zswapd_read_latency_seconds_count{device=\"zswap0\"} 10\n");
	assert_has(text, "zswapd_write_latency_seconds_count{device=\"zswap0\"} 0\n");
	free(text);
	/* Unreadable values cost themselves, and what is left is still right. */
	set_num(&stats.c[0].value, 0);
	stats.c[0].value.known = false;
	stats.h[0].sum.known = false;
	text = text_of(as_prometheus);
	assert_null(exposition_fault(text));
	assert_null(strstr(text, "zswapd_read_latency"));
	free(text);
	three();
	text = text_of(as_prometheus);
	assert_null(exposition_fault(text));
	free(text);
}

/* The reader above does find faults. */
static void wrong_expositions_are_seen(void **state)
{
#define BUCKET "h_bucket{d=\"x\",le="
#define TAIL   "h_sum{d=\"x\"} 1\nh_count{d=\"x\"} 2\n"
	static const char *const wrong[] = {
		"a{d=\"x\"} 1\n",
		"# TYPE a gauge\na{d=\"x\"} 1",
		"# TYPE a gauge\n",
		"# TYPE a gauge\na{d=\"x\"} 1\na{d=\"x\"} 1\n",
		"# TYPE a gauge\na{d=\"x\"} 1\n# TYPE a gauge\na{d=\"x\"} 1\n",
		"# TYPE a number\na{d=\"x\"} 1\n",
		"# HELP b text\n# TYPE a gauge\na{d=\"x\"} 1\n",
		"# TYPE a gauge\na{d=x} 1\n",
		"# TYPE a gauge\na{d=\"x\"} 1 2\n",
		"# TYPE a gauge\na{d=\"x\"} null\n",
		"# TYPE a gauge\nb{d=\"x\"} 1\n",
		"# TYPE a-b gauge\na-b{d=\"x\"} 1\n",
		"# TYPE h histogram\n" BUCKET "\"1\"} 1\n" TAIL,
		"# TYPE h histogram\n" BUCKET "\"+Inf\"} 1\n" TAIL,
		"# TYPE h histogram\n" BUCKET "\"2\"} 1\n" BUCKET "\"1\"} 1\n" BUCKET
		"\"+Inf\"} 2\n" TAIL,
		"# TYPE h histogram\n" BUCKET "\"1\"} 3\n" BUCKET "\"+Inf\"} 2\n" TAIL,
		"# TYPE h histogram\n" BUCKET "\"+Inf\"} 2\nh_count{d=\"x\"} 2\n",
	};

	assert_null(exposition_fault("# TYPE h histogram\n" BUCKET "\"1\"} 1\n" BUCKET
				     "\"+Inf\"} 2\n" TAIL));
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		if (!exposition_fault(wrong[i]))
			fail_msg("taken for right: %s", wrong[i]);
}

static void version(FILE *out)
{
	render_version(out, &status);
}

static void versions(void **state)
{
	assert_text(version, "zswapd 0.1.0, protocol 1\n");
	status.protocol.known = false;
	assert_text(version, "zswapd 0.1.0, protocol ?\n");
}

/* What the daemon says has the number already. */
static void an_event_tells_its_number_once(void **state)
{
	struct ctl_event e = {
		.device = "d",
		.kind = {true, NLPROTO_EVENT_STORE_ERROR},
		.count = {true, 3},
		.text = {true, "3 requests to the store failed (17 in all)"},
	};
	char buf[256] = "";
	FILE *f = fmemopen(buf, sizeof(buf), "w");

	assert_non_null(f);
	render_event_text(f, &e);
	fclose(f);
	assert_string_equal(buf, "?  d  store_error       3 requests to the store failed (17 in "
				 "all)\n");
}

static void the_store_s_state_has_its_word(void **state)
{
	struct ctl_event e = {.device = "d",
			      .kind = {true, NLPROTO_EVENT_STORE_STATE},
			      .store_state = {true, NLPROTO_STORE_LOST}};
	char buf[512] = "", *text;
	FILE *f = fmemopen(buf, sizeof(buf), "w");

	assert_non_null(f);
	render_event_json(f, &e);
	e.store_state.v = 17;
	render_event_json(f, &e);
	fclose(f);
	assert_non_null(strstr(buf, "\"event\": \"store_state\""));
	assert_non_null(strstr(buf, "\"store_state\": \"lost\"}"));
	assert_null(strstr(strchr(buf, '\n'), "\"store_state\": "));
	set_num(&status.store_state, 9);
	text = text_of(status_of_all);
	assert_non_null(strstr(text, "; state 9\n"));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(status_screen, set_up),
		cmocka_unit_test_setup(crashes_and_takeovers_are_shown, set_up),
		cmocka_unit_test_setup(nothing_stored_is_a_dash, set_up),
		cmocka_unit_test_setup(unreadable_values_hide_no_others, set_up),
		cmocka_unit_test_setup(stats_text, set_up),
		cmocka_unit_test_setup(stats_json, set_up),
		cmocka_unit_test_setup(stats_prometheus, set_up),
		cmocka_unit_test_setup(histograms_text, set_up),
		cmocka_unit_test_setup(histograms_json, set_up),
		cmocka_unit_test_setup(histograms_prometheus, set_up),
		cmocka_unit_test(wrong_expositions_are_seen),
		cmocka_unit_test_setup(versions, set_up),
		cmocka_unit_test(an_event_tells_its_number_once),
		cmocka_unit_test_setup(the_store_s_state_has_its_word, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

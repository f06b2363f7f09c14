// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Reads of windows that lie partly in memory, partly in the store, with overlap on and off.
 *
 * How the mix arises: all slots are written in order, through a front tier with room for about a
 * quarter of them; then 27 % of the slots, drawn one by one at random, are written again.  What was
 * written again is young and stays in memory, its neighbours have left for the store.  So a window
 * of 8 has 2 resident pages on average, at random places in it, and its stored ones lie close
 * together in one segment, as the pages of a program do that were swapped out together.
 *
 * One window is in flight at a time, as one request: a thread waits for it.  On and off take turns
 * every SLICE windows.  Windows are aligned to their size and drawn at random.
 */
#include "common/util.h"
#include "tests/bench/engine_bench.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define SLICE	       32u
#define RESIDENT_SHARE 27u /* per cent */

struct side {
	uint64_t windows, ns, cpu;
};

static struct {
	struct corpus corpus;
	struct rig rig;
	uint64_t slots;
} t;

static double mean_object(void)
{
	uint64_t v[COUNTER_COUNT];

	engine_counters(t.rig.e, v);
	return (double)(v[CTR_resident_compressed_bytes] + v[CTR_stored_compressed_bytes]) /
	       (double)(v[CTR_slots_resident] + v[CTR_slots_stored]);
}

/* The size of an object at this level, from an engine that holds the corpus once. */
static double object_bytes(const struct bench_options *o)
{
	struct rig_options ro = {.slots = t.corpus.n, .level = o->level};
	double bytes;

	ro.memory = t.corpus.n * RIG_PAGE + MIB(64);
	rig_init(&t.rig, &ro);
	rig_write(&t.rig, &t.corpus, 0, t.corpus.n);
	bytes = mean_object();
	rig_deinit(&t.rig);
	return bytes;
}

static void set_up(const struct bench_options *o)
{
	struct rig_options ro = {.slots = o->slots,
				 .level = o->level,
				 .store = o->store,
				 .store_size = o->store_size};
	double resident;

	corpus_load(&t.corpus, o->pages);
	t.slots = o->slots;
	resident = object_bytes(o) * (double)t.slots * RESIDENT_SHARE / 100;
	/* The mover keeps a 32nd free, and four frames more. */
	ro.memory = (uint64_t)(resident * 33 / 32) + MIB(6);
	rig_init(&t.rig, &ro);
	rig_write(&t.rig, &t.corpus, 0, t.slots);
	for (uint64_t slot = 0; slot < t.slots; slot++) {
		if (rig_random(100) < RESIDENT_SHARE)
			rig_write(&t.rig, &t.corpus, slot, 1);
	}
	rig_settle(&t.rig);
	for (unsigned i = 0; i < 4096; i++)
		rig_verify(&t.rig, &t.corpus, rig_random(t.slots / 16) * 16, 16);
}

static void slice(bool overlap, unsigned window, struct side *side)
{
	uint64_t cpu, start;

	engine_set_overlap(t.rig.e, overlap);
	cpu = rig_cpu_ns();
	start = now_ns();
	for (unsigned i = 0; i < SLICE; i++) {
		uint64_t slot = rig_random(t.slots / window) * window;
		struct engine_request *r = rig_prepare(&t.rig, ENGINE_READ, slot, window);

		engine_submit(t.rig.q, &r, 1);
		while (engine_queue_inflight(t.rig.q)) {
			ring_wait(&t.rig.ring, 100000000);
			engine_poll(t.rig.q);
		}
	}
	side->ns += now_ns() - start;
	side->cpu += rig_cpu_ns() - cpu;
	side->windows += SLICE;
}

static void print_side(const char *name, const struct side *s, unsigned window)
{
	printf("\"%s\":{\"window_us\":%.2f,\"cpu_us\":%.2f,\"pages_per_s\":%.0f},", name,
	       (double)s->ns / 1e3 / (double)s->windows, (double)s->cpu / 1e3 / (double)s->windows,
	       (double)(s->windows * window) * 1e9 / (double)s->ns);
}

static void measure(unsigned window, unsigned ms)
{
	struct side on = {0}, off = {0};
	uint64_t before[COUNTER_COUNT], after[COUNTER_COUNT];
	uint64_t end = now_ns() + ms * 1000000ull;
	double pages;

	engine_counters(t.rig.e, before);
	for (unsigned i = 0; i % 2 || now_ns() < end; i++) {
		slice(i % 2, window, i % 2 ? &on : &off);
		slice(!(i % 2), window, i % 2 ? &off : &on);
	}
	engine_counters(t.rig.e, after);
	for (unsigned i = 0; i < COUNTER_COUNT; i++)
		after[i] -= before[i];
	pages = (double)after[CTR_pages_read_total];
	printf("\"window%u\":{", window);
	print_side("on", &on, window);
	print_side("off", &off, window);
	printf("\"gain\":%.4f,\"stored_share_read\":%.4f,\"store_reads_per_window\":%.3f,"
	       "\"bytes_per_store_read\":%.0f,\"overlapped_share\":%.4f}",
	       (double)off.ns / (double)off.windows / ((double)on.ns / (double)on.windows),
	       (double)after[CTR_pages_read_stored_total] / pages,
	       (double)after[CTR_store_read_requests_total] * window / pages,
	       (double)after[CTR_store_read_bytes_total] /
		       (double)after[CTR_store_read_requests_total],
	       (double)after[CTR_batches_overlapped_total] / (double)on.windows);
}

void bench_overlap(const struct bench_options *o)
{
	uint64_t v[COUNTER_COUNT];

	set_up(o);
	engine_counters(t.rig.e, v);
	for (unsigned i = 0; i < o->rounds; i++) {
		printf("{\"level\":%d,\"round\":%u,\"stored_share\":%.4f,", o->level, i + 1,
		       (double)v[CTR_slots_stored] / (double)v[CTR_slots_used]);
		measure(8, o->ms);
		putchar(',');
		measure(16, o->ms);
		puts("}");
		fflush(stdout);
	}
	rig_deinit(&t.rig);
	corpus_free(&t.corpus);
}

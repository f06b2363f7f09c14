// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Measures the engine alone, without a transport.  Prints one JSON object a line; engine.sh runs it
 * beside fio and puts the lines together.
 *
 *	resident, overlap, writeback	do all their rounds and end
 *	read, evict, through		set up, say {"ready":...}, then measure once for each line
 *					on standard input, so that fio can take turns with them
 *
 *	read		a line is a depth: single pages of stored slots at random, that many in
 *			flight
 *	evict		a line is `engine`: sealed segments are ready, their way to the store is
 *			timed, which is what the mover does for each; or `bare`: the same writes,
 *			of anonymous memory, and nothing else
 *	through		likewise, but incompressible pages are written through a small front tier,
 *			with the mover's thread
 *	writeback	writes real pages through a small front tier, first in order, then at
 *			random, and counts what goes to the store
 */
#include "tests/bench/engine_bench.h"
#include "common/util.h"
#include "daemon/state/segment.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static struct corpus corpus;
static struct rig rig;

static void load_pages(const struct bench_options *o)
{
	if (o->pages)
		corpus_load(&corpus, o->pages);
	else
		corpus_random(&corpus, 4096);
}

static void delta_end(uint64_t v[COUNTER_COUNT])
{
	uint64_t now[COUNTER_COUNT];

	engine_counters(rig.e, now);
	for (unsigned i = 0; i < COUNTER_COUNT; i++)
		v[i] = now[i] - v[i];
}

static struct rig_options options_of(const struct bench_options *o)
{
	if (!o->store)
		die("--store is needed");
	return (struct rig_options){.slots = o->slots,
				    .memory = o->memory,
				    .store = o->store,
				    .store_size = o->store_size,
				    .level = o->level};
}

/* --- read --- */

static void keep_in_flight(unsigned depth, uint64_t slots, uint64_t end)
{
	struct engine_request *batch[RIG_REQUESTS];

	while (now_ns() < end) {
		unsigned n = 0, busy = engine_queue_inflight(rig.q);

		for (; busy + n < depth; n++)
			batch[n] = rig_prepare(&rig, ENGINE_READ, rig_random(slots), 1);
		engine_submit(rig.q, batch, n);
		if (engine_queue_inflight(rig.q) == depth)
			ring_wait(&rig.ring, 100000000);
		engine_poll(rig.q);
	}
	rig_drain(&rig);
}

static void measure_reads(unsigned depth, unsigned ms, uint64_t slots)
{
	uint64_t v[COUNTER_COUNT], done = rig.pages_done;
	uint64_t start, ns, cpu;

	engine_counters(rig.e, v);
	cpu = rig_cpu_ns();
	start = now_ns();
	keep_in_flight(depth, slots, start + ms * 1000000ull);
	ns = now_ns() - start;
	cpu = rig_cpu_ns() - cpu;
	delta_end(v);
	done = rig.pages_done - done;
	printf("{\"depth\":%u,\"per_s\":%.0f,\"cpu_us\":%.2f,\"stored_share\":%.4f,"
	       "\"bytes_per_store_read\":%.0f}\n",
	       depth, (double)done * 1e9 / (double)ns, (double)cpu / 1e3 / (double)done,
	       (double)v[CTR_pages_read_stored_total] / (double)done,
	       (double)v[CTR_store_read_bytes_total] / (double)v[CTR_store_read_requests_total]);
	fflush(stdout);
}

static void bench_read(const struct bench_options *o)
{
	struct rig_options ro = options_of(o);
	uint64_t v[COUNTER_COUNT], stored;
	char line[64];

	load_pages(o);
	rig_init(&rig, &ro);
	rig_write(&rig, &corpus, 0, o->slots);
	rig_settle(&rig);
	engine_counters(rig.e, v);
	/* The oldest left first, so the front part of the slots is all in the store. */
	stored = v[CTR_slots_resident] * 2;
	if (stored >= o->slots)
		die("too few slots for --memory: nearly all of them stay resident");
	stored = o->slots - stored;
	for (unsigned i = 0; i < 4096; i++)
		rig_verify(&rig, &corpus, rig_random(stored), 1);
	printf("{\"ready\":true,\"offset\":%" PRIu64 ",\"used\":%" PRIu64 ",\"slots\":%" PRIu64
	       "}\n",
	       rig.store->data_offset, v[CTR_store_used_bytes], stored);
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		unsigned long depth = strtoul(line, NULL, 10);

		if (depth == 0 || depth > RIG_REQUESTS)
			die("depth must be 1 to %u", RIG_REQUESTS);
		measure_reads((unsigned)depth, o->ms, stored);
	}
}

/* --- bare --- */

struct bare_write {
	struct ring_op op;
	bool busy;
};

static void bare_done(struct ring_op *op, int32_t res, uint32_t flags)
{
	(void)flags;
	if (res != (int32_t)SEGMENT_SIZE)
		die("bare write: %d", res);
	container_of(op, struct bare_write, op)->busy = false;
}

static uint64_t time_bare(struct ring *ring, uint8_t *bytes, unsigned n)
{
	struct bare_write writes[EVICTOR_WRITES] = {0};
	uint64_t start = now_ns();

	for (unsigned i = 0; i < n || ring->inflight > 0;) {
		for (unsigned k = 0; k < EVICTOR_WRITES && i < n; k++) {
			if (writes[k].busy)
				continue;
			writes[k] = (struct bare_write){.op.done = bare_done, .busy = true};
			ring_store_write(ring, &writes[k].op, bytes + (size_t)i * SEGMENT_SIZE,
					 SEGMENT_SIZE,
					 rig.store->data_offset + (uint64_t)i * SEGMENT_SIZE, 0);
			i++;
		}
		ring_wait(ring, 1000000000ull);
	}
	return now_ns() - start;
}

/* Nothing but writes, of as many different MiB, as many at once: what the device gives. */
static void measure_bare(unsigned segments)
{
	size_t size = (size_t)segments * SEGMENT_SIZE;
	struct ring ring;
	uint8_t *bytes;
	uint64_t ns;

	bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE,
		     -1, 0);
	if (bytes == MAP_FAILED)
		die("no memory");
	for (size_t i = 0; i < size; i += RIG_PAGE)
		memcpy(bytes + i, corpus.pages + i / RIG_PAGE % corpus.n * RIG_PAGE, RIG_PAGE);
	if (ring_init(&ring, 32, rig.store->fd, 1) < 0 ||
	    ring_set_buffer(&ring, 0, bytes, size) < 0)
		die("no ring");
	ns = time_bare(&ring, bytes, segments);
	ring_deinit(&ring);
	munmap(bytes, size);
	printf("{\"mb_per_s\":%.1f}\n", (double)size * 1e3 / (double)ns);
	fflush(stdout);
}

/* --- evict --- */

/* As the mover does for each segment: free, look, spare what was read, write. */
static uint64_t evict_all(uint64_t segments)
{
	uint64_t started = 0;
	struct survey s;

	while (true) {
		evictor_reap(rig.evictor);
		evictor_survey(rig.evictor, &s);
		if (s.next.id == SEGMENT_NONE && s.frames_coming == 0)
			return started;
		if (started < segments && s.store_ready && s.next.id != SEGMENT_NONE) {
			evictor_spare_referenced(rig.evictor, s.next.id);
			if (evictor_write(rig.evictor, s.next.id) < 0)
				die("segment %u cannot be written", s.next.id);
			started++;
			continue;
		}
		evictor_wait(rig.evictor, 1000000000ull);
	}
}

static void wait_for_places(void)
{
	uint64_t give_up = now_ns() + 10000000000ull;
	struct survey s;

	do {
		if (now_ns() > give_up)
			die("discarded places do not become free");
		evictor_wait(rig.evictor, 1000000);
		evictor_reap(rig.evictor);
		evictor_survey(rig.evictor, &s);
	} while (s.places_free < s.places_max);
}

static void measure_evict(const struct bench_options *o)
{
	uint64_t v[COUNTER_COUNT], start, ns, cpu, segments;

	rig_write(&rig, &corpus, 0, o->slots);
	engine_counters(rig.e, v);
	cpu = rig_cpu_ns();
	start = now_ns();
	segments = evict_all(UINT64_MAX);
	ns = now_ns() - start;
	cpu = rig_cpu_ns() - cpu;
	delta_end(v);
	if (v[CTR_segments_written_total] != segments)
		die("not all segments were written");
	printf("{\"mb_per_s\":%.1f,\"segments\":%" PRIu64
	       ",\"bytes_per_write\":%.0f,\"cpu_us_per_segment\":%.2f}\n",
	       (double)v[CTR_store_write_bytes_total] * 1e3 / (double)ns, segments,
	       (double)v[CTR_store_write_bytes_total] / (double)v[CTR_store_write_requests_total],
	       (double)cpu / 1e3 / (double)segments);
	fflush(stdout);
	rig_discard(&rig, 0, o->slots);
	wait_for_places();
}

static void bench_evict(const struct bench_options *o)
{
	struct rig_options ro = options_of(o);
	char line[64];

	load_pages(o);
	ro.manual = true;
	ro.memory = o->slots * (RIG_PAGE + 16) + MIB(16);
	rig_init(&rig, &ro);
	while (evictor_grow(rig.evictor) == 0)
		;
	printf("{\"ready\":true,\"offset\":%" PRIu64 "}\n", rig.store->data_offset);
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		if (strcmp(line, "bare\n") == 0)
			measure_bare((unsigned)(o->slots / 256));
		else
			measure_evict(o);
	}
}

/* --- through --- */

static void write_batches(uint64_t slots)
{
	for (uint64_t slot = 0; slot < slots;) {
		struct engine_request *batch[2];
		unsigned n = 0;

		for (; n < ARRAY_SIZE(batch) && slot < slots; n++) {
			uint64_t count = min_u64(RIG_REQUEST_PAGES, slots - slot);

			batch[n] = rig_prepare(&rig, ENGINE_WRITE, slot, count);
			batch[n]->data = corpus.pages + slot % corpus.n * RIG_PAGE;
			slot += count;
		}
		engine_submit(rig.q, batch, n);
		rig_drain(&rig);
	}
}

static void measure_through(const struct bench_options *o)
{
	uint64_t v[COUNTER_COUNT], start, ns, cpu;

	engine_counters(rig.e, v);
	cpu = rig_cpu_ns();
	start = now_ns();
	write_batches(o->slots);
	ns = now_ns() - start;
	cpu = rig_cpu_ns() - cpu;
	delta_end(v);
	printf("{\"mb_per_s\":%.1f,\"bytes_per_write\":%.0f,\"cpu_us_per_page\":%.2f,"
	       "\"stalled_share\":%.4f}\n",
	       (double)v[CTR_store_write_bytes_total] * 1e3 / (double)ns,
	       (double)v[CTR_store_write_bytes_total] / (double)v[CTR_store_write_requests_total],
	       (double)cpu / 1e3 / (double)o->slots,
	       (double)v[CTR_writes_stalled_total] / (double)o->slots);
	fflush(stdout);
	rig_discard(&rig, 0, o->slots);
	rig_settle(&rig);
}

static void bench_through(const struct bench_options *o)
{
	struct rig_options ro = options_of(o);
	char line[64];

	if (o->slots % RIG_REQUEST_PAGES)
		die("--slots must be a multiple of %u", RIG_REQUEST_PAGES);
	corpus_random(&corpus, 4096);
	rig_init(&rig, &ro);
	printf("{\"ready\":true,\"offset\":%" PRIu64 "}\n", rig.store->data_offset);
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		if (strcmp(line, "bare\n") == 0)
			measure_bare((unsigned)(o->slots / 256));
		else
			measure_through(o);
	}
}

/* --- writeback --- */

static void print_writeback(const char *name, uint64_t v[COUNTER_COUNT], uint64_t ns)
{
	double pages = (double)v[CTR_pages_written_back_total];

	printf("\"%s\":{\"pages_per_write\":%.1f,\"bytes_per_page\":%.1f,\"share\":%.4f,"
	       "\"bytes_per_write\":%.0f,\"cleaned_per_evicted\":%.4f,\"written_per_s\":%.0f}",
	       name, pages / (double)v[CTR_store_write_requests_total],
	       (double)v[CTR_store_write_bytes_total] / pages,
	       (double)v[CTR_store_write_bytes_total] / pages / RIG_PAGE,
	       (double)v[CTR_store_write_bytes_total] / (double)v[CTR_store_write_requests_total],
	       (double)v[CTR_pages_cleaned_total] / pages,
	       (double)v[CTR_pages_written_total] * 1e9 / (double)ns);
}

static void measure_writeback(const struct bench_options *o, unsigned round)
{
	uint64_t v[COUNTER_COUNT], start, ns;

	printf("{\"level\":%d,\"round\":%u,", o->level, round);
	engine_counters(rig.e, v);
	start = now_ns();
	rig_write(&rig, &corpus, 0, o->slots);
	ns = now_ns() - start;
	rig_settle(&rig);
	delta_end(v);
	print_writeback("in_order", v, ns);
	engine_counters(rig.e, v);
	start = now_ns();
	for (uint64_t i = 0; i < o->slots; i++)
		rig_write(&rig, &corpus, rig_random(o->slots), 1);
	ns = now_ns() - start;
	rig_settle(&rig);
	delta_end(v);
	putchar(',');
	print_writeback("at_random", v, ns);
	puts("}");
	fflush(stdout);
	rig_discard(&rig, 0, o->slots);
	rig_settle(&rig);
}

static void bench_writeback(const struct bench_options *o)
{
	struct rig_options ro = options_of(o);

	load_pages(o);
	rig_init(&rig, &ro);
	for (unsigned i = 0; i < o->rounds; i++)
		measure_writeback(o, i + 1);
}

/* --- main --- */

static const struct {
	const char *name;
	void (*run)(const struct bench_options *o);
	bool own_rig;
} modes[] = {
	{"resident", bench_resident, true}, {"overlap", bench_overlap, true},
	{"read", bench_read, false},	    {"evict", bench_evict, false},
	{"through", bench_through, false},  {"writeback", bench_writeback, false},
};

static const char usage[] =
	"usage: engine_bench resident|read|evict|through|overlap|writeback [OPTION]...\n"
	"  --pages FILE     raw pages of 4096 bytes (read, evict: random bytes if not given)\n"
	"  --store FILE     made if missing, never removed\n"
	"  --store-mib N    its size (1024)\n"
	"  --slots N        pages of the device (131072)\n"
	"  --memory-mib N   front tier (24); resident, overlap and evict choose their own\n"
	"  --level N        zstd (1)\n"
	"  --rounds N       (3)\n"
	"  --ms N           length of one measurement (1000)\n";

static long number(const char *text, long least, long most)
{
	char *end;
	long n = strtol(text, &end, 10);

	if (*end || end == text || n < least || n > most)
		die("'%s' is not a number from %ld to %ld", text, least, most);
	return n;
}

static void parse(int argc, char **argv, struct bench_options *o)
{
	static const struct option table[] = {
		{"pages", required_argument, NULL, 'p'},
		{"store", required_argument, NULL, 's'},
		{"store-mib", required_argument, NULL, 'z'},
		{"slots", required_argument, NULL, 'n'},
		{"memory-mib", required_argument, NULL, 'm'},
		{"level", required_argument, NULL, 'l'},
		{"rounds", required_argument, NULL, 'r'},
		{"ms", required_argument, NULL, 't'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	int c;

	while ((c = getopt_long(argc, argv, "", table, NULL)) != -1) {
		switch (c) {
		case 'p':
			o->pages = optarg;
			break;
		case 's':
			o->store = optarg;
			break;
		case 'z':
			o->store_size = MIB(number(optarg, 8, 1 << 24));
			break;
		case 'n':
			o->slots = (uint64_t)number(optarg, 4096, 1 << 28);
			break;
		case 'm':
			o->memory = MIB(number(optarg, 1, 1 << 24));
			break;
		case 'l':
			o->level = (int)number(optarg, -7, 19);
			break;
		case 'r':
			o->rounds = (unsigned)number(optarg, 1, 1000);
			break;
		case 't':
			o->ms = (unsigned)number(optarg, 1, 3600000);
			break;
		default:
			fputs(usage, c == 'h' ? stdout : stderr);
			exit(c == 'h' ? 0 : 2);
		}
	}
}

int main(int argc, char **argv)
{
	struct bench_options o = {.store_size = MIB(1024),
				  .slots = 131072,
				  .memory = MIB(24),
				  .level = 1,
				  .rounds = 3,
				  .ms = 1000};

	parse(argc, argv, &o);
	for (unsigned i = 0; i < ARRAY_SIZE(modes) && optind == argc - 1; i++) {
		if (strcmp(argv[optind], modes[i].name) != 0)
			continue;
		if (!o.pages && modes[i].own_rig)
			die("--pages is needed");
		modes[i].run(&o);
		if (!modes[i].own_rig) {
			rig_deinit(&rig);
			corpus_free(&corpus);
		}
		return 0;
	}
	fputs(usage, stderr);
	return 2;
}

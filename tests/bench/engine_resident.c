// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The engine with everything in memory against bare zstd.
 *
 * Four variants do the same to the same pages: zstd with a reused context and ordinary frames that
 * are packed into one array, and the engine with batches of 1, 8 and 32 requests of one page.  Each
 * engine variant has slots of its own.  Within a round the variants take turns every SLICE pages,
 * at places a quarter of the corpus apart so that none warms the caches for another; by the end of
 * the round each has been over all pages.
 *
 * Slots are written over, not filled: the more expensive case.  Reads come in random order.
 */
#include "common/util.h"
#include "tests/bench/engine_bench.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <zstd.h>

#define SLICE	 256u
#define BUFFERS	 32u /* that pages are read into, in turn, by all variants */
#define VARIANTS 4u

static const unsigned batches[VARIANTS] = {0, 1, 8, 32}; /* 0: bare zstd */

struct frame {
	uint64_t offset;
	uint32_t size;
};

static struct {
	struct corpus corpus;
	struct rig rig;
	ZSTD_CCtx *cctx;
	ZSTD_DCtx *dctx;
	uint8_t *packed; /* room for the largest frame for each page */
	uint64_t used;
	struct frame *frames;
	uint64_t *order; /* of the reads */
	uint8_t *buffers;
	uint64_t wall[VARIANTS], cpu[VARIANTS];
} t;

static void raw_compress(uint64_t page)
{
	size_t n = ZSTD_compress2(t.cctx, t.packed + t.used, ZSTD_compressBound(RIG_PAGE),
				  t.corpus.pages + page * RIG_PAGE, RIG_PAGE);

	if (ZSTD_isError(n))
		die("zstd: %s", ZSTD_getErrorName(n));
	t.frames[page] = (struct frame){.offset = t.used, .size = (uint32_t)n};
	t.used += n;
}

static void raw_decompress(uint64_t page, void *to)
{
	const struct frame *f = &t.frames[page];
	size_t n = ZSTD_decompressDCtx(t.dctx, to, RIG_PAGE, t.packed + f->offset, f->size);

	if (n != RIG_PAGE)
		die("zstd: page %" PRIu64 " does not come back", page);
}

static void raw_slice(enum engine_op op, uint64_t from, uint64_t to)
{
	for (uint64_t i = from; i < to; i++) {
		if (op == ENGINE_WRITE)
			raw_compress(i);
		else
			raw_decompress(t.order[i], t.buffers + i % BUFFERS * RIG_PAGE);
	}
}

static void engine_slice(enum engine_op op, unsigned variant, uint64_t from, uint64_t to)
{
	uint64_t base = (variant - 1) * t.corpus.n;
	struct engine_request *batch[32];

	while (from < to) {
		unsigned n = 0;

		for (; n < batches[variant] && from < to; n++, from++) {
			uint64_t page = op == ENGINE_WRITE ? from : t.order[from];

			batch[n] = rig_prepare(&t.rig, op, base + page, 1);
			batch[n]->data = op == ENGINE_WRITE ? t.corpus.pages + page * RIG_PAGE
							    : t.buffers + from % BUFFERS * RIG_PAGE;
		}
		engine_submit(t.rig.q, batch, n);
		rig_drain(&t.rig);
	}
}

static void one_pass(enum engine_op op)
{
	uint64_t slices = (t.corpus.n + SLICE - 1) / SLICE;

	t.used = op == ENGINE_WRITE ? 0 : t.used;
	for (unsigned v = 0; v < VARIANTS; v++)
		t.wall[v] = t.cpu[v] = 0;
	for (uint64_t s = 0; s < slices; s++) {
		for (unsigned k = 0; k < VARIANTS; k++) {
			unsigned v = (unsigned)((k + s) % VARIANTS);
			uint64_t from = (s + v * slices / VARIANTS) % slices * SLICE;
			uint64_t to = min_u64(from + SLICE, t.corpus.n);
			uint64_t cpu = rig_cpu_ns(), wall = now_ns();

			if (v == 0)
				raw_slice(op, from, to);
			else
				engine_slice(op, v, from, to);
			t.wall[v] += now_ns() - wall;
			t.cpu[v] += rig_cpu_ns() - cpu;
		}
	}
}

static void print_pass(const char *name)
{
	printf("\"%s\":{", name);
	for (unsigned v = 0; v < VARIANTS; v++) {
		printf("%s\"%s%u\":{\"per_s\":%.0f,\"cpu_us\":%.3f", v ? "," : "",
		       v ? "batch" : "raw", batches[v],
		       (double)t.corpus.n * 1e9 / (double)t.wall[v],
		       (double)t.cpu[v] / 1e3 / (double)t.corpus.n);
		if (v)
			printf(",\"ratio\":%.4f,\"cpu_ratio\":%.4f",
			       (double)t.wall[0] / (double)t.wall[v],
			       (double)t.cpu[0] / (double)t.cpu[v]);
		putchar('}');
	}
	putchar('}');
}

static void set_up(const struct bench_options *o)
{
	struct rig_options ro = {.level = o->level};

	corpus_load(&t.corpus, o->pages);
	ro.slots = t.corpus.n * (VARIANTS - 1);
	ro.memory = ro.slots * RIG_PAGE + MIB(128); /* more than is ever used */
	rig_init(&t.rig, &ro);
	t.cctx = ZSTD_createCCtx();
	t.dctx = ZSTD_createDCtx();
	t.packed = malloc(t.corpus.n * ZSTD_compressBound(RIG_PAGE));
	t.frames = calloc(t.corpus.n, sizeof(*t.frames));
	t.order = calloc(t.corpus.n, sizeof(*t.order));
	t.buffers = aligned_alloc(RIG_PAGE, BUFFERS * RIG_PAGE);
	if (!t.cctx || !t.dctx || !t.packed || !t.frames || !t.order || !t.buffers)
		die("no memory");
	ZSTD_CCtx_setParameter(t.cctx, ZSTD_c_compressionLevel, o->level);
	for (uint64_t i = 0; i < t.corpus.n; i++) {
		uint64_t j = rig_random(i + 1);

		t.order[i] = t.order[j];
		t.order[j] = i;
	}
}

void bench_resident(const struct bench_options *o)
{
	set_up(o);
	/* Warms up: frames are there, slots are full. */
	one_pass(ENGINE_WRITE);
	one_pass(ENGINE_READ);
	for (uint64_t i = 0; i < 3 * t.corpus.n; i++)
		rig_verify(&t.rig, &t.corpus, i, 1);
	for (unsigned i = 0; i < o->rounds; i++) {
		printf("{\"level\":%d,\"round\":%u,\"pages\":%" PRIu64
		       ",\"same_filled_left_out\":%" PRIu64 ",",
		       o->level, i + 1, t.corpus.n, t.corpus.left_out);
		one_pass(ENGINE_WRITE);
		print_pass("write");
		putchar(',');
		one_pass(ENGINE_READ);
		print_pass("read");
		printf(",\"raw_ratio\":%.3f}\n", (double)t.corpus.n * RIG_PAGE / (double)t.used);
		fflush(stdout);
	}
	rig_deinit(&t.rig);
	ZSTD_freeCCtx(t.cctx);
	ZSTD_freeDCtx(t.dctx);
	free(t.packed);
	free(t.frames);
	free(t.order);
	free(t.buffers);
	corpus_free(&t.corpus);
}

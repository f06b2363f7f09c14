// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Describes a corpus by what decides a compressed swap's figures: the share of same-filled pages,
 * and how the others compress, each page alone, since that is how swap sees them.  The ratio is
 * bytes in over bytes out, where a page that does not shrink counts as 4096.
 */
#include "tests/corpus/stat.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <zstd.h>

#include "common/util.h"

#define PAGE 4096u

struct summary {
	uint64_t pages;
	uint64_t same_filled;
	uint64_t zero;
	uint64_t compressed_bytes;
	uint64_t raw;	      /* pages that do not shrink */
	uint64_t quarters[4]; /* pages by compressed size: up to 1, 2, 3, 4 KiB */
	uint64_t compress_ns;
};

static bool is_same_filled(const uint64_t *words)
{
	/* Each word equals the one before it, from the second on. */
	return !memcmp(words, words + 1, PAGE - 8);
}

static int add_page(struct summary *s, ZSTD_CCtx *cctx, const uint64_t *page)
{
	char buf[ZSTD_COMPRESSBOUND(PAGE)];
	uint64_t start;
	size_t n;

	s->pages++;
	if (is_same_filled(page)) {
		s->same_filled++;
		s->zero += page[0] == 0;
		return 0;
	}
	start = now_ns();
	n = ZSTD_compressCCtx(cctx, buf, sizeof(buf), page, PAGE, 1);
	s->compress_ns += now_ns() - start;
	if (ZSTD_isError(n))
		return -EIO;
	if (n >= PAGE) {
		n = PAGE;
		s->raw++;
	}
	s->compressed_bytes += n;
	s->quarters[(n - 1) / 1024]++;
	return 0;
}

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

static void print(const struct summary *s)
{
	uint64_t rest = s->pages - s->same_filled;
	double in = (double)rest * PAGE, out = (double)s->compressed_bytes;

	printf("pages          %" PRIu64 " (%.1f MiB)\n", s->pages, (double)s->pages / 256);
	printf("same-filled    %.1f %% (%.1f %% zero)\n", percent(s->same_filled, s->pages),
	       percent(s->zero, s->pages));
	printf("zstd 1         ratio %.2f, %.1f us a page (same-filled pages left out)\n",
	       out > 0 ? in / out : 0, rest ? (double)s->compress_ns / 1000 / (double)rest : 0);
	printf("compressed to  1 KiB %.1f %%, 2 KiB %.1f %%, 3 KiB %.1f %%, 4 KiB %.1f %%\n",
	       percent(s->quarters[0], rest), percent(s->quarters[1], rest),
	       percent(s->quarters[2], rest), percent(s->quarters[3], rest));
	printf("incompressible %.1f %%\n", percent(s->raw, rest));
}

int corpus_stat(const char *path)
{
	ZSTD_CCtx *cctx = ZSTD_createCCtx();
	struct summary s = {0};
	uint64_t page[PAGE / 8];
	FILE *f = fopen(path, "re");
	const char *why = NULL;
	size_t n;

	if (!f || !cctx) {
		why = f ? strerror(ENOMEM) : strerror(errno);
		goto out;
	}
	while (!why && (n = fread(page, 1, PAGE, f)) == PAGE)
		if (add_page(&s, cctx, page) < 0)
			why = "zstd failed";
	if (!why && (ferror(f) || n || !s.pages))
		why = "not a file of whole 4096-byte pages";
	if (!why)
		print(&s);
out:
	if (why)
		fprintf(stderr, "corpus-capture: %s: %s\n", path, why);
	if (f)
		fclose(f);
	ZSTD_freeCCtx(cctx);
	return why ? 1 : 0;
}

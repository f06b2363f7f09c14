// SPDX-License-Identifier: GPL-2.0-or-later
#define ZSTD_STATIC_LINKING_ONLY /* static contexts and magicless frames */
#include "daemon/codec/codec.h"
#include "common/util.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>
#include <zstd_errors.h>

struct codec {
	ZSTD_CCtx *cctx;
	ZSTD_DCtx *dctx;
	int level;
	void *workspace;
};

/* A level may be changed later, so the workspace is as large as the hungriest level needs. */
static size_t cctx_size(void)
{
	size_t most = 0;

	for (int level = CODEC_LEVEL_MIN; level <= CODEC_LEVEL_MAX; level++) {
		ZSTD_compressionParameters p = ZSTD_getCParams(level, CODEC_PAGE_SIZE, 0);
		size_t n = ZSTD_estimateCCtxSize_usingCParams(p);

		z_assert(!ZSTD_isError(n));
		most = max_u64(most, n);
	}
	return align_up(most, CACHE_LINE);
}

static void set_parameters(ZSTD_CCtx *cctx, int level)
{
	size_t r = 0;

	r |= ZSTD_CCtx_setParameter(cctx, ZSTD_c_compressionLevel, level);
	r |= ZSTD_CCtx_setParameter(cctx, ZSTD_c_format, ZSTD_f_zstd1_magicless);
	r |= ZSTD_CCtx_setParameter(cctx, ZSTD_c_contentSizeFlag, 0);
	r |= ZSTD_CCtx_setParameter(cctx, ZSTD_c_checksumFlag, 0);
	r |= ZSTD_CCtx_setParameter(cctx, ZSTD_c_dictIDFlag, 0);
	/* Without this the window is sized for unknown input whenever the content size is left out.
	 */
	r |= ZSTD_CCtx_setParameter(cctx, ZSTD_c_srcSizeHint, CODEC_PAGE_SIZE);
	z_assert(!ZSTD_isError(r));
}

int codec_new(struct codec **ret, int level)
{
	size_t csize = cctx_size();
	size_t dsize = align_up(ZSTD_estimateDCtxSize(), CACHE_LINE);
	struct codec *c;

	if (level < CODEC_LEVEL_MIN || level > CODEC_LEVEL_MAX)
		return -EINVAL;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->workspace = aligned_alloc(CACHE_LINE, csize + dsize);
	if (!c->workspace) {
		free(c);
		return -ENOMEM;
	}
	memset(c->workspace, 0, csize + dsize);
	c->cctx = ZSTD_initStaticCCtx(c->workspace, csize);
	c->dctx = ZSTD_initStaticDCtx((char *)c->workspace + csize, dsize);
	z_assert(c->cctx && c->dctx);
	z_assert(!ZSTD_isError(
		ZSTD_DCtx_setParameter(c->dctx, ZSTD_d_format, ZSTD_f_zstd1_magicless)));
	set_parameters(c->cctx, level);
	c->level = level;
	*ret = c;
	return 0;
}

void codec_free(struct codec *c)
{
	if (!c)
		return;
	free(c->workspace); /* static contexts are not freed on their own */
	free(c);
}

void codec_set_level(struct codec *c, int level)
{
	size_t r;

	z_assert(level >= CODEC_LEVEL_MIN && level <= CODEC_LEVEL_MAX);
	if (level == c->level)
		return;
	/* A page that did not fit has left its session open, in which parameters are refused. */
	r = ZSTD_CCtx_reset(c->cctx, ZSTD_reset_session_only);
	z_assert(!ZSTD_isError(r));
	set_parameters(c->cctx, level);
	c->level = level;
}

size_t codec_compress(struct codec *c, void *dst, size_t cap, const void *page)
{
	size_t n = ZSTD_compress2(c->cctx, dst, cap, page, CODEC_PAGE_SIZE);

	if (likely(!ZSTD_isError(n)))
		return n;
	/* Anything but a full buffer would mean that the workspace is too small for the level. */
	z_assert(ZSTD_getErrorCode(n) == ZSTD_error_dstSize_tooSmall);
	return 0;
}

int codec_decompress(struct codec *c, void *page, const void *src, size_t len)
{
	size_t n = ZSTD_decompressDCtx(c->dctx, page, CODEC_PAGE_SIZE, src, len);

	return likely(n == CODEC_PAGE_SIZE) ? 0 : -EIO;
}

bool page_same_filled(const void *page, uint64_t *ret_value)
{
	const uint64_t *w = page;
	const size_t last = CODEC_PAGE_SIZE / sizeof(*w) - 1;

	/* Most pages differ here already; else each word is compared with its neighbour at once. */
	if (w[0] != w[last] || w[0] != w[last / 2])
		return false;
	if (memcmp(w, w + 1, last * sizeof(*w)) != 0)
		return false;
	*ret_value = w[0];
	return true;
}

void page_fill(void *page, uint64_t value)
{
	uint64_t *w = page;

	if (value == 0) {
		memset(page, 0, CODEC_PAGE_SIZE);
		return;
	}
	for (size_t i = 0; i < CODEC_PAGE_SIZE / sizeof(*w); i++)
		w[i] = value;
}

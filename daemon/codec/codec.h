/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * zstd for single pages.  A codec belongs to one thread.  Its contexts lie in one block that is
 * allocated (and touched) by codec_new(); compressing and decompressing allocate nothing.
 *
 * Frames are magicless and carry no size, dictionary id or checksum: an object's header (object.h)
 * says all of this already, and four bytes a page are half a percent.
 */
#ifndef ZSWAPD_CODEC_CODEC_H
#define ZSWAPD_CODEC_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CODEC_PAGE_SIZE 4096u
#define CODEC_LEVEL_MIN -7
#define CODEC_LEVEL_MAX 19

struct codec;

/* @level: CODEC_LEVEL_MIN to CODEC_LEVEL_MAX.  -EINVAL, -ENOMEM. */
int codec_new(struct codec **ret, int level);
void codec_free(struct codec *c);

/* Takes effect with the next page.  Never fails within the range; asserts it. */
void codec_set_level(struct codec *c, int level);

/*
 * Returns the compressed size, at most @cap, or 0 if the page does not fit into @cap bytes (less a
 * few that zstd wants for itself).
 */
size_t codec_compress(struct codec *c, void *dst, size_t cap, const void *page);

/* Fills @page, or returns -EIO if @src is not exactly one page's frame; @page is undefined then. */
int codec_decompress(struct codec *c, void *page, const void *src, size_t len);

/* True if the page is one 8-byte word throughout.  Stateless, any thread. */
bool page_same_filled(const void *page, uint64_t *ret_value);

void page_fill(void *page, uint64_t value);

#endif

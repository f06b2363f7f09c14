/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An object: one slot's bytes as they lie in a segment, in memory and in the store alike.
 *
 *   0         4      8     10      11     12
 *   | checksum | slot | len | codec | dict | len bytes ...| pad to 4 |
 *
 * The checksum covers everything behind it and is seeded with the segment's sequence number, so
 * that the right bytes in the wrong place, or those that an earlier segment left in the same place
 * (a write the device lost), fail as well.
 */
#ifndef ZSWAPD_ENGINE_OBJECT_H
#define ZSWAPD_ENGINE_OBJECT_H

#include "common/util.h"
#include "daemon/codec/codec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum object_codec {
	OBJECT_RAW = 0,
	OBJECT_ZSTD = 1,
};

struct object {
	uint32_t checksum;
	uint32_t slot;
	uint16_t len;
	uint8_t codec;
	uint8_t dict; /* 0: none */
	uint8_t data[];
};

_Static_assert(sizeof(struct object) == 12, "stored format");

#define OBJECT_ALIGN	4u
#define OBJECT_SIZE_MAX ((uint32_t)(sizeof(struct object) + CODEC_PAGE_SIZE))

/* A page that would need more than this is kept raw: what is saved would not pay for decompression.
 */
#define OBJECT_COMPRESSED_MAX (CODEC_PAGE_SIZE - CODEC_PAGE_SIZE / 8)

static inline uint32_t object_size(uint32_t len)
{
	return (uint32_t)align_up(sizeof(struct object) + len, OBJECT_ALIGN);
}

/* Fills in the header for the @len bytes that are in o->data already. */
void object_seal(struct object *o, uint32_t slot, uint16_t len, enum object_codec codec,
		 uint64_t seq);

/* Renews the checksum of a copy that now belongs to the segment with @seq. */
void object_reseal(struct object *o, uint64_t seq);

/* True if the @size bytes at @o are the object of @slot in the segment with @seq, undamaged. */
bool object_check(const struct object *o, uint32_t size, uint32_t slot, uint64_t seq);

/* Checks the object and expands it into @page; -EIO (@page undefined) if it is not what it should
 * be. */
int object_expand(struct codec *c, const struct object *o, uint32_t size, uint32_t slot,
		  uint64_t seq, void *page);

#endif

// SPDX-License-Identifier: GPL-2.0-or-later
#define XXH_INLINE_ALL
#include "daemon/engine/object.h"

#include <errno.h>
#include <string.h>
#include <xxhash.h>

#define COVERED offsetof(struct object, slot)

static uint32_t checksum(const struct object *o, uint64_t seq)
{
	return (uint32_t)XXH3_64bits_withSeed((const char *)o + COVERED,
					      sizeof(*o) - COVERED + o->len, seq);
}

void object_seal(struct object *o, uint32_t slot, uint16_t len, enum object_codec codec,
		 uint64_t seq)
{
	o->slot = slot;
	o->len = len;
	o->codec = (uint8_t)codec;
	o->dict = 0;
	o->checksum = checksum(o, seq);
}

void object_reseal(struct object *o, uint64_t seq)
{
	o->checksum = checksum(o, seq);
}

bool object_check(const struct object *o, uint32_t size, uint32_t slot, uint64_t seq)
{
	return size >= sizeof(*o) && o->len <= CODEC_PAGE_SIZE && object_size(o->len) == size &&
	       o->slot == slot && o->dict == 0 && o->checksum == checksum(o, seq);
}

int object_expand(struct codec *c, const struct object *o, uint32_t size, uint32_t slot,
		  uint64_t seq, void *page)
{
	if (unlikely(!object_check(o, size, slot, seq)))
		return -EIO;
	switch (o->codec) {
	case OBJECT_ZSTD:
		return codec_decompress(c, page, o->data, o->len);
	case OBJECT_RAW:
		if (o->len != CODEC_PAGE_SIZE)
			return -EIO;
		memcpy(page, o->data, CODEC_PAGE_SIZE);
		return 0;
	}
	return -EIO;
}

// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/store/superblock.h"
#include "daemon/store/store.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <xxhash.h>

/* Random but for the name: a magic that plain text or a zeroed disk cannot hold by accident. */
static const uint8_t magic[SUPERBLOCK_MAGIC_SIZE] = {
	'z', 's', 'w', 'a', 'p', 'd', 's', 't', 0x9d, 0xe1, 0x07, 0xb4, 0x5a, 0xf2, 0x83, 0x0a,
};

static uint64_t checksum(const struct superblock *sb)
{
	return XXH3_64bits(sb, offsetof(struct superblock, checksum));
}

enum superblock_state superblock_check(const struct superblock *sb)
{
	if (memcmp(sb->magic, magic, sizeof(magic)) != 0)
		return SUPERBLOCK_FOREIGN;
	if (sb->checksum != checksum(sb))
		return SUPERBLOCK_DAMAGED;
	/* Checked before the fields are: another version may mean other things by them. */
	if (sb->version != SUPERBLOCK_VERSION || (sb->flags & ~SUPERBLOCK_FLAGS))
		return SUPERBLOCK_OTHER_VERSION;
	if (sb->size < STORE_SIZE_MIN || sb->size % STORE_PLACE_SIZE ||
	    sb->data_offset != STORE_DATA_OFFSET || sb->place_size != STORE_PLACE_SIZE)
		return SUPERBLOCK_DAMAGED;
	return SUPERBLOCK_VALID;
}

int superblock_init(struct superblock *sb, uint64_t size)
{
	struct superblock new = {
		.version = SUPERBLOCK_VERSION,
		.size = size,
		.data_offset = STORE_DATA_OFFSET,
		.place_size = STORE_PLACE_SIZE,
	};

	memcpy(new.magic, magic, sizeof(magic));
	/* 16 bytes come whole or not at all once the kernel's pool is ready. */
	if (getrandom(new.uuid, sizeof(new.uuid), 0) != sizeof(new.uuid))
		return errno ? -errno : -EIO;
	*sb = new;
	superblock_seal(sb);
	return 0;
}

void superblock_seal(struct superblock *sb)
{
	sb->checksum = checksum(sb);
}

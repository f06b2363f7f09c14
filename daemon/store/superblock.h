/* SPDX-License-Identifier: GPL-2.0-or-later */
/* clang-format off */
/*
 * The first 4096 bytes of a store.  Byte order is the machine's: what lies behind it is worth
 * nothing on another machine either.
 *
 *	offset	bytes
 *	0	16	magic
 *	16	4	version
 *	20	4	flags
 *	24	16	uuid, random, made when the store is formatted
 *	40	8	size: bytes of the store, head and tail included, when it was last formatted or resized
 *	48	8	data_offset: bytes, where place 0 starts
 *	56	4	place_size: bytes
 *	60	4028	zero
 *	4088	8	XXH3-64 of the 4088 bytes before
 */
/* clang-format on */
#ifndef ZSWAPD_STORE_SUPERBLOCK_H
#define ZSWAPD_STORE_SUPERBLOCK_H

#include <stddef.h>
#include <stdint.h>

#define SUPERBLOCK_SIZE	      4096
#define SUPERBLOCK_VERSION    1
#define SUPERBLOCK_MAGIC_SIZE 16

/*
 * Only files: every byte up to size has been written once, so that no later write makes the file
 * system allocate or convert an extent.
 */
#define SUPERBLOCK_WRITTEN (UINT32_C(1) << 0)
#define SUPERBLOCK_FLAGS   SUPERBLOCK_WRITTEN

struct superblock {
	uint8_t magic[SUPERBLOCK_MAGIC_SIZE];
	uint32_t version;
	uint32_t flags;
	uint8_t uuid[16];
	uint64_t size;
	uint64_t data_offset;
	uint32_t place_size;
	uint8_t zero[SUPERBLOCK_SIZE - 60 - 8];
	uint64_t checksum;
};

_Static_assert(sizeof(struct superblock) == SUPERBLOCK_SIZE, "on-disk layout");
_Static_assert(offsetof(struct superblock, version) == 16, "on-disk layout");
_Static_assert(offsetof(struct superblock, flags) == 20, "on-disk layout");
_Static_assert(offsetof(struct superblock, uuid) == 24, "on-disk layout");
_Static_assert(offsetof(struct superblock, size) == 40, "on-disk layout");
_Static_assert(offsetof(struct superblock, data_offset) == 48, "on-disk layout");
_Static_assert(offsetof(struct superblock, place_size) == 56, "on-disk layout");
_Static_assert(offsetof(struct superblock, zero) == 60, "on-disk layout");
_Static_assert(offsetof(struct superblock, checksum) == 4088, "on-disk layout");

enum superblock_state {
	SUPERBLOCK_VALID,
	/* The magic is there, the rest is torn or makes no sense: ours, to be formatted again. */
	SUPERBLOCK_DAMAGED,
	/* Whole, but of another version or with unknown flags: left to the program that made it. */
	SUPERBLOCK_OTHER_VERSION,
	/* No magic. */
	SUPERBLOCK_FOREIGN,
};

/* Pure; @sb may be any bytes. */
enum superblock_state superblock_check(const struct superblock *sb);

/* A new one of @size bytes, checksum included; -errno if the kernel gives no random bytes. */
int superblock_init(struct superblock *sb, uint64_t size);

/* After a change of any field. */
void superblock_seal(struct superblock *sb);

#endif

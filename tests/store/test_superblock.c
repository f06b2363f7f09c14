// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/util.h"
#include "daemon/store/store.h"
#include "daemon/store/superblock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static struct superblock made(void)
{
	struct superblock sb;

	assert_int_equal(superblock_init(&sb, MIB(64)), 0);
	return sb;
}

static void a_new_one_is_valid_and_unique(void **state)
{
	struct superblock a = made(), b = made();

	assert_int_equal(superblock_check(&a), SUPERBLOCK_VALID);
	assert_int_equal(a.size, MIB(64));
	assert_int_equal(a.flags, 0);
	assert_memory_not_equal(a.uuid, b.uuid, sizeof(a.uuid));
	a.flags = SUPERBLOCK_WRITTEN;
	superblock_seal(&a);
	assert_int_equal(superblock_check(&a), SUPERBLOCK_VALID);
}

/* A flipped bit anywhere: in the magic it is nobody's we know, elsewhere it is ours and damaged. */
static void every_flipped_bit_shows(void **state)
{
	struct superblock sb = made();
	uint8_t *bytes = (uint8_t *)&sb;

	for (size_t bit = 0; bit < sizeof(sb) * 8; bit++) {
		enum superblock_state want =
			bit / 8 < SUPERBLOCK_MAGIC_SIZE ? SUPERBLOCK_FOREIGN : SUPERBLOCK_DAMAGED;

		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
		assert_int_equal(superblock_check(&sb), want);
		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	assert_int_equal(superblock_check(&sb), SUPERBLOCK_VALID);
}

/* Values that carry a right checksum and still are not to be believed. */
static void sealed_nonsense(void **state)
{
	static const struct {
		const char *what;
		uint32_t version, flags;
		uint64_t size, data_offset;
		uint32_t place_size;
		enum superblock_state want;
	} rows[] = {
		/* clang-format off */
		{"whole",            1, 0, MIB(64),  MIB(1), MIB(1),   SUPERBLOCK_VALID},
		{"smallest",         1, 0, MIB(3),   MIB(1), MIB(1),   SUPERBLOCK_VALID},
		{"largest",          1, 1, -MIB(1),  MIB(1), MIB(1),   SUPERBLOCK_VALID},
		{"version 0",        0, 0, MIB(64),  MIB(1), MIB(1),   SUPERBLOCK_OTHER_VERSION},
		{"newer",            2, 0, MIB(64),  MIB(1), MIB(1),   SUPERBLOCK_OTHER_VERSION},
		{"newer, all else differs", 2, 6, 7, 8,      9,        SUPERBLOCK_OTHER_VERSION},
		{"unknown flag",     1, 2, MIB(64),  MIB(1), MIB(1),   SUPERBLOCK_OTHER_VERSION},
		{"no size",          1, 0, 0,        MIB(1), MIB(1),   SUPERBLOCK_DAMAGED},
		{"too small",        1, 0, MIB(2),   MIB(1), MIB(1),   SUPERBLOCK_DAMAGED},
		{"uneven size",      1, 0, MIB(64)+1, MIB(1), MIB(1),  SUPERBLOCK_DAMAGED},
		{"data at 0",        1, 0, MIB(64),  0,      MIB(1),   SUPERBLOCK_DAMAGED},
		{"data at the end",  1, 0, MIB(64),  MIB(64), MIB(1),  SUPERBLOCK_DAMAGED},
		{"no place size",    1, 0, MIB(64),  MIB(1), 0,        SUPERBLOCK_DAMAGED},
		{"large places",     1, 0, MIB(64),  MIB(1), MIB(2),   SUPERBLOCK_DAMAGED},
		/* clang-format on */
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct superblock sb = made();

		sb.version = rows[i].version;
		sb.flags = rows[i].flags;
		sb.size = rows[i].size;
		sb.data_offset = rows[i].data_offset;
		sb.place_size = rows[i].place_size;
		superblock_seal(&sb);
		if (superblock_check(&sb) != rows[i].want)
			fail_msg("%s", rows[i].what);
	}
}

/* What a power cut, another tool or an old disk leaves in the first 4096 bytes. */
static void torn_and_overwritten(void **state)
{
	struct superblock sb;

	for (size_t torn = 512; torn < sizeof(sb); torn += 512) {
		sb = made();
		memset((uint8_t *)&sb + torn, 0, sizeof(sb) - torn);
		assert_int_equal(superblock_check(&sb), SUPERBLOCK_DAMAGED);
		sb = made();
		memset(&sb, 0, torn);
		assert_int_equal(superblock_check(&sb), SUPERBLOCK_FOREIGN);
	}
	memset(&sb, 0, sizeof(sb));
	assert_int_equal(superblock_check(&sb), SUPERBLOCK_FOREIGN);
	memset(&sb, 0xff, sizeof(sb));
	assert_int_equal(superblock_check(&sb), SUPERBLOCK_FOREIGN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_new_one_is_valid_and_unique),
		cmocka_unit_test(every_flipped_bit_shows),
		cmocka_unit_test(sealed_nonsense),
		cmocka_unit_test(torn_and_overwritten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

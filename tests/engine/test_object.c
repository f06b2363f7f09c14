// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/engine/object.h"
#include "tests/model/pages.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define SEQ  77u
#define SLOT 123456u

struct fixture {
	struct codec *codec;
	uint8_t page[CODEC_PAGE_SIZE];
	uint8_t out[CODEC_PAGE_SIZE];
	_Alignas(8) uint8_t bytes[OBJECT_SIZE_MAX + 8];
	struct object *o;
	uint32_t size;
};

static void make_zstd(struct fixture *f)
{
	size_t len;

	page_make(5, f->page);
	len = codec_compress(f->codec, f->o->data, OBJECT_COMPRESSED_MAX, f->page);
	assert_true(len > 0);
	object_seal(f->o, SLOT, (uint16_t)len, OBJECT_ZSTD, SEQ);
	f->size = object_size((uint32_t)len);
}

static void make_raw(struct fixture *f)
{
	page_make(2, f->page);
	memcpy(f->o->data, f->page, CODEC_PAGE_SIZE);
	object_seal(f->o, SLOT, CODEC_PAGE_SIZE, OBJECT_RAW, SEQ);
	f->size = object_size(CODEC_PAGE_SIZE);
}

static int setup(void **state)
{
	static struct fixture f;

	memset(&f, 0, sizeof(f));
	f.o = (struct object *)f.bytes;
	*state = &f;
	return codec_new(&f.codec, 1);
}

static int teardown(void **state)
{
	codec_free(((struct fixture *)*state)->codec);
	return 0;
}

static int expand(struct fixture *f)
{
	return object_expand(f->codec, f->o, f->size, SLOT, SEQ, f->out);
}

static void round_trip(void **state)
{
	struct fixture *f = *state;

	make_zstd(f);
	assert_int_equal(f->size % OBJECT_ALIGN, 0);
	assert_int_equal(expand(f), 0);
	assert_memory_equal(f->out, f->page, CODEC_PAGE_SIZE);
	make_raw(f);
	assert_int_equal(f->size, OBJECT_SIZE_MAX);
	assert_int_equal(expand(f), 0);
	assert_memory_equal(f->out, f->page, CODEC_PAGE_SIZE);
}

/* Right bytes, wrong slot or an earlier segment in the same place. */
static void identity_is_checked(void **state)
{
	struct fixture *f = *state;

	make_zstd(f);
	assert_int_equal(object_expand(f->codec, f->o, f->size, SLOT + 1, SEQ, f->out), -EIO);
	assert_int_equal(object_expand(f->codec, f->o, f->size, SLOT, SEQ + 1, f->out), -EIO);
	assert_int_equal(object_expand(f->codec, f->o, f->size + 4, SLOT, SEQ, f->out), -EIO);
	assert_int_equal(object_expand(f->codec, f->o, f->size - 4, SLOT, SEQ, f->out), -EIO);
	assert_int_equal(object_expand(f->codec, f->o, 8, SLOT, SEQ, f->out), -EIO);
	assert_int_equal(expand(f), 0);
}

static void reseal_moves_to_another_segment(void **state)
{
	struct fixture *f = *state;

	make_zstd(f);
	object_reseal(f->o, SEQ + 1);
	assert_int_equal(expand(f), -EIO);
	assert_int_equal(object_expand(f->codec, f->o, f->size, SLOT, SEQ + 1, f->out), 0);
}

static void every_flipped_bit_is_found(void **state)
{
	struct fixture *f = *state;

	for (unsigned kind = 0; kind < 2; kind++) {
		if (kind)
			make_raw(f);
		else
			make_zstd(f);
		for (uint32_t i = 0; i < (sizeof(struct object) + f->o->len) * 8; i++) {
			f->bytes[i / 8] ^= (uint8_t)(1u << i % 8);
			assert_int_equal(expand(f), -EIO);
			f->bytes[i / 8] ^= (uint8_t)(1u << i % 8);
		}
		assert_int_equal(expand(f), 0);
	}
}

/* With a right checksum and a wrong meaning: a writer of another version. */
static void unknown_forms_are_refused(void **state)
{
	struct fixture *f = *state;

	make_zstd(f);
	f->o->codec = 2;
	object_reseal(f->o, SEQ);
	assert_int_equal(expand(f), -EIO);
	f->o->codec = OBJECT_RAW;
	object_reseal(f->o, SEQ);
	assert_int_equal(expand(f), -EIO);
	f->o->codec = OBJECT_ZSTD;
	f->o->dict = 1;
	object_reseal(f->o, SEQ);
	assert_int_equal(expand(f), -EIO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(round_trip, setup, teardown),
		cmocka_unit_test_setup_teardown(identity_is_checked, setup, teardown),
		cmocka_unit_test_setup_teardown(reseal_moves_to_another_segment, setup, teardown),
		cmocka_unit_test_setup_teardown(every_flipped_bit_is_found, setup, teardown),
		cmocka_unit_test_setup_teardown(unknown_forms_are_refused, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

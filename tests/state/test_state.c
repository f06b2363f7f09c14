// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/state/state.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <cmocka.h>

static const struct state_geometry geo = {.nslots = 1000, .nframes = 16, .nplaces = 5};

static struct state *fresh(void)
{
	struct state *s = NULL;

	assert_int_equal(state_new(&s, &geo), 0);
	return s;
}

static void new_state_is_empty(void **state)
{
	struct state *s = fresh();
	struct stat st;

	assert_int_equal(s->nsegments, 21);
	assert_memory_equal(&s->geo, &geo, sizeof(geo));
	for (uint64_t i = 0; i < geo.nslots; i++)
		assert_true(index_is_empty(&s->index[i]));
	for (uint32_t i = 0; i < s->nsegments; i++) {
		assert_int_equal(segment_state_load(&s->segments[i]), SEGMENT_FREE);
		assert_int_equal(segment_where_load(&s->segments[i]).frame, SEGMENT_NONE);
		assert_int_equal(segment_where_load(&s->segments[i]).place, SEGMENT_NONE);
	}
	assert_int_equal(s->header->next_seq, 1);
	assert_int_equal(s->header->index_offset, 4096);
	assert_int_equal(s->header->segments_offset, 4096 + 8192);
	assert_int_equal(s->header->generations_offset, 4096 + 8192 + 4096);
	assert_int_equal(s->header->total_size, 4096 + 8192 + 4096 + 4096);
	/* All of it is there: nothing is left to ask of the system later. */
	assert_int_equal(fstat(s->fd, &st), 0);
	assert_int_equal(st.st_size, s->header->total_size);
	assert_true(st.st_blocks * 512 >= st.st_size);
	/* And nobody can take it away. */
	assert_int_equal(ftruncate(s->fd, 4096), -1);
	state_free(s);
}

static void geometry_is_limited(void **state)
{
	static const struct state_geometry bad[] = {
		{.nslots = 0, .nframes = 1, .nplaces = 1},
		{.nslots = SLOTS_MAX + 1, .nframes = 1, .nplaces = 1},
		{.nslots = 1, .nframes = 0, .nplaces = 1},
		{.nslots = 1, .nframes = UINT32_MAX, .nplaces = 1},
		{.nslots = 1, .nframes = 1, .nplaces = UINT32_MAX},
	};
	struct state_geometry small = {.nslots = 1, .nframes = 1, .nplaces = 0};
	struct state *s = (struct state *)&small;

	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(state_new(&s, &bad[i]), -EINVAL);
		assert_ptr_equal(s, &small); /* untouched */
	}
	assert_int_equal(state_new(&s, &small), 0);
	assert_int_equal(s->nsegments, 1);
	state_free(s);
	state_free(NULL);
}

/* Writes a state, closes it, and keeps a descriptor of it. */
static int left_behind(void)
{
	struct state *s = fresh();
	int fd = dup(s->fd);

	index_publish(&s->index[999], index_make_same(42));
	segment_pin(&s->segments[20]);
	segment_store_read_begin(&s->segments[20]);
	s->segments[20].dead = 1;
	s->segments[20].seq = 1234;
	state_free(s);
	return fd;
}

static void attach_finds_what_was_left(void **state)
{
	struct state *s = NULL;

	assert_int_equal(state_attach(&s, left_behind()), 0);
	state_take_over(s);
	assert_memory_equal(&s->geo, &geo, sizeof(geo));
	assert_int_equal(s->nsegments, 21);
	assert_true(index_load(&s->index[999]) == index_make_same(42));
	assert_int_equal(s->segments[20].seq, 1234);
	/* What belonged to the process is gone with it. */
	assert_false(segment_pinned(&s->segments[20]));
	assert_false(segment_store_reading(&s->segments[20]));
	assert_int_equal(s->segments[20].dead, 0);
	state_free(s);
}

static uint64_t sum_of(int fd)
{
	struct stat st;
	uint64_t sum;
	void *p;

	assert_int_equal(fstat(fd, &st), 0);
	p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(p, MAP_FAILED);
	sum = XXH3_64bits(p, (size_t)st.st_size);
	munmap(p, (size_t)st.st_size);
	return sum;
}

/* Somebody else may be at work. */
static void attaching_and_leaving_write_nothing(void **state)
{
	int fd = left_behind();
	uint64_t before = sum_of(fd);
	struct state *s = NULL;

	assert_int_equal(state_attach(&s, dup(fd)), 0);
	assert_true(segment_pinned(&s->segments[20]));
	state_free(s);
	assert_true(sum_of(fd) == before);
	close(fd);
}

static void two_share_what_they_attach(void **state)
{
	struct state *a = NULL, *b = NULL;
	int fd = left_behind();

	assert_int_equal(state_attach(&a, dup(fd)), 0);
	assert_int_equal(state_attach(&b, fd), 0);
	generation_begin(a->generations, 15);
	index_publish(&a->index[3], index_make_same(7));
	assert_int_equal(generation_load(b->generations, 15), 1);
	assert_true(index_load(&b->index[3]) == index_make_same(7));
	state_free(a);
	state_free(b);
}

static void generations_do_not_repeat(void **state)
{
	struct state *s = fresh();
	struct generations *g = s->generations;

	assert_int_equal(generation_last(g), 0);
	generation_begin(g, 0);
	generation_begin(g, 7);
	assert_int_equal(generation_load(g, 0), 1);
	assert_int_equal(generation_load(g, 7), 2);
	generation_end(g, 7);
	assert_int_equal(generation_load(g, 7), GENERATION_ABSENT);
	generation_begin(g, 7);
	assert_int_equal(generation_load(g, 7), 3);
	generation_raise(g, 2);
	assert_int_equal(generation_last(g), 3);
	generation_raise(g, UINT32_MAX);
	generation_begin(g, 7);
	assert_int_equal(generation_load(g, 7), 1); /* 0 is what is absent */
	/* The last one is inside the state. */
	assert_true((char *)&g->frame[geo.nframes] <= (char *)s->header + state_bytes(s));
	state_free(s);
}

/* A wild write to each byte, after the successor had its look. */
static void a_header_that_is_damaged_later_is_restored(void **state)
{
	for (size_t i = 0; i < offsetof(struct state_header, next_seq); i++) {
		struct state_header before;
		struct state *s = NULL;
		int fd = left_behind();
		uint8_t byte;

		assert_int_equal(state_attach(&s, fd), 0);
		before = *s->header;
		byte = ((uint8_t *)&before)[i] ^ 0xff;
		assert_int_equal(pwrite(fd, &byte, 1, (off_t)i), 1);
		assert_true(state_bytes(s) == before.total_size);
		state_take_over(s);
		assert_memory_equal(s->header, &before, sizeof(before));
		assert_true(index_load(&s->index[999]) == index_make_same(42));
		fd = dup(fd);
		state_free(s);
		/* For who comes next, too. */
		assert_int_equal(state_attach(&s, fd), 0);
		state_free(s);
	}
}

static void an_owner_is_found_again(void **state)
{
	struct state_owner owner = {.device = "/dev/ublkb7", .store = {1, 2, 3}}, found;
	struct state *s = fresh();
	int fd = dup(s->fd);

	assert_int_equal(state_read_owner(fd, &found), 0);
	assert_string_equal(found.device, "");
	state_set_owner(s, &owner);
	state_free(s);
	assert_int_equal(state_read_owner(fd, &found), 0);
	assert_memory_equal(&found, &owner, sizeof(owner));
	/* Whatever is written there, it is a string. */
	memset(owner.device, 'x', sizeof(owner.device));
	assert_int_equal(pwrite(fd, &owner, sizeof(owner), offsetof(struct state_header, owner)),
			 sizeof(owner));
	assert_int_equal(state_read_owner(fd, &found), 0);
	assert_int_equal(strlen(found.device), STATE_DEVICE_MAX - 1);
	assert_int_equal(ftruncate(fd, 100), -1); /* sealed */
	close(fd);
	fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_int_equal(state_read_owner(fd, &found), -EBADMSG);
	close(fd);
}

static void expect_refused(int fd)
{
	struct state *s = NULL;

	assert_int_equal(state_attach(&s, fd), -EBADMSG);
	assert_null(s);
	/* Still ours. */
	assert_int_equal(close(fd), 0);
}

static void write_header(int fd, struct state_header *h, bool fix_checksum)
{
	if (fix_checksum)
		h->checksum = XXH3_64bits(h, offsetof(struct state_header, checksum));
	assert_int_equal(pwrite(fd, h, sizeof(*h), 0), sizeof(*h));
}

static void every_damaged_byte_is_refused(void **state)
{
	/* Up to and with the checksum; behind it is what changes while the state is in use. */
	for (size_t i = 0; i < offsetof(struct state_header, next_seq); i++) {
		struct state_header h;
		int fd = left_behind();

		assert_int_equal(pread(fd, &h, sizeof(h), 0), sizeof(h));
		((uint8_t *)&h)[i] ^= 0x10;
		write_header(fd, &h, false);
		expect_refused(fd);
	}
}

/* Wrong values behind a right checksum, in every field. */
static void every_wrong_field_is_refused(void **state)
{
	static const size_t fields[] = {
		offsetof(struct state_header, magic),
		offsetof(struct state_header, version),
		offsetof(struct state_header, header_size),
		offsetof(struct state_header, nslots),
		offsetof(struct state_header, nsegments),
		offsetof(struct state_header, nframes),
		offsetof(struct state_header, nplaces),
		offsetof(struct state_header, reserved),
		offsetof(struct state_header, index_offset),
		offsetof(struct state_header, segments_offset),
		offsetof(struct state_header, generations_offset),
		offsetof(struct state_header, total_size),
	};
	static const uint32_t values[] = {0, 2000, UINT32_MAX};

	for (unsigned i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		for (unsigned k = 0; k < 3; k++) {
			struct state_header h;
			int fd = left_behind();

			assert_int_equal(pread(fd, &h, sizeof(h), 0), sizeof(h));
			if (!memcmp((uint8_t *)&h + fields[i], &values[k], 4)) {
				close(fd); /* `reserved` is 0 already */
				continue;
			}
			memcpy((uint8_t *)&h + fields[i], &values[k], 4);
			write_header(fd, &h, true);
			expect_refused(fd);
		}
	}
}

static int memfd_of(const void *bytes, size_t len, off_t size)
{
	int fd = memfd_create("test", 0);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, size), 0);
	assert_int_equal(pwrite(fd, bytes, len, 0), len);
	return fd;
}

static void wrong_sizes_are_refused(void **state)
{
	struct state_header h;
	int fd = left_behind();

	assert_int_equal(pread(fd, &h, sizeof(h), 0), sizeof(h));
	close(fd);
	expect_refused(memfd_of(&h, 0, 0));
	expect_refused(memfd_of(&h, sizeof(h) - 1, sizeof(h) - 1));
	expect_refused(memfd_of(&h, sizeof(h), sizeof(h)));
	expect_refused(memfd_of(&h, sizeof(h), (off_t)h.total_size - 4096));
	expect_refused(memfd_of(&h, sizeof(h), (off_t)h.total_size + 4096));
}

static void not_a_descriptor(void **state)
{
	struct state *s = NULL;

	assert_int_equal(state_attach(&s, 12345), -EBADF);
	assert_null(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(new_state_is_empty),
		cmocka_unit_test(geometry_is_limited),
		cmocka_unit_test(attach_finds_what_was_left),
		cmocka_unit_test(attaching_and_leaving_write_nothing),
		cmocka_unit_test(two_share_what_they_attach),
		cmocka_unit_test(generations_do_not_repeat),
		cmocka_unit_test(a_header_that_is_damaged_later_is_restored),
		cmocka_unit_test(an_owner_is_found_again),
		cmocka_unit_test(every_damaged_byte_is_refused),
		cmocka_unit_test(every_wrong_field_is_refused),
		cmocka_unit_test(wrong_sizes_are_refused),
		cmocka_unit_test(not_a_descriptor),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

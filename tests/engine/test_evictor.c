// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/util.h"
#include "daemon/engine/evictor_internal.h"
#include "daemon/policy/mover.h"
#include "tests/engine/rig.h"
#include "tests/lib/stderr.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <cmocka.h>

#define SLOTS 8192u

static struct segment *segment_of(struct rig *r, uint64_t slot)
{
	return &r->e->state->segments[rig_segment(r, slot)];
}

/* Slots 0 to n - 1 in one sealed segment. */
static struct segment *one_segment(struct rig *r, uint64_t n)
{
	for (uint64_t slot = 0; slot < n; slot++)
		assert_int_equal(rig_write(r, slot, rig_seed(slot, KIND_WORDS)), 0);
	assert_int_equal(rig_segment(r, 0), rig_segment(r, n - 1));
	rig_seal(r);
	return segment_of(r, 0);
}

static void expect_pages(struct rig *r, uint64_t from, uint64_t to)
{
	for (uint64_t slot = from; slot < to; slot++)
		assert_int_equal(rig_read(r, slot, rig_seed(slot, KIND_WORDS)), 0);
}

static uint8_t *bytes_of(struct rig *r, uint64_t slot)
{
	uint64_t word = index_load(&r->e->state->index[slot]);
	struct segment_where where = segment_where_load(segment_of(r, slot));

	assert_int_not_equal(where.frame, SEGMENT_NONE);
	return front_frame(r->e->front, where.frame) + index_offset(word);
}

/* Changes a byte of the slot's object in the store, behind the engine's back. */
static void damage_in_store(struct rig *r, uint64_t slot, uint32_t byte, uint8_t value)
{
	uint64_t word = index_load(&r->e->state->index[slot]);
	struct segment_where where = segment_where_load(segment_of(r, slot));
	char path[64];
	int fd;

	assert_int_not_equal(where.place, SEGMENT_NONE);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", r->o.store.fd);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, &value, 1,
				(off_t)where.place * SEGMENT_SIZE + index_offset(word) + byte),
			 1);
	assert_int_equal(fsync(fd), 0);
	close(fd);
}

static void write_back(void **state)
{
	struct segment *s;
	struct rig r;

	rig_init(&r, SLOTS, 9, 8);
	s = one_segment(&r, 200);
	assert_int_equal(segment_state_load(s), SEGMENT_SEALED);
	assert_int_equal(segment_where_load(s).place, SEGMENT_NONE);
	rig_write_back(&r, 0);
	assert_int_equal(segment_state_load(s), SEGMENT_STORED);
	assert_int_equal(segment_where_load(s).frame, SEGMENT_NONE);
	assert_int_equal(segment_where_load(s).place, 0);
	assert_int_equal(rig_counter(&r, CTR_slots_stored), 200);
	assert_int_equal(rig_counter(&r, CTR_slots_resident), 0);
	assert_int_equal(rig_counter(&r, CTR_pages_written_back_total), 200);
	assert_int_equal(rig_counter(&r, CTR_segments_written_total), 1);
	assert_int_equal(rig_counter(&r, CTR_store_write_requests_total), 1);
	assert_int_equal(rig_counter(&r, CTR_store_used_bytes), SEGMENT_SIZE);
	assert_int_equal(rig_counter(&r, CTR_store_write_bytes_total), align_up(s->used, 4096));
	expect_pages(&r, 0, 200);
	assert_int_equal(rig_counter(&r, CTR_pages_read_stored_total), 200);
	/* The last page gone, the place comes back. */
	assert_int_equal(rig_discard(&r, 0, 200), 0);
	evictor_reap(r.v);
	assert_int_equal(segment_state_load(s), SEGMENT_FREE);
	assert_int_equal(rig_counter(&r, CTR_store_used_bytes), 0);
	assert_int_equal(rig_counter(&r, CTR_slots_stored), 0);
	rig_deinit(&r);
}

/* A segment that dies while it is being written is freed afterwards, place and all. */
static void discarded_under_way(void **state)
{
	uint32_t id;
	struct rig r;

	rig_init(&r, SLOTS, 9, 8);
	one_segment(&r, 200);
	id = rig_segment(&r, 0);
	assert_int_equal(evictor_write(r.v, id), 0);
	assert_int_equal(rig_discard(&r, 0, 200), 0);
	for (unsigned i = 0; i < 1000; i++) {
		evictor_wait(r.v, 1000000);
		evictor_reap(r.v);
		if (!evictor_busy(r.v) && r.v->writing == 0)
			break;
	}
	assert_int_equal(segment_state_load(&r.e->state->segments[id]), SEGMENT_FREE);
	assert_int_equal(rig_counter(&r, CTR_store_used_bytes), 0);
	rig_deinit(&r);
}

static void second_chance(void **state)
{
	uint32_t old;
	struct rig r;

	rig_init(&r, SLOTS, 9, 8);
	one_segment(&r, 200);
	old = rig_segment(&r, 0);
	expect_pages(&r, 50, 60);
	assert_true(evictor_spare_referenced(r.v, old) > 0);
	for (uint64_t slot = 0; slot < 200; slot++)
		assert_int_equal(rig_segment(&r, slot) == old, slot < 50 || slot >= 60);
	assert_int_equal(rig_counter(&r, CTR_pages_cleaned_total), 10);
	/* Their marks are gone: another chance must be earned. */
	for (uint64_t slot = 50; slot < 60; slot++)
		assert_int_equal(index_load(&r.e->state->index[slot]) & INDEX_REF, 0);
	expect_pages(&r, 0, 200);
	rig_deinit(&r);
}

static void where_all_are_referenced_none_is(void **state)
{
	uint32_t old;
	struct rig r;

	rig_init(&r, SLOTS, 9, 8);
	one_segment(&r, 200);
	old = rig_segment(&r, 0);
	expect_pages(&r, 0, 150);
	assert_true(evictor_spare_referenced(r.v, old) > 0);
	for (uint64_t slot = 0; slot < 200; slot++) {
		assert_int_equal(rig_segment(&r, slot), old);
		assert_int_equal(index_load(&r.e->state->index[slot]) & INDEX_REF, 0);
	}
	rig_deinit(&r);
}

static void clean_in_memory(void **state)
{
	struct segment *s;
	struct rig r;

	rig_init(&r, SLOTS, 9, 0);
	s = one_segment(&r, 200);
	assert_int_equal(rig_discard(&r, 10, 180), 0);
	assert_int_equal(evictor_clean_memory(r.v, rig_segment(&r, 0)), 0);
	assert_int_equal(segment_live_objects(s), 0);
	evictor_reap(r.v);
	assert_int_equal(segment_state_load(s), SEGMENT_FREE);
	expect_pages(&r, 0, 10);
	expect_pages(&r, 190, 200);
	assert_int_equal(rig_counter(&r, CTR_segments_cleaned_total), 1);
	assert_int_equal(rig_counter(&r, CTR_pages_cleaned_total), 20);
	assert_int_equal(rig_counter(&r, CTR_slots_resident), 20);
	rig_deinit(&r);
}

static void clean_in_the_store(void **state)
{
	struct segment *s;
	struct rig r;

	rig_init(&r, SLOTS, 9, 8);
	s = one_segment(&r, 200);
	rig_write_back(&r, 0);
	assert_int_equal(rig_discard(&r, 10, 180), 0);
	assert_int_equal(evictor_clean_store(r.v, rig_segment(&r, 0)), 0);
	evictor_reap(r.v);
	assert_int_equal(segment_state_load(s), SEGMENT_FREE);
	assert_int_equal(segment_of(&r, 0)->kind, SEGMENT_SURVIVOR);
	expect_pages(&r, 0, 10);
	expect_pages(&r, 190, 200);
	assert_int_equal(rig_counter(&r, CTR_slots_resident), 20);
	assert_int_equal(rig_counter(&r, CTR_slots_stored), 0);
	assert_int_equal(rig_counter(&r, CTR_store_used_bytes), 0);
	assert_true(rig_counter(&r, CTR_store_clean_read_bytes_total) > 0);
	rig_deinit(&r);
}

static uint64_t memory_of(struct rig *r)
{
	struct stat st;

	assert_int_equal(fstat(engine_front_fd(r->e), &st), 0);
	return (uint64_t)st.st_blocks * 512;
}

static void memory_goes_back(void **state)
{
	uint64_t least;
	struct rig r;

	rig_init(&r, SLOTS, 32, 8);
	least = rig_counter(&r, CTR_memory_used_bytes);
	assert_int_equal(memory_of(&r), least);
	while (evictor_grow(r.v) == 0)
		;
	assert_int_equal(memory_of(&r), MIB(32));
	assert_int_equal(rig_counter(&r, CTR_memory_used_bytes), MIB(32));
	/* Filled, written to the store (registered buffers), emptied. */
	for (uint64_t slot = 0; slot < 2000; slot++)
		assert_int_equal(rig_write(&r, slot, rig_seed(slot, KIND_RAW)), 0);
	rig_seal(&r);
	rig_write_back(&r, 0);
	assert_int_equal(rig_discard(&r, 0, SLOTS), 0);
	mover_round(r.v, true);
	assert_true(memory_of(&r) <= 2 * least);
	assert_int_equal(rig_counter(&r, CTR_memory_used_bytes), memory_of(&r));
	assert_false(evictor_shrink(r.v, 31));
	rig_deinit(&r);
}

/* After damage: EIO for this slot at each read, counted, and all others unharmed. */
static void expect_damage(struct rig *r, uint64_t slot, uint64_t n)
{
	uint64_t before = rig_counter(r, CTR_checksum_failures_total);

	assert_int_equal(rig_read(r, slot, 0), -EIO);
	assert_int_equal(rig_read(r, slot, 0), -EIO);
	assert_int_equal(rig_counter(r, CTR_checksum_failures_total), before + 2);
	expect_pages(r, 0, slot);
	expect_pages(r, slot + 1, n);
}

/* After cleaning as well; a new page in the slot makes all well again. */
static void expect_lost(struct rig *r, uint64_t slot, uint64_t n)
{
	assert_int_equal(index_load(&r->e->state->index[slot]), INDEX_LOST);
	assert_int_equal(rig_counter(r, CTR_slots_lost), 1);
	assert_int_equal(rig_read(r, slot, 0), -EIO);
	expect_pages(r, 0, slot);
	expect_pages(r, slot + 1, n);
	assert_int_equal(rig_write(r, slot, rig_seed(slot, KIND_WORDS)), 0);
	assert_int_equal(rig_counter(r, CTR_slots_lost), 0);
	expect_pages(r, 0, n);
}

static void damage_in_memory(void **state)
{
	struct rig r;

	rig_init(&r, SLOTS, 9, 0);
	one_segment(&r, 200);
	bytes_of(&r, 77)[40] ^= 1;
	expect_damage(&r, 77, 200);
	assert_int_equal(evictor_clean_memory(r.v, rig_segment(&r, 77)), 0);
	expect_lost(&r, 77, 200);
	rig_deinit(&r);
}

static void damage_in_the_store(void **state)
{
	struct rig r;

	rig_init(&r, SLOTS, 9, 8);
	one_segment(&r, 200);
	rig_write_back(&r, 0);
	damage_in_store(&r, 77, 40, 0x5a);
	expect_damage(&r, 77, 200);
	assert_int_equal(evictor_clean_store(r.v, rig_segment(&r, 77)), 0);
	expect_lost(&r, 77, 200);
	rig_deinit(&r);
}

/* A damaged page does not stay damaged by being discarded. */
static void discard_of_a_lost_slot(void **state)
{
	struct rig r;

	rig_init(&r, SLOTS, 9, 0);
	one_segment(&r, 20);
	bytes_of(&r, 7)[40] ^= 1;
	assert_int_equal(evictor_clean_memory(r.v, rig_segment(&r, 7)), 0);
	assert_int_equal(rig_counter(&r, CTR_slots_lost), 1);
	assert_int_equal(rig_discard(&r, 7, 1), 0);
	assert_int_equal(rig_counter(&r, CTR_slots_lost), 0);
	assert_int_equal(rig_read(&r, 7, 0), 0);
	rig_deinit(&r);
}

/* Every byte of a header in the middle: what is behind must be found without it. */
static void damaged_header_in_the_middle(void **state)
{
	for (unsigned stored = 0; stored < 2; stored++) {
		for (uint32_t byte = 0; byte < sizeof(struct object); byte++) {
			uint8_t value;
			struct rig r;

			rig_init(&r, SLOTS, 9, 8);
			one_segment(&r, 200);
			value = bytes_of(&r, 77)[byte] ^ 0xff;
			if (stored) {
				rig_write_back(&r, 0);
				damage_in_store(&r, 77, byte, value);
				assert_int_equal(evictor_clean_store(r.v, rig_segment(&r, 0)), 0);
			} else {
				bytes_of(&r, 77)[byte] = value;
				assert_int_equal(evictor_clean_memory(r.v, rig_segment(&r, 0)), 0);
			}
			expect_lost(&r, 77, 200);
			rig_deinit(&r);
		}
	}
}

/* A header that names another live slot must not drag that one along. */
static void header_names_another_slot(void **state)
{
	uint32_t other = 3;
	struct rig r;

	rig_init(&r, SLOTS, 9, 0);
	one_segment(&r, 200);
	memcpy(bytes_of(&r, 77) + offsetof(struct object, slot), &other, 4);
	assert_int_equal(evictor_clean_memory(r.v, rig_segment(&r, 0)), 0);
	expect_lost(&r, 77, 200);
	rig_deinit(&r);
}

/* The slower of two that saw the segment empty pushes it when it is somebody else's already. */
static void a_late_push_is_harmless(void **state)
{
	uint32_t id;
	struct rig r;

	rig_init(&r, SLOTS, 9, 0);
	assert_int_equal(rig_write(&r, 1, rig_seed(1, KIND_WORDS)), 0);
	id = rig_segment(&r, 1);
	engine_push_dead(r.e, id); /* open, with something live */
	evictor_reap(r.v);
	assert_int_equal(rig_read(&r, 1, rig_seed(1, KIND_WORDS)), 0);
	assert_int_equal(rig_discard(&r, 1, 1), 0);
	engine_push_dead(r.e, id); /* open, with nothing live */
	evictor_reap(r.v);
	assert_int_equal(segment_state_load(&r.e->state->segments[id]), SEGMENT_OPEN);
	rig_seal(&r); /* really dead now: not overlooked for having been pushed before */
	evictor_reap(r.v);
	assert_int_equal(segment_state_load(&r.e->state->segments[id]), SEGMENT_FREE);
	engine_push_dead(r.e, id); /* free */
	evictor_reap(r.v);
	for (uint64_t slot = 0; slot < 200; slot++)
		assert_int_equal(rig_write(&r, slot, rig_seed(slot, KIND_WORDS)), 0);
	expect_pages(&r, 0, 200);
	assert_false(evictor_busy(r.v));
	rig_deinit(&r);
}

/*
 * A data thread that has replaced the word of the last object and has not credited the segment yet:
 * cleaning must wait for it, however long it takes.
 */
static void a_credit_under_way_is_waited_for(void **state)
{
	struct segment *s;
	uint64_t word;
	struct rig r;

	rig_init(&r, SLOTS, 9, 0);
	s = one_segment(&r, 20);
	atomic_fetch_add(&r.q->slot->turn, 1);
	word = index_exchange(&r.e->state->index[7], INDEX_EMPTY);
	assert_int_equal(evictor_clean_memory(r.v, index_segment(word)), 0);
	for (unsigned i = 0; i < 3; i++) {
		struct survey survey;

		evictor_reap(r.v);
		assert_int_equal(segment_state_load(s), SEGMENT_SEALED);
		assert_int_equal(segment_live_objects(s), 1);
		assert_true(evictor_busy(r.v));
		/* It is no victim meanwhile, but a frame that will come. */
		evictor_survey(r.v, &survey);
		assert_int_equal(survey.sparsest.id, SEGMENT_NONE);
		assert_int_equal(survey.next.id, SEGMENT_NONE);
		assert_int_equal(survey.frames_coming, 1);
	}
	engine_release_word(r.e, word);
	atomic_fetch_add(&r.q->slot->turn, 1);
	evictor_reap(r.v);
	assert_int_equal(segment_state_load(s), SEGMENT_FREE);
	assert_false(evictor_busy(r.v));
	assert_int_equal(rig_read(&r, 7, 0), 0);
	expect_pages(&r, 0, 7);
	expect_pages(&r, 8, 20);
	rig_deinit(&r);
}

/* An object that is counted and that no word names, however it came about. */
static void a_stray_is_dropped(void **state)
{
	struct segment *s;
	struct rig r;

	for (unsigned stored = 0; stored < 2; stored++) {
		rig_init(&r, SLOTS, 9, 8);
		s = one_segment(&r, 20);
		index_publish(&r.e->state->index[7], INDEX_EMPTY);
		if (stored) {
			rig_write_back(&r, 0);
			assert_int_equal(evictor_clean_store(r.v, rig_segment(&r, 0)), 0);
		} else {
			assert_int_equal(evictor_clean_memory(r.v, rig_segment(&r, 0)), 0);
		}
		assert_int_equal(segment_live_objects(s), 1);
		evictor_reap(r.v);
		assert_int_equal(segment_state_load(s), SEGMENT_FREE);
		assert_int_equal(rig_counter(&r, CTR_slots_resident), 19);
		expect_pages(&r, 0, 7);
		expect_pages(&r, 8, 20);
		rig_deinit(&r);
	}
}

static void ignore(struct engine_request *req)
{
	(void)req;
}

/* While the device reads a page, its place is nobody else's, dead or not. */
static void a_read_under_way_holds_the_place(void **state)
{
	struct engine_request read = {.op = ENGINE_READ, .slot = 5, .count = 1, .complete = ignore};
	struct engine_request drop = {
		.op = ENGINE_DISCARD, .slot = 0, .count = 20, .complete = ignore};
	struct engine_request *batch[] = {&read};
	struct segment *s;
	struct rig r;

	rig_init(&r, SLOTS, 9, 8);
	s = one_segment(&r, 20);
	rig_write_back(&r, 5);
	read.data = r.data;
	engine_submit(r.q, batch, 1);
	assert_true(segment_store_reading(s));
	assert_false(segment_pinned(s));
	batch[0] = &drop;
	engine_submit(r.q, batch, 1);
	assert_int_equal(segment_live_objects(s), 0);
	evictor_reap(r.v);
	assert_int_equal(segment_state_load(s), SEGMENT_STORED);
	assert_true(evictor_busy(r.v));
	r.mover = false;
	rig_settle(&r);
	assert_int_equal(read.error, 0);
	assert_true(page_is(rig_seed(5, KIND_WORDS), r.data));
	evictor_reap(r.v);
	assert_int_equal(segment_state_load(s), SEGMENT_FREE);
	rig_deinit(&r);
}

/* A reader in the middle of its batch has the segment pinned. */
static void a_pin_holds_frame_and_record(void **state)
{
	struct segment *s;
	struct survey survey;
	uint32_t free_before;
	struct rig r;

	rig_init(&r, SLOTS, 9, 8);
	s = one_segment(&r, 20);
	segment_pin(s);
	free_before = idstack_count(&r.e->front->free);
	rig_write_back(&r, 0);
	assert_true(evictor_busy(r.v));
	assert_int_equal(idstack_count(&r.e->front->free), free_before);
	evictor_survey(r.v, &survey);
	assert_int_equal(survey.frames_coming, 1);
	assert_int_equal(rig_discard(&r, 0, 20), 0);
	evictor_reap(r.v);
	assert_int_equal(segment_state_load(s), SEGMENT_STORED);
	segment_unpin(s);
	evictor_reap(r.v);
	assert_int_equal(segment_state_load(s), SEGMENT_FREE);
	assert_int_equal(idstack_count(&r.e->front->free), free_before + 1);
	assert_false(evictor_busy(r.v));
	/* In memory, and dead: a frame that is coming. */
	s = one_segment(&r, 20);
	segment_pin(s);
	assert_int_equal(rig_discard(&r, 0, 20), 0);
	evictor_reap(r.v);
	evictor_survey(r.v, &survey);
	assert_int_equal(survey.frames_coming, 1);
	segment_unpin(s);
	evictor_reap(r.v);
	assert_int_equal(segment_state_load(s), SEGMENT_FREE);
	rig_deinit(&r);
}

/*
 * The completion that a kick causes may be reaped in the middle of a round.  Neither that kick nor
 * one that comes after the round's last look may leave the mover asleep.
 */
static void no_kick_is_lost(void **state)
{
	uint64_t start;
	struct rig r;

	for (unsigned again = 0; again < 2; again++) {
		rig_init(&r, SLOTS, 9, 0);
		while (evictor_wait(r.v, 0))
			;
		assert_true(r.v->kick_armed);
		engine_kick_mover(r.e);
		for (unsigned i = 0; i < 1000 && r.v->kick_armed; i++) {
			evictor_reap(r.v);
			usleep(100);
		}
		assert_false(r.v->kick_armed);
		if (again)
			engine_kick_mover(r.e);
		start = now_ns();
		assert_true(evictor_wait(r.v, 20000000000ull));
		assert_true(now_ns() - start < 10000000000ull);
		/* And then it does sleep. */
		while (evictor_wait(r.v, 1000000))
			assert_true(now_ns() - start < 10000000000ull);
		rig_deinit(&r);
	}
}

static void reopen(struct rig *r)
{
	int fds[2];

	rig_close(r, fds);
	r->o.state_fd = fds[0];
	r->o.front_fd = fds[1];
	rig_open(r);
}

static void takeover(void **state)
{
	uint64_t memory;
	struct stat st;
	struct rig r;

	rig_init(&r, SLOTS, 16, 8);
	while (evictor_grow(r.v) == 0)
		;
	one_segment(&r, 200);
	rig_write_back(&r, 0);
	for (uint64_t slot = 200; slot < 400; slot++)
		assert_int_equal(rig_write(&r, slot, rig_seed(slot, KIND_WORDS)), 0);
	assert_int_equal(rig_write(&r, 400, rig_seed(400, KIND_SAME)), 0);
	memory = rig_counter(&r, CTR_memory_used_bytes);
	reopen(&r);
	assert_int_equal(rig_counter(&r, CTR_takeovers_total), 1);
	assert_int_equal(rig_counter(&r, CTR_slots_stored), 200);
	assert_int_equal(rig_counter(&r, CTR_slots_resident), 200);
	assert_int_equal(rig_counter(&r, CTR_slots_same_filled), 1);
	assert_int_equal(rig_counter(&r, CTR_store_used_bytes), SEGMENT_SIZE);
	/* What was free still is, so that the first writes need not wait for memory. */
	assert_int_equal(rig_counter(&r, CTR_memory_used_bytes), memory);
	assert_int_equal(fstat(engine_front_fd(r.e), &st), 0);
	assert_int_equal((uint64_t)st.st_blocks * 512, rig_counter(&r, CTR_memory_used_bytes));
	expect_pages(&r, 0, 400);
	assert_int_equal(rig_read(&r, 400, rig_seed(400, KIND_SAME)), 0);
	rig_deinit(&r);
}

/* Each phase in which a process can die. */
static void takeover_in_every_phase(void **state)
{
	static const struct {
		enum segment_state phase;
		bool frame, place;
	} phases[] = {
		{SEGMENT_OPEN, true, false},  {SEGMENT_SEALED, true, false},
		{SEGMENT_SEALED, true, true}, {SEGMENT_WRITING, true, true},
		{SEGMENT_STORED, true, true}, {SEGMENT_STORED, false, true},
	};

	for (unsigned i = 0; i < ARRAY_SIZE(phases); i++) {
		bool in_memory = phases[i].phase != SEGMENT_STORED;
		struct segment_where where;
		uint32_t frame, id, place;
		struct segment *s;
		struct rig r;
		int fds[2];

		rig_init(&r, SLOTS, 9, 8);
		s = one_segment(&r, 200);
		id = rig_segment(&r, 0);
		frame = segment_where_load(s).frame;
		rig_write_back(&r, 0);
		place = segment_where_load(s).place;
		rig_close(&r, fds);
		r.o.state_fd = fds[0];
		r.o.front_fd = fds[1];
		/* As the dead process would have left it; the frame still has the bytes. */
		{
			struct state *st;

			assert_int_equal(state_attach(&st, dup(fds[0])), 0);
			s = &st->segments[id];
			segment_where_set(s, phases[i].frame ? frame : SEGMENT_NONE,
					  phases[i].place ? place : SEGMENT_NONE);
			segment_state_set(s, phases[i].phase);
			if (phases[i].phase == SEGMENT_OPEN)
				s->used = 0;
			state_free(st);
		}
		assert_int_equal(engine_new(&r.e, &r.o), 0);
		where = segment_where_load(&r.e->state->segments[id]);
		assert_int_equal(where.frame != SEGMENT_NONE, in_memory);
		/* Reopened once more, as the evictor comes with it. */
		fds[0] = dup(engine_state_fd(r.e));
		fds[1] = dup(engine_front_fd(r.e));
		engine_free(r.e);
		r.o.state_fd = fds[0];
		r.o.front_fd = fds[1];
		rig_open(&r);
		assert_int_equal(rig_counter(&r, CTR_store_used_bytes),
				 phases[i].place ? SEGMENT_SIZE : 0);
		expect_pages(&r, 0, 200);
		if (in_memory)
			assert_int_equal(evictor_clean_memory(r.v, id), 0);
		else
			assert_int_equal(evictor_clean_store(r.v, id), 0);
		rig_settle(&r);
		evictor_reap(r.v);
		/* Nothing else goes soon to a place that may still be written to. */
		if (in_memory && phases[i].place)
			assert_int_equal(r.v->places[0], place);
		expect_pages(&r, 0, 200);
		rig_deinit(&r);
	}
}

/*
 * The write of a dead process may come at any time: to the place of these bytes and no others, from
 * memory that has become nobody else's.
 */
static void a_write_under_way_at_the_death(void **state)
{
	uint32_t frame, id, place, present;
	struct segment *s;
	struct state *st;
	struct rig r;
	int fds[2];

	rig_init(&r, SLOTS, 9, 8);
	one_segment(&r, 200);
	id = rig_segment(&r, 0);
	rig_close(&r, fds);
	r.o.state_fd = fds[0];
	r.o.front_fd = fds[1];
	assert_int_equal(state_attach(&st, dup(fds[0])), 0);
	s = &st->segments[id];
	frame = segment_where_load(s).frame;
	place = 5;
	segment_where_set(s, frame, place);
	segment_state_set(s, SEGMENT_WRITING);
	state_free(st);
	rig_open(&r);
	s = &r.e->state->segments[id];
	present = front_present(r.e->front);
	assert_int_equal(segment_where_load(s).place, place);
	for (uint32_t i = 0; i < r.v->nplaces; i++)
		assert_int_not_equal(r.v->places[i], place);
	rig_write_back(&r, 0);
	assert_int_equal(segment_state_load(s), SEGMENT_STORED);
	assert_int_equal(segment_where_load(s).place, place);
	/* The frame's pages are not in the tier any more. */
	assert_int_equal(front_present(r.e->front), present - 1);
	assert_int_equal(generation_load(r.e->front->generations, frame), GENERATION_ABSENT);
	expect_pages(&r, 0, 200);
	rig_deinit(&r);
}

static void takeover_needs_the_same_device_and_store(void **state)
{
	struct engine *e = NULL;
	struct rig r;
	int fds[2];

	rig_init(&r, SLOTS, 16, 8);
	one_segment(&r, 20);
	rig_close(&r, fds);
	r.o.state_fd = fds[0];
	r.o.front_fd = fds[1];
	r.o.device_bytes -= PAGE_BYTES;
	assert_int_equal(engine_new(&e, &r.o), -EBADMSG);
	r.o.device_bytes += PAGE_BYTES;
	r.o.store.nplaces--;
	assert_int_equal(engine_new(&e, &r.o), -EBADMSG);
	r.o.store.nplaces++;
	r.o.front_fd = fds[0];
	assert_int_equal(engine_new(&e, &r.o), -EBADMSG);
	assert_null(e);
	/* None of these has touched what was to be taken over. */
	r.o.front_fd = fds[1];
	rig_open(&r);
	expect_pages(&r, 0, 20);
	rig_deinit(&r);
}

/* Reads a little out of a full pipe, or writes a little into an empty one, after a while. */
struct late {
	int fd;
	bool reads;
};

static void *answer_late(void *arg)
{
	const struct timespec nap = {.tv_sec = 7};
	struct late *late = arg;
	char buf[4096] = {0};

	nanosleep(&nap, NULL);
	while (late->reads ? read(late->fd, buf, sizeof(buf)) == sizeof(buf)
			   : write(late->fd, buf, sizeof(buf)) < 0)
		;
	return NULL;
}

/* A mover of its own for the engine, with a device that only answers after some seconds. */
static void open_silent(struct rig *r, struct late *late, pthread_t *thread)
{
	int fds[2], own = late->reads ? 0 : 1;
	char buf[4096] = {0};

	assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
	while (late->reads && write(fds[1], buf, sizeof(buf)) > 0)
		;
	late->fd = fds[own];
	/* The engine's end waits, ours does not. */
	assert_int_equal(fcntl(fds[!own], F_SETFL, 0), 0);
	evictor_free(r->v);
	r->e->store.fd = fds[!own];
	assert_int_equal(evictor_new(&r->v, r->e), 0);
	assert_int_equal(pthread_create(thread, NULL, answer_late, late), 0);
}

static void expect_said(const char *first, const char *then)
{
	struct stderr_capture cap;
	char *line;

	stderr_capture_begin(&cap);
	log_drain();
	stderr_capture_end(&cap);
	line = strstr(cap.text, first);
	assert_non_null(line);
	assert_null(strstr(line + 1, first));
	assert_non_null(strstr(line, then));
}

/* One that answers nothing is named, once; and when the answer comes, that is said too. */
static void a_silent_device_is_named(void **state)
{
	struct late late[2] = {{.reads = false}, {.reads = true}};
	pthread_t thread;
	struct rig r;
	int store;

	rig_init(&r, SLOTS, 12, 8);
	one_segment(&r, 200);
	rig_write_back(&r, 0);
	for (uint64_t slot = 300; slot < 500; slot++)
		assert_int_equal(rig_write(&r, slot, rig_seed(slot, KIND_WORDS)), 0);
	rig_seal(&r);
	store = r.e->store.fd;
	for (unsigned i = 0; i < 2; i++) {
		open_silent(&r, &late[i], &thread);
		if (late[i].reads)
			assert_int_equal(evictor_write(r.v, rig_segment(&r, 300)), 0);
		else
			assert_int_equal(evictor_read_segment(r.v, rig_segment(&r, 0)), -EAGAIN);
		while (r.v->writing || r.v->staging_read.out) {
			evictor_wait(r.v, 100000000);
			evictor_reap(r.v);
		}
		pthread_join(thread, NULL);
		expect_said("it has not answered for 5 s, and owes 1 answers", "it answers again");
	}
	evictor_free(r.v);
	r.e->store.fd = store;
	assert_int_equal(evictor_new(&r.v, r.e), 0);
	expect_pages(&r, 0, 200);
	expect_pages(&r, 300, 500);
	rig_deinit(&r);
}

/* A device that fails makes one line and not one a segment, and the mover writes none itself. */
static void failures_are_told_of_once(void **state)
{
	struct stderr_capture cap;
	int store, bad;
	struct rig r;

	rig_init(&r, SLOTS, 16, 8);
	for (unsigned i = 0; i < 5; i++) {
		one_segment(&r, 200);
		rig_write_back(&r, 0);
		for (uint64_t slot = 0; slot < 200; slot++)
			assert_int_equal(rig_write(&r, slot + 1000, rig_seed(slot, KIND_WORDS)), 0);
		rig_seal(&r);
	}
	store = r.e->store.fd;
	bad = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* neither reads nor writes */
	evictor_free(r.v);
	r.e->store.fd = bad;
	assert_int_equal(evictor_new(&r.v, r.e), 0);
	log_drain();
	stderr_capture_begin(&cap);
	for (unsigned i = 0; i < 5; i++) {
		evictor_read_segment(r.v, rig_segment(&r, 0));
		r.v->health = (struct write_health){0}; /* without pauses */
		evictor_write(r.v, rig_segment(&r, 1000));
		while (r.v->writing)
			evictor_wait(r.v, 1000000);
	}
	stderr_capture_end(&cap);
	assert_string_equal(cap.text, "");
	assert_int_equal(rig_counter(&r, CTR_store_read_errors_total), 5);
	assert_int_equal(rig_counter(&r, CTR_store_write_errors_total), 5);
	stderr_capture_begin(&cap);
	log_drain();
	stderr_capture_end(&cap);
	assert_non_null(strstr(cap.text, "the mover's read of"));
	assert_null(strstr(strstr(cap.text, "read of") + 1, "read of"));
	assert_non_null(strstr(cap.text, "store: write of"));
	assert_null(strstr(strstr(cap.text, "write of") + 1, "write of"));
	evictor_free(r.v);
	r.e->store.fd = store;
	assert_int_equal(evictor_new(&r.v, r.e), 0);
	close(bad);
	rig_deinit(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(write_back),
		cmocka_unit_test(discarded_under_way),
		cmocka_unit_test(second_chance),
		cmocka_unit_test(where_all_are_referenced_none_is),
		cmocka_unit_test(clean_in_memory),
		cmocka_unit_test(clean_in_the_store),
		cmocka_unit_test(memory_goes_back),
		cmocka_unit_test(damage_in_memory),
		cmocka_unit_test(damage_in_the_store),
		cmocka_unit_test(discard_of_a_lost_slot),
		cmocka_unit_test(damaged_header_in_the_middle),
		cmocka_unit_test(header_names_another_slot),
		cmocka_unit_test(a_late_push_is_harmless),
		cmocka_unit_test(a_credit_under_way_is_waited_for),
		cmocka_unit_test(a_stray_is_dropped),
		cmocka_unit_test(a_read_under_way_holds_the_place),
		cmocka_unit_test(a_pin_holds_frame_and_record),
		cmocka_unit_test(no_kick_is_lost),
		cmocka_unit_test(takeover),
		cmocka_unit_test(takeover_in_every_phase),
		cmocka_unit_test(a_write_under_way_at_the_death),
		cmocka_unit_test(takeover_needs_the_same_device_and_store),
		cmocka_unit_test(failures_are_told_of_once),
		cmocka_unit_test(a_silent_device_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

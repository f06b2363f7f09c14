// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * An engine that is made while another one works on the same memory, in this process: it must not
 * be noticed, and must take over whatever the other one has done since.  tests/crash does it
 * between processes, of which one is killed.
 */
#include "common/util.h"
#include "daemon/engine/evictor_internal.h"
#include "tests/engine/rig.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <cmocka.h>

#define SLOTS 20000u

static uint64_t sum_of(int fd)
{
	struct stat st;
	uint64_t sum;
	void *p;

	assert_int_equal(fstat(fd, &st), 0);
	/* Read and not mapped: that would fill the holes. */
	p = malloc((size_t)st.st_size);
	assert_non_null(p);
	assert_int_equal(pread(fd, p, (size_t)st.st_size, 0), st.st_size);
	sum = XXH3_64bits_withSeed(p, (size_t)st.st_size, (uint64_t)st.st_blocks);
	free(p);
	return sum;
}

static struct engine *standby_of(struct rig *r)
{
	struct engine_options o = r->o;
	struct engine *e = NULL;

	o.state_fd = dup(engine_state_fd(r->e));
	o.front_fd = dup(engine_front_fd(r->e));
	o.standby = true;
	assert_int_equal(engine_new(&e, &o), 0);
	return e;
}

static void write_pages(struct rig *r, uint64_t first, uint64_t end, unsigned kind)
{
	for (uint64_t slot = first; slot < end; slot++)
		assert_int_equal(rig_write(r, slot, rig_seed(slot, kind)), 0);
}

static void expect_pages(struct rig *r, uint64_t first, uint64_t end, unsigned kind)
{
	for (uint64_t slot = first; slot < end; slot++)
		assert_int_equal(rig_read(r, slot, rig_seed(slot, kind)), 0);
}

/* Something in each phase, with a limit that a takeover would have to correct. */
static void live(struct rig *r)
{
	rig_init(r, SLOTS, 24, 8);
	write_pages(r, 0, 1000, KIND_WORDS);
	rig_seal(r);
	write_pages(r, 1000, 1200, KIND_RAW);
	rig_write_back(r, 0);
	write_pages(r, 1200, 1300, KIND_SAME);
	write_pages(r, 1300, 1400, KIND_WORDS);
	rig_discard(r, 1250, 10);
}

static void expect_life(struct rig *r)
{
	expect_pages(r, 0, 1000, KIND_WORDS);
	expect_pages(r, 1000, 1200, KIND_RAW);
	expect_pages(r, 1200, 1250, KIND_SAME);
	expect_pages(r, 1260, 1300, KIND_SAME);
	expect_pages(r, 1300, 1400, KIND_WORDS);
	for (uint64_t slot = 1250; slot < 1260; slot++)
		assert_int_equal(rig_read(r, slot, 0), 0);
}

static void it_writes_nothing(void **state)
{
	struct engine_queue_options qo = {.requests = 4, .request_pages = 1};
	uint64_t state_sum, front_sum;
	struct engine_queue *q;
	struct ring ring;
	struct engine *e;
	struct rig r;

	live(&r);
	/* What a takeover would reset. */
	segment_pin(&r.e->state->segments[3]);
	r.e->state->header->limit = 1;
	state_sum = sum_of(engine_state_fd(r.e));
	front_sum = sum_of(engine_front_fd(r.e));
	e = standby_of(&r);
	while (engine_standby_hold(e))
		;
	assert_int_equal(ring_init(&ring, 8, r.o.store.fd, 1), 0);
	qo.ring = &ring;
	assert_int_equal(engine_queue_new(&q, e, &qo), 0);
	engine_queue_free(q);
	ring_deinit(&ring);
	engine_free(e);
	assert_true(sum_of(engine_state_fd(r.e)) == state_sum);
	assert_true(sum_of(engine_front_fd(r.e)) == front_sum);
	r.e->state->header->limit = 24;
	segment_unpin(&r.e->state->segments[3]);
	expect_life(&r);
	rig_deinit(&r);
}

static void it_takes_over_what_was_done_since(void **state)
{
	struct engine *e;
	struct rig r;

	live(&r);
	e = standby_of(&r);
	assert_int_equal(engine_set_memory_limit(r.e, MIB(20)), 0);
	write_pages(&r, 1400, 3000, KIND_WORDS);
	rig_discard(&r, 0, 500);
	rig_close(&r, NULL);
	assert_int_equal(engine_take_over(e), 0);
	r.e = e;
	rig_adopt(&r);
	assert_int_equal(engine_check(r.e), 0);
	assert_int_equal(rig_counter(&r, CTR_takeovers_total), 1);
	assert_int_equal(rig_counter(&r, CTR_memory_limit_bytes), MIB(20));
	assert_int_equal(rig_counter(&r, CTR_slots_used), 3000 - 500 - 10);
	assert_int_equal(rig_counter(&r, CTR_slots_same_filled), 90);
	for (uint64_t slot = 0; slot < 500; slot++)
		assert_int_equal(rig_read(&r, slot, 0), 0);
	expect_pages(&r, 500, 1000, KIND_WORDS);
	expect_pages(&r, 1000, 1200, KIND_RAW);
	expect_pages(&r, 1300, 3000, KIND_WORDS);
	/* And lives. */
	write_pages(&r, 3000, 8000, KIND_WORDS);
	expect_pages(&r, 500, 1000, KIND_WORDS);
	expect_pages(&r, 3000, 8000, KIND_WORDS);
	rig_deinit(&r);
}

/* A queue made before serves after. */
static void queues_may_be_made_before(void **state)
{
	struct engine_queue_options qo = {.requests = RIG_REQUESTS,
					  .request_pages = RIG_REQUEST_PAGES};
	struct rig r, successor;

	live(&r);
	successor = r;
	successor.e = standby_of(&r);
	assert_int_equal(ring_init(&successor.ring, 64, r.o.store.fd, 1), 0);
	qo.ring = &successor.ring;
	assert_int_equal(engine_queue_new(&successor.q, successor.e, &qo), 0);
	rig_close(&r, NULL);
	assert_int_equal(engine_take_over(successor.e), 0);
	assert_int_equal(evictor_new(&successor.v, successor.e), 0);
	expect_life(&successor);
	write_pages(&successor, 3000, 5000, KIND_WORDS);
	expect_pages(&successor, 3000, 5000, KIND_WORDS);
	rig_deinit(&successor);
}

static void it_restores_the_header(void **state)
{
	struct engine *e;
	struct rig r;

	live(&r);
	e = standby_of(&r);
	memset(r.e->state->header, 0xa5, offsetof(struct state_header, limit));
	rig_close(&r, NULL);
	assert_int_equal(engine_take_over(e), 0);
	r.e = e;
	/* No number is given out twice, though the next one was damaged as well. */
	r.e->state->header->next_seq = 1;
	{
		int fds[] = {dup(engine_state_fd(e)), dup(engine_front_fd(e))};

		engine_free(e);
		r.o.state_fd = fds[0];
		r.o.front_fd = fds[1];
		rig_open(&r);
	}
	for (uint32_t i = 0; i < r.e->state->nsegments; i++) {
		struct segment *s = &r.e->state->segments[i];

		if (segment_state_load(s) != SEGMENT_FREE)
			assert_true(s->seq < r.e->state->header->next_seq);
	}
	expect_life(&r);
	rig_deinit(&r);
}

static void only_who_stands_by_takes_over(void **state)
{
	struct engine_options o;
	struct engine *e = NULL;
	struct rig r;

	live(&r);
	assert_int_equal(engine_take_over(r.e), -EINVAL);
	assert_false(engine_standby_hold(r.e));
	o = r.o;
	o.standby = true;
	assert_int_equal(engine_new(&e, &o), -EINVAL);
	e = standby_of(&r);
	rig_close(&r, NULL);
	assert_int_equal(engine_take_over(e), 0);
	assert_int_equal(engine_take_over(e), -EINVAL);
	assert_false(engine_standby_hold(e));
	r.e = e;
	rig_adopt(&r);
	expect_life(&r);
	rig_deinit(&r);
}

static bool is_mapped(const struct engine *e, uint32_t frame)
{
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	uint64_t entries[SEGMENT_SIZE / PAGE_BYTES];
	unsigned n = 0;

	assert_true(fd >= 0);
	assert_int_equal(pread(fd, entries, sizeof(entries),
			       (off_t)((uintptr_t)front_frame(e->front, frame) / PAGE_BYTES * 8)),
			 sizeof(entries));
	close(fd);
	for (unsigned i = 0; i < ARRAY_SIZE(entries); i++)
		n += entries[i] >> 63;
	assert_true(n == 0 || n == ARRAY_SIZE(entries));
	return n > 0;
}

/* More than one call has room for. */
static void it_holds_frames_a_few_at_a_time(void **state)
{
	unsigned calls = 0, mapped = 0;
	struct engine *e;
	struct stat st;
	struct rig r;

	rig_init(&r, SLOTS, 100, 8);
	while (evictor_grow(r.v) == 0)
		;
	r.o.memory_max = MIB(100);
	e = standby_of(&r);
	do
		calls++;
	while (engine_standby_hold(e));
	assert_in_range(calls, 2, 50);
	for (uint32_t i = 0; i < 100; i++)
		mapped += is_mapped(e, i);
	assert_int_equal(mapped, 100);
	/* What the worker gives back stays away. */
	while (evictor_shrink(r.v, 10))
		;
	assert_false(engine_standby_hold(e));
	assert_int_equal(fstat(engine_front_fd(e), &st), 0);
	assert_int_equal((uint64_t)st.st_blocks * 512, MIB(10));
	rig_close(&r, NULL);
	assert_int_equal(engine_take_over(e), 0);
	r.e = e;
	rig_adopt(&r);
	assert_int_equal(rig_counter(&r, CTR_memory_used_bytes), MIB(10));
	rig_deinit(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_writes_nothing),
		cmocka_unit_test(it_takes_over_what_was_done_since),
		cmocka_unit_test(queues_may_be_made_before),
		cmocka_unit_test(it_restores_the_header),
		cmocka_unit_test(only_who_stands_by_takes_over),
		cmocka_unit_test(it_holds_frames_a_few_at_a_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

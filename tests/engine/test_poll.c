// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Which reads are polled for, and that one that can't be is read all the same.
 *
 * The store is a file on whatever drive there is.  Few can be polled; where this one can't, the
 * first polled read is refused (kernels before 6.12 or so take it and raise an interrupt), and the
 * engine repeats it.  What counts here is who sends one; that the drive's polled queues are really
 * used is a test for a machine that has them.
 */
#include "common/util.h"
#include "daemon/engine/internal.h"
#include "tests/engine/rig.h"
#include "tests/lib/stderr.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SLOTS  4096u
#define STORED 64u
#define FEW    4u

static uint64_t seed_of(uint64_t slot)
{
	return rig_seed(slot, KIND_WORDS);
}

/* Slots 0 to STORED - 1 only in the store, slot STORED in memory. */
static void open_stored(struct rig *r, bool polls, enum engine_poll poll)
{
	rig_init(r, SLOTS, 9, 16);
	rig_close(r, NULL);
	r->o.store.polls = polls;
	r->o.poll = poll;
	rig_open(r);
	for (uint64_t slot = 0; slot < STORED; slot++)
		assert_int_equal(rig_write(r, slot, seed_of(slot)), 0);
	rig_seal(r);
	rig_write_back(r, 0);
	assert_int_equal(rig_counter(r, CTR_slots_stored), STORED);
	assert_int_equal(rig_write(r, STORED, seed_of(STORED)), 0);
}

/* Undoes a refusal, so that the next read is free to be polled. */
static void poll_again(struct rig *r)
{
	atomic_store(&r->e->poll_works, true);
}

static uint64_t polled(struct rig *r)
{
	return rig_counter(r, CTR_store_reads_polled_total);
}

static void nothing(struct engine_request *req)
{
	(void)req;
}

/* Reads pages of two requests in one batch, and compares. */
static void read_two(struct rig *r, uint64_t slot_a, uint64_t slot_b)
{
	struct engine_request req[2];
	struct engine_request *batch[] = {&req[0], &req[1]};
	uint64_t slots[] = {slot_a, slot_b};

	for (unsigned i = 0; i < 2; i++)
		req[i] = (struct engine_request){.op = ENGINE_READ,
						 .slot = slots[i],
						 .count = 1,
						 .data = r->data + i * PAGE_BYTES,
						 .complete = nothing};
	engine_submit(r->q, batch, 2);
	rig_settle(r);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(req[i].error, 0);
		assert_true(page_is(seed_of(slots[i]), req[i].data));
	}
}

static void off_polls_for_nothing(void **state)
{
	struct rig r;

	open_stored(&r, true, ENGINE_POLL_OFF);
	for (uint64_t slot = 0; slot < STORED; slot++)
		assert_int_equal(rig_read(&r, slot, seed_of(slot)), 0);
	assert_int_equal(polled(&r), 0);
	assert_int_equal(rig_counter(&r, CTR_store_read_requests_total), STORED);
	rig_deinit(&r);
}

static void a_page_alone_is_polled_for(void **state)
{
	struct rig r;

	for (enum engine_poll poll = ENGINE_POLL_SPIN; poll <= ENGINE_POLL_HYBRID; poll++) {
		open_stored(&r, true, poll);
		for (uint64_t slot = 0; slot < FEW; slot++) {
			poll_again(&r);
			assert_int_equal(rig_read(&r, slot, seed_of(slot)), 0);
			assert_int_equal(polled(&r), slot + 1);
		}
		assert_int_equal(rig_counter(&r, CTR_pages_read_stored_total), FEW);
		assert_int_equal(rig_counter(&r, CTR_store_read_errors_total), 0);
		rig_deinit(&r);
	}
}

/* Beside one that needs nothing of the store it is still alone there. */
static void only_store_reads_count(void **state)
{
	struct rig r;

	open_stored(&r, true, ENGINE_POLL_SPIN);
	read_two(&r, 3, STORED);
	assert_int_equal(polled(&r), 1);
	poll_again(&r);
	assert_int_equal(rig_read(&r, STORED, seed_of(STORED)), 0);
	assert_int_equal(polled(&r), 1);
	rig_deinit(&r);
}

static void several_pages_wait_for_the_interrupt(void **state)
{
	struct rig r;

	open_stored(&r, true, ENGINE_POLL_SPIN);
	/* One request of two pages, and one of one page that is stored and one that is not. */
	assert_int_equal(rig_do(&r, ENGINE_READ, 5, 2, r.data), 0);
	assert_int_equal(rig_do(&r, ENGINE_READ, STORED - 1, 2, r.data), 0);
	assert_true(page_is(seed_of(STORED), r.data + PAGE_BYTES));
	/* Two requests of a page each, merged into one store read and not. */
	read_two(&r, 10, 11);
	read_two(&r, 10, 50);
	assert_int_equal(polled(&r), 0);
	assert_true(rig_counter(&r, CTR_store_read_requests_total) >= 4);
	rig_deinit(&r);
}

static void the_mode_changes_at_run_time(void **state)
{
	struct rig r;

	open_stored(&r, true, ENGINE_POLL_OFF);
	assert_int_equal(rig_read(&r, 0, seed_of(0)), 0);
	assert_int_equal(polled(&r), 0);
	assert_int_equal(engine_set_poll(r.e, ENGINE_POLL_HYBRID), 0);
	assert_int_equal(rig_read(&r, 1, seed_of(1)), 0);
	assert_int_equal(polled(&r), 1);
	assert_int_equal(engine_set_poll(r.e, ENGINE_POLL_OFF), 0);
	poll_again(&r);
	assert_int_equal(rig_read(&r, 2, seed_of(2)), 0);
	assert_int_equal(polled(&r), 1);
	rig_deinit(&r);
}

/* A store that refuses is asked once, and said so once; the pages are right. */
static void a_store_that_refuses_is_not_asked_again(void **state)
{
	struct stderr_capture cap;
	bool refused;
	struct rig r;

	open_stored(&r, true, ENGINE_POLL_SPIN);
	stderr_capture_begin(&cap);
	for (uint64_t slot = 0; slot < STORED; slot++)
		assert_int_equal(rig_read(&r, slot, seed_of(slot)), 0);
	log_drain();
	stderr_capture_end(&cap);
	refused = engine_set_poll(r.e, ENGINE_POLL_HYBRID) == -EOPNOTSUPP;
	assert_int_equal(polled(&r), refused ? 1 : STORED);
	assert_int_equal(rig_counter(&r, CTR_store_read_requests_total),
			 refused ? STORED + 1 : STORED);
	assert_int_equal(rig_counter(&r, CTR_store_read_errors_total), 0);
	if (refused)
		assert_non_null(strstr(cap.text, "[store] poll: the store can't be polled"));
	else
		assert_string_equal(cap.text, "");
	assert_int_equal(engine_set_poll(r.e, ENGINE_POLL_OFF), 0);
	rig_deinit(&r);
}

static void a_store_known_not_to_poll_is_not_tried(void **state)
{
	struct rig r;

	open_stored(&r, false, ENGINE_POLL_SPIN);
	for (uint64_t slot = 0; slot < STORED; slot++)
		assert_int_equal(rig_read(&r, slot, seed_of(slot)), 0);
	assert_int_equal(polled(&r), 0);
	assert_int_equal(engine_set_poll(r.e, ENGINE_POLL_SPIN), -EOPNOTSUPP);
	assert_int_equal(engine_set_poll(r.e, ENGINE_POLL_OFF), 0);
	rig_deinit(&r);

	rig_init(&r, SLOTS, 9, 0);
	assert_int_equal(engine_set_poll(r.e, ENGINE_POLL_SPIN), -EOPNOTSUPP);
	rig_deinit(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(off_polls_for_nothing),
		cmocka_unit_test(a_page_alone_is_polled_for),
		cmocka_unit_test(only_store_reads_count),
		cmocka_unit_test(several_pages_wait_for_the_interrupt),
		cmocka_unit_test(the_mode_changes_at_run_time),
		cmocka_unit_test(a_store_that_refuses_is_not_asked_again),
		cmocka_unit_test(a_store_known_not_to_poll_is_not_tried),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

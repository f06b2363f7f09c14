// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Writes many times the device's size, with overwrites and discards.  Nothing may leak for ever:
 *
 *   - while less than what memory and store can hold is live, no write is refused;
 *   - neither tier ever exceeds its size;
 *   - after everything is discarded, all places are free and all frames but the open segments';
 *   - and it can be done again.
 */
#include "common/util.h"
#include "daemon/engine/evictor_internal.h"
#include "daemon/policy/mover.h"
#include "tests/engine/rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define ROUNDS 10u /* twice */

struct churn {
	struct rig r;
	struct rng rng;
	uint64_t nslots;
	uint64_t *seeds;
	uint64_t most_memory, most_store;
};

static void look(struct churn *c)
{
	uint64_t v[COUNTER_COUNT];

	engine_counters(c->r.e, v);
	assert_true(v[CTR_memory_used_bytes] <= v[CTR_memory_limit_bytes]);
	assert_true(v[CTR_store_used_bytes] <= v[CTR_store_size_bytes]);
	/* Each used place has something in it, or is about to be freed. */
	assert_true(v[CTR_store_used_bytes] == 0 || v[CTR_slots_used] > 0);
	c->most_memory = max_u64(c->most_memory, v[CTR_memory_used_bytes]);
	c->most_store = max_u64(c->most_store, v[CTR_store_used_bytes]);
}

/* Random slots, mostly the same tenth, so that segments of all ages become sparse. */
static void write_many(struct churn *c, uint64_t pages)
{
	while (pages > 0) {
		uint64_t slot =
			rng_below(&c->rng, rng_below(&c->rng, 3) ? c->nslots : c->nslots / 10);

		if (rng_below(&c->rng, 16) == 0) {
			assert_int_equal(rig_discard(&c->r, slot, 1), 0);
			c->seeds[slot] = 0;
			continue;
		}
		c->seeds[slot] = rng_next(&c->rng) | 1u << 20;
		assert_int_equal(rig_write(&c->r, slot, c->seeds[slot]), 0);
		if (--pages % 64 == 0) {
			mover_round(c->r.v, false);
			look(c);
		}
	}
}

static void verify(struct churn *c)
{
	for (uint64_t slot = 0; slot < c->nslots; slot++)
		assert_int_equal(rig_read(&c->r, slot, c->seeds[slot]), 0);
}

static uint32_t frames_in_use(struct rig *r)
{
	return front_present(r->e->front) - idstack_count(&r->e->front->free);
}

static void discard_all(struct churn *c)
{
	uint64_t end = now_ns() + 10000000000ull;

	/* In two parts, the first full of holes. */
	for (uint64_t slot = 0; slot < c->nslots; slot += 2)
		assert_int_equal(rig_discard(&c->r, slot, 1), 0);
	mover_round(c->r.v, false);
	assert_int_equal(rig_discard(&c->r, 0, c->nslots), 0);
	for (uint64_t slot = 0; slot < c->nslots; slot++)
		c->seeds[slot] = 0;
	do {
		evictor_wait(c->r.v, 1000000);
		mover_round(c->r.v, true);
	} while ((evictor_busy(c->r.v) || c->r.v->writing) && now_ns() < end);
	assert_int_equal(rig_counter(&c->r, CTR_slots_used), 0);
	assert_int_equal(rig_counter(&c->r, CTR_store_used_bytes), 0);
	assert_int_equal(c->r.v->nplaces, c->r.o.store.fd >= 0 ? c->r.o.store.nplaces : 0);
	assert_in_range(frames_in_use(&c->r), 0, 4); /* two the queue's, two the mover's */
	assert_in_range(idstack_count(&c->r.e->records), c->r.e->state->nsegments - 4,
			c->r.e->state->nsegments);
	/* Idle, so that the memory has gone back as well. */
	assert_true(front_present(c->r.e->front) <= 4 + engine_reserve_frames(c->r.e) * 3 / 2);
}

static void churn(uint64_t slots, uint64_t memory_mib, uint32_t store_mib)
{
	struct churn *c = calloc(1, sizeof(*c));

	c->nslots = slots;
	c->seeds = calloc(slots, sizeof(*c->seeds));
	c->rng.state = store_mib;
	rig_init(&c->r, slots, memory_mib, store_mib);
	for (unsigned again = 0; again < 2; again++) {
		for (unsigned i = 0; i < ROUNDS; i++)
			write_many(c, slots);
		verify(c);
		discard_all(c);
		verify(c);
	}
	assert_int_equal(rig_counter(&c->r, CTR_writes_rejected_total), 0);
	assert_int_equal(rig_counter(&c->r, CTR_pages_written_total), 2 * ROUNDS * slots);
	assert_true(rig_counter(&c->r, CTR_segments_cleaned_total) > 0);
	if (store_mib)
		assert_true(c->most_store > SEGMENT_SIZE);
	print_message("%u pages: memory up to %u MiB, store up to %u MiB, %u segments cleaned\n",
		      (unsigned)(2 * ROUNDS * slots), (unsigned)(c->most_memory >> 20),
		      (unsigned)(c->most_store >> 20),
		      (unsigned)rig_counter(&c->r, CTR_segments_cleaned_total));
	rig_deinit(&c->r);
	free(c->seeds);
	free(c);
}

/* About 1 KiB a page is live. */
static void in_memory(void **state)
{
	churn(4096, 14, 0);
}

static void with_a_store(void **state)
{
	churn(16384, 9, 64);
}

static void with_a_tight_store(void **state)
{
	churn(16384, 9, 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_memory),
		cmocka_unit_test(with_a_store),
		cmocka_unit_test(with_a_tight_store),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/util.h"
#include "daemon/policy/policy.h"
#include "daemon/state/segment.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define S16(n) (SEGMENT_SIZE / 16 * (n))
#define NONE                                  \
	{                                     \
		.id = SEGMENT_NONE, .live = 0 \
	}

/* At the limit, with a large store, everything dense, one frame short. */
static const struct survey base = {
	.frames_max = 100,
	.frames_present = 100,
	.frames_free = 5,
	.frames_reserve = 6,
	.frames_kept = 3,
	.shrink_ready = true,
	.places_max = 1000,
	.places_free = 500,
	.places_kept = 2,
	.store_ready = true,
	.next = {.id = 1, .used = SEGMENT_SIZE, .live = SEGMENT_SIZE},
	.sparsest = {.id = 2, .used = SEGMENT_SIZE, .live = S16(16)},
	.sparsest_stored = NONE,
};

static void expect(const struct survey *s, bool idle, enum policy_action want)
{
	assert_int_equal(policy_decide(s, idle), want);
}

static void enough_is_free(void **state)
{
	struct survey s = base;

	s.frames_free = 6;
	expect(&s, false, POLICY_NONE);
	expect(&s, true, POLICY_NONE);
	s.frames_free = 9;
	assert_int_equal(policy_shrink_keep(&s), 9);
	expect(&s, true, POLICY_NONE);
	s.frames_free = 10;
	expect(&s, true, POLICY_SHRINK);
	expect(&s, false, POLICY_NONE);
	/* What is coming counts. */
	s.frames_free = 4;
	s.frames_coming = 2;
	expect(&s, false, POLICY_NONE);
}

static void below_the_limit_memory_grows(void **state)
{
	struct survey s = base;

	s.frames_present = 99;
	expect(&s, false, POLICY_GROW);
	s.sparsest.live = 0;
	s.waiting = true;
	expect(&s, false, POLICY_GROW);
	s.frames_free = 0;
	expect(&s, true, POLICY_GROW);
}

static void the_cheapest_way_first(void **state)
{
	struct survey s = base;

	expect(&s, false, POLICY_EVICT);
	s.sparsest.live = S16(8) + 4;
	expect(&s, false, POLICY_EVICT);
	s.sparsest.live = S16(8);
	expect(&s, false, POLICY_CLEAN_MEMORY);
	s.frames_free = 0; /* nowhere to move to */
	expect(&s, false, POLICY_EVICT);
}

static void nothing_without_a_store(void **state)
{
	struct survey s = base;

	s.places_max = s.places_free = 0;
	s.store_ready = false;
	expect(&s, false, POLICY_NONE);
	s.waiting = true;
	expect(&s, false, POLICY_DENY);
	s.frames_coming = 0;
	s.sparsest.live = S16(15);
	expect(&s, false, POLICY_CLEAN_MEMORY);
	s.sparsest.live = S16(15) + 4;
	expect(&s, false, POLICY_DENY);
	s.sparsest.id = SEGMENT_NONE;
	s.sparsest.live = 0;
	expect(&s, false, POLICY_DENY);
	/* Nobody is refused while something is under way. */
	s.frames_free = 0;
	s.frames_coming = 1;
	expect(&s, false, POLICY_NONE);
}

static void the_store_is_busy(void **state)
{
	struct survey s = base;

	s.store_ready = false;
	s.frames_coming = 4;
	s.frames_free = 0;
	s.waiting = true;
	expect(&s, false, POLICY_NONE);
	s.frames_coming = 0; /* lost */
	expect(&s, false, POLICY_DENY);
	s.store_pauses = true; /* between two tries */
	expect(&s, false, POLICY_NONE);
	s.next.id = SEGMENT_NONE; /* of which neither would help */
	expect(&s, false, POLICY_DENY);
	s.store_pauses = false;
	s.store_owes = true;
	expect(&s, false, POLICY_NONE);
	s.store_owes = false;
	s.next.id = base.next.id;
	s.waiting = false;
	expect(&s, false, POLICY_NONE);
}

static void places_run_out(void **state)
{
	struct survey s = base;

	s.places_free = 2 + 2 + 16;
	assert_false(policy_store_is_short(&s));
	s.places_free--;
	assert_true(policy_store_is_short(&s));
	expect(&s, false, POLICY_EVICT);
	s.sparsest_stored = (struct survey_victim){.id = 3, .used = SEGMENT_SIZE, .live = S16(12)};
	expect(&s, false, POLICY_CLEAN_STORE);
	s.sparsest_stored.live += 4; /* while others are left, this is not worth it */
	expect(&s, false, POLICY_EVICT);
	s.places_free = 2;
	expect(&s, false, POLICY_CLEAN_STORE);
	s.sparsest_stored.live = S16(15) + 4;
	expect(&s, false, POLICY_NONE);
	s.waiting = true;
	expect(&s, false, POLICY_DENY);
	/* The kept places are the survivors'. */
	s.next_is_survivor = true;
	expect(&s, false, POLICY_EVICT);
	s.places_free = 0;
	expect(&s, false, POLICY_DENY);
	/* Survivors need a frame before they free a place. */
	s.sparsest_stored.live = 4;
	s.frames_free = 1;
	expect(&s, false, POLICY_DENY);
	s.frames_free = 2;
	expect(&s, false, POLICY_CLEAN_STORE);
}

/* The limit was lowered by 50 frames. */
static void above_the_limit(void **state)
{
	struct survey s = base;

	s.frames_max = 50;
	/* What is free goes back at once, but for what is kept and one that writers may take. */
	expect(&s, false, POLICY_SHRINK);
	assert_int_equal(policy_shrink_keep(&s), 4);
	s.frames_free = 4;
	expect(&s, false, POLICY_EVICT);
	/* The system does not take it: room is made, for writers if nobody else. */
	s.frames_free = 5;
	s.shrink_ready = false;
	expect(&s, false, POLICY_EVICT);
	s.shrink_ready = true;
	s.frames_free = 4;
	/* That one too, if the one before was left to them. */
	s.shrink_due = true;
	assert_int_equal(policy_shrink_keep(&s), 3);
	expect(&s, false, POLICY_SHRINK);
	s.frames_free = 3;
	expect(&s, false, POLICY_EVICT);
	/* As many as are to go may be under way. */
	s.frames_coming = 52;
	expect(&s, false, POLICY_EVICT);
	s.frames_coming = 53;
	expect(&s, false, POLICY_NONE);
	/* No frame is asked for, however few are free. */
	s.frames_coming = 0;
	s.frames_free = 0;
	expect(&s, false, POLICY_EVICT);
	/* Within the limit again, there is the reserve to be filled. */
	s.frames_max = 100;
	expect(&s, false, POLICY_EVICT);
	assert_int_equal(policy_shrink_keep(&s), 9);
	s.frames_max = 101;
	expect(&s, false, POLICY_GROW);
}

static void above_the_limit_without_a_store(void **state)
{
	struct survey s = base;

	s.frames_max = 50;
	s.frames_free = 4;
	s.places_max = s.places_free = 0;
	s.store_ready = false;
	s.next.id = SEGMENT_NONE;
	/* Any gain is taken, though nobody waits; then memory stays where it is. */
	s.sparsest.live = S16(15);
	expect(&s, false, POLICY_CLEAN_MEMORY);
	s.sparsest.live = S16(15) + 4;
	expect(&s, false, POLICY_NONE);
	s.waiting = true;
	expect(&s, false, POLICY_DENY);
	s.frames_coming = 1;
	expect(&s, false, POLICY_NONE);
}

static void a_small_store_is_short_later(void **state)
{
	struct survey s = base;

	s.places_max = 12;
	s.places_free = 4;
	assert_false(policy_store_is_short(&s));
	s.places_free = 3;
	assert_true(policy_store_is_short(&s));
	s.places_max = s.places_free = 0;
	assert_false(policy_store_is_short(&s));
}

static void moving_or_writing(void **state)
{
	assert_true(policy_clean_instead(0));
	assert_true(policy_clean_instead(S16(12)));
	assert_false(policy_clean_instead(S16(12) + 4));
	assert_false(policy_clean_instead(SEGMENT_SIZE));
}

/* Whatever the figures: an action names something that is there, and a refusal has a waiter. */
static void no_action_without_its_object(void **state)
{
	static const uint32_t some[] = {0, 1, 2, 3, 6, 20};
	struct survey s = base;

	for (unsigned i = 0; i < 6 * 6 * 6 * 256; i++) {
		static const uint32_t max[] = {100, 100, 60};
		unsigned bits = i % 256, n = i / 256;
		enum policy_action a;

		s.frames_free = some[n % 6];
		s.frames_coming = some[n / 6 % 6];
		s.places_free = some[n / 36];
		s.store_ready = bits & 1;
		s.waiting = bits & 2;
		s.next.id = bits & 4 ? 1 : SEGMENT_NONE;
		s.next_is_survivor = bits & 8;
		s.sparsest.id = bits & 4 ? 1 : SEGMENT_NONE;
		s.sparsest.live = bits & 16 ? S16(4) : S16(16);
		s.sparsest_stored.id = bits & 32 ? 3 : SEGMENT_NONE;
		s.sparsest_stored.live = bits & 64 ? S16(4) : S16(14);
		s.frames_present = bits & 128 ? 100 : 99;
		s.frames_max = max[i % 3];
		s.shrink_due = i % 5 == 0;
		s.shrink_ready = i % 7 != 0;
		a = policy_decide(&s, i % 3 == 0);
		if (a == POLICY_EVICT)
			assert_true(s.store_ready && s.next.id != SEGMENT_NONE &&
				    s.places_free > 0);
		if (a == POLICY_CLEAN_MEMORY)
			assert_true(s.sparsest.id != SEGMENT_NONE);
		if (a == POLICY_CLEAN_STORE)
			assert_true(s.sparsest_stored.id != SEGMENT_NONE && s.frames_free >= 2);
		if (a == POLICY_DENY)
			assert_true(s.waiting && s.frames_coming == 0);
		if (a == POLICY_GROW)
			assert_true(s.frames_present < s.frames_max);
		if (a == POLICY_SHRINK)
			assert_true(s.frames_free > policy_shrink_keep(&s));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(enough_is_free),
		cmocka_unit_test(below_the_limit_memory_grows),
		cmocka_unit_test(the_cheapest_way_first),
		cmocka_unit_test(nothing_without_a_store),
		cmocka_unit_test(the_store_is_busy),
		cmocka_unit_test(places_run_out),
		cmocka_unit_test(above_the_limit),
		cmocka_unit_test(above_the_limit_without_a_store),
		cmocka_unit_test(a_small_store_is_short_later),
		cmocka_unit_test(moving_or_writing),
		cmocka_unit_test(no_action_without_its_object),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/front/idstack.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static void last_in_first_out(void **state)
{
	struct idstack s = IDSTACK_NULL;

	assert_int_equal(idstack_init(&s, 8), 0);
	assert_int_equal(idstack_pop(&s, 0), IDSTACK_NONE);
	for (uint32_t i = 0; i < 8; i++)
		idstack_push(&s, i);
	assert_int_equal(idstack_count(&s), 8);
	for (uint32_t i = 8; i-- > 0;)
		assert_int_equal(idstack_pop(&s, 0), i);
	assert_int_equal(idstack_pop(&s, 0), IDSTACK_NONE);
	idstack_deinit(&s);
	idstack_deinit(&s);
}

static void some_are_kept(void **state)
{
	struct idstack s = IDSTACK_NULL;

	assert_int_equal(idstack_init(&s, 4), 0);
	for (uint32_t i = 0; i < 4; i++)
		idstack_push(&s, i);
	assert_int_equal(idstack_pop(&s, 3), 3);
	assert_int_equal(idstack_pop(&s, 3), IDSTACK_NONE);
	assert_int_equal(idstack_pop(&s, 0), 2);
	assert_int_equal(idstack_count(&s), 2);
	idstack_deinit(&s);
}

#define IDS	12u
#define THREADS 4
#define ROUNDS	150000u
#define KEEP	2u

static struct {
	struct idstack s;
	_Atomic uint32_t owners[IDS];
	_Atomic unsigned wrong, popped;
} h;

/* Whoever pops a number is its only owner until it pushes it again. */
static void *hammer(void *arg)
{
	uint32_t keep = arg ? KEEP : 0;
	uint32_t mine[3];

	for (unsigned i = 0; i < ROUNDS; i++) {
		unsigned n = 0, want = 1 + i % 3;

		while (n < want && (mine[n] = idstack_pop(&h.s, keep)) != IDSTACK_NONE) {
			if (atomic_exchange(&h.owners[mine[n]], 1))
				atomic_fetch_add(&h.wrong, 1);
			n++;
		}
		atomic_fetch_add_explicit(&h.popped, n, memory_order_relaxed);
		while (n-- > 0) {
			if (!atomic_exchange(&h.owners[mine[n]], 0))
				atomic_fetch_add(&h.wrong, 1);
			idstack_push(&h.s, mine[n]);
		}
	}
	return NULL;
}

static void many_threads(void **state)
{
	pthread_t t[THREADS];
	unsigned seen = 0;

	assert_int_equal(idstack_init(&h.s, IDS), 0);
	for (uint32_t i = 0; i < IDS; i++)
		idstack_push(&h.s, i);
	for (size_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&t[i], NULL, hammer, i % 2 ? &h : NULL), 0);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	assert_int_equal(h.wrong, 0);
	assert_true(h.popped > ROUNDS);
	assert_int_equal(idstack_count(&h.s), IDS);
	for (unsigned i = 0; i < IDS; i++)
		seen |= 1u << idstack_pop(&h.s, 0);
	assert_int_equal(seen, (1u << IDS) - 1);
	assert_int_equal(idstack_pop(&h.s, 0), IDSTACK_NONE);
	idstack_deinit(&h.s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(last_in_first_out),
		cmocka_unit_test(some_are_kept),
		cmocka_unit_test(many_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

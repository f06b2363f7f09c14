// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A data thread allocates nothing after start: not for reads from memory and store, writes that
 * wait for room or are refused, discards, changes of the level, or damage; nor when the limit moves
 * and jobs run, which are asked for here as another thread would.
 */
#include "common/log.h"
#include "common/util.h"
#include "daemon/policy/mover.h"
#include "tests/engine/rig.h"
#include "tests/lib/allocs.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SLOTS 8192u

struct flight {
	struct engine_request req;
	bool busy;
};

static void landed(struct engine_request *req)
{
	container_of(req, struct flight, req)->busy = false;
}

static void take_off(struct rig *r, struct rng *rng, struct flight *f, unsigned n)
{
	struct engine_request *batch[RIG_REQUESTS];

	for (unsigned i = 0; i < n; i++) {
		struct engine_request *req = &f[i].req;
		uint64_t kind = rng_below(rng, 100);

		req->op = kind < 50 ? ENGINE_WRITE : kind < 92 ? ENGINE_READ : ENGINE_DISCARD;
		req->count = 1 + rng_below(rng, 8);
		req->slot = rng_below(rng, SLOTS - 8);
		if (req->op == ENGINE_WRITE) {
			for (uint64_t p = 0; p < req->count; p++)
				page_make(rng_next(rng) % 3 ? rig_seed(kind + p, KIND_RAW)
							    : rng_next(rng),
					  (char *)req->data + p * PAGE_BYTES);
		}
		f[i].busy = true;
		batch[i] = req;
	}
	engine_submit(r->q, batch, n);
	rig_settle(r);
}

static void churn(uint32_t store_mib)
{
	struct flight f[RIG_REQUESTS];
	unsigned long before;
	struct rng rng = {7};
	struct mover *m;
	struct rig r;

	rig_init(&r, SLOTS, 9, store_mib);
	rig_close(&r, NULL);
	r.o.memory_max = MIB(20);
	rig_open(&r);
	evictor_free(r.v);
	r.v = NULL;
	r.mover = false;
	assert_int_equal(mover_start(&m, r.e), 0);
	for (unsigned i = 0; i < RIG_REQUESTS; i++)
		f[i] = (struct flight){.req = {.data = aligned_alloc(PAGE_BYTES, 8 * PAGE_BYTES),
					       .complete = landed}};
	before = allocs_of_thread();
	for (unsigned i = 0; i < 400; i++) {
		engine_set_level(r.e, (int)(i % 10) - 5);
		if (i > 200 && i % 20 == 0)
			engine_set_memory_limit(r.e, MIB(9 + i % 11));
		if (i > 200 && i % 7 == 0)
			engine_job_start(r.e, ENGINE_JOB_WRITEBACK + i % 3, MIB(4));
		take_off(&r, &rng, f, 1 + i % RIG_REQUESTS);
	}
	assert_int_equal(allocs_of_thread(), before);
	for (unsigned i = 0; i < RIG_REQUESTS; i++) {
		assert_false(f[i].busy);
		free(f[i].req.data);
	}
	assert_true(rig_counter(&r, CTR_writes_stalled_total) > 0);
	assert_true(rig_counter(&r, CTR_pages_cleaned_total) > 0);
	if (store_mib)
		assert_true(rig_counter(&r, CTR_pages_read_stored_total) > 0);
	else
		assert_true(rig_counter(&r, CTR_writes_rejected_total) > 0);
	mover_stop(m);
	rig_deinit(&r);
}

static void with_a_store(void **state)
{
	if (!allocs_counted())
		skip();
	churn(64);
}

static void without_a_store(void **state)
{
	if (!allocs_counted())
		skip();
	churn(0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(with_a_store),
		cmocka_unit_test(without_a_store),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

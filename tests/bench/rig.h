/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An engine set up for measuring: one queue in the calling thread, real pages, a store if wanted.
 * What fails ends the program with a message.  One rig at a time, one thread.
 */
#ifndef ZSWAPD_TESTS_BENCH_RIG_H
#define ZSWAPD_TESTS_BENCH_RIG_H

#include "common/counters.h"
#include "daemon/engine/engine.h"
#include "daemon/engine/evictor.h"
#include "daemon/policy/mover.h"
#include "daemon/store/store.h"

#include <stdbool.h>
#include <stdint.h>

#define RIG_PAGE	  4096u
#define RIG_REQUESTS	  64u
#define RIG_REQUEST_PAGES 16u

_Noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Pages that are not same-filled, in the order of the file. */
struct corpus {
	uint8_t *pages;
	uint64_t n;
	uint64_t left_out; /* same-filled */
};

void corpus_load(struct corpus *c, const char *path);
/* @n pages of random bytes. */
void corpus_random(struct corpus *c, uint64_t n);
void corpus_free(struct corpus *c);

struct rig_options {
	uint64_t slots;
	uint64_t memory; /* bytes; at least engine_memory_min() is taken */
	const char *store;
	uint64_t store_size; /* bytes, as configured */
	int level;
	bool manual; /* no mover: the caller drives rig.evictor */
};

/* A request and where it lies; on the free list when it is not in flight. */
struct rig_request {
	struct engine_request req;
	uint8_t *data;
};

struct rig {
	struct engine *e;
	struct engine_queue *q;
	struct ring ring;
	struct mover *mover;
	struct evictor *evictor;
	struct store *store;
	struct ring_op wake;
	bool wake_armed;
	struct rig_request requests[RIG_REQUESTS];
	struct rig_request *idle[RIG_REQUESTS];
	unsigned nidle;
	uint64_t pages_done;
};

void rig_init(struct rig *rig, const struct rig_options *o);
void rig_deinit(struct rig *rig);

/* Takes an idle request and fills it in; its data is its own buffer. */
struct engine_request *rig_prepare(struct rig *rig, enum engine_op op, uint64_t slot,
				   uint64_t count);
/* Until nothing is in flight. */
void rig_drain(struct rig *rig);
/* Until the mover has nothing to do. */
void rig_settle(struct rig *rig);

/* Slot i gets page i of the corpus, which repeats.  Written straight from the corpus. */
void rig_write(struct rig *rig, const struct corpus *c, uint64_t slot, uint64_t count);
/* Reads and compares; ends the program if a byte differs. */
void rig_verify(struct rig *rig, const struct corpus *c, uint64_t slot, uint64_t count);
void rig_discard(struct rig *rig, uint64_t slot, uint64_t count);

uint64_t rig_random(uint64_t below);
uint64_t rig_cpu_ns(void); /* of this thread */

#endif

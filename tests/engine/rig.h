/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An engine on a bench: one queue and the mover's hands, both in the calling thread, so that a test
 * decides when what happens.  Pages are named by their seed (tests/model/pages.h).
 */
#ifndef ZSWAPD_TESTS_ENGINE_RIG_H
#define ZSWAPD_TESTS_ENGINE_RIG_H

#include "daemon/engine/engine.h"
#include "daemon/engine/evictor.h"
#include "tests/model/pages.h"

#define RIG_REQUESTS	  32u
#define RIG_REQUEST_PAGES 64u

struct rig {
	struct engine_options o;
	struct engine *e;
	struct engine_queue *q;
	struct evictor *v;
	struct ring ring;
	uint8_t *data; /* of the one request at a time that rig_...() makes */
	/* rig_do(): a mover's round whenever it waits; off to find out what waits */
	bool mover;
};

/* A file without a name, open for direct I/O, of @bytes (0: grows as it is written). */
int rig_store_file(uint64_t bytes);

/* @store_mib 0: none.  Fails the test when something can't be had. */
void rig_init(struct rig *r, uint64_t slots, uint64_t memory_mib, uint32_t store_mib);
/* The same with the options as they are; both descriptors of a former engine or -1. */
void rig_open(struct rig *r);
/* The same with r->e as it is. */
void rig_adopt(struct rig *r);
/* Ends the engine; the state's and the front tier's descriptors live on in @fds unless NULL. */
void rig_close(struct rig *r, int fds[2]);
/* rig_close() after an integrity sweep, and closes the store. */
void rig_deinit(struct rig *r);

/* Submits the request and turns until it is answered (at most a minute). */
int rig_do(struct rig *r, enum engine_op op, uint64_t slot, uint64_t count, void *data);
/* Turns until nothing is in flight. */
void rig_settle(struct rig *r);

int rig_write(struct rig *r, uint64_t slot, uint64_t seed);
int rig_discard(struct rig *r, uint64_t slot, uint64_t count);
/* The error of the read; fails the test if the page is another one. */
int rig_read(struct rig *r, uint64_t slot, uint64_t seed);

uint64_t rig_counter(struct rig *r, enum counter_id id);

/* The segment of a slot's object. */
uint32_t rig_segment(struct rig *r, uint64_t slot);
/* Seals what the queue has open, by closing and opening the queue. */
void rig_seal(struct rig *r);
/* Writes the segment of @slot to the store and waits until it is there. */
void rig_write_back(struct rig *r, uint64_t slot);

/* A seed whose page is of the kind: see pages.c. */
static inline uint64_t rig_seed(uint64_t n, unsigned kind)
{
	return (n + 1) << 24 | kind;
}

#define KIND_SAME      0u /* fits into the index */
#define KIND_SAME_WIDE 1u
#define KIND_RAW       2u
#define KIND_WORDS     5u

#endif

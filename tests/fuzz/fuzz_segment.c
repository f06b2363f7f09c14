// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Any bytes in a segment whose index and record are right: what a broken store or memory can do.
 * Reading gives the page that was written or an I/O error, cleaning moves or loses each slot, and
 * nothing is left behind.
 *
 * Input: records of 4 bytes, {position 16 bits, in units of 4 bytes; two bytes to be put there}, on
 * top of a segment of 40 objects; a first byte that is odd changes the store's copy, an even one
 * the memory's.
 */
#include "common/log.h"
#include "common/util.h"
#include "daemon/engine/evictor_internal.h"
#include "tests/model/pages.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define SLOTS 40u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct {
	struct engine_options o;
	struct engine *e;
	struct engine_queue *q;
	struct evictor *v;
	struct ring ring;
	uint64_t round;
	uint64_t seeds[SLOTS];
	_Alignas(8) uint8_t page[PAGE_BYTES];
} t;

static void nothing(struct engine_request *r)
{
	(void)r;
}

static int request(enum engine_op op, uint64_t slot, uint64_t count)
{
	struct engine_request r = {
		.op = op, .slot = slot, .count = count, .data = t.page, .complete = nothing};
	struct engine_request *batch[] = {&r};

	engine_submit(t.q, batch, 1);
	while (engine_queue_inflight(t.q)) {
		if (!engine_poll(t.q) && engine_queue_inflight(t.q))
			ring_wait(&t.ring, 1000000);
	}
	log_drain();
	return r.error;
}

static void open_queue(void)
{
	struct engine_queue_options qo = {.ring = &t.ring, .requests = 4, .request_pages = 1};

	z_assert(engine_queue_new(&t.q, t.e, &qo) == 0);
}

/* Once: the engine is emptied after each input. */
static void setup(void)
{
	t.o = (struct engine_options){
		.device_bytes = SLOTS * PAGE_BYTES,
		.memory_limit = engine_memory_min(1),
		.level = 1,
		.overlap = true,
		.nqueues = 1,
		.store = {.fd = memfd_create("store", 0), .nplaces = 8, .dio_align = 512},
		.state_fd = -1,
		.front_fd = -1,
	};
	z_assert(t.o.store.fd >= 0 && ftruncate(t.o.store.fd, 8 * SEGMENT_SIZE) == 0);
	z_assert(engine_new(&t.e, &t.o) == 0);
	z_assert(ring_init(&t.ring, 8, t.o.store.fd, 1) == 0);
	open_queue();
	z_assert(evictor_new(&t.v, t.e) == 0);
	while (evictor_grow(t.v) == 0)
		;
}

/* Slots without same-filled and raw pages, so that all lie in one segment. */
static uint32_t write_segment(void)
{
	uint64_t word;

	t.round++;
	for (uint64_t slot = 0; slot < SLOTS; slot++) {
		t.seeds[slot] = (t.round * SLOTS + slot) << 4 | 5;
		page_make(t.seeds[slot], t.page);
		z_assert(request(ENGINE_WRITE, slot, 1) == 0);
	}
	engine_queue_free(t.q);
	open_queue();
	word = index_load(&t.e->state->index[0]);
	return index_segment(word);
}

static void change(uint8_t *bytes, uint32_t used, const uint8_t *data, size_t size)
{
	for (; size >= 4; data += 4, size -= 4) {
		uint32_t pos = ((uint32_t)data[0] << 8 | data[1]) * 4 % used;

		bytes[pos] = data[2];
		bytes[pos + 1] = data[3];
	}
}

static void change_store(struct segment *s, const uint8_t *data, size_t size)
{
	off_t pos = (off_t)segment_where_load(s).place * SEGMENT_SIZE;
	uint8_t *map =
		mmap(NULL, SEGMENT_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, t.o.store.fd, pos);

	z_assert(map != MAP_FAILED);
	change(map, s->used, data, size);
	munmap(map, SEGMENT_SIZE);
}

static void read_all(void)
{
	for (uint64_t slot = 0; slot < SLOTS; slot++) {
		int error = request(ENGINE_READ, slot, 1);

		z_assert(error == -EIO || (error == 0 && page_is(t.seeds[slot], t.page)));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct segment *s;
	uint32_t id;

	if (size < 1)
		return 0;
	if (!t.e)
		setup();
	id = write_segment();
	s = &t.e->state->segments[id];
	if (data[0] & 1) {
		z_assert(evictor_write(t.v, id) == 0);
		while (segment_state_load(s) == SEGMENT_WRITING)
			evictor_wait(t.v, 1000000);
		evictor_reap(t.v);
		change_store(s, data + 1, size - 1);
		read_all();
		z_assert(evictor_clean_store(t.v, id) == 0);
	} else {
		change(front_frame(t.e->front, segment_where_load(s).frame), s->used, data + 1,
		       size - 1);
		read_all();
		evictor_spare_referenced(t.v, id);
		if (segment_live_objects(s) > 0)
			z_assert(evictor_clean_memory(t.v, id) == 0);
	}
	evictor_reap(t.v);
	z_assert(segment_state_load(s) == SEGMENT_FREE);
	read_all();
	z_assert(request(ENGINE_DISCARD, 0, SLOTS) == 0);
	evictor_reap(t.v);
	z_assert(engine_check(t.e) == 0);
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Any bytes in the state memfd of a process that died.  The header is given a right checksum, so
 * that what is behind it is reached.  The engine refuses the state or takes it over; then every
 * slot can be read, written and discarded, and the mover can do its work, whatever the words and
 * records said.
 *
 * Input: the geometry's deviations (one byte; 0x80: they and the rest come about while a successor
 * stands by), then 10-byte records, {which 16 bits, value 64 bits}: a word of the index, or of the
 * records or generations behind it, to be set.
 */
#include "common/log.h"
#include "common/util.h"
#include "daemon/engine/evictor_internal.h"
#include "daemon/policy/mover.h"
#include "tests/model/pages.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <xxhash.h>

#define SLOTS  64u
#define FRAMES 9u
#define PLACES 6u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A small life that the input is laid over. */
static struct {
	struct engine_options o;
	uint8_t *state, *front; /* copies of the memfds */
	size_t state_size, front_size;
	size_t index_offset, segments_offset, generations_offset;
	_Alignas(8) uint8_t page[PAGE_BYTES];
} t;

struct run {
	struct engine *e;
	struct engine_queue *q;
	struct evictor *v;
	struct ring ring;
};

static void nothing(struct engine_request *r)
{
	(void)r;
}

static int request(struct run *run, enum engine_op op, uint64_t slot)
{
	struct engine_request r = {
		.op = op, .slot = slot, .count = 1, .data = t.page, .complete = nothing};
	struct engine_request *batch[] = {&r};

	engine_submit(run->q, batch, 1);
	for (unsigned i = 0; engine_queue_inflight(run->q); i++) {
		z_assert(i < 10000);
		if (engine_poll(run->q) || !engine_queue_inflight(run->q))
			continue;
		mover_round(run->v, false);
		ring_wait(&run->ring, 1000000);
	}
	log_drain();
	return r.error;
}

static void start(struct run *run)
{
	struct engine_queue_options qo = {.ring = &run->ring, .requests = 4, .request_pages = 1};

	z_assert(ring_init(&run->ring, 8, t.o.store.fd, 1) == 0);
	z_assert(engine_queue_new(&run->q, run->e, &qo) == 0);
	z_assert(evictor_new(&run->v, run->e) == 0);
	mover_round(run->v, false);
}

static void finish(struct run *run)
{
	engine_queue_free(run->q);
	evictor_free(run->v);
	ring_deinit(&run->ring);
	engine_free(run->e);
}

static uint8_t *copy_of(int fd, size_t *ret_size)
{
	off_t size = lseek(fd, 0, SEEK_END);
	uint8_t *bytes = malloc((size_t)size);

	z_assert(bytes && pread(fd, bytes, (size_t)size, 0) == size);
	*ret_size = (size_t)size;
	return bytes;
}

static void setup(void)
{
	struct run run;

	t.o = (struct engine_options){
		.device_bytes = SLOTS * PAGE_BYTES,
		.memory_limit = FRAMES * MIB(1),
		.level = 1,
		.overlap = true,
		.nqueues = 1,
		.store = {.fd = memfd_create("store", 0), .nplaces = PLACES, .dio_align = 512},
		.state_fd = -1,
		.front_fd = -1,
	};
	z_assert(t.o.store.fd >= 0 && ftruncate(t.o.store.fd, PLACES * SEGMENT_SIZE) == 0);
	z_assert(engine_new(&run.e, &t.o) == 0);
	start(&run);
	for (uint64_t slot = 0; slot < SLOTS / 2; slot++) {
		page_make(slot << 4 | (slot % 4 + 2), t.page);
		z_assert(request(&run, ENGINE_WRITE, slot) == 0);
		if (slot == SLOTS / 4) {
			uint64_t word = index_load(&run.e->state->index[0]);

			engine_queue_free(run.q);
			ring_deinit(&run.ring);
			z_assert(evictor_write(run.v, index_segment(word)) == 0);
			evictor_free(run.v);
			start(&run);
		}
	}
	t.index_offset = run.e->state->header->index_offset;
	t.segments_offset = run.e->state->header->segments_offset;
	t.generations_offset = run.e->state->header->generations_offset;
	t.state = copy_of(engine_state_fd(run.e), &t.state_size);
	t.front = copy_of(engine_front_fd(run.e), &t.front_size);
	finish(&run);
}

static int memfd_of(const uint8_t *bytes, size_t size)
{
	static const uint8_t zeroes[PAGE_BYTES];
	int fd = memfd_create("fuzz", 0);

	z_assert(fd >= 0 && ftruncate(fd, (off_t)size) == 0);
	/* Without the zeroes, of which there are megabytes. */
	for (size_t off = 0; off < size; off += PAGE_BYTES) {
		if (memcmp(bytes + off, zeroes, PAGE_BYTES) != 0)
			z_assert(pwrite(fd, bytes + off, PAGE_BYTES, (off_t)off) == PAGE_BYTES);
	}
	return fd;
}

/* Where the input's word number @which goes. */
static size_t position(size_t which)
{
	size_t records = (FRAMES + PLACES) * sizeof(struct segment) / 8;
	size_t generations = (FRAMES + 1) / 2; /* two at a time */

	which %= SLOTS + records + generations;
	if (which < SLOTS)
		return t.index_offset + which * 8;
	which -= SLOTS;
	if (which < records)
		return t.segments_offset + which * 8;
	return t.generations_offset + (which - records) * 8;
}

/* Lays the input over a state. */
static void damage(uint8_t *bytes, const uint8_t *data, size_t size)
{
	if (data[0] & 1)
		((uint32_t *)bytes)[data[0] >> 1 & 15] ^= data[0];
	for (data++, size--; size >= 10; data += 10, size -= 10)
		memcpy(bytes + position((size_t)data[0] << 8 | data[1]), data + 2, 8);
}

/* For a process that finds it so, but for the header's checksum. */
static int damaged_state(const uint8_t *data, size_t size)
{
	uint8_t *bytes = malloc(t.state_size);
	struct state_header *h = (struct state_header *)bytes;
	int fd;

	z_assert(bytes);
	memcpy(bytes, t.state, t.state_size);
	damage(bytes, data, size);
	h->checksum = XXH3_64bits(h, offsetof(struct state_header, checksum));
	fd = memfd_of(bytes, t.state_size);
	free(bytes);
	return fd;
}

static bool take_over(struct engine **ret, struct engine_options *o, const uint8_t *data,
		      size_t size)
{
	o->state_fd = damaged_state(data, size);
	return engine_new(ret, o) == 0;
}

/* The same for who was there before the damage was done, and can't refuse. */
static void stand_by(struct engine **ret, struct engine_options *o, const uint8_t *data,
		     size_t size)
{
	o->standby = true;
	o->state_fd = memfd_of(t.state, t.state_size);
	z_assert(engine_new(ret, o) == 0);
	while (engine_standby_hold(*ret))
		;
	damage((uint8_t *)(*ret)->state->header, data, size);
	engine_standby_hold(*ret);
	z_assert(engine_take_over(*ret) == 0);
}

/* Reads, moves and writes everything. */
static void live_on(struct run *run)
{
	for (uint64_t slot = 0; slot < SLOTS; slot++) {
		int error = request(run, ENGINE_READ, slot);

		z_assert(error == 0 || error == -EIO);
	}
	for (uint32_t i = 0; i < run->e->state->nsegments; i++) {
		struct segment *s = &run->e->state->segments[i];
		enum segment_state phase = segment_state_load(s);

		evictor_reap(run->v);
		if (segment_live_objects(s) == 0)
			continue;
		if (phase == SEGMENT_SEALED && i % 2)
			evictor_clean_memory(run->v, i);
		else if (phase == SEGMENT_SEALED && evictor_spare_referenced(run->v, i) > 0)
			evictor_write(run->v, i);
		else if (phase == SEGMENT_STORED)
			evictor_clean_store(run->v, i);
		mover_round(run->v, i % 3 == 0);
	}
	for (uint64_t slot = 0; slot < SLOTS; slot++) {
		page_make(slot << 4 | 5, t.page);
		if (request(run, slot % 3 ? ENGINE_WRITE : ENGINE_DISCARD, slot) < 0)
			continue;
		z_assert(request(run, ENGINE_READ, slot) == 0);
		z_assert(page_is(slot % 3 ? slot << 4 | 5 : 0, t.page));
	}
	for (unsigned i = 0; i < 1000 && run->v->writing; i++)
		evictor_wait(run->v, 1000000);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct engine_options o;
	struct run run;

	if (size < 1)
		return 0;
	if (!t.state)
		setup();
	o = t.o;
	o.front_fd = memfd_of(t.front, t.front_size);
	if (data[0] & 0x80) {
		stand_by(&run.e, &o, data, size);
	} else if (!take_over(&run.e, &o, data, size)) {
		z_assert(close(o.state_fd) == 0 && close(o.front_fd) == 0);
		return 0;
	}
	start(&run);
	live_on(&run);
	engine_queue_free(run.q);
	evictor_free(run.v);
	ring_deinit(&run.ring);
	z_assert(engine_check(run.e) == 0);
	engine_free(run.e);
	return 0;
}

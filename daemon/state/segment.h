/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Segment records, and the only operations on their shared fields.
 *
 * A segment is up to 1 MiB of objects, written front to back by one owner, then immutable.  Its
 * record says where the bytes are: a frame (1 MiB of the front tier), a place (1 MiB of the store),
 * or both.
 *
 *   state     frame place  who moves it on, and to what
 *   --------  ----- -----  ------------------------------------------------------------------------
 *   FREE        -     -    a writer that opened it: OPEN
 *   OPEN        x     -    its writer, when the next object might not fit: SEALED
 *   SEALED      x    (x)   the mover: WRITING, or FREE once nothing in it is live
 *   WRITING     x     x    the mover, when the store has answered: STORED, or SEALED on an error
 *   STORED      -     x    the mover: FREE once nothing in it is live
 *   RETIRED     -     x    nobody: a record that keeps its place, which failed a write, from others
 *
 * Cleaning is no state of its own: it moves one object at a time by replacing its index word, and
 * the segment is whole between any two of these steps.  After a crash WRITING becomes SEALED again
 * (the frame is kept until STORED is published) and OPEN becomes SEALED.  One that was WRITING
 * keeps its place: the dead process's write may still come, and must find no other segment there.
 *
 * Pins.  A reader increments `pins`, loads the index word again, and if it still names this
 * segment, may use the frame until it unpins.  For bytes that are only in the store it increments
 * `store_reads` first and unpins then, so that a slow device delays the reuse of the place only.
 * The mover frees a frame after it has cleared it from `where` and then seen pins == 0; it frees a
 * record after live == 0 and then pins == 0 and then store_reads == 0, in this order.
 *
 * A late reader may pin a record that was freed and opened again meanwhile.  It finds that the word
 * has changed and unpins; the pin held up a free for a moment and harmed nothing.
 */
#ifndef ZSWAPD_STATE_SEGMENT_H
#define ZSWAPD_STATE_SEGMENT_H

#include "common/util.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define SEGMENT_SIZE (1u << 20)
#define SEGMENT_NONE UINT32_MAX /* no frame, no place, no segment */

enum segment_state {
	SEGMENT_FREE = 0,
	SEGMENT_OPEN,
	SEGMENT_SEALED,
	SEGMENT_WRITING,
	SEGMENT_STORED,
	SEGMENT_RETIRED,
};

enum segment_kind {
	SEGMENT_PLAIN = 0,
	SEGMENT_RAW,	  /* incompressible pages: first to leave memory */
	SEGMENT_SURVIVOR, /* what cleaning the store brought back: may use the reserved places */
};

/* Lives in the state memfd: fixed layout, no pointers. */
struct segment {
	/* atomic; frame in the low half, place in the high half; written by the owner, then the
	 * mover */
	_Atomic uint64_t where;
	/*
	 * Both count objects in the high half, bytes in the low half; live = added - released.
	 * added: stored by the owner alone.  released: atomic, added to by any thread.
	 */
	_Atomic uint64_t added;
	_Atomic uint64_t released;
	/* atomic; any reader; process-local, reset on takeover */
	_Atomic uint32_t pins;
	_Atomic uint32_t store_reads;
	/* atomic; see the table above */
	_Atomic uint32_t state;
	/* set at open by the owner */
	uint32_t kind;
	uint64_t seq; /* grows with each opening, never repeats; seeds the objects' checksums */
	/* set at seal by the owner, published by the state */
	uint32_t used; /* bytes */
	/* atomic; 1 while the record waits on the dead list; process-local, reset on takeover */
	_Atomic uint32_t dead;
	uint64_t reserved;
};

_Static_assert(sizeof(struct segment) == 64, "part of the state's layout");
_Static_assert(offsetof(struct segment, seq) == 40, "part of the state's layout");

struct segment_where {
	uint32_t frame;
	uint32_t place;
};

static inline struct segment_where segment_where_load(struct segment *s)
{
	/* seq_cst: after a pin, pairs with segment_where_set() and the mover's load of the pins. */
	uint64_t v = atomic_load_explicit(&s->where, memory_order_seq_cst);

	return (struct segment_where){.frame = (uint32_t)v, .place = (uint32_t)(v >> 32)};
}

static inline void segment_where_set(struct segment *s, uint32_t frame, uint32_t place)
{
	atomic_store_explicit(&s->where, (uint64_t)place << 32 | frame, memory_order_seq_cst);
}

/* acquire: `used`, `kind` and `seq` are those of this phase.  seq_cst: see segment_state_set(). */
static inline enum segment_state segment_state_load(struct segment *s)
{
	return (enum segment_state)atomic_load_explicit(&s->state, memory_order_seq_cst);
}

/*
 * release for the fields set before it.  seq_cst because sealing is followed by a load of `live`,
 * and a release that finds nothing left is followed by a load of the state: one of the two must see
 * the other, or a dead segment is never noticed.
 */
static inline void segment_state_set(struct segment *s, enum segment_state state)
{
	atomic_store_explicit(&s->state, state, memory_order_seq_cst);
}

static inline void segment_pin(struct segment *s)
{
	/* seq_cst: see index_reload(). */
	atomic_fetch_add_explicit(&s->pins, 1, memory_order_seq_cst);
}

static inline void segment_unpin(struct segment *s)
{
	/* release: our reads of the frame are over before the mover sees the count fall. */
	uint32_t old = atomic_fetch_sub_explicit(&s->pins, 1, memory_order_release);

	z_assert(old > 0);
}

static inline void segment_store_read_begin(struct segment *s)
{
	/* relaxed: published by the release of the unpin that follows. */
	atomic_fetch_add_explicit(&s->store_reads, 1, memory_order_relaxed);
}

static inline void segment_store_read_end(struct segment *s)
{
	/* release: the device has answered before the place may be written again. */
	uint32_t old = atomic_fetch_sub_explicit(&s->store_reads, 1, memory_order_release);

	z_assert(old > 0);
}

/* The mover's checks; seq_cst and acquire: see above. */
static inline bool segment_pinned(struct segment *s)
{
	return atomic_load_explicit(&s->pins, memory_order_seq_cst) != 0;
}

static inline bool segment_store_reading(struct segment *s)
{
	return atomic_load_explicit(&s->store_reads, memory_order_acquire) != 0;
}

/*
 * Owner only, before the word is published, so that a release never precedes it.  relaxed: ordered
 * by the word's release.  A store and no read-modify-write, since nobody else writes `added`.
 */
static inline void segment_added_set(struct segment *s, uint64_t added)
{
	atomic_store_explicit(&s->added, added, memory_order_relaxed);
}

static inline uint64_t segment_one(uint32_t bytes)
{
	return (uint64_t)1 << 32 | bytes;
}

/*
 * Gives back one object of @bytes.  Returns true if none is left.  seq_cst: see
 * segment_state_set().
 *
 * Once the last object is given back the record may be freed and opened anew at any moment, by the
 * mover, which had it from the sealer.  Then the `added` that is loaded here is the successor's, so
 * nothing can be asserted about it, and the answer may be either: true is one report too many.
 */
static inline bool segment_release(struct segment *s, uint32_t bytes)
{
	uint64_t one = segment_one(bytes);
	uint64_t old = atomic_fetch_add_explicit(&s->released, one, memory_order_seq_cst);

	return old + one == atomic_load_explicit(&s->added, memory_order_seq_cst);
}

/* Objects in the high half, bytes in the low half.  Released first: what is read late only shrinks.
 */
static inline uint64_t segment_live_load(struct segment *s)
{
	uint64_t released = atomic_load_explicit(&s->released, memory_order_seq_cst);
	uint64_t added = atomic_load_explicit(&s->added, memory_order_seq_cst);

	return added - released;
}

static inline uint32_t segment_live_bytes(struct segment *s)
{
	return (uint32_t)segment_live_load(s);
}

static inline uint32_t segment_live_objects(struct segment *s)
{
	return (uint32_t)(segment_live_load(s) >> 32);
}

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The index: one 8-byte word per slot, and the only operations on it.
 *
 *   63            32 31        21 20             3   2    1 0
 *  +----------------+------------+----------------+-----+-----+
 *  |    segment     |  size / 4  |   offset / 4   | ref | tag |   OBJECT
 *  +----------------+------------+----------------+-----+-----+
 *  |        the page's repeated word, 62 bits           | tag |   SAME
 *  +----------------------------------------------------+-----+
 *
 * EMPTY is the word 0: never written, or discarded; it reads as zeroes.  LOST: the slot had a page
 * whose bytes are gone; it reads as an I/O error until it is written or discarded.  SAME holds
 * values that survive sign extension from 62 bits; other same-filled pages become objects.
 *
 * An object word names the segment, not a place: whether the segment's bytes are in memory, in the
 * store or both is said by its record (segment.h), so that eviction changes no word.
 *
 * The store of a word is what publishes a page.  Whoever replaces an OBJECT word (exchange or a
 * successful replace) owes its segment the credit for the bytes; nobody else does.
 *
 * Stale reads: a reader that loaded a word may find that it was replaced a moment later.  It pins
 * the segment and loads the word again (segment.h); only then does the word say where bytes lie.
 */
#ifndef ZSWAPD_STATE_INDEX_H
#define ZSWAPD_STATE_INDEX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define INDEX_TAG_MASK	   3u
#define INDEX_REF	   4u
#define INDEX_OFFSET_SHIFT 3
#define INDEX_OFFSET_BITS  18
#define INDEX_SIZE_SHIFT   21
#define INDEX_SIZE_BITS	   11
#define INDEX_SEG_SHIFT	   32

enum index_tag {
	INDEX_EMPTY = 0,
	INDEX_SAME = 1,
	INDEX_OBJECT = 2,
	INDEX_LOST = 3,
};

typedef _Atomic uint64_t index_word;

static inline enum index_tag index_tag(uint64_t w)
{
	return (enum index_tag)(w & INDEX_TAG_MASK);
}

static inline bool index_same_fits(uint64_t value)
{
	return (uint64_t)((int64_t)(value << 2) >> 2) == value;
}

static inline uint64_t index_make_same(uint64_t value)
{
	return value << 2 | INDEX_SAME;
}

static inline uint64_t index_same_value(uint64_t w)
{
	return (uint64_t)((int64_t)w >> 2);
}

/* @offset and @size are multiples of 4; @offset < 1 MiB, @size < 8 KiB. */
static inline uint64_t index_make_object(uint32_t segment, uint32_t offset, uint32_t size)
{
	return (uint64_t)segment << INDEX_SEG_SHIFT | (uint64_t)(size / 4) << INDEX_SIZE_SHIFT |
	       (uint64_t)(offset / 4) << INDEX_OFFSET_SHIFT | INDEX_OBJECT;
}

static inline uint32_t index_segment(uint64_t w)
{
	return (uint32_t)(w >> INDEX_SEG_SHIFT);
}

static inline uint32_t index_offset(uint64_t w)
{
	return (uint32_t)(w >> INDEX_OFFSET_SHIFT & ((1u << INDEX_OFFSET_BITS) - 1)) * 4;
}

static inline uint32_t index_size(uint64_t w)
{
	return (uint32_t)(w >> INDEX_SIZE_SHIFT & ((1u << INDEX_SIZE_BITS) - 1)) * 4;
}

/* The same object, whether or not it was read since. */
static inline bool index_same_object(uint64_t a, uint64_t b)
{
	return (a | INDEX_REF) == (b | INDEX_REF);
}

/*
 * acquire: pairs with the release of the thread that published the word, so that an object's bytes
 * in an open segment are seen complete.
 */
static inline uint64_t index_load(index_word *w)
{
	return atomic_load_explicit(w, memory_order_acquire);
}

/* Enough to learn that a slot is empty: an empty word refers to nothing. */
static inline bool index_is_empty(index_word *w)
{
	return atomic_load_explicit(w, memory_order_relaxed) == INDEX_EMPTY;
}

/*
 * The second load of a reader, after its pin.  seq_cst: pairs with index_replace()/index_exchange()
 * and the mover's load of the pins; either the mover sees the pin, or the reader sees the new word
 * (the store-buffer litmus test; acquire/release would allow both to miss).
 */
static inline uint64_t index_reload(index_word *w)
{
	return atomic_load_explicit(w, memory_order_seq_cst);
}

/*
 * Publishes @new in a slot that was seen empty; false if another write to the slot was faster (two
 * overlapping writes in flight, which swap never has): then there is something to be replaced.
 * release: the object's bytes come first.  Nothing is removed, so nobody has to be told.
 */
static inline bool index_claim(index_word *w, uint64_t new)
{
	uint64_t empty = INDEX_EMPTY;

	return atomic_compare_exchange_strong_explicit(w, &empty, new, memory_order_release,
						       memory_order_relaxed);
}

/* For who has the index to himself: a takeover, a test. */
static inline void index_publish(index_word *w, uint64_t new)
{
	atomic_store_explicit(w, new, memory_order_release);
}

/* Publishes @new, returns what it replaced.  seq_cst: release for the bytes, and see
 * index_reload(). */
static inline uint64_t index_exchange(index_word *w, uint64_t new)
{
	return atomic_exchange_explicit(w, new, memory_order_seq_cst);
}

/*
 * Publishes @new in place of @old if the slot still holds that object, referenced or not; false if
 * it was written or discarded meanwhile.  seq_cst as above.
 */
static inline bool index_replace(index_word *w, uint64_t old, uint64_t new)
{
	uint64_t cur = index_load(w);

	while (index_same_object(cur, old)) {
		if (atomic_compare_exchange_weak_explicit(w, &cur, new, memory_order_seq_cst,
							  memory_order_acquire))
			return true;
	}
	return false;
}

/* Notes that the object was read.  relaxed: a hint for eviction, losing the race is harmless. */
static inline void index_set_ref(index_word *w, uint64_t word)
{
	if (!(word & INDEX_REF))
		atomic_compare_exchange_strong_explicit(w, &word, word | INDEX_REF,
							memory_order_relaxed, memory_order_relaxed);
}

static inline void index_clear_ref(index_word *w, uint64_t word)
{
	if (word & INDEX_REF)
		atomic_compare_exchange_strong_explicit(w, &word, word & ~(uint64_t)INDEX_REF,
							memory_order_relaxed, memory_order_relaxed);
}

#endif

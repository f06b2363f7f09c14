/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The state memfd: everything that says where the pages are.
 *
 *   0        struct state_header (one page)
 *   4096     index: nslots words of 8 bytes, to a whole page
 *   ...      segment records: nsegments of 64 bytes, to a whole page
 *   ...      generations: nframes + 1 words of 4 bytes, to a whole page
 *
 * Offsets only, no pointers: the next process may map it anywhere.  The words and records are valid
 * at any instant; publishing one word or one record field is what changes the state.
 *
 * Any number of processes may have it mapped, while one works on it.  state_attach() writes
 * nothing, so that a successor can stand by; state_take_over() makes it this process's own, when
 * the other is dead, and resets what was process-local (pins, the dead flag).
 *
 * The size is sealed, so that no other holder of the descriptor can cut it off under us.
 */
#ifndef ZSWAPD_STATE_STATE_H
#define ZSWAPD_STATE_STATE_H

#include "daemon/state/generation.h"
#include "daemon/state/index.h"
#include "daemon/state/segment.h"

#include <stdint.h>

#define SLOT_SIZE	 4096u
#define SLOTS_MAX	 ((uint64_t)UINT32_MAX + 1) /* an object's header has 32 bits for its slot */

#define STATE_MAGIC	 0x6574617453505a5aull
#define STATE_VERSION	 4u

#define STATE_DEVICE_MAX 32u /* bytes of a device's path, with its NUL */
#define STATE_STORE_ID	 16u /* bytes */

/* What the state is good for, and nothing else. */
struct state_owner {
	char device[STATE_DEVICE_MAX]; /* whose slots these are; empty: none yet */
	uint64_t diskseq;	       /* the kernel's number of that disk, which it uses once */
	uint8_t store[STATE_STORE_ID]; /* that the places are in; zeroes without one */
};

struct state_header {
	uint64_t magic;
	uint32_t version;
	uint32_t header_size;
	uint64_t nslots;
	uint32_t nsegments;
	uint32_t nframes;
	uint32_t nplaces;
	uint32_t reserved;
	uint64_t index_offset;
	uint64_t segments_offset;
	uint64_t generations_offset;
	uint64_t total_size;
	uint64_t checksum;	   /* XXH3 of all above */
	_Atomic uint64_t next_seq; /* the next segment's sequence number */
	/* What outlives a process; atomic, any thread. */
	_Atomic uint32_t limit;	    /* of the front tier, in frames */
	_Atomic uint32_t reserve;   /* frames; 0: the engine's choice */
	_Atomic uint32_t takeovers; /* so far */
	struct state_owner owner;
};

_Static_assert(offsetof(struct state_header, next_seq) == 80, "part of the state's layout");

struct state_geometry {
	uint64_t nslots;  /* 1 to SLOTS_MAX */
	uint32_t nframes; /* the most MiB the front tier's limit can be set to, at least 1 */
	uint32_t nplaces; /* segments the store has room for, 0 without a store */
};

struct state {
	int fd;
	struct state_header *header;
	index_word *index;
	struct segment *segments;
	struct generations *generations;
	struct state_geometry geo;
	uint32_t nsegments;
	struct state_header
		fixed; /* as it was when it was checked; up to next_seq it never changes */
};

/*
 * Makes a new memfd, all slots empty, all records free, all of it present in memory (-ENOMEM if
 * that can't be had).  -EINVAL: geometry out of range.
 */
int state_new(struct state **ret, const struct state_geometry *geo);

/*
 * Maps the state that @fd holds and takes over the descriptor, on success only.  Writes nothing to
 * it.  -EBADMSG: not a state, another version, or damaged; the log says which.
 */
int state_attach(struct state **ret, int fd);

/*
 * After state_attach(), once nobody else works on it.  A header that was damaged since is made
 * again from what state_attach() found, and the log says so.
 */
void state_take_over(struct state *s);

/* To whom the state in @fd belongs; before state_attach().  -EBADMSG as there. */
int state_read_owner(int fd, struct state_owner *ret);

/* Once, before anything is written to the device. */
void state_set_owner(struct state *s, const struct state_owner *o);

/* Unmaps and closes.  The memfd lives on while somebody else holds it. */
void state_free(struct state *s);

static inline uint64_t state_bytes(const struct state *s)
{
	return s->fixed.total_size;
}

#endif

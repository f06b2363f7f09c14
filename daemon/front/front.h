/* SPDX-License-Identifier: GPL-2.0-or-later */
/* clang-format off */
/*
 * The front tier's memory: a memfd of 1 MiB frames.
 *
 * A frame is absent (a hole, costs nothing), free (present in memory, nobody's), or in use (a
 * segment record names it).  Data threads only ever take free frames: memory is asked of the kernel
 * by the mover, ahead of need, so that a page can be stored while the kernel has none to give.
 *
 *             front_grow()           front_get()
 *	absent ----------------> free ---------------> in use
 *	   ^                     |  ^                     |
 *	   '--- front_shrink() --'  '---- front_put() ----'
 *
 * grow and shrink: the mover's thread only.  get and put: any thread, lock-free.
 *
 * Another process may stand by with the same memory mapped (front_hold()): see front.c.
 */
/* clang-format on */
#ifndef ZSWAPD_FRONT_FRONT_H
#define ZSWAPD_FRONT_FRONT_H

#include "daemon/front/idstack.h"
#include "daemon/state/generation.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define FRAME_SIZE (1u << 20)
#define FRAME_NONE IDSTACK_NONE

struct front {
	/* set at start */
	int fd;
	uint8_t *base;
	uint32_t nframes;
	struct generations *generations; /* shared with other processes; see there */
	/* atomic, any thread */
	struct idstack free;
	_Atomic uint32_t present; /* free and in use; written by the mover */
	/* mover only */
	uint32_t *absent; /* stack; low numbers come first as long as nothing was given back */
	uint32_t nabsent;
	uint32_t top; /* frames from here on were never present */
	/* who stands by, until it takes over */
	uint32_t *held;	     /* the generation of a frame whose pages are mapped; else absent's */
	uint32_t held_last;  /* all up to this one are held */
	uint32_t next, last; /* of the walk under way: the next frame, and what to put there then */
	bool missed;	     /* a frame in this walk */
};

/*
 * @nframes: the most there can ever be.  All frames are absent.  @generations: of @nframes, all
 * absent, not owned.
 *
 * @fd >= 0: maps the memory of a process that goes before (and owns the descriptor on success),
 * @generations being those of that process.  Nothing is changed by that.  Once it is dead, its
 * frames are absent here until front_claim() says otherwise; front_settle() must follow.  -EBADMSG:
 * @fd has another size.
 *
 * Call mlockall() with MCL_FUTURE before, not after: that would make all frames present.
 */
int front_new(struct front **ret, uint32_t nframes, int fd, struct generations *generations);
void front_free(struct front *f);

/*
 * While the other process works: maps the pages of frames that have become present since the last
 * call, @max of them at most.  True: there are more.  Next to nothing when nothing has come.
 */
bool front_hold(struct front *f, unsigned max);

/* Takeover, before any thread runs: @frame is in use.  False: somebody claimed it before. */
bool front_claim(struct front *f, uint32_t frame);
/*
 * Takeover, after all claims: present frames that nobody claimed are free, as long as there are
 * fewer than @limit in all.  All other memory goes back to the system.
 */
void front_settle(struct front *f, uint32_t limit);

/* Makes one absent frame free.  -ENOSPC: none is absent; -ENOMEM: the kernel has no memory. */
int front_grow(struct front *f, uint32_t *ret_frame);

/* Makes one free frame absent again; FRAME_NONE if fewer than @keep + 1 are free. */
uint32_t front_shrink(struct front *f, uint32_t keep);

/*
 * Makes a frame that is in use absent, and no longer anybody's.  Who has its pages for I/O keeps
 * them as they are.  False: the system refuses; it is in use as before.
 */
bool front_discard(struct front *f, uint32_t frame);

/* FRAME_NONE if fewer than @keep + 1 frames are free. */
static inline uint32_t front_get(struct front *f, uint32_t keep)
{
	return idstack_pop(&f->free, keep);
}

static inline void front_put(struct front *f, uint32_t frame)
{
	idstack_push(&f->free, frame);
}

static inline uint8_t *front_frame(const struct front *f, uint32_t frame)
{
	return f->base + (uint64_t)frame * FRAME_SIZE;
}

static inline uint32_t front_present(struct front *f)
{
	/* acquire: who then reads the limit reads the one for which these frames were taken. */
	return atomic_load_explicit(&f->present, memory_order_acquire);
}

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What evictor.c and clean.c share. */
#ifndef ZSWAPD_ENGINE_EVICTOR_INTERNAL_H
#define ZSWAPD_ENGINE_EVICTOR_INTERNAL_H

#include "daemon/engine/evictor.h"
#include "daemon/engine/internal.h"

struct segment_write {
	struct ring_op op;
	struct evictor *v;
	uint32_t segment;
	uint32_t place;
	uint32_t len;
	uint64_t sent; /* CLOCK_MONOTONIC, ns */
	bool busy;
	bool for_job;
};

/* A frame that no record names any more, but that a reader may still have pinned. */
struct retiring {
	uint32_t segment;
	uint32_t frame;
};

struct evictor {
	/* set at start */
	struct engine *e;
	struct counter_set *c;
	struct histogram_set *h;
	struct ring ring;
	struct ring_op kick;
	/* the mover's */
	bool kick_armed;
	bool register_warned;
	bool staging_registered;
	uint32_t nbuffers;	 /* frames below this may be registered buffers */
	bool *registered;	 /* a frame */
	uint32_t staging_index;	 /* the buffer slot behind them */
	struct writer young;	 /* objects that were given a second chance, or cleaned in memory */
	struct writer survivors; /* objects that came back from the store */
	struct segment_write writes[EVICTOR_WRITES];
	unsigned writing;
	struct evictor_job_writes job_writes;
	uint64_t back_off_until; /* no store write before that; CLOCK_MONOTONIC, ns */
	uint64_t grow_again;	 /* no new frame before that */
	uint64_t shrink_again;	 /* no frame is given back before that */
	unsigned freed;		 /* frames, since one was given back to the system */
	uint64_t *clean_again;	 /* a segment: not to be read for cleaning before that */
	struct retiring *retiring;
	unsigned nretiring;
	uint32_t *dead; /* nothing live, but still pinned or being written */
	unsigned ndead;
	/* emptied by cleaning, but with something counted as live; see clean.c */
	uint32_t *suspects;
	unsigned nsuspects;
	uint64_t turns[ENGINE_QUEUES_MAX]; /* when the last suspect was found */
	uint32_t *places;		   /* stack of free ones */
	uint32_t nplaces;
	/* one segment, for cleaning and checking the store */
	uint8_t *staging;
	uint64_t staging_seq; /* which one is there; 0: none */
	/* for checking */
	struct codec *codec;
	uint8_t page[SLOT_SIZE];
};

/* Drops what suspects count as live once every turn that was under way has passed. */
void evictor_reap_suspects(struct evictor *v);
bool evictor_is_suspect(const struct evictor *v, uint32_t segment);
/* The segment is freed. */
void evictor_forget_suspect(struct evictor *v, uint32_t segment);

/*
 * Looks at the header at *offset of a sealed segment, which is below its end, and moves *offset on.
 * Returns the index word if the object there is live, else 0.
 */
uint64_t evictor_walk(struct engine *e, uint32_t id, const uint8_t *bytes, uint32_t used,
		      uint32_t *offset);

/* The mover posts, since who writes to the log may be held up; one line of a kind in this time. */
#define LOG_BURST_NS 10000000000ull

/*
 * What the mover waits for, where it can't go on without: call it once a second or so while it
 * does.  Says so after SLOW_NS, and again each time it has taken twice as long.  Zero at first.
 */
#define SLOW_NS 2000000000ull
struct slow_wait {
	uint64_t since; /* CLOCK_MONOTONIC, ns */
	uint64_t next;
};
void evictor_still_waits(struct slow_wait *w, const char *what);

/* Reads the stored segment into v->staging.  -EIO, logged. */
int evictor_read_segment(struct evictor *v, uint32_t segment);
/* Only what the word names, to where it would lie in the whole segment. */
int evictor_read_object(struct evictor *v, uint32_t segment, uint64_t word);

/* Frames of the front tier are registered buffers of the mover's ring, one each. */
void evictor_register_frame(struct evictor *v, uint32_t frame, bool present);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What evictor.c, clean.c and writeback.c share. */
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
	bool try;     /* the one before had failed */
	uint32_t job; /* struct evictor's, when it was sent for a job; 0: it was not */
};

/* The one read of the mover, into its staging buffer. */
struct staging_read {
	struct ring_answer answer;
	bool out;     /* it is the store's */
	uint64_t seq; /* the segment that then is there as a whole; 0: only a part */
	uint32_t place;
	uint32_t len;
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
	uint32_t job; /* counts jobs, so that a write of a former one is not taken for this one's */
	struct write_health health;
	/* written to since the last write that succeeded, in vain; see health.h */
	uint32_t aside[EVICTOR_WRITES];
	unsigned naside;
	uint64_t gone_asked;		/* the failure after which it was asked for; ns */
	enum engine_store_state judged; /* as it was last */
	uint64_t grow_again;		/* no new frame before that */
	uint64_t shrink_again;		/* no frame is given back before that */
	unsigned freed;			/* frames, since one was given back to the system */
	uint64_t *clean_again;		/* a segment: not to be read for cleaning before that */
	struct retiring *retiring;
	unsigned nretiring;
	uint32_t *dead; /* nothing live, but still pinned or being written */
	unsigned ndead;
	/* emptied by cleaning, but with something counted as live; see clean.c */
	uint32_t *suspects;
	unsigned nsuspects;
	uint64_t turns[ENGINE_QUEUES_MAX]; /* when the last suspect was found */
	uint32_t *places;		   /* stack of free ones */
	uint8_t *place_use;		   /* enum place_use */
	uint64_t emergency_bytes;	   /* the kernel's reserve: vm.min_free_kbytes */
	uint32_t nplaces;
	uint8_t *strikes; /* a place: writes to it that failed while others did not */
	/* one segment, for cleaning and checking the store */
	uint8_t *staging;
	uint64_t staging_seq; /* which one is there; 0: none */
	struct staging_read staging_read;
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
 * True: the mover's read is not answered, or nothing is.  Then nothing is read, and a write without
 * room waits rather than be refused.
 */
bool evictor_store_owes(const struct evictor *v);
/* A read that was given up waiting for may have been answered since. */
void evictor_take_staged(struct evictor *v);

/* What has become of the store since the last look: its state, with a line in the log. */
void evictor_judge_store(struct evictor *v);

/* Reads the stored segment into v->staging.  -EIO, logged; -EAGAIN: see evictor_clean_store(). */
int evictor_read_segment(struct evictor *v, uint32_t segment);
/* Only what the word names, to where it would lie in the whole segment. */
int evictor_read_object(struct evictor *v, uint32_t segment, uint64_t word);

/* Clears the frame from the record; it is free once no reader has it pinned. */
void evictor_retire_frame(struct evictor *v, uint32_t id, uint32_t frame, uint32_t place);

/* The place is free, and the next to be used. */
void evictor_put_place(struct evictor *v, uint32_t place);
/* Of all free places it is taken last. */
void evictor_put_place_last(struct evictor *v, uint32_t place);

/* Frames of the front tier are registered buffers of the mover's ring, one each. */
void evictor_register_frame(struct evictor *v, uint32_t frame, bool present);

#endif

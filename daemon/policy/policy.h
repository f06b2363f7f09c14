/* SPDX-License-Identifier: GPL-2.0-or-later */
/* clang-format off */
/*
 * What to do next with whole segments: a pure decision over plain numbers.
 *
 * Memory first: frames are kept free ahead of need (frames_reserve).  Below the limit more are
 * asked of the system.  At the limit room is made by the cheapest means that gives any:
 *
 *   1. clean the sparsest segment in memory, if half of it or more is dead: no I/O, a frame for half
 *   2. write the segment that is to leave next to the store
 *   3. clean the sparsest segment of the store, when its places run out
 *   4. clean in memory for little, if a writer waits
 *
 * Above the limit, which may have been lowered, the same makes room, for the system and for writers
 * in turn, until memory is within it again.
 *
 * If none of these gives room and nothing is under way that will, the writers that wait are told so.
 * A store that does not answer, or that failed and will be tried again in a moment, is still a hope.
 */
/* clang-format on */
#ifndef ZSWAPD_POLICY_POLICY_H
#define ZSWAPD_POLICY_POLICY_H

#include "daemon/engine/evictor.h"

enum policy_action {
	POLICY_NONE,	     /* enough is free, or will be when what is under way is done */
	POLICY_GROW,	     /* evictor_grow() */
	POLICY_SHRINK,	     /* evictor_shrink() */
	POLICY_EVICT,	     /* survey.next leaves memory */
	POLICY_CLEAN_MEMORY, /* survey.sparsest */
	POLICY_CLEAN_STORE,  /* survey.sparsest_stored */
	POLICY_DENY,	     /* there is no room */
};

/* Any thread, no side effects.  @idle: nothing has happened for a while. */
enum policy_action policy_decide(const struct survey *s, bool idle);

/* True if the decision needs the sparsest stored segment, which is costly to find. */
bool policy_store_is_short(const struct survey *s);

/* True if what is left of a segment about to be written is better moved than written. */
bool policy_clean_instead(uint32_t live_bytes);

/* Frames left free when memory goes back to the system. */
uint32_t policy_shrink_keep(const struct survey *s);

#endif

// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/policy/policy.h"
#include "daemon/state/segment.h"

/* Shares of a segment, in 16ths, up to which moving its live bytes pays. */
#define SPARSE_FREE	 8  /* in memory: two become one, for a copy of half a MiB */
#define SPARSE_EVICT	 12 /* instead of writing it: a copy costs far less than a write of 1 MiB */
#define SPARSE_STORE	 12 /* in the store, while places are left */
#define SPARSE_DESPERATE 15 /* somebody waits, or the limit was lowered: any gain */

static bool at_most(const struct survey_victim *v, unsigned sixteenths)
{
	return v->id != SEGMENT_NONE && v->live <= SEGMENT_SIZE / 16 * sixteenths;
}

static uint32_t store_low(const struct survey *s)
{
	uint32_t share = s->places_max / 32;

	return s->places_kept + 2 + (share < 16 ? share : 16);
}

bool policy_store_is_short(const struct survey *s)
{
	return s->places_max > 0 && s->places_free < store_low(s);
}

bool policy_clean_instead(uint32_t live_bytes)
{
	return live_bytes <= SEGMENT_SIZE / 16 * SPARSE_EVICT;
}

/* Frames above a limit that was lowered. */
static uint32_t over_limit(const struct survey *s)
{
	return s->frames_present > s->frames_max ? s->frames_present - s->frames_max : 0;
}

/*
 * Above the limit one frame of two goes to the system, whether or not writers would take it: else
 * they could keep the limit from being reached for as long as they write, or not write at all until
 * it is.
 */
uint32_t policy_shrink_keep(const struct survey *s)
{
	if (over_limit(s))
		return s->frames_kept + !s->shrink_due;
	return s->frames_reserve + s->frames_reserve / 2;
}

static bool has_place(const struct survey *s)
{
	return s->next.id != SEGMENT_NONE &&
	       (s->places_free > s->places_kept || (s->places_free > 0 && s->next_is_survivor));
}

/* Its survivors need a frame before they free a place, so not with the last one. */
static bool may_clean_store(const struct survey *s)
{
	if (!policy_store_is_short(s) || s->frames_free < 2)
		return false;
	return at_most(&s->sparsest_stored,
		       s->places_free > s->places_kept ? SPARSE_STORE : SPARSE_DESPERATE);
}

static enum policy_action make_room(const struct survey *s)
{
	if (s->frames_free > 0 && at_most(&s->sparsest, SPARSE_FREE))
		return POLICY_CLEAN_MEMORY;
	if (may_clean_store(s))
		return POLICY_CLEAN_STORE;
	if (s->store_ready && has_place(s))
		return POLICY_EVICT;
	if ((!s->waiting && !over_limit(s)) || s->frames_coming > 0 || s->store_owes ||
	    (s->store_pauses && has_place(s)))
		return POLICY_NONE;
	if (at_most(&s->sparsest, SPARSE_DESPERATE))
		return POLICY_CLEAN_MEMORY;
	return s->waiting ? POLICY_DENY : POLICY_NONE;
}

enum policy_action policy_decide(const struct survey *s, bool idle)
{
	if ((idle || over_limit(s)) && s->shrink_ready && s->frames_free > policy_shrink_keep(s))
		return POLICY_SHRINK;
	if (s->frames_free + s->frames_coming < s->frames_reserve + over_limit(s))
		return s->frames_present < s->frames_max ? POLICY_GROW : make_room(s);
	return POLICY_NONE;
}

// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/nlproto.h"
#include "common/counters.h"
#include "common/util.h"

#include <string.h>

/* The daemon sends the table's own numbers, so they may not drift from the wire's. */
_Static_assert((int)COUNTER_KIND_COUNTER == (int)NLPROTO_KIND_COUNTER, "wire value");
_Static_assert((int)COUNTER_KIND_GAUGE == (int)NLPROTO_KIND_GAUGE, "wire value");
_Static_assert((int)COUNTER_UNIT_NONE == (int)NLPROTO_UNIT_NONE, "wire value");
_Static_assert((int)COUNTER_UNIT_PAGES == (int)NLPROTO_UNIT_PAGES, "wire value");
_Static_assert((int)COUNTER_UNIT_BYTES == (int)NLPROTO_UNIT_BYTES, "wire value");
_Static_assert((int)COUNTER_UNIT_NANOSECONDS == (int)NLPROTO_UNIT_NANOSECONDS, "wire value");
_Static_assert(sizeof(struct nlproto_hdr) == 4, "wire layout");
_Static_assert(sizeof(struct nlproto_bucket) == 24, "wire layout");

#define X(name, kind, unit, text) \
	_Static_assert(sizeof(#name) <= NLPROTO_NAME_MAX, "counter name too long for the wire");
ZSWAPD_COUNTERS(X)
#undef X

static bool is_alnum(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool nlproto_name_ok(const char *name)
{
	size_t n = strnlen(name, NLPROTO_NAME_MAX);

	if (n == 0 || n == NLPROTO_NAME_MAX || name[0] == '.' || name[0] == '-')
		return false;
	for (size_t i = 0; i < n; i++)
		if (!is_alnum(name[i]) && !strchr("_.-", name[i]))
			return false;
	return true;
}

uint32_t nlproto_port(const char *name)
{
	uint32_t h = 2166136261u; /* FNV-1a, folded to 16 bits */

	for (; *name; name++)
		h = (h ^ (uint8_t)*name) * 16777619u;
	return NLPROTO_PORT_BASE | ((h >> 16) ^ (h & 0xffff));
}

/* A function that finds a number's word in one of the tables, in which numbers may be missing. */
#define LOOKUP(function, number, table, entry)                     \
	const char *function(number)                               \
	{                                                          \
		static const char *const words[] = {table(entry)}; \
                                                                   \
		return nr < ARRAY_SIZE(words) ? words[nr] : NULL;  \
	}

#define THREE(name, nr, word)	   [nr] = word,
#define FOUR(name, nr, word, text) [nr] = word,

LOOKUP(nlproto_state_text, uint64_t nr, NLPROTO_STATES, THREE)
LOOKUP(nlproto_store_state_name, uint64_t nr, NLPROTO_STORE_STATES, THREE)
LOOKUP(nlproto_job_name, uint64_t nr, NLPROTO_JOB_KINDS, FOUR)
LOOKUP(nlproto_job_state_name, uint64_t nr, NLPROTO_JOB_STATES, THREE)
LOOKUP(nlproto_event_name, uint64_t nr, NLPROTO_EVENTS, FOUR)
LOOKUP(nlproto_health_text, unsigned nr, NLPROTO_HEALTH_BITS, THREE)

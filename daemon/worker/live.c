// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/worker/live.h"
#include "common/size.h"
#include "common/util.h"

#include <errno.h>
#include <stdio.h>

typedef int (*apply_fn)(struct engine *e, const struct config *c, char *reason);

static int apply_limit(struct engine *e, const struct config *c, char *reason)
{
	char low[SIZE_TEXT_MAX], high[SIZE_TEXT_MAX];
	int r = engine_set_memory_limit(e, c->memory_limit);
	uint64_t min, max;

	engine_memory_range(e, &min, &max);
	size_format(low, min);
	if (r == -ERANGE)
		snprintf(reason, CONFIG_REASON_MAX, "it can be set from %s to %s while zswapd runs",
			 low, size_format(high, max));
	else if (r == -ENOSPC)
		snprintf(reason, CONFIG_REASON_MAX,
			 "pages are held that need %s, and the store has no room for them; "
			 "end programs, or give the store more room and restart",
			 low);
	return r;
}

static int apply_reserve(struct engine *e, const struct config *c, char *reason)
{
	engine_set_memory_reserve(e, c->memory_reserve);
	return 0;
}

static int apply_level(struct engine *e, const struct config *c, char *reason)
{
	engine_set_level(e, c->memory_level);
	return 0;
}

static int apply_overlap(struct engine *e, const struct config *c, char *reason)
{
	engine_set_overlap(e, c->read_overlap);
	return 0;
}

/* The option's words stand in the order of the engine's modes. */
_Static_assert((int)CONFIG_POLL_OFF == (int)ENGINE_POLL_OFF, "");
_Static_assert((int)CONFIG_POLL_SPIN == (int)ENGINE_POLL_SPIN, "");
_Static_assert((int)CONFIG_POLL_HYBRID == (int)ENGINE_POLL_HYBRID, "");

static int apply_poll(struct engine *e, const struct config *c, char *reason)
{
	int r = engine_set_poll(e, (enum engine_poll)c->store_poll);

	if (r < 0)
		snprintf(reason, CONFIG_REASON_MAX,
			 *c->store_path ? "the store can't be polled; for an NVMe drive start the "
					  "kernel with nvme.poll_queues=2 or so"
					: "there is no store to poll; set [store] path");
	return r;
}

static const apply_fn appliers[CONFIG_OPTION_COUNT] = {
	[CONFIG_OPTION_memory_limit] = apply_limit,
	[CONFIG_OPTION_memory_reserve] = apply_reserve,
	[CONFIG_OPTION_memory_level] = apply_level,
	[CONFIG_OPTION_store_poll] = apply_poll,
	[CONFIG_OPTION_read_overlap] = apply_overlap,
};

bool live_has(enum config_option_id id)
{
	return appliers[id];
}

static void keep(struct config *c, enum config_option_id id, uint64_t *bytes, uint64_t kept)
{
	*bytes = kept;
	snprintf(c->origin[id], sizeof(c->origin[id]), "%s", LIVE_KEPT_ORIGIN);
}

/* The engine has whole MiB, the limit rounded down and the reserve rounded up. */
void live_kept(const struct engine *e, struct config *c)
{
	uint64_t limit = engine_memory_limit(e), reserve = engine_memory_reserve_wanted(e);

	if (align_down(c->memory_limit, MIB(1)) != limit)
		keep(c, CONFIG_OPTION_memory_limit, &c->memory_limit, limit);
	if (align_up(c->memory_reserve, MIB(1)) != reserve)
		keep(c, CONFIG_OPTION_memory_reserve, &c->memory_reserve, reserve);
}

int live_apply(struct engine *e, enum config_option_id id, const struct config *c,
	       char reason[static CONFIG_REASON_MAX])
{
	if (!appliers[id]) {
		snprintf(reason, CONFIG_REASON_MAX, "nothing applies it; restart zswapd");
		return -EOPNOTSUPP;
	}
	return appliers[id](e, c, reason);
}

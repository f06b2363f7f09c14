// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/worker/live.h"

#include <errno.h>

typedef int (*apply_fn)(struct engine *e, const struct config *c, char *reason);

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

static const apply_fn appliers[CONFIG_OPTION_COUNT] = {
	[CONFIG_OPTION_memory_level] = apply_level,
	[CONFIG_OPTION_read_overlap] = apply_overlap,
};

bool live_has(enum config_option_id id)
{
	return appliers[id];
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

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Options that change while swap is in use, and how: a function for each that the table of options
 * calls LIVE.
 */
#ifndef ZSWAPD_WORKER_LIVE_H
#define ZSWAPD_WORKER_LIVE_H

#include "daemon/config/config.h"
#include "daemon/engine/engine.h"

/*
 * Makes option @id in @e as it is in @c.  Negative errno: @reason says why not; nothing is changed.
 * Any thread, one at a time.
 */
int live_apply(struct engine *e, enum config_option_id id, const struct config *c,
	       char reason[static CONFIG_REASON_MAX]);

#define LIVE_KEPT_ORIGIN "kept from the former daemon"

/*
 * @e was taken over: what it has kept of the former daemon's settings and is not as @c says, is
 * written to @c, with its origin.
 */
void live_kept(const struct engine *e, struct config *c);

/* Whether live_apply() can do anything for @id. */
bool live_has(enum config_option_id id);

#endif

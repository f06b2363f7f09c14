// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/counters.h"

const struct counter_info counter_table[COUNTER_COUNT] = {
#define X(n, k, u, t) [CTR_##n] = {#n, COUNTER_KIND_##k, COUNTER_UNIT_##u, t},
	ZSWAPD_COUNTERS(X)
#undef X
};

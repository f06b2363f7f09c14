// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/worker/supervision.h"
#include "common/util.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

void supervision_init(struct supervision *s, struct watch *watch, int supervisor)
{
	*s = (struct supervision){.watch = watch, .supervisor = supervisor, .ordered = now_ns()};
}

void supervision_ordered(struct supervision *s)
{
	s->ordered = now_ns();
}

void supervision_begin(struct supervision *s)
{
	s->predecessor = atomic_exchange(&s->watch->worker, getpid());
}

/* A report of another worker's death says nothing of this takeover. */
static void describe(struct supervision *s)
{
	char report[WATCH_REPORT_MAX], from[32] = "another worker";
	double ms = (double)s->took_ns / 1e6;

	if (s->predecessor)
		snprintf(from, sizeof(from), "worker %d", s->predecessor);
	if (!s->predecessor || atomic_load(&s->watch->reported) != s->predecessor) {
		snprintf(s->text, sizeof(s->text), "worker %d took over from %s in %.0f ms",
			 getpid(), from, ms);
		return;
	}
	watch_report(s->watch, report);
	snprintf(s->text, sizeof(s->text), "worker %d took over from %s in %.0f ms; %.400s",
		 getpid(), from, ms, report);
}

void supervision_took_over(struct supervision *s)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	s->time = (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
	s->took_ns = now_ns() - s->ordered;
	describe(s);
}

bool supervision_changed(struct supervision *s, int supervisor)
{
	bool changed = atomic_exchange(&s->supervisor, supervisor) != supervisor;

	/* A standby ends with its supervisor, who can't take it off the page any more. */
	if (changed && !supervisor)
		atomic_store(&s->watch->standby, 0);
	return changed;
}

void supervision_status(const struct supervision *s, struct stats_status *ret)
{
	_Static_assert(WATCH_REPORT_MAX <= sizeof(ret->report), "a report fits");

	ret->supervision = true;
	ret->supervisor = (uint32_t)atomic_load(&s->supervisor);
	ret->standby = (uint32_t)atomic_load(&s->watch->standby);
	ret->deaths = atomic_load(&s->watch->deaths);
	watch_report(s->watch, ret->report);
	snprintf(ret->takeover, sizeof(ret->takeover), "%s", s->text);
	ret->takeover_time = s->time;
	ret->takeover_ns = s->took_ns;
}

void supervision_counters(const struct supervision *s, uint64_t values[COUNTER_COUNT])
{
	values[CTR_worker_deaths_total] = atomic_load(&s->watch->deaths);
	values[CTR_supervisor_present] = atomic_load(&s->supervisor) != 0;
	values[CTR_standby_prepared] = atomic_load(&s->watch->standby) != 0;
}

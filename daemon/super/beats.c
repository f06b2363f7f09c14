// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/log.h"
#include "common/util.h"
#include "daemon/super/super_impl.h"

#include <signal.h>
#include <string.h>
#include <sys/syscall.h>

#define SECOND_NS 1000000000ull
#define ABSENT_NS (3 * SECOND_NS) /* since the last look, of which there is one a second */
#define ABORT_NS  (2 * SECOND_NS) /* to write down where it was */
/* To take over.  The kernel's part of it has bounds that are shorter. */
#define TAKING_NS (120 * SECOND_NS)

void beats_reset(struct beats *b)
{
	memset(b, 0, sizeof(*b));
}

/* The number of a thread that has made no turn for so long, or -1. */
static int find_stuck(struct super *s, uint64_t now, uint64_t limit)
{
	struct beats *b = &s->beats;

	for (unsigned i = 0; i < WATCH_THREADS; i++) {
		struct beat *beat = &s->watch->beats[i];
		uint64_t turns = atomic_load_explicit(&beat->turns, memory_order_relaxed);

		if (atomic_load(&beat->tid) == 0 || turns != b->turns[i] || b->since[i] == 0) {
			b->turns[i] = turns;
			b->since[i] = now;
		} else if (now - b->since[i] >= limit) {
			return (int)i;
		}
	}
	return -1;
}

static void end_in_thread(struct super *s, pid_t tid, uint64_t now)
{
	s->beats.kill_at = now + ABORT_NS;
	/* In that thread, so that the record says where it is.  A stopped process is woken. */
	syscall(SYS_tgkill, s->worker.pid, tid, SIGABRT);
	child_signal(&s->worker, SIGCONT);
}

static void look_at_threads(struct super *s, uint64_t now, uint64_t limit)
{
	int i = find_stuck(s, now, limit), tid;

	if (i < 0)
		return;
	tid = atomic_load(&s->watch->beats[i].tid);
	log_err("worker %d: %s %d has not come round for %d s; the worker is replaced",
		s->worker.pid, i ? "data thread" : "the main thread", tid,
		s->o->config->device_watchdog);
	end_in_thread(s, tid, now);
}

/*
 * A supervisor that was stopped, or its whole machine or cgroup, has not seen what the worker did
 * meanwhile, or that it was stopped too: all threads get their time from now on.
 */
static void forgive_own_absence(struct super *s, uint64_t now)
{
	struct beats *b = &s->beats;

	if (b->looked && now - b->looked >= ABSENT_NS) {
		for (unsigned i = 0; i < WATCH_THREADS; i++)
			b->since[i] = 0;
		if (!s->worker.ready)
			s->worker.since = now;
	}
	b->looked = now;
}

void beats_look(struct super *s)
{
	uint64_t now = now_ns(), limit = (uint64_t)s->o->config->device_watchdog * SECOND_NS;

	forgive_own_absence(s, now);
	if (!limit || !s->worker.pid || s->blind)
		return;
	if (s->beats.kill_at) {
		if (now >= s->beats.kill_at)
			child_signal(&s->worker, SIGKILL);
	} else if (s->worker.ready) {
		look_at_threads(s, now, limit);
	} else if (s->took_over && now - s->worker.since >= TAKING_NS) {
		log_err("worker %d has not taken over within %llu s; it is replaced", s->worker.pid,
			TAKING_NS / SECOND_NS);
		end_in_thread(s, s->worker.pid, now);
	}
}

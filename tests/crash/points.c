// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Kills an engine's process at every named point (common/crashpoint.h) and takes its state over.
 *
 *	points [SEED [POINT]]
 *
 * Linked with an engine in which the points are there.  A scene is an engine with one life after
 * the other (life.h).  In each scene, in one or two rounds, a child is armed with each point that
 * can be reached there, and with how many passages to let by before it kills itself: none, a few,
 * or up to about as many as there are in a third of a second.  Then the parent takes over, sweeps,
 * and reads every slot.
 *
 * Points of the takeover are armed in a child that takes over from another one, which died with a
 * write to the store under way; by turns one that was prepared and one that was not.
 *
 * A child that does not come by its point is killed after a while, and everything is checked as
 * well; but a point that was reached in no scene is a failure of the test.
 */
#include "common/crashpoint.h"
#include "common/log.h"
#include "daemon/store/ring.h"
#include "tests/crash/life.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define GIVE_UP	    20000u /* pages answered without the point being reached */
#define MINUTE_NS   60000000000ull
#define MEASURED_NS 300000000u

enum where {
	LIFE = 1,
	STORE = 2,
	FAULT = 4,
	TAKEOVER = 8,
};

static const struct point {
	const char *name;
	enum where where;
} points[] = {
#define POINT(name, where) [CRASH_##name] = {#name, where},
	CRASH_POINTS(POINT)
#undef POINT
};

/* How many passages are let by. */
enum round {
	NONE = 1,
	FEW = 2,
	MANY = 4,
};

/* What can be reached, of a memory and a store of so many MiB, and a limit up to so many. */
static const struct scene {
	const char *name;
	unsigned where, rounds;
	uint64_t memory, store, max;
} scenes[] = {
	{"small store", LIFE | STORE | TAKEOVER, NONE | FEW, 9, 16, 24},
	{"no store", LIFE | TAKEOVER, FEW, 24, 0, 40},
	{"tight memory", LIFE | STORE | TAKEOVER, MANY, 9, 48, 12},
	{"failing store", FAULT, NONE | FEW | MANY, 9, 128, 12},
};

/* Shared with the children. */
struct arm {
	_Atomic uint32_t point;
	_Atomic int64_t left; /* passages to let by */
	_Atomic uint64_t passed[CRASH_POINT_COUNT];
};

static struct arm *arm;
static bool armed;  /* this process is */
static bool faults; /* this process's store has */
static uint64_t usual[CRASH_POINT_COUNT];
static unsigned hits[CRASH_POINT_COUNT], misses[CRASH_POINT_COUNT];
static unsigned deaths;

void crash_point(enum crash_point p)
{
	if (!armed)
		return;
	atomic_fetch_add(&arm->passed[p], 1);
	if (atomic_load(&arm->point) != p || atomic_fetch_sub(&arm->left, 1) != 0)
		return;
	kill(getpid(), SIGKILL);
	while (true)
		pause();
}

/* Some places of the store are bad: their writes have failed, for all that the mover is told. */
static struct spoiled {
	struct ring_op op;
	struct ring_op *owner;
} spoiled[16];

void __real_ring_store_write(struct ring *r, struct ring_op *op, const void *buf, unsigned len,
			     uint64_t off, int buf_index);
void __wrap_ring_store_write(struct ring *r, struct ring_op *op, const void *buf, unsigned len,
			     uint64_t off, int buf_index);

static void spoil(struct ring_op *op, int32_t res, uint32_t flags)
{
	struct spoiled *s = container_of(op, struct spoiled, op);

	(void)res;
	s->owner->done(s->owner, -EIO, flags);
}

/* The mover's thread only. */
void __wrap_ring_store_write(struct ring *r, struct ring_op *op, const void *buf, unsigned len,
			     uint64_t off, int buf_index)
{
	static unsigned n;
	struct spoiled *s;

	if (!faults || off / MIB(1) % 4 != 1) {
		__real_ring_store_write(r, op, buf, len, off, buf_index);
		return;
	}
	s = &spoiled[n++ % ARRAY_SIZE(spoiled)]; /* more than can be under way */
	*s = (struct spoiled){.op.done = spoil, .owner = op};
	__real_ring_store_write(r, &s->op, buf, len, off, buf_index);
}

/* What a child does, which dies at the point or is killed. */
enum role {
	LIVE,
	TAKE_OVER,
	STAND_BY,
};

_Noreturn static void child(enum role role, bool with_faults)
{
	faults = with_faults;
	if (role == STAND_BY)
		life_stand_by();
	armed = role != LIVE;
	if (role == STAND_BY)
		life_take_over();
	else
		life_open();
	/* Nobody has looked since another child's death. */
	if (role != LIVE)
		life_check(false);
	armed = true;
	life_run();
}

/* True if the child has died by itself, in time. */
static bool wait_for(pid_t pid)
{
	uint64_t before = life.model->answered, end = now_ns() + MINUTE_NS;
	bool hit = true;
	int status;
	pid_t r;

	while ((r = waitpid(pid, &status, WNOHANG)) == 0) {
		if (hit && (life.model->answered - before > GIVE_UP || now_ns() > end)) {
			hit = false;
			kill(pid, SIGKILL);
		}
		usleep(200);
	}
	if (r != pid || !WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
		FAIL("the child has failed by itself, armed with point %u\n", arm->point);
	return hit && atomic_load(&arm->left) < 0;
}

static bool die_at(enum crash_point p, uint64_t passages, enum role role, bool with_faults)
{
	pid_t pid;

	atomic_store(&arm->left, (int64_t)passages);
	atomic_store(&arm->point, p);
	pid = life_fork();
	if (pid == 0)
		child(role, with_faults);
	deaths++;
	return wait_for(pid);
}

static void check(void)
{
	life_open();
	life_check(true);
	life_close();
}

/* How often each point is passed. */
static void measure(bool with_faults)
{
	static const struct timespec while_ns = {.tv_nsec = MEASURED_NS};
	pid_t pid;

	memset(arm, 0, sizeof(*arm));
	atomic_store(&arm->point, CRASH_POINT_COUNT);
	pid = life_fork();
	if (pid == 0)
		child(TAKE_OVER, with_faults);
	nanosleep(&while_ns, NULL);
	kill(pid, SIGKILL);
	wait_for(pid);
	for (unsigned p = 0; p < CRASH_POINT_COUNT; p++)
		usual[p] = arm->passed[p];
	check();
}

static uint64_t passages(enum crash_point p, enum round round)
{
	if (round == NONE || usual[p] <= 1)
		return 0;
	return rng_below(&life.rng, round == FEW ? min_u64(usual[p], 8) : usual[p]);
}

static void kill_at(enum crash_point p, const struct scene *scene, enum round round)
{
	uint64_t n = passages(p, round);
	enum role role = LIVE;
	bool hit;

	if (strncmp(points[p].name, "takeover_", 9) == 0) {
		role = deaths % 2 ? TAKE_OVER : STAND_BY;
		die_at(scene->store ? CRASH_evict_submitted : CRASH_write_filled, 0, LIVE, false);
	}
	hit = die_at(p, n, role, points[p].where == FAULT);
	hits[p] += hit;
	misses[p] += !hit;
	check();
}

static void play(const struct scene *scene, uint64_t seed, const char *only)
{
	unsigned before = deaths;

	life_setup(seed, scene->memory, scene->store, scene->max);
	measure(scene->where & FAULT);
	for (unsigned round = NONE; round <= MANY; round <<= 1) {
		if (!(scene->rounds & round))
			continue;
		for (unsigned p = 0; p < CRASH_POINT_COUNT; p++) {
			if (points[p].where & scene->where &&
			    (!only || strcmp(only, points[p].name) == 0))
				kill_at(p, scene, round);
		}
	}
	printf("%s: killed %u times, %" PRIu64 " pages answered, %" PRIu64
	       " in flight at a death, of which %" PRIu64 " had been written\n",
	       scene->name, deaths - before, life.model->answered, life.model->in_flight,
	       life.model->found_new);
}

int main(int argc, char **argv)
{
	uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	const char *only = argc > 2 ? argv[2] : NULL;
	unsigned never = 0;

	arm = mmap(NULL, sizeof(*arm), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (arm == MAP_FAILED)
		FAIL("no memory\n");
	log_set_level(LOG_LEVEL_ERR);
	for (unsigned i = 0; i < ARRAY_SIZE(scenes); i++)
		play(&scenes[i], seed + i, only);
	for (unsigned p = 0; p < CRASH_POINT_COUNT; p++) {
		if (only && strcmp(only, points[p].name) != 0)
			continue;
		printf("%3u of %3u at %s\n", hits[p], hits[p] + misses[p], points[p].name);
		never += hits[p] == 0;
	}
	if (never)
		FAIL("%u points were never reached\n", never);
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Kills an engine's process at random moments and takes its state over, again and again.
 *
 *	crash [standby] KILLS SEED MEMORY_MIB STORE_MIB [MAX_MIB]
 *
 * The parent kills the child, takes the state over itself, checks every slot (life.h) and closes
 * it; then comes the next child.
 *
 * With `standby` the parent does none of that.  Each child is started while the one before it
 * works, prepares, is told to go on when that is dead, checks every slot and works until it is
 * killed itself, which may be before it has prepared, taken over or checked anything.
 *
 * With MAX_MIB the child moves the limit up to that and runs jobs all the time.  The limit that is
 * found after a takeover must be one that the child had set.
 */
#include "common/log.h"
#include "tests/crash/life.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* From a takeover that has hardly begun to a good many operations. */
static void let_work(uint64_t before)
{
	struct timespec delay = {.tv_nsec = (long)rng_below(&life.rng, 40000000)};

	if (rng_below(&life.rng, 8)) {
		for (unsigned i = 0; i < 10000 && life.model->answered == before; i++)
			usleep(1000);
	}
	nanosleep(&delay, NULL);
}

static void kill_child(pid_t pid)
{
	int status;

	kill(pid, SIGKILL);
	if (waitpid(pid, &status, 0) != pid || !WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
		FAIL("the child has failed by itself\n");
}

static void kill_one(uint64_t i)
{
	uint64_t before = life.model->answered;
	pid_t pid = life_fork();

	if (pid == 0) {
		life_open();
		life_run();
	}
	let_work(before);
	kill_child(pid);
	life_open();
	life_check(i % 4 == 0);
	life_close();
}

/* How many have been killed: the number of who is to take over next. */
static _Atomic uint64_t *killed;

_Noreturn static void successor(uint64_t number)
{
	life_stand_by();
	while (*killed < number) {
		life_hold();
		usleep(500);
	}
	life_take_over();
	life_check(number % 4 == 0);
	life_run();
}

static void kill_in_turn(uint64_t kills)
{
	uint64_t before;
	pid_t pid, next;

	killed = mmap(NULL, sizeof(*killed), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (killed == MAP_FAILED)
		FAIL("no memory\n");
	pid = life_fork();
	if (pid == 0)
		successor(0);
	for (uint64_t i = 1; i <= kills; i++) {
		before = life.model->answered;
		next = life_fork();
		if (next == 0)
			successor(i);
		let_work(before);
		kill_child(pid);
		*killed = i;
		pid = next;
	}
	kill_child(pid);
	life_open();
	life_check(true);
	life_close();
	printf("%" PRIu64 " takeovers by who stood by, %" PRIu64 " checks\n",
	       life.model->takeovers - 1, life.model->checks);
	if (life.model->checks < kills / 2)
		FAIL("most were killed before they had checked anything\n");
}

int main(int argc, char **argv)
{
	bool standby = argc > 1 && strcmp(argv[1], "standby") == 0;
	struct life_model *m;
	uint64_t kills, v[5] = {0};

	argc -= standby;
	argv += standby;
	if (argc != 5 && argc != 6)
		FAIL("usage: crash [standby] KILLS SEED MEMORY_MIB STORE_MIB [MAX_MIB]\n");
	for (int i = 0; i < argc - 1; i++)
		v[i] = strtoull(argv[i + 1], NULL, 0);
	kills = v[0];
	life_setup(v[1], v[2], v[3], v[4]);
	m = life.model;
	log_set_level(LOG_LEVEL_WARN);
	if (standby)
		kill_in_turn(kills);
	for (uint64_t i = 0; i < kills && !standby; i++)
		kill_one(i);
	printf("%" PRIu64 " kills, %" PRIu64 " pages answered, %" PRIu64
	       " in flight when killed, of which %" PRIu64 " had been written; pages were in the "
	       "store after %" PRIu64 " kills\n",
	       kills, m->answered, m->in_flight, m->found_new, m->written_back);
	if (m->found_new == 0 || m->found_new == m->in_flight || (v[3] && m->written_back == 0))
		FAIL("no kill came at a moment that tests anything\n");
	if (!life.max)
		return 0;
	printf("limit moved %" PRIu64 " times, %" PRIu64 " jobs started\n", m->limits, m->jobs);
	if (m->limits == 0 || m->jobs == 0)
		FAIL("no limit was moved or no job started: the test tests nothing more\n");
	return 0;
}

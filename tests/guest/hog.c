// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A page is told by its process's seed, its number and its generation; half of it is noise, so that
 * it compresses as pages of programs do.
 */
#include "tests/guest/hog.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/util.h"

#define PAGE	     4096u
#define WORDS	     (PAGE / sizeof(uint64_t))
#define HOG_BYTES    (8ull << 30)
#define HOG_TURN     256u /* pages filled between two looks back */
#define HOG_LOOKS    64u
#define BOMB_USER    1000
#define BOMB_PAGES   512u
#define BOMB_TURN    16u
#define KEEPER_SCORE (-900)
#define BOMB_SCORE   500

static uint32_t generations[KEEPER_PAGES_MAX];
static struct findings *findings;

static uint64_t mix(uint64_t x)
{
	x = (x ^ (x >> 31)) * 0x9e3779b97f4a7c15ull;
	x = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9ull;
	return x ^ (x >> 32);
}

static uint64_t seed_of(uint32_t seed, uint64_t page, uint32_t generation)
{
	return mix((uint64_t)seed << 32 ^ page) + generation;
}

static void fill(uint64_t *at, uint64_t seed)
{
	for (unsigned i = 0; i < WORDS; i++)
		at[i] = i < WORDS / 2 ? mix(seed + i) : seed;
}

static bool right(const uint64_t *at, uint64_t seed)
{
	for (unsigned i = 0; i < WORDS; i++) {
		if (at[i] != (i < WORDS / 2 ? mix(seed + i) : seed))
			return false;
	}
	return true;
}

static bool compare(const uint64_t *at, uint64_t seed)
{
	bool fine = right(at, seed);

	atomic_fetch_add(&findings->compared, 1);
	if (!fine)
		atomic_fetch_add(&findings->wrong, 1);
	return fine;
}

static void set_score(int score)
{
	cleanup_fd int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	dprintf(fd, "%d", score);
}

static void note_loss(int sig)
{
	atomic_fetch_add(&findings->lost, 1);
	_exit(3);
}

/* In a child: true. */
static bool begin(struct findings *f, int score, pid_t *ret)
{
	*ret = fork();
	if (*ret != 0)
		return false;
	findings = f;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGBUS, note_loss);
	set_score(score);
	return true;
}

static uint64_t *map(uint64_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED) {
		perror("hog: mmap");
		_exit(2);
	}
	return p;
}

pid_t hog_fork(struct findings *f, uint32_t seed, int score)
{
	uint64_t *at, random = seed;
	pid_t pid;

	if (!begin(f, score, &pid))
		return pid < 0 ? -errno : pid;
	at = map(HOG_BYTES);
	for (uint64_t page = 0; page < HOG_BYTES / PAGE; page++) {
		fill(at + page * WORDS, seed_of(seed, page, 0));
		for (unsigned i = 0; page % HOG_TURN == HOG_TURN - 1 && i < HOG_LOOKS; i++) {
			uint64_t back = mix(++random) % page;

			compare(at + back * WORDS, seed_of(seed, back, 0));
		}
	}
	while (true)
		pause();
}

pid_t keeper_fork(struct findings *f, uint32_t seed, uint32_t pages)
{
	uint64_t *at, random = seed;
	uint32_t good = 0;
	pid_t pid;

	if (!begin(f, KEEPER_SCORE, &pid))
		return pid < 0 ? -errno : pid;
	at = map((uint64_t)pages * PAGE);
	for (uint32_t page = 0; page < pages; page++)
		fill(at + page * WORDS, seed_of(seed, page, 0));
	while (!atomic_load(&f->stop)) {
		const struct timespec pause = {.tv_nsec = 1000000};
		uint32_t page = (uint32_t)(mix(++random) % pages);
		uint64_t *p = at + page * WORDS;

		compare(p, seed_of(seed, page, generations[page]));
		if (random % 3 == 0)
			fill(p, seed_of(seed, page, ++generations[page]));
		nanosleep(&pause, NULL);
	}
	for (uint32_t page = 0; page < pages; page++)
		good += compare(at + page * WORDS, seed_of(seed, page, generations[page]));
	_exit(good != pages);
}

pid_t pulse_fork(struct findings *f)
{
	pid_t pid;

	if (!begin(f, KEEPER_SCORE, &pid))
		return pid < 0 ? -errno : pid;
	while (!atomic_load(&f->stop)) {
		const struct timespec pause = {.tv_nsec = 500000000};
		uint64_t start = now_ns(), took;
		pid_t child = fork();

		if (child == 0) {
			execl("/usr/bin/busybox", "busybox", "true", NULL);
			_exit(127);
		}
		if (child > 0)
			waitpid(child, NULL, 0);
		took = now_ns() - start;
		if (took > atomic_load(&f->slowest_answer))
			atomic_store(&f->slowest_answer, took);
		atomic_fetch_add(&f->answers, child > 0);
		nanosleep(&pause, NULL);
	}
	_exit(0);
}

/* --- the bomb ----------------------------------------------------------------------------------
 */

static void become_user(void)
{
	if (setgid(BOMB_USER) < 0 || setuid(BOMB_USER) < 0)
		_exit(2);
}

/* Each child goes on here with memory of its own, and its parent's as well, copied on write. */
static _Noreturn void explode(uint32_t seed)
{
	const struct timespec pause = {.tv_nsec = 20000000};
	uint64_t *at = map((uint64_t)BOMB_PAGES * PAGE);
	uint32_t pages = 0;

	/* The parent's end is not this one's. */
	prctl(PR_SET_PDEATHSIG, 0);
	while (true) {
		pid_t child;

		for (unsigned i = 0; i < BOMB_TURN && pages < BOMB_PAGES; i++, pages++)
			fill(at + pages * WORDS, seed_of(seed, pages, 0));
		compare(at + mix(seed + pages) % pages * WORDS,
			seed_of(seed, mix(seed + pages) % pages, 0));
		child = fork();
		if (child == 0) {
			seed = (uint32_t)mix(seed + (uint32_t)getpid());
			at = map((uint64_t)BOMB_PAGES * PAGE);
			pages = 0;
			continue;
		}
		if (child > 0)
			atomic_fetch_add(&findings->forks, 1);
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		nanosleep(&pause, NULL);
	}
}

pid_t bomb_fork(struct findings *f, uint32_t seed, unsigned most)
{
	const struct rlimit limit = {most, most};
	pid_t pid;

	if (!begin(f, BOMB_SCORE, &pid))
		return pid < 0 ? -errno : pid;
	if (setrlimit(RLIMIT_NPROC, &limit) < 0)
		_exit(2);
	become_user();
	explode(seed);
}

/* A killer that is the user: the signal goes to all of that user's, and to nobody else. */
int bomb_end(unsigned ms)
{
	uint64_t deadline = now_ns() + ms * UINT64_C(1000000);
	const struct timespec pause = {.tv_nsec = 20000000};

	while (now_ns() < deadline) {
		pid_t pid = fork();
		int status = 0;

		if (pid == 0) {
			become_user();
			/* kill(-1) leaves out the caller. */
			_exit(kill(-1, SIGKILL) < 0 && errno == ESRCH ? 0 : 1);
		}
		if (pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
		    WEXITSTATUS(status) == 0)
			return 0;
		nanosleep(&pause, NULL);
	}
	return -ETIMEDOUT;
}

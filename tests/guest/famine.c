// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Drives a machine out of memory in rounds, and kills processes of zswapd while it is.
 *
 * usage: famine [OPTION]... DEVICE
 *	--rounds N	(3) each with fresh hogs, or a fork bomb
 *	--seconds N	(8) of a round, once the OOM killer has acted in it
 *	--hogs N	(3) at a time; one that is killed is replaced
 *	--bomb N	a fork bomb of N processes at most in place of the hogs
 *	--keepers MIB	(16) kept by four processes, which the OOM killer takes last
 *	--kill LIST	one after the other of worker, standby, both (at once), none; (none)
 *	--kills N	(0) at least; rounds are added for that, up to three times as many
 *	--patience MS	(60000) for a takeover, for the OOM killer, and for who is to end
 *
 * A takeover's time is that of a direct read of DEVICE which began when the worker had been killed.
 * It waits until a standby is prepared before it kills.
 *
 * It fails if a page is wrong or lost; a keeper was killed; the OOM killer did not act in a round;
 *a read failed; or a bound was not kept.  It is locked in memory, out of the OOM killer's reach,
 *and allocates nothing on the way.
 *
 * Exit status: 0, 1 it fails, 2 usage or set-up.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <linux/fs.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/util.h"
#include "tests/guest/hog.h"
#include "tests/guest/proc.h"

#define PAGE		4096u
#define SECOND		UINT64_C(1000000000)
#define KEEPERS		4u
#define HOGS_MAX	16u
#define KILLS_MAX	500u
#define VICTIMS_MAX	8u
#define HOG_SCORE	500
#define STANDBY_THREADS 3u /* main, mover, data */
#define STANDBY_LOOKS	8u

enum victim {
	NONE,
	WORKER,
	STANDBY,
	BOTH,
	VICTIMS
};

static const char *const victim_names[VICTIMS] = {"none", "worker", "standby", "both"};

struct options {
	unsigned rounds, seconds, hogs, bomb, keepers_mib, kills, patience_ms;
	enum victim victims[VICTIMS_MAX];
	unsigned nvictims;
	const char *device;
};

struct famine {
	struct options o;
	struct findings *f;
	int device;
	uint64_t device_pages;
	void *page;
	pid_t hogs[HOGS_MAX], keepers[KEEPERS], pulse;
	uint32_t seed;
	uint64_t oom_at_start, hogs_killed;
	unsigned kills;
	double takeovers[KILLS_MAX]; /* ms */
	unsigned ntakeovers;
	bool failed;
};

static uint64_t began;

static __attribute__((format(printf, 1, 2))) void say(const char *format, ...)
{
	char text[256];
	va_list args;
	int n;

	n = snprintf(text, sizeof(text), "%7.2f ", (double)(now_ns() - began) / 1e9);
	va_start(args, format);
	n += vsnprintf(text + n, sizeof(text) - (size_t)n - 1, format, args);
	va_end(args);
	n = (int)min_u64((uint64_t)n, sizeof(text) - 2);
	text[n++] = '\n';
	if (write(STDOUT_FILENO, text, (size_t)n) < 0)
		_exit(2);
}

#define complain(w, ...)                     \
	do {                                 \
		(w)->failed = true;          \
		say("FAILED: " __VA_ARGS__); \
	} while (0)

static void wait_ms(unsigned ms)
{
	const struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};

	nanosleep(&pause, NULL);
}

static uint32_t random32(struct famine *w)
{
	w->seed ^= w->seed << 13;
	w->seed ^= w->seed >> 17;
	w->seed ^= w->seed << 5;
	return w->seed;
}

/* How many the OOM killer has killed since the machine has started. */
static uint64_t oom_kills(void)
{
	static char text[16384];

	return proc_read("/proc/vmstat", text, sizeof(text)) > 0 ? proc_field(text, "\noom_kill ")
								 : 0;
}

/* --- killing -----------------------------------------------------------------------------------
 */

static bool is_gone(pid_t pid)
{
	char path[64], stat[512];
	const char *at;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if (proc_read(path, stat, sizeof(stat)) <= 0)
		return true;
	at = strrchr(stat, ')');
	return !at || at[2] == 'Z' || at[2] == 'X';
}

static bool read_device(struct famine *w)
{
	off_t at = (off_t)(random32(w) % w->device_pages * PAGE);

	return pread(w->device, w->page, PAGE, at) == PAGE;
}

/* The first read may still have been answered by the one that dies. */
static void await_takeover(struct famine *w, pid_t pid, enum victim what)
{
	uint64_t start = now_ns();
	bool right = true;
	double ms;

	while (!is_gone(pid) && now_ns() - start < w->o.patience_ms * UINT64_C(1000000))
		right &= read_device(w);
	right &= read_device(w);
	ms = (double)(now_ns() - start) / 1e6;
	if (w->ntakeovers < KILLS_MAX)
		w->takeovers[w->ntakeovers++] = ms;
	say("kill %u: %s %d, first read after %.1f ms", w->kills, victim_names[what], pid, ms);
	if (!right)
		complain(w, "a read of the device");
	if (ms > w->o.patience_ms)
		complain(w, "the takeover took too long");
}

static void kill_one(struct famine *w)
{
	enum victim what = w->o.victims[w->kills % w->o.nvictims];
	pid_t worker = what == STANDBY ? 0 : proc_find("zswapd-worker");
	pid_t standby = what == WORKER ? 0 : proc_find("zswapd-standby");

	if ((what != STANDBY && !worker) || (what == STANDBY && !standby))
		return;
	w->kills++;
	if (standby)
		kill(standby, SIGKILL);
	if (worker)
		kill(worker, SIGKILL);
	if (worker)
		await_takeover(w, worker, what);
	else
		say("kill %u: standby %d", w->kills, standby);
}

struct rest {
	pid_t pid;
	unsigned threads;
	bool rests;
};

static void look_at_thread(void *arg, int tid)
{
	struct rest *r = arg;
	char path[64], stat[512];
	const char *at;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", r->pid, tid);
	if (proc_read(path, stat, sizeof(stat)) <= 0)
		return;
	at = strrchr(stat, ')');
	r->threads++;
	r->rests &= at && at[2] == 'S';
}

/* Whether all its threads are there and wait. */
static bool standby_rests(void)
{
	struct rest r = {.pid = proc_find("zswapd-standby"), .rests = true};
	char path[64];

	if (!r.pid)
		return false;
	snprintf(path, sizeof(path), "/proc/%d/task", r.pid);
	proc_each(path, look_at_thread, &r);
	return r.rests && r.threads >= STANDBY_THREADS;
}

/* One that is still being prepared needs memory, of which there is none without a worker. */
static void await_standby(struct famine *w)
{
	uint64_t start = now_ns();

	for (unsigned seen = 0; seen < STANDBY_LOOKS;) {
		seen = standby_rests() ? seen + 1 : 0;
		if (now_ns() - start > w->o.patience_ms * UINT64_C(1000000)) {
			complain(w, "no standby is prepared");
			return;
		}
		wait_ms(30);
	}
}

/* --- hunger ------------------------------------------------------------------------------------
 */

/* Those that the OOM killer took are replaced. */
static void feed(struct famine *w, bool more)
{
	for (unsigned i = 0; i < w->o.hogs; i++) {
		int status;

		if (w->hogs[i] > 0 && waitpid(w->hogs[i], &status, WNOHANG) == w->hogs[i]) {
			w->hogs[i] = 0;
			w->hogs_killed++;
			if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
				complain(w, "a hog ended with wait status %#x", status);
		}
		if (w->hogs[i] <= 0 && more)
			w->hogs[i] = hog_fork(w->f, random32(w), HOG_SCORE);
	}
}

static bool all_ended(struct famine *w)
{
	for (unsigned i = 0; i < w->o.hogs; i++) {
		if (w->hogs[i] > 0 && waitpid(w->hogs[i], NULL, WNOHANG) == w->hogs[i])
			w->hogs[i] = 0;
		if (w->hogs[i] > 0)
			return false;
	}
	return true;
}

static void end_hogs(struct famine *w)
{
	uint64_t start = now_ns();

	for (unsigned i = 0; i < w->o.hogs; i++) {
		if (w->hogs[i] > 0)
			kill(w->hogs[i], SIGKILL);
	}
	while (!all_ended(w)) {
		if (now_ns() - start > w->o.patience_ms * UINT64_C(1000000)) {
			complain(w, "a hog does not end");
			return;
		}
		wait_ms(20);
	}
}

static void hunger(struct famine *w, pid_t bomb)
{
	uint64_t oom = oom_kills(), start = now_ns(), since = 0;

	/* Until the OOM killer has acted, and then for as long as a round is. */
	while (!since || now_ns() - since < w->o.seconds * SECOND) {
		if (!bomb)
			feed(w, true);
		if (!since && oom_kills() > oom)
			since = now_ns();
		if (since && w->o.nvictims) {
			await_standby(w);
			wait_ms(random32(w) % 500);
			kill_one(w);
		}
		if (!since && now_ns() - start > w->o.patience_ms * UINT64_C(1000000)) {
			complain(w, "the OOM killer did not act");
			return;
		}
		wait_ms(50);
	}
}

static void play_round(struct famine *w, unsigned n)
{
	uint64_t oom = oom_kills();
	pid_t bomb = 0;

	if (w->o.bomb) {
		bomb = bomb_fork(w->f, random32(w), w->o.bomb);
		hunger(w, bomb);
		if (bomb_end(w->o.patience_ms) < 0)
			complain(w, "the fork bomb does not end");
		waitpid(bomb, NULL, WNOHANG);
	} else {
		hunger(w, 0);
		end_hogs(w);
	}
	say("round %u: the OOM killer has acted %" PRIu64
	    " times, %u kills so far, slowest answer %.1f s",
	    n, oom_kills() - oom, w->kills, (double)w->f->slowest_answer / 1e9);
}

/* --- start and end ------------------------------------------------------------------------------
 */

static int set_up(struct famine *w)
{
	uint64_t bytes = 0;
	cleanup_fd int score = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	w->device = open(w->o.device, O_RDONLY | O_DIRECT | O_CLOEXEC);
	w->page = aligned_alloc(PAGE, PAGE);
	w->f = mmap(NULL, sizeof(*w->f), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (w->device < 0 || !w->page || w->f == MAP_FAILED ||
	    ioctl(w->device, BLKGETSIZE64, &bytes) < 0 || bytes < PAGE) {
		perror(w->o.device);
		return -EINVAL;
	}
	w->device_pages = bytes / PAGE;
	w->seed = (uint32_t)now_ns() | 1;
	if (dprintf(score, "-1000") < 0 || mlockall(MCL_CURRENT | MCL_FUTURE) < 0) {
		perror("famine: protecting itself");
		return -EPERM;
	}
	for (unsigned i = 0; i < KEEPERS; i++)
		w->keepers[i] = keeper_fork(w->f, random32(w), w->o.keepers_mib * 256 / KEEPERS);
	w->pulse = pulse_fork(w->f);
	return 0;
}

static void end_child(struct famine *w, pid_t pid, const char *what)
{
	uint64_t start = now_ns();
	int status;

	while (waitpid(pid, &status, WNOHANG) != pid) {
		if (now_ns() - start > w->o.patience_ms * UINT64_C(1000000)) {
			complain(w, "%s %d does not end", what, pid);
			return;
		}
		wait_ms(20);
	}
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		complain(w, "%s %d ended with wait status %#x", what, pid, status);
}

static int by_time(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void sum_up(struct famine *w)
{
	unsigned n = w->ntakeovers;

	atomic_store(&w->f->stop, true);
	for (unsigned i = 0; i < KEEPERS; i++)
		end_child(w, w->keepers[i], "keeper");
	end_child(w, w->pulse, "pulse");
	qsort(w->takeovers, n, sizeof(*w->takeovers), by_time);
	say("the OOM killer has acted %" PRIu64 " times, %" PRIu64 " hogs, %" PRIu64
	    " forks of bombs",
	    oom_kills() - w->oom_at_start, w->hogs_killed, (uint64_t)w->f->forks);
	say("%" PRIu64 " pages compared, %" PRIu64 " wrong, %" PRIu64 " lost",
	    (uint64_t)w->f->compared, (uint64_t)w->f->wrong, (uint64_t)w->f->lost);
	say("%" PRIu64 " answers, the slowest after %.2f s", (uint64_t)w->f->answers,
	    (double)w->f->slowest_answer / 1e9);
	if (n)
		say("%u kills, %u takeovers, ms until the first read: median %.1f, p90 %.1f, most %.1f",
		    w->kills, n, w->takeovers[n / 2], w->takeovers[n * 9 / 10],
		    w->takeovers[n - 1]);
	if (w->f->wrong || w->f->lost)
		complain(w, "pages");
	if (!w->f->answers)
		complain(w, "no program was started");
	if (w->kills < w->o.kills)
		complain(w, "%u kills, not %u", w->kills, w->o.kills);
}

/* --- options ------------------------------------------------------------------------------------
 */

static int parse_victims(struct options *o, char *list)
{
	for (char *at = strtok(list, ","); at; at = strtok(NULL, ",")) {
		unsigned v = 0;

		while (v < VICTIMS && strcmp(at, victim_names[v]) != 0)
			v++;
		if (v == VICTIMS || o->nvictims == VICTIMS_MAX)
			return -EINVAL;
		if (v != NONE)
			o->victims[o->nvictims++] = v;
	}
	return 0;
}

static int parse(int argc, char **argv, struct options *o)
{
	static const struct option options[] = {
		{"rounds", required_argument, NULL, 'r'},
		{"seconds", required_argument, NULL, 's'},
		{"hogs", required_argument, NULL, 'h'},
		{"bomb", required_argument, NULL, 'b'},
		{"keepers", required_argument, NULL, 'k'},
		{"kill", required_argument, NULL, 'v'},
		{"kills", required_argument, NULL, 'n'},
		{"patience", required_argument, NULL, 'p'},
		{0},
	};
	int opt;

	while ((opt = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		unsigned *number = opt == 'r'	? &o->rounds
				   : opt == 's' ? &o->seconds
				   : opt == 'h' ? &o->hogs
				   : opt == 'b' ? &o->bomb
				   : opt == 'k' ? &o->keepers_mib
				   : opt == 'n' ? &o->kills
				   : opt == 'p' ? &o->patience_ms
						: NULL;

		if (opt == 'v' && parse_victims(o, optarg) == 0)
			continue;
		if (!number)
			return -EINVAL;
		*number = (unsigned)strtoul(optarg, NULL, 10);
	}
	o->device = argv[optind];
	return argc == optind + 1 && o->hogs <= HOGS_MAX &&
			       o->keepers_mib * 256 / KEEPERS <= KEEPER_PAGES_MAX &&
			       (o->nvictims || !o->kills)
		       ? 0
		       : -EINVAL;
}

int main(int argc, char **argv)
{
	static struct famine w = {.o = {.rounds = 3,
					.seconds = 8,
					.hogs = 3,
					.keepers_mib = 16,
					.patience_ms = 60000}};

	began = now_ns();
	if (parse(argc, argv, &w.o) < 0) {
		fputs("usage: famine [OPTION]... DEVICE; see the head of famine.c\n", stderr);
		return 2;
	}
	if (set_up(&w) < 0)
		return 2;
	w.oom_at_start = oom_kills();
	for (unsigned n = 1;
	     !w.failed && (n <= w.o.rounds || (w.kills < w.o.kills && n <= 3 * w.o.rounds)); n++)
		play_round(&w, n);
	sum_up(&w);
	return w.failed;
}

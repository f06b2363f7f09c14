// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Watches processes while memory is short: samples /proc ten times a second until SIGTERM, then
 * prints what it saw and judges it.
 *
 * usage: taskwatch [--stuck SECONDS] [--oom SCORE] NAME...
 *
 * Watched is every process whose name (comm) is one of NAME, from when it is first seen, with all
 * of its threads, those that io_uring makes included.  It fails if
 *   - a thread was in D state for longer than --stuck (10) without running in between;
 *   - a process had a page in swap (VmSwap);
 *   - a thread older than a second lacked a flag that PR_SET_IO_FLUSHER sets;
 *   - a process older than a second had another oom_score_adj than --oom (-1000);
 *   - nothing was there to be watched.
 *
 * The watcher is locked in memory and allocates nothing while it samples, else it would wait for
 * the swap that it watches.
 *
 * Exit status: 0 all right, 1 it is not, 2 usage.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "common/util.h"
#include "tests/guest/proc.h"

/* include/linux/sched.h, the same from 5.6 to today. */
#define PF_MEMALLOC_NOIO  0x00080000u
#define PF_LOCAL_THROTTLE 0x00100000u
#define PF_WANTED	  (PF_MEMALLOC_NOIO | PF_LOCAL_THROTTLE)

#define MAX_TASKS	  2048
#define SAMPLE_NS	  100000000
#define SETTLED_NS	  UINT64_C(1000000000)
#define NS_PER_SECOND	  1e9

struct task {
	int pid;
	int tid;
	char name[16];
	uint64_t first_ns;
	uint64_t waiting_ns; /* in D since, or 0 */
	uint64_t switches;   /* at that moment */
	uint64_t longest_ns; /* in D */
	uint64_t samples;
	uint64_t samples_d;
	uint64_t swap_kib; /* most; the process's, at its first thread */
	unsigned flags_lacked;
	int oom_score;
};

struct watch {
	char **names;
	int nr_names;
	uint64_t stuck_ns;
	int oom_score;
	struct task tasks[MAX_TASKS];
	unsigned nr;
	bool overflow;
};

static volatile sig_atomic_t ended;

static void on_signal(int sig)
{
	ended = 1;
}

/* --- sampling -----------------------------------------------------------------------------------
 */

static struct task *find_task(struct watch *w, int pid, int tid, const char *name)
{
	struct task *t;

	for (unsigned i = 0; i < w->nr; i++)
		if (w->tasks[i].tid == tid && w->tasks[i].pid == pid)
			return &w->tasks[i];
	if (w->nr == MAX_TASKS) {
		w->overflow = true;
		return NULL;
	}
	t = &w->tasks[w->nr++];
	*t = (struct task){.pid = pid, .tid = tid, .first_ns = now_ns(), .oom_score = w->oom_score};
	snprintf(t->name, sizeof(t->name), "%s", name);
	return t;
}

/* A wait ends when the thread is seen in another state, or has been switched to in between. */
static void note_state(struct task *t, char state, uint64_t switches, uint64_t now)
{
	t->samples++;
	if (state != 'D') {
		t->waiting_ns = 0;
		return;
	}
	t->samples_d++;
	if (!t->waiting_ns || t->switches != switches) {
		t->waiting_ns = now;
		t->switches = switches;
	}
	if (now - t->waiting_ns > t->longest_ns)
		t->longest_ns = now - t->waiting_ns;
}

struct process {
	struct watch *w;
	int pid;
};

static void sample_thread(void *arg, int tid)
{
	const struct process *p = arg;
	char path[64], stat[512], status[4096], name[16];
	uint64_t switches, now;
	const char *at, *open;
	struct task *t;
	unsigned flags;
	char state;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", p->pid, tid);
	if (proc_read(path, stat, sizeof(stat)) <= 0)
		return;
	open = strchr(stat, '(');
	at = strrchr(stat, ')');
	if (!open || !at || sscanf(at + 2, "%c %*d %*d %*d %*d %*d %u", &state, &flags) != 2)
		return;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", p->pid, tid);
	if (proc_read(path, status, sizeof(status)) <= 0)
		return;
	if (state == 'Z' || state == 'X')
		return;
	snprintf(name, sizeof(name), "%.*s", (int)(at - open - 1), open + 1);
	t = find_task(p->w, p->pid, tid, name);
	if (!t)
		return;
	memcpy(t->name, name, sizeof(name));
	now = now_ns();
	switches = proc_field(status, "\nvoluntary_ctxt_switches:\t") +
		   proc_field(status, "\nnonvoluntary_ctxt_switches:\t");
	note_state(t, state, switches, now);
	t->swap_kib = max_u64(t->swap_kib, proc_field(status, "\nVmSwap:"));
	if (now - t->first_ns > SETTLED_NS)
		t->flags_lacked |= PF_WANTED & ~flags;
}

static void sample_process(void *arg, int pid)
{
	struct process p = {.w = arg, .pid = pid};
	char path[64], text[64];
	bool ours = false;

	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	if (proc_read(path, text, sizeof(text)) <= 0)
		return;
	text[strcspn(text, "\n")] = '\0';
	for (int i = 0; i < p.w->nr_names; i++)
		ours |= !strcmp(text, p.w->names[i]);
	if (!ours)
		return;
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	proc_each(path, sample_thread, &p);
	snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", pid);
	if (proc_read(path, text, sizeof(text)) <= 0)
		return;
	for (unsigned i = 0; i < p.w->nr; i++) {
		struct task *t = &p.w->tasks[i];

		if (t->pid == pid && t->tid == pid && now_ns() - t->first_ns > SETTLED_NS &&
		    t->oom_score == p.w->oom_score)
			t->oom_score = atoi(text);
	}
}

/* --- judging ------------------------------------------------------------------------------------
 */

static bool judge(const struct watch *w, const struct task *t)
{
	bool fine = true;

	printf("%6d %6d %-15s %9" PRIu64 " %6.1f %8.2f %8" PRIu64 " %5d", t->pid, t->tid, t->name,
	       t->samples, 100.0 * (double)t->samples_d / (double)t->samples,
	       (double)t->longest_ns / NS_PER_SECOND, t->swap_kib, t->oom_score);
	if (t->longest_ns > w->stuck_ns) {
		printf("  STUCK");
		fine = false;
	}
	if (t->swap_kib) {
		printf("  SWAPPED");
		fine = false;
	}
	if (t->flags_lacked) {
		printf("  LACKS FLAGS %#x", t->flags_lacked);
		fine = false;
	}
	if (t->oom_score != w->oom_score) {
		printf("  OOM SCORE");
		fine = false;
	}
	printf("\n");
	return fine;
}

static int parse(int argc, char **argv, struct watch *w)
{
	static const struct option options[] = {
		{"stuck", required_argument, NULL, 's'},
		{"oom", required_argument, NULL, 'o'},
		{0},
	};
	int opt;

	while ((opt = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		if (opt == 's')
			w->stuck_ns = strtoull(optarg, NULL, 10) * UINT64_C(1000000000);
		else if (opt == 'o')
			w->oom_score = atoi(optarg);
		else
			return -EINVAL;
	}
	w->names = argv + optind;
	w->nr_names = argc - optind;
	return w->nr_names > 0 ? 0 : -EINVAL;
}

int main(int argc, char **argv)
{
	static struct watch w = {.stuck_ns = UINT64_C(10000000000), .oom_score = -1000};
	const struct timespec pause = {.tv_nsec = SAMPLE_NS};
	const struct sigaction act = {.sa_handler = on_signal};
	uint64_t last, now, gap = 0;
	bool fine = true;

	if (parse(argc, argv, &w) < 0) {
		fputs("usage: taskwatch [--stuck SECONDS] [--oom SCORE] NAME...\n", stderr);
		return 2;
	}
	sigaction(SIGTERM, &act, NULL);
	sigaction(SIGINT, &act, NULL);
	if (mlockall(MCL_CURRENT | MCL_FUTURE) < 0)
		fprintf(stderr, "taskwatch: mlockall: %s\n", strerror(errno));
	for (last = now_ns(); !ended; last = now) {
		proc_each("/proc", sample_process, &w);
		nanosleep(&pause, NULL);
		now = now_ns();
		gap = max_u64(gap, now - last);
	}
	printf("   pid    tid thread            samples   D %%  longest VmSwap K   oom\n");
	for (unsigned i = 0; i < w.nr; i++)
		fine &= judge(&w, &w.tasks[i]);
	printf("longest time between two samples: %.2f s\n", (double)gap / NS_PER_SECOND);
	if (w.overflow)
		printf("more than %d threads: NOT ALL WERE WATCHED\n", MAX_TASKS);
	if (!w.nr)
		printf("NOTHING WAS THERE TO BE WATCHED\n");
	return fine && w.nr && !w.overflow ? 0 : 1;
}

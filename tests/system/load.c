// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/system/load.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "common/util.h"

const char *const load_phase_names[PHASE_COUNT] = {"fill", "seq", "random", "rw", "verify"};

struct job {
	struct load *l;
	unsigned thread;
	enum load_phase phase;
	uint64_t *data;
	uint64_t deadline;
	uint64_t random;
};

/* For the SIGBUS handler only. */
static struct load *handler_load;
static uintptr_t handler_data;

static void on_sigbus(int sig, siginfo_t *info, void *context)
{
	uintptr_t at = (uintptr_t)info->si_addr;
	uint64_t page = (at - handler_data) / PAGEGEN_PAGE;
	bool ours = at >= handler_data && page < handler_load->o.pages;

	handler_load->lost_index = ours ? page : UINT64_MAX;
	handler_load->lost_address = at;
	_exit(LOAD_LOST);
}

static uint64_t *page_at(const struct job *j, uint64_t index)
{
	return j->data + index * PAGEGEN_WORDS;
}

static void report_wrong(struct job *j, uint32_t index, uint32_t offset, uint8_t expected,
			 uint8_t found)
{
	struct load_wrong *w = &j->l->wrong;

	if (atomic_fetch_add(&w->pages, 1))
		return;
	w->index = index;
	w->gen = j->l->generations[index];
	w->offset = offset;
	w->expected = expected;
	w->found = found;
}

/* False if the page's word is not the one that must be there. */
static bool look(struct job *j, uint32_t index)
{
	unsigned at;
	uint64_t want = pagegen_word(&j->l->gen, index, j->l->generations[index], &at);
	uint64_t found = *(volatile uint64_t *)(page_at(j, index) + at), diff = want ^ found;
	unsigned byte;

	if (likely(!diff))
		return true;
	byte = (unsigned)__builtin_ctzll(diff) / 8;
	report_wrong(j, index, at * 8 + byte, (uint8_t)(want >> byte * 8),
		     (uint8_t)(found >> byte * 8));
	return false;
}

/* --- phases that walk over all pages, a contiguous part a thread ------------------------------ */

static void walk(struct job *j)
{
	const struct load *l = j->l;
	uint64_t first = l->o.pages * j->thread / l->o.threads;
	uint64_t end = l->o.pages * (j->thread + 1) / l->o.threads;
	uint64_t scratch[PAGEGEN_WORDS];
	const uint8_t *expected = (const uint8_t *)scratch;
	size_t at;

	for (uint64_t i = first; i < end; i++) {
		uint32_t index = (uint32_t)i, gen = l->generations[i];
		const uint8_t *found = (const uint8_t *)page_at(j, i);

		if (j->phase == PHASE_FILL)
			pagegen_make(&l->gen, index, gen, page_at(j, i));
		else if (j->phase == PHASE_SEQ && !look(j, index))
			return;
		else if (j->phase == PHASE_VERIFY &&
			 !pagegen_check(&l->gen, index, gen, found, scratch, &at))
			report_wrong(j, index, (uint32_t)at, expected[at], found[at]);
		j->l->threads[j->thread].done++;
	}
}

/* --- phases that touch pages at random -------------------------------------------------------- */

static uint64_t next_random(struct job *j)
{
	return pagegen_mix(j->random++);
}

/*
 * A page of this thread.  The hot pages are spread over all by a multiplication modulo their
 * number; a prime above 2^32 has no factor in common with it.
 */
static uint32_t choose(struct job *j)
{
	const struct load_options *o = &j->l->o;
	uint64_t nr = o->pages / o->threads, n = next_random(j) % nr;

	if (o->hot_percent) {
		uint64_t hot = max_u64(1, nr * o->hot_percent / 100);

		if (next_random(j) % 10 && hot < nr)
			n = n % hot;
		else if (hot < nr)
			n = hot + n % (nr - hot);
		n = (uint64_t)((unsigned __int128)n * 4294967311u % nr);
	}
	return (uint32_t)(n * o->threads + j->thread);
}

static void touch(struct job *j)
{
	struct load *l = j->l;
	struct load_thread *t = &l->threads[j->thread];
	uint64_t now = now_ns(), before;

	while (t->done < l->o.touches && now < j->deadline && !l->wrong.pages && !l->enough) {
		uint32_t index = choose(j);
		bool writes = j->phase == PHASE_RW && next_random(j) % 100 < l->o.write_share;

		before = now;
		if (!look(j, index))
			return;
		if (writes)
			pagegen_make(&l->gen, index, ++l->generations[index], page_at(j, index));
		now = now_ns();
		latency_add(&t->latency, now - before);
		stalls_add(&l->stalls, before, now - before);
		t->done++;
	}
}

static void *run_job(void *arg)
{
	struct job *j = arg;

	if (j->phase == PHASE_RANDOM || j->phase == PHASE_RW)
		touch(j);
	else
		walk(j);
	return NULL;
}

/* --- the process ------------------------------------------------------------------------------ */

static uint64_t major_faults(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (uint64_t)u.ru_majflt;
}

static int run_phase(struct load *l, uint64_t *data, enum load_phase phase)
{
	struct phase_result *res = &l->results[phase];
	pthread_t threads[LOAD_MAX_THREADS];
	struct job jobs[LOAD_MAX_THREADS];
	uint64_t start = now_ns(), faults = major_faults();
	unsigned started = 0;
	pthread_attr_t attr;
	int r = 0;

	l->phase = (int)phase;
	if (l->o.progress)
		fprintf(stderr, "phase %s\n", load_phase_names[phase]);
	pthread_attr_init(&attr);
	memset(l->threads, 0, sizeof(l->threads));
	for (; started < l->o.threads && r == 0; started++) {
		unsigned t = started;

		jobs[t] = (struct job){.l = l,
				       .thread = t,
				       .phase = phase,
				       .data = data,
				       .deadline = start + l->o.seconds * UINT64_C(1000000000)};
		jobs[t].random = pagegen_mix((uint64_t)l->gen.seed << 16 | phase << 8 | t);
		r = -pthread_attr_setstack(&attr, l->stacks + (size_t)t * LOAD_STACK, LOAD_STACK);
		if (r == 0)
			r = -pthread_create(&threads[t], &attr, run_job, &jobs[t]);
		if (r < 0)
			break;
	}
	for (unsigned t = 0; t < started; t++) {
		pthread_join(threads[t], NULL);
		res->pages += l->threads[t].done;
		latency_merge(&res->latency, &l->threads[t].latency);
	}
	pthread_attr_destroy(&attr);
	res->ns = now_ns() - start;
	res->major_faults = major_faults() - faults;
	return r;
}

static int join_cgroup(const char *dir)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/cgroup.procs", dir);
	cleanup_fd int fd = open(path, O_WRONLY | O_CLOEXEC);
	return fd < 0 || write(fd, "0", 1) != 1 ? -errno : 0;
}

/* Only the data may be swapped, so everything else is locked before it is mapped. */
static int prepare(struct load *l, uint64_t **ret_data)
{
	struct sigaction sa = {.sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO};
	size_t size = l->o.pages * PAGEGEN_PAGE;
	void *data;
	int r;

	if (l->o.cgroup) {
		r = join_cgroup(l->o.cgroup);
		if (r < 0) {
			fprintf(stderr, "pageload: cannot enter the cgroup %s: %s\n", l->o.cgroup,
				strerror(-r));
			return r;
		}
	}
	if (mlockall(MCL_CURRENT) < 0)
		fprintf(stderr, "pageload: mlockall: %s; tables may be swapped too\n",
			strerror(errno));
	data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		    -1, 0);
	if (data == MAP_FAILED || madvise(data, size, MADV_NOHUGEPAGE) < 0) {
		r = -errno;
		fprintf(stderr, "pageload: mapping of %zu bytes: %s\n", size, strerror(-r));
		return r;
	}
	handler_load = l;
	handler_data = (uintptr_t)data;
	sigaction(SIGBUS, &sa, NULL);
	*ret_data = data;
	return 0;
}

int load_run(struct load *l)
{
	uint64_t *data = NULL;
	int r;

	if (prepare(l, &data) < 0)
		return LOAD_FAILED;
	for (enum load_phase p = 0; p < PHASE_COUNT; p++) {
		/* Once a page is wrong only verification can still say something: how many are. */
		if (!(l->o.phases & 1u << p) || (l->wrong.pages && p != PHASE_VERIFY))
			continue;
		r = run_phase(l, data, p);
		if (r < 0) {
			fprintf(stderr, "pageload: threads of phase %s: %s\n", load_phase_names[p],
				strerror(-r));
			return LOAD_FAILED;
		}
	}
	return l->wrong.pages ? LOAD_WRONG : LOAD_OK;
}

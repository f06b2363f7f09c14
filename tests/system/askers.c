// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Clients that ask a daemon for all its statistics, each so many times a second.
 *
 *	askers DEVICE CLIENTS RATE SECONDS
 *
 * Each is a process of its own.  It does not make up for what it is late, so a daemon that answers
 * slowly is asked less often.  Of every answer it checks what must hold between the figures,
 * whatever the moment.
 *
 * Prints one line of JSON: how often was asked and answered, how often not (the daemon drops what
 * a reader has no room for) and how often asking failed otherwise, the fewest answers that a client
 * got, and how long an answer took.  Status 1: an answer was wrong, or there were none.
 */
#include "common/portfile.h"
#include "common/util.h"
#include "ctl/client.h"
#include "ctl/find.h"
#include "tests/system/latency.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#define CLIENTS_MAX 64u
#define SECOND	    1000000000ull

/* One client's, in shared memory. */
struct asker {
	uint64_t asked, answered, dropped, failed, wrong;
	char why[256]; /* of the first wrong answer */
	struct latency latency;
	struct ctl_reply reply;
	size_t nbefore;
	uint64_t before[CTL_COUNTERS_MAX]; /* the values of the last answer, in its order */
};

static uint64_t value(const struct ctl_reply *r, const char *name)
{
	return ctl_stats_get(&r->stats, name).v;
}

/* NULL if all is as it must be. */
static const char *check(const struct asker *a)
{
	const struct ctl_reply *r = &a->reply;
	uint64_t kinds = value(r, "slots_same_filled") + value(r, "slots_resident") +
			 value(r, "slots_stored") + value(r, "slots_lost");

	if (r->stats.unreadable || r->stats.n < 30 || r->stats.nhistograms < 6)
		return "the answer is not complete";
	if (value(r, "slots_used") > value(r, "slots_total"))
		return "more slots are used than there are";
	if (value(r, "slots_used") != kinds)
		return "the slots used are not the sum of their kinds";
	if (value(r, "store_used_bytes") > value(r, "store_size_bytes"))
		return "more of the store is used than there is";
	if (value(r, "memory_used_bytes") > value(r, "memory_limit_bytes"))
		return "more memory is used than the limit";
	for (size_t i = 0; i < a->nbefore && i < r->stats.n; i++) {
		const struct ctl_counter *c = &r->stats.c[i];

		if (c->kind.v == NLPROTO_KIND_COUNTER && c->value.v < a->before[i])
			return c->name;
	}
	return NULL;
}

static void ask_once(struct asker *a, struct ctl_client *c, const char *device)
{
	uint64_t start = now_ns();
	const char *why;
	int r;

	a->asked++;
	r = ctl_client_ask(c, NLPROTO_CMD_STATS, device, &a->reply);
	if (r == -ETIMEDOUT || r == -ENOBUFS) {
		a->dropped++;
		return;
	}
	why = r == 0 ? check(a) : r == 1 ? a->reply.error_text : strerror(-r);
	if (why && !a->wrong++)
		snprintf(a->why, sizeof(a->why), "%.200s", why);
	if (r) {
		a->failed++;
		return;
	}
	a->answered++;
	latency_add(&a->latency, now_ns() - start);
	a->nbefore = a->reply.stats.n;
	for (size_t i = 0; i < a->nbefore; i++)
		a->before[i] = a->reply.stats.c[i].value.v;
}

static void run(struct asker *a, const char *device, uint64_t rate, uint64_t seconds)
{
	uint64_t end = now_ns() + seconds * SECOND, gap = SECOND / rate, next = now_ns(), now;
	struct ctl_client *c;

	if (ctl_client_new(&c, ctl_find_port(PORTFILE_DIR, device), 0) < 0) {
		a->wrong++;
		return;
	}
	while ((now = now_ns()) < end) {
		struct timespec ts = {(time_t)(next / SECOND), (long)(next % SECOND)};

		if (now < next)
			clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
		else
			next = now;
		next += gap;
		ask_once(a, c, device);
	}
	ctl_client_free(c);
}

static void report(const struct asker *askers, unsigned n)
{
	static struct latency all;
	static struct asker sum;
	uint64_t least = UINT64_MAX;

	for (unsigned i = 0; i < n; i++) {
		sum.asked += askers[i].asked;
		sum.answered += askers[i].answered;
		sum.dropped += askers[i].dropped;
		sum.failed += askers[i].failed;
		least = min_u64(least, askers[i].answered);
		sum.wrong += askers[i].wrong;
		latency_merge(&all, &askers[i].latency);
		if (askers[i].wrong)
			fprintf(stderr, "askers: wrong: %s\n", askers[i].why);
	}
	printf("{\"clients\": %u, \"asked\": %" PRIu64 ", \"answered\": %" PRIu64
	       ", \"dropped\": %" PRIu64 ", \"failed\": %" PRIu64 ", \"wrong\": %" PRIu64
	       ", \"least\": %" PRIu64 ", \"p50_us\": %" PRIu64 ", \"p99_us\": %" PRIu64 "}\n",
	       n, sum.asked, sum.answered, sum.dropped, sum.failed, sum.wrong, least,
	       latency_percentile(&all, 0.5) / 1000, latency_percentile(&all, 0.99) / 1000);
	exit(sum.wrong || !sum.answered);
}

int main(int argc, char **argv)
{
	unsigned n = argc == 5 ? (unsigned)atoi(argv[2]) : 0;
	uint64_t rate = argc == 5 ? strtoull(argv[3], NULL, 10) : 0;
	struct asker *askers;

	if (n == 0 || n > CLIENTS_MAX || rate == 0) {
		fprintf(stderr, "usage: askers DEVICE CLIENTS RATE SECONDS\n");
		return 2;
	}
	askers = mmap(NULL, n * sizeof(*askers), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (askers == MAP_FAILED) {
		perror("askers");
		return 2;
	}
	for (unsigned i = 0; i < n; i++) {
		pid_t pid = fork();

		if (pid < 0) {
			perror("askers: fork");
			return 2;
		}
		if (pid == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			run(&askers[i], argv[1], rate, strtoull(argv[4], NULL, 10));
			_exit(0);
		}
	}
	while (wait(NULL) > 0)
		;
	report(askers, n);
}

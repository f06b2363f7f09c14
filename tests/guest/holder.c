// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A service with pages of its own: fills memory with what it can tell again, and compares all of it
 * when it is asked to and when it ends.
 *
 * usage: holder NAME MIB [--churn]
 *
 * Says READY=1 to the service manager once the memory is filled.  SIGUSR1: compares everything and
 * says so.  SIGTERM: the same, and ends, with status 1 if a byte was wrong.  --churn: meanwhile
 * rewrites and compares pages in a random order.  What it finds goes to the kernel's log, which
 * outlives the file systems: "holder NAME: N pages right, N wrong (why)".
 *
 * Half of a page is noise, so that it compresses as pages of programs do.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <systemd/sd-daemon.h>
#include <time.h>
#include <unistd.h>

#include "common/util.h"

#define PAGE  4096u
#define WORDS (PAGE / sizeof(uint64_t))
#define TURN  64 /* pages between two looks at the signals */

struct holder {
	const char *name;
	uint64_t *pages;
	uint32_t *generation; /* of each page; locked */
	uint64_t n;
	uint64_t wrong; /* found while churning */
};

static uint64_t mix(uint64_t x)
{
	x = (x ^ (x >> 31)) * 0x9e3779b97f4a7c15ull;
	x = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9ull;
	return x ^ (x >> 32);
}

static uint64_t word(const struct holder *h, uint64_t page, uint64_t i)
{
	uint64_t seed = page << 24 ^ h->generation[page];

	/* The second half repeats the page's number. */
	return i < WORDS / 2 ? mix(seed + (i << 48) + i) : seed;
}

static void fill(struct holder *h, uint64_t page)
{
	h->generation[page]++;
	for (uint64_t i = 0; i < WORDS; i++)
		h->pages[page * WORDS + i] = word(h, page, i);
}

static bool right(const struct holder *h, uint64_t page)
{
	for (uint64_t i = 0; i < WORDS; i++) {
		if (h->pages[page * WORDS + i] != word(h, page, i))
			return false;
	}
	return true;
}

static void say(const struct holder *h, uint64_t good, const char *why)
{
	int fd = open("/dev/kmsg", O_WRONLY | O_CLOEXEC);
	char text[160];
	int n = snprintf(text, sizeof(text),
			 "holder %s: %" PRIu64 " pages right, %" PRIu64 " wrong (%s)\n", h->name,
			 good, h->n - good + h->wrong, why);

	if (fd < 0 || write(fd, text, (size_t)n) != n)
		perror("holder: /dev/kmsg");
	close_fd(fd);
	fputs(text, stdout);
	fflush(stdout);
}

static bool compare(const struct holder *h, const char *why)
{
	uint64_t good = 0;

	for (uint64_t page = 0; page < h->n; page++)
		good += right(h, page);
	say(h, good, why);
	return good == h->n && h->wrong == 0;
}

static void churn(struct holder *h, uint64_t *seed)
{
	for (unsigned i = 0; i < TURN; i++) {
		uint64_t page = mix(++*seed) % h->n;

		h->wrong += !right(h, page);
		fill(h, page);
	}
}

static int serve(struct holder *h, const sigset_t *set, bool churning)
{
	/* Leaves the others some of the CPU. */
	const struct timespec once = {.tv_nsec = 20000000}, later = {.tv_sec = 3600};
	uint64_t seed = 0;

	while (true) {
		int sig = sigtimedwait(set, NULL, churning ? &once : &later);

		if (sig == SIGUSR1)
			compare(h, "asked");
		else if (sig == SIGTERM)
			return compare(h, "stopped") ? EXIT_SUCCESS : EXIT_FAILURE;
		else if (churning)
			churn(h, &seed);
	}
}

int main(int argc, char **argv)
{
	struct holder h = {0};
	sigset_t set;

	if (argc < 3 || argc > 4 || (argc == 4 && strcmp(argv[3], "--churn") != 0)) {
		fputs("usage: holder NAME MIB [--churn]\n", stderr);
		return 2;
	}
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	h.name = argv[1];
	h.n = strtoull(argv[2], NULL, 10) * (MIB(1) / PAGE);
	h.pages =
		mmap(NULL, h.n * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	h.generation = mmap(NULL, h.n * sizeof(*h.generation), PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_LOCKED, -1, 0);
	if (!h.n || h.pages == MAP_FAILED || h.generation == MAP_FAILED) {
		perror("holder: memory");
		return EXIT_FAILURE;
	}
	madvise(h.pages, h.n * PAGE, MADV_NOHUGEPAGE);
	for (uint64_t page = 0; page < h.n; page++)
		fill(&h, page);
	sd_notify(0, "READY=1");
	return serve(&h, &set, argc == 4);
}

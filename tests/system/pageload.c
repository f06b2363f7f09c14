// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The swap workload: fills memory with real pages, reads and rewrites them through swap, and
 * compares every byte in the end.
 *
 * Two processes.  The parent loads the corpus and all tables into locked shared memory, which is
 * charged to its own cgroup; the child maps the data and does the work, in the cgroup given with
 * --cgroup.  So the data is the only thing that the cgroup's limit pushes out.  The parent waits
 * with a bound, since a page fault that swap never answers cannot be interrupted from inside.
 *
 * SIGUSR1 to the parent ends the phases random and rw; what comes after them is done.
 *
 * Exit status: enum load_exit.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "common/size.h"
#include "common/util.h"
#include "tests/system/load.h"

struct options {
	struct load_options load;
	const char *corpus;
	const char *stalls;
	uint64_t corpus_limit;
	uint32_t seed;
	enum pagegen_same same;
	unsigned timeout_s;
	bool json;
};

static const struct option long_options[] = {
	{"pages", required_argument, NULL, 'p'},
	{"size", required_argument, NULL, 's'},
	{"seed", required_argument, NULL, 'e'},
	{"touch", required_argument, NULL, 't'},
	{"write-share", required_argument, NULL, 'w'},
	{"threads", required_argument, NULL, 'j'},
	{"seconds", required_argument, NULL, 'n'},
	{"mode", required_argument, NULL, 'm'},
	{"hot", required_argument, NULL, 'h'},
	{"verify", no_argument, NULL, 'v'},
	{"report", required_argument, NULL, 'r'},
	{"same", required_argument, NULL, 'a'},
	{"cgroup", required_argument, NULL, 'g'},
	{"corpus-limit", required_argument, NULL, 'l'},
	{"timeout", required_argument, NULL, 'o'},
	{"stalls", required_argument, NULL, 'i'},
	{"progress", no_argument, NULL, 'q'},
	{"help", no_argument, NULL, '?'},
	{NULL, 0, NULL, 0},
};

static const char usage_text[] =
	"usage: pageload --pages FILE --size SIZE [OPTION]...\n"
	"  --pages FILE        the corpus: raw 4096-byte pages\n"
	"  --size SIZE         memory to fill\n"
	"  --seed N            (1) the same seed makes the same pages and touches\n"
	"  --mode LIST         (seq,random,rw) phases between filling and verification\n"
	"  --touch N           (unlimited) touches per thread and phase\n"
	"  --seconds S         (10) time of each of the phases random and rw\n"
	"  --write-share PCT   (100) share of the touches of phase rw that rewrite the page\n"
	"  --hot PCT           90 % of the touches go to PCT % of the pages\n"
	"  --threads N         (1)\n"
	"  --verify            compare every byte of every page in the end\n"
	"  --same word|keep|stamp  (word) what becomes of same-filled pages\n"
	"  --cgroup DIR        run in this cgroup; the corpus stays outside\n"
	"  --corpus-limit SIZE use no more of the corpus\n"
	"  --timeout S         (900) give up, whatever hangs\n"
	"  --report json       one line of JSON instead of a table\n"
	"  --stalls FILE       each touch that took 2 ms or more: when and how long, in us\n"
	"  --progress          name each phase on stderr when it starts\n"
	"Exit status: 0 all right, 1 wrong bytes, 2 usage, 3 page lost (SIGBUS), 4 anything else.\n";

/* --- options ---------------------------------------------------------------------------------- */

static int parse_number(const char *text, uint64_t min, uint64_t max, uint64_t *ret)
{
	char *end;
	uint64_t v;

	errno = 0;
	v = strtoull(text, &end, 10);
	if (errno || end == text || *end || *text == '-' || v < min || v > max)
		return -EINVAL;
	*ret = v;
	return 0;
}

static int parse_unsigned(const char *text, unsigned min, unsigned max, unsigned *ret)
{
	uint64_t v;
	int r = parse_number(text, min, max, &v);

	if (r == 0)
		*ret = (unsigned)v;
	return r;
}

static int parse_mode(const char *text, unsigned *ret_phases)
{
	unsigned phases = 0;

	while (*text) {
		size_t n = strcspn(text, ",");
		unsigned found = 0;

		for (unsigned p = PHASE_SEQ; p <= PHASE_RW; p++)
			if (strlen(load_phase_names[p]) == n &&
			    !strncmp(text, load_phase_names[p], n))
				found = 1u << p;
		if (!found)
			return -EINVAL;
		phases |= found;
		text += n + (text[n] == ',');
	}
	*ret_phases = phases;
	return 0;
}

static int parse_same(const char *text, enum pagegen_same *ret)
{
	static const char *const names[] = {
		[SAME_WORD] = "word", [SAME_KEEP] = "keep", [SAME_STAMP] = "stamp"};

	for (unsigned i = 0; i < ARRAY_SIZE(names); i++) {
		if (!strcmp(text, names[i])) {
			*ret = (enum pagegen_same)i;
			return 0;
		}
	}
	return -EINVAL;
}

static int parse_option(int opt, const char *arg, struct options *o, bool *verify)
{
	uint64_t v;
	int r = 0;

	switch (opt) {
	case 'p':
		o->corpus = arg;
		break;
	case 's':
		r = size_parse(arg, 0, &v);
		if (r == 0)
			o->load.pages = v / PAGEGEN_PAGE;
		break;
	case 'e':
		r = parse_unsigned(arg, 0, UINT32_MAX, &o->seed);
		break;
	case 't':
		r = parse_number(arg, 1, UINT64_MAX, &o->load.touches);
		break;
	case 'w':
		r = parse_unsigned(arg, 0, 100, &o->load.write_share);
		break;
	case 'j':
		r = parse_unsigned(arg, 1, LOAD_MAX_THREADS, &o->load.threads);
		break;
	case 'n':
		r = parse_number(arg, 1, 86400, &o->load.seconds);
		break;
	case 'm':
		r = parse_mode(arg, &o->load.phases);
		break;
	case 'h':
		r = parse_unsigned(arg, 1, 100, &o->load.hot_percent);
		break;
	case 'v':
		*verify = true;
		break;
	case 'r':
		o->json = !strcmp(arg, "json");
		r = o->json ? 0 : -EINVAL;
		break;
	case 'a':
		r = parse_same(arg, &o->same);
		break;
	case 'g':
		o->load.cgroup = arg;
		break;
	case 'l':
		r = size_parse(arg, 0, &o->corpus_limit);
		break;
	case 'o':
		r = parse_unsigned(arg, 1, 86400, &o->timeout_s);
		break;
	case 'i':
		o->stalls = arg;
		break;
	case 'q':
		o->load.progress = true;
		break;
	default:
		r = -EINVAL;
	}
	return r;
}

static int parse(int argc, char **argv, struct options *o)
{
	bool verify = false;
	int opt, at;

	while ((opt = getopt_long(argc, argv, "", long_options, &at)) != -1) {
		if (parse_option(opt, optarg, o, &verify) == 0)
			continue;
		if (optarg)
			fprintf(stderr, "pageload: --%s: '%s' is not a value for it\n",
				long_options[at].name, optarg);
		return -EINVAL;
	}
	o->load.phases |= 1u << PHASE_FILL | (verify ? 1u << PHASE_VERIFY : 0);
	if (optind != argc || !o->corpus || !o->load.pages)
		return -EINVAL;
	if (o->load.pages > UINT32_MAX || o->load.pages < o->load.threads) {
		fprintf(stderr, "pageload: --size must be a page a thread to 16 TiB\n");
		return -EINVAL;
	}
	return 0;
}

/* --- shared memory ---------------------------------------------------------------------------- */

static int load_corpus(const char *path, int fd, uint64_t *to, size_t size)
{
	for (size_t done = 0; done < size;) {
		ssize_t n = read(fd, (char *)to + done, size - done);

		if (n <= 0) {
			fprintf(stderr, "pageload: %s: %s\n", path,
				n ? strerror(errno) : "shorter than it was");
			return -EIO;
		}
		done += (size_t)n;
	}
	return 0;
}

/* struct load, generations, stacks, corpus, in this order, each on a page of its own. */
static int new_load(const struct options *o, struct load **ret_load)
{
	size_t head = align_up(sizeof(struct load), PAGEGEN_PAGE);
	size_t gens = align_up(o->load.pages * sizeof(uint32_t), PAGEGEN_PAGE);
	size_t stacks = (size_t)o->load.threads * LOAD_STACK, size, corpus;
	cleanup_fd int fd = open(o->corpus, O_RDONLY | O_CLOEXEC);
	struct load *l;
	struct stat st;
	char *at;

	if (fd < 0 || fstat(fd, &st) < 0) {
		fprintf(stderr, "pageload: %s: %s\n", o->corpus, strerror(errno));
		return -errno;
	}
	corpus = align_down(min_u64((uint64_t)st.st_size, o->corpus_limit), PAGEGEN_PAGE);
	if (!corpus) {
		fprintf(stderr, "pageload: %s holds no page\n", o->corpus);
		return -EINVAL;
	}
	size = head + gens + stacks + corpus;
	at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1,
		  0);
	if (at == MAP_FAILED) {
		fprintf(stderr, "pageload: %zu bytes of tables: %s\n", size, strerror(errno));
		return -errno;
	}
	if (mlock(at, size) < 0)
		fprintf(stderr, "pageload: mlock: %s; tables may be swapped too\n",
			strerror(errno));
	l = (struct load *)at;
	l->o = o->load;
	l->generations = (uint32_t *)(at + head);
	l->stacks = at + head + gens;
	l->gen = (struct pagegen){.corpus = (uint64_t *)(at + head + gens + stacks),
				  .nr = corpus / PAGEGEN_PAGE,
				  .seed = o->seed,
				  .same = o->same};
	*ret_load = l;
	return load_corpus(o->corpus, fd, (uint64_t *)(at + head + gens + stacks), corpus);
}

/* For the signal handler only. */
static struct load *handler_load;

static void on_enough(int sig)
{
	handler_load->enough = true;
}

/* --- the child -------------------------------------------------------------------------------- */

/* Its wait status, or -ETIMEDOUT if it neither ends nor can be killed. */
static int wait_child(pid_t pid, unsigned timeout_s, bool *ret_timed_out)
{
	uint64_t deadline = now_ns() + timeout_s * UINT64_C(1000000000);
	struct timespec pause = {.tv_nsec = 5000000};
	int status;

	*ret_timed_out = false;
	for (;;) {
		pid_t r = waitpid(pid, &status, WNOHANG);

		if (r == pid)
			return status;
		if (r < 0)
			return -errno;
		if (now_ns() > deadline) {
			if (*ret_timed_out)
				return -ETIMEDOUT;
			*ret_timed_out = true;
			kill(pid, SIGKILL);
			deadline = now_ns() + UINT64_C(5000000000);
		}
		nanosleep(&pause, NULL);
	}
}

static int run(struct load *l, unsigned timeout_s)
{
	const char *phase;
	bool timed_out = false;
	int status;
	pid_t pid;

	handler_load = l;
	signal(SIGUSR1, on_enough);
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(load_run(l));
	}
	status = pid < 0 ? -errno : wait_child(pid, timeout_s, &timed_out);
	phase = load_phase_names[l->phase];
	if (status == -ETIMEDOUT)
		fprintf(stderr, "pageload: phase %s hangs and cannot be killed\n", phase);
	else if (status < 0)
		fprintf(stderr, "pageload: %s\n", strerror(-status));
	else if (timed_out)
		fprintf(stderr, "pageload: timed out after %u s in phase %s\n", timeout_s, phase);
	else if (WIFSIGNALED(status))
		fprintf(stderr, "pageload: killed by signal %d in phase %s\n", WTERMSIG(status),
			phase);
	else
		return WEXITSTATUS(status);
	return LOAD_FAILED;
}

/* --- report ----------------------------------------------------------------------------------- */

static void print_errors(const struct load *l)
{
	const struct load_wrong *w = &l->wrong;

	if (l->lost_address && l->lost_index == UINT64_MAX)
		fprintf(stderr, "pageload: SIGBUS at %#" PRIx64 ", outside the data\n",
			(uint64_t)l->lost_address);
	else if (l->lost_address)
		fprintf(stderr, "pageload: page %" PRIu64 " is lost: SIGBUS at %#" PRIx64 "\n",
			(uint64_t)l->lost_index, (uint64_t)l->lost_address);
	if (w->pages)
		fprintf(stderr,
			"pageload: %" PRIu64
			" wrong pages; the first found is page %u, generation %u: byte %u must be 0x%02x, is 0x%02x\n",
			(uint64_t)w->pages, w->index, w->gen, w->offset, w->expected, w->found);
}

static double seconds(const struct phase_result *r)
{
	return r->ns ? (double)r->ns / 1e9 : 1e-9;
}

static double mb_per_s(const struct phase_result *r)
{
	return (double)r->pages * PAGEGEN_PAGE / 1e6 / seconds(r);
}

static double us(const struct phase_result *r, double share)
{
	return (double)latency_percentile(&r->latency, share) / 1000;
}

static void print_json(const struct load *l, int status)
{
	const char *comma = "";

	printf("{\"status\": %d, \"pages\": %" PRIu64
	       ", \"threads\": %u, \"corpus_pages\": %" PRIu64 ", \"wrong_pages\": %" PRIu64
	       ", \"phases\": {",
	       status, l->o.pages, l->o.threads, l->gen.nr, (uint64_t)l->wrong.pages);
	for (unsigned p = 0; p < PHASE_COUNT; p++) {
		const struct phase_result *r = &l->results[p];

		if (!(l->o.phases & 1u << p))
			continue;
		printf("%s\"%s\": {\"pages\": %" PRIu64
		       ", \"seconds\": %.3f, \"per_s\": %.1f, \"mb_per_s\": %.1f, "
		       "\"major_faults\": %" PRIu64,
		       comma, load_phase_names[p], r->pages, seconds(r),
		       (double)r->pages / seconds(r), mb_per_s(r), r->major_faults);
		if (r->latency.count)
			printf(", \"p50_us\": %.2f, \"p99_us\": %.2f, \"p999_us\": %.2f, \"max_us\": %.2f",
			       us(r, 0.5), us(r, 0.99), us(r, 0.999), us(r, 1));
		printf("}");
		comma = ", ";
	}
	printf("}}\n");
}

static void print_table(const struct load *l)
{
	printf("%-8s %10s %8s %10s %8s %10s %9s %9s %9s\n", "phase", "pages", "s", "pages/s",
	       "MB/s", "majflt", "p50 us", "p99 us", "p99.9 us");
	for (unsigned p = 0; p < PHASE_COUNT; p++) {
		const struct phase_result *r = &l->results[p];

		if (!(l->o.phases & 1u << p))
			continue;
		printf("%-8s %10" PRIu64 " %8.2f %10.0f %8.0f %10" PRIu64, load_phase_names[p],
		       r->pages, seconds(r), (double)r->pages / seconds(r), mb_per_s(r),
		       r->major_faults);
		if (r->latency.count)
			printf(" %9.1f %9.1f %9.1f", us(r, 0.5), us(r, 0.99), us(r, 0.999));
		printf("\n");
	}
}

int main(int argc, char **argv)
{
	struct options o = {
		.load = {.phases = 1u << PHASE_SEQ | 1u << PHASE_RANDOM | 1u << PHASE_RW,
			 .threads = 1,
			 .touches = UINT64_MAX,
			 .seconds = 10,
			 .write_share = 100},
		.corpus_limit = UINT64_MAX,
		.seed = 1,
		.timeout_s = 900,
	};
	struct load *l = NULL;
	int status, r;

	if (argc == 2 && !strcmp(argv[1], "--help")) {
		fputs(usage_text, stdout);
		return LOAD_OK;
	}
	if (parse(argc, argv, &o) < 0) {
		fputs(usage_text, stderr);
		return LOAD_USAGE;
	}
	if (new_load(&o, &l) < 0)
		return LOAD_FAILED;
	status = run(l, o.timeout_s);
	print_errors(l);
	r = o.stalls ? stalls_write(&l->stalls, o.stalls) : 0;
	if (r < 0)
		fprintf(stderr, "pageload: %s: %s\n", o.stalls, strerror(-r));
	if (o.json)
		print_json(l, status);
	else
		print_table(l);
	return status;
}

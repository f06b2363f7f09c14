// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/watch/watch.h"
#include "common/util.h"

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

static const int crash_signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};

/* The page of this process, for its handler. */
static struct watch *page;

/*
 * What a report of a crash would otherwise read from a disk first, while swap stands still: the
 * unwinder and the time zone.  Whoever is forked has both.
 */
static void load_libraries(void)
{
	void *frames[1];

	backtrace(frames, 1);
	tzset();
}

static int map_page(struct watch **ret, int fd)
{
	void *p = mmap(NULL, sizeof(struct watch), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_POPULATE, fd, 0);

	if (p == MAP_FAILED)
		return -errno;
	*ret = p;
	load_libraries();
	return 0;
}

int watch_new(struct watch **ret, int *ret_fd)
{
	cleanup_fd int fd = memfd_create("zswapd-watch", MFD_CLOEXEC);
	int r = fd < 0 ? -errno : 0;

	if (r == 0 && fallocate(fd, 0, 0, sizeof(struct watch)) < 0)
		r = -errno;
	if (r == 0)
		r = map_page(ret, fd);
	if (r < 0)
		return r;
	snprintf((*ret)->version, sizeof((*ret)->version), "%s", ZSWAPD_VERSION);
	(*ret)->size = sizeof(struct watch);
	*ret_fd = fd;
	fd = -1;
	return 0;
}

int watch_attach(struct watch **ret, int fd)
{
	struct watch *w = NULL;
	struct stat st;
	int r;

	if (fstat(fd, &st) < 0)
		return -errno;
	if ((size_t)st.st_size != sizeof(*w))
		return -EBADMSG;
	r = map_page(&w, fd);
	if (r < 0)
		return r;
	if (w->size != sizeof(*w) || strncmp(w->version, ZSWAPD_VERSION, sizeof(w->version)) != 0) {
		watch_free(w);
		return -EBADMSG;
	}
	*ret = w;
	return 0;
}

void watch_free(struct watch *w)
{
	if (w)
		munmap(w, sizeof(*w));
}

void watch_begin(struct watch *w)
{
	for (unsigned i = 0; i < WATCH_THREADS; i++)
		beat_end(&w->beats[i]);
	atomic_store(&w->crash.whole, false);
	atomic_store(&w->crash.taken, false);
}

/* --- crash --- */

extern const char __executable_start[]; /* the linker's */

static void write_record(struct watch_crash *c, int sig, const siginfo_t *si)
{
	void *frames[WATCH_FRAMES];
	int n = backtrace(frames, WATCH_FRAMES);

	c->signal = sig;
	c->code = si->si_code;
	c->address = si->si_code > 0 ? (uint64_t)(uintptr_t)si->si_addr : 0;
	prctl(PR_GET_NAME, c->thread);
	c->start = (uintptr_t)__executable_start;
	c->nframes = 0;
	for (int i = 0; i < n; i++)
		c->frames[c->nframes++] = (uintptr_t)frames[i];
	/* release: whoever sees it whole sees all of it. */
	atomic_store_explicit(&c->whole, true, memory_order_release);
}

/* The signal comes again with its default, as soon as the handler returns. */
static void crashed(int sig, siginfo_t *si, void *context)
{
	(void)context;
	signal(sig, SIG_DFL);
	if (!atomic_exchange(&page->crash.taken, true))
		write_record(&page->crash, sig, si);
	syscall(SYS_tgkill, getpid(), (int)syscall(SYS_gettid), sig);
}

void watch_catch_crashes(struct watch *w)
{
	struct sigaction sa = {.sa_sigaction = crashed, .sa_flags = SA_SIGINFO};

	page = w;
	sigfillset(&sa.sa_mask);
	for (size_t i = 0; i < ARRAY_SIZE(crash_signals); i++)
		sigaction(crash_signals[i], &sa, NULL);
}

/* --- two copies --- */

void watch_set_counters(struct watch *w, const uint64_t v[COUNTER_COUNT])
{
	for (unsigned i = 0; i < COUNTER_COUNT; i++)
		atomic_store_explicit(&w->counters[i], v[i], memory_order_relaxed);
	atomic_store_explicit(&w->counted, now_ns(), memory_order_relaxed);
}

/* The copy that does not count now. */
static uint32_t other(const _Atomic uint32_t *current)
{
	return atomic_load_explicit(current, memory_order_relaxed) == 1 ? 1 : 0;
}

void watch_set_config(struct watch *w, const struct config *c)
{
	uint32_t i = other(&w->config);

	w->configs[i] = *c;
	/* release: a copy that counts is whole. */
	atomic_store_explicit(&w->config, i + 1, memory_order_release);
}

bool watch_config(const struct watch *w, struct config *ret)
{
	uint32_t i = atomic_load_explicit(&w->config, memory_order_acquire);

	if (i != 1 && i != 2)
		return false;
	*ret = w->configs[i - 1];
	return true;
}

void watch_report(const struct watch *w, char ret[static WATCH_REPORT_MAX])
{
	uint32_t i = atomic_load_explicit(&w->report, memory_order_acquire);

	snprintf(ret, WATCH_REPORT_MAX, "%s", i == 1 || i == 2 ? w->reports[i - 1] : "");
}

/* --- report --- */

__attribute__((format(printf, 3, 4))) static void add(char *text, size_t *n, const char *fmt, ...)
{
	va_list ap;

	if (*n >= WATCH_REPORT_MAX)
		return;
	va_start(ap, fmt);
	*n += (size_t)vsnprintf(text + *n, WATCH_REPORT_MAX - *n, fmt, ap);
	va_end(ap);
}

static void add_end(char *text, size_t *n, int pid, int status)
{
	char when[32] = "";
	time_t now = time(NULL);
	struct tm tm;

	if (gmtime_r(&now, &tm))
		strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S UTC", &tm);
	add(text, n, "%s: worker %d ", when, pid);
	if (status == -1)
		add(text, n, "has ended");
	else if (WIFSIGNALED(status))
		add(text, n, "was ended by SIG%s",
		    sigabbrev_np(WTERMSIG(status)) ? sigabbrev_np(WTERMSIG(status)) : "?");
	else
		add(text, n, "ended with status %d", WEXITSTATUS(status));
}

/* Who was forked by this process has the same things at the same places. */
static void add_frame(char *text, size_t *n, const struct watch_crash *c, uint64_t address)
{
	bool same = c->start == (uintptr_t)__executable_start;
	const char *slash;
	Dl_info info;

	if (!same || !dladdr((const void *)(uintptr_t)address, &info) || !info.dli_fname) {
		add(text, n, " zswapd%+" PRId64, (int64_t)(address - c->start));
		return;
	}
	slash = strrchr(info.dli_fname, '/');
	add(text, n, " %s+0x%" PRIx64, slash ? slash + 1 : info.dli_fname,
	    address - (uintptr_t)info.dli_fbase);
}

static void add_record(char *text, size_t *n, const struct watch_crash *c)
{
	const char *name = sigabbrev_np(c->signal);

	add(text, n, "; SIG%s in %.15s", name ? name : "?", c->thread);
	if (c->address)
		add(text, n, " at address 0x%" PRIx64, c->address);
	add(text, n, ", called from");
	for (uint32_t i = 0; i < c->nframes && i < WATCH_FRAMES; i++)
		add_frame(text, n, c, c->frames[i]);
}

static void add_counters(char *text, size_t *n, struct watch *w)
{
	static const enum counter_id shown[] = {CTR_slots_used, CTR_memory_used_bytes,
						CTR_store_used_bytes, CTR_pages_written_total,
						CTR_pages_read_total};
	uint64_t counted = atomic_load_explicit(&w->counted, memory_order_relaxed);

	if (!counted)
		return;
	add(text, n, "; counters %.1f s before:", (double)(now_ns() - counted) / 1e9);
	for (size_t i = 0; i < ARRAY_SIZE(shown); i++)
		add(text, n, " %s %" PRIu64, counter_table[shown[i]].name,
		    atomic_load_explicit(&w->counters[shown[i]], memory_order_relaxed));
}

void watch_make_report(struct watch *w, int pid, int status, const char *note)
{
	uint32_t i = other(&w->report);
	char *text = w->reports[i];
	size_t n = 0;

	add_end(text, &n, pid, status);
	if (note)
		add(text, &n, "; %s", note);
	add_counters(text, &n, w);
	/* Last, since it is what may be cut.  acquire: see write_record(). */
	if (atomic_load_explicit(&w->crash.whole, memory_order_acquire))
		add_record(text, &n, &w->crash);
	atomic_store_explicit(&w->report, i + 1, memory_order_release);
	atomic_store(&w->reported, pid);
	atomic_fetch_add(&w->deaths, 1);
}

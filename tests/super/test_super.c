// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A real supervisor, in a process of its own, over workers that are no more than their side of the
 * link: worker_run() is this file's.  They share a page with the test, which says how they behave
 * and sees what happens to them.  Each supervisor serves a device name of its own.
 */
#include "common/log.h"
#include "common/util.h"
#include "daemon/link/link.h"
#include "daemon/super/super.h"
#include "daemon/worker/device.h"
#include "daemon/worker/supervised.h"
#include "daemon/worker/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cmocka.h>

#define PATIENCE_NS 20000000000ull

static struct page {
	/* the test's */
	_Atomic int tester;	    /* without whom nobody goes on */
	_Atomic bool keeps;	    /* workers have pages that are kept */
	_Atomic bool hangs;	    /* told to stop, they say so and then do nothing */
	_Atomic bool refuses;	    /* told to stop, they do not */
	_Atomic bool dies;	    /* they die before they are ready */
	_Atomic bool standby_fails; /* at once */
	_Atomic bool standby_drops; /* it has found nothing, and says so */
	/* the workers' */
	_Atomic int worker; /* pid of the last one that serves */
	_Atomic int standby;
	_Atomic int stopping; /* pid of the last one that was told to stop */
	_Atomic int refused;
	_Atomic unsigned starts, standbys, served;
	_Atomic int level; /* as configured for the last one that serves */
} * page;

/* --- workers --- */

static void keep(struct supervised *s, const char *name)
{
	int fd = memfd_create(name, MFD_CLOEXEC);

	if (kept_get(s->kept, name) < 0)
		supervised_keep(s, name, fd);
	close(fd);
}

static bool no_more(void *ctx)
{
	return false;
}

static int watch_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void stop_or_not(struct supervised *s)
{
	page->stopping = getpid();
	supervised_notify(s, "STOPPING=1");
	while (page->hangs && kill(page->tester, 0) == 0)
		poll(NULL, 0, 10);
	if (!page->refuses) {
		supervised_drop(s, KEPT_STATE);
		exit(WORKER_STOPPED);
	}
	supervised_notify(s, "READY=1\nSTATUS=Refused");
	page->refused = getpid();
}

static _Noreturn void serve(struct supervised *s, int signals, struct beat *beat)
{
	struct signalfd_siginfo si;

	beat_begin(beat);
	while (kill(page->tester, 0) == 0) {
		struct pollfd fds[] = {{.fd = signals, .events = POLLIN},
				       {.fd = s->link, .events = POLLIN},
				       {.fd = kept_get(s->kept, KEPT_LISTENER), .events = POLLIN}};

		poll(fds, 3, 100);
		beat_turn(beat);
		if (fds[1].revents || fds[2].revents)
			supervised_work(s);
		if (read(signals, &si, sizeof(si)) == sizeof(si))
			stop_or_not(s);
	}
	exit(WORKER_STOPPED);
}

static void stand_by(struct supervised *s)
{
	page->standbys++;
	if (page->standby_fails)
		exit(WORKER_FAILED);
	if (page->standby_drops)
		link_send(s->link, LINK_DROP, KEPT_STATE, -1);
	page->standby = getpid();
	if (!supervised_await_order(s, no_more, NULL))
		exit(WORKER_STOPPED);
}

enum worker_exit worker_run(const struct worker_start *start)
{
	struct supervised s = {.link = start->link, .kept = start->kept};
	struct config config = *start->config;
	int signals = watch_signals();

	if (start->standby)
		stand_by(&s);
	page->starts++;
	if (page->dies)
		abort();
	if (page->keeps) {
		keep(&s, KEPT_FRONT);
		keep(&s, KEPT_STATE);
	}
	page->level = config.memory_level;
	config.memory_level += 1; /* set at run time, so to speak */
	watch_begin(start->watch);
	watch_set_config(start->watch, &config);
	supervised_notify(&s, "READY=1");
	page->worker = getpid();
	page->served++;
	serve(&s, signals, &start->watch->beats[0]);
}

/* --- the test's side --- */

struct daemon {
	pid_t pid;
	int passed; /* to the next one that is launched, by its service manager; 0: nothing is */
	struct config config;
};

static bool is_gone(pid_t pid)
{
	return kill(pid, 0) < 0 && errno == ESRCH;
}

#define WAIT_FOR(condition)                              \
	do {                                             \
		uint64_t until = now_ns() + PATIENCE_NS; \
                                                         \
		while (!(condition) && now_ns() < until) \
			poll(NULL, 0, 5);                \
		assert_true(condition);                  \
	} while (0)

static void pass(int fd)
{
	char pid[16];

	snprintf(pid, sizeof(pid), "%d", getpid());
	setenv("LISTEN_PID", pid, 1);
	setenv("LISTEN_FDS", "1", 1);
	setenv("LISTEN_FDNAMES", "zswapd-state", 1);
	dup2(fd, 3);
	if (fd != 3)
		close(fd);
}

static void launch(struct daemon *d)
{
	static const struct config_source source;
	static char *argv[] = {NULL};

	d->pid = fork();
	assert_true(d->pid >= 0);
	if (d->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (d->passed)
			pass(d->passed);
		exit(super_run(&(struct super_options){
			.config = &d->config, .source = &source, .argv = argv}));
	}
}

static void begin_with(struct daemon *d, bool keeps)
{
	static unsigned number;

	memset(page, 0, sizeof(*page));
	page->tester = getpid();
	page->keeps = keeps;
	*d = (struct daemon){.config = {.memory_level = 1, .device_watchdog = 2}};
	snprintf(d->config.device_name, sizeof(d->config.device_name), "test-%d-%u", getpid(),
		 number++);
	launch(d);
}

static void begin(struct daemon *d)
{
	begin_with(d, true);
}

/* Its exit status. */
static int await_end(const struct daemon *d)
{
	uint64_t until = now_ns() + PATIENCE_NS;
	int status = -1;

	while (waitpid(d->pid, &status, WNOHANG) == 0 && now_ns() < until)
		poll(NULL, 0, 5);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void remove_lock(const struct daemon *d)
{
	char path[96];

	snprintf(path, sizeof(path), DEVICE_RUN_DIR "/%s.lock", d->config.device_name);
	unlink(path);
}

static void end(struct daemon *d)
{
	kill(d->pid, SIGTERM);
	assert_int_equal(await_end(d), EXIT_SUCCESS);
	WAIT_FOR(is_gone(page->worker));
	remove_lock(d);
}

/* --- tests --- */

static void a_standby_takes_over(void **state)
{
	struct daemon d;
	int first, standby;

	begin(&d);
	WAIT_FOR(page->standby);
	first = page->worker;
	standby = page->standby;
	kill(first, SIGKILL);
	WAIT_FOR(page->worker == standby);
	WAIT_FOR(page->standby != standby);
	assert_int_equal(page->starts, 2);
	end(&d);
}

static void a_stop_outlives_its_worker(void **state)
{
	struct daemon d;
	int first;

	begin(&d);
	page->hangs = true;
	WAIT_FOR(page->standby);
	first = page->worker;
	kill(d.pid, SIGTERM);
	WAIT_FOR(page->stopping == first);
	kill(first, SIGKILL);
	page->hangs = false;
	assert_int_equal(await_end(&d), EXIT_SUCCESS);
	assert_int_not_equal(page->stopping, first);
	remove_lock(&d);
}

static void a_refused_stop_is_over(void **state)
{
	struct daemon d;
	int first;

	begin(&d);
	page->refuses = true;
	WAIT_FOR(page->standby);
	first = page->worker;
	kill(d.pid, SIGTERM);
	WAIT_FOR(page->refused == first);
	poll(NULL, 0, 100); /* for the supervisor to hear of it */
	kill(first, SIGKILL);
	WAIT_FOR(page->served == 2);
	poll(NULL, 0, 300);
	assert_int_equal(page->stopping, first);
	page->refuses = false;
	end(&d);
}

/* While a worker that can't serve is tried ever more slowly, as one does that never was ready. */
static void a_stop_waits_for_a_worker(void **state)
{
	struct daemon d;
	unsigned starts;

	begin(&d);
	WAIT_FOR(page->standby);
	page->dies = true;
	kill(page->worker, SIGKILL);
	WAIT_FOR(page->starts >= 7);
	starts = page->starts;
	kill(d.pid, SIGTERM);
	page->dies = false;
	assert_int_equal(await_end(&d), EXIT_SUCCESS);
	assert_true(page->starts > starts);
	assert_int_equal(page->stopping, page->worker);
	remove_lock(&d);
}

static void nothing_kept_nothing_stands_by(void **state)
{
	struct daemon d;

	begin_with(&d, false);
	WAIT_FOR(page->worker);
	poll(NULL, 0, 300);
	assert_int_equal(page->standbys, 0);
	end(&d);
}

static void a_standby_that_fails_is_not_tried_all_the_time(void **state)
{
	struct daemon d;

	begin(&d);
	page->standby_fails = true;
	WAIT_FOR(page->standbys == 2); /* after a second */
	poll(NULL, 0, 1500);
	assert_int_equal(page->standbys, 2);
	end(&d);
}

static void a_standby_drops_nothing(void **state)
{
	struct daemon d;

	begin(&d);
	page->standby_drops = true;
	WAIT_FOR(page->standby);
	poll(NULL, 0, 100);
	kill(page->worker, SIGKILL);
	WAIT_FOR(page->served == 2);
	page->standby_drops = false;
	end(&d);
}

/* What runs counts, not what the files say now, with a standby and without. */
static void a_successor_has_what_runs(void **state)
{
	struct daemon d;
	int first;

	begin(&d);
	page->standby_fails = true;
	WAIT_FOR(page->standbys);
	assert_int_equal(page->level, 1);
	first = page->worker;
	kill(first, SIGKILL);
	WAIT_FOR(page->served == 2);
	assert_int_equal(page->level, 2);
	/* So also after another supervisor has come, with other files. */
	kill(d.pid, SIGKILL);
	waitpid(d.pid, NULL, 0);
	page->standby_fails = false;
	d.config.memory_level = 9;
	launch(&d);
	WAIT_FOR(page->standby);
	kill(page->worker, SIGKILL);
	WAIT_FOR(page->served == 3);
	assert_int_equal(page->level, 3);
	end(&d);
}

static void what_the_manager_has_is_not_held_twice(void **state)
{
	struct pollfd pfd = {.events = POLLIN};
	struct daemon d;
	int fds[2];

	begin(&d);
	WAIT_FOR(page->standby);
	kill(d.pid, SIGKILL);
	waitpid(d.pid, NULL, 0);
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	d.passed = fds[1];
	page->standby = 0;
	launch(&d);
	close(fds[1]);
	WAIT_FOR(page->standby);
	pfd.fd = fds[0];
	assert_int_equal(poll(&pfd, 1, 1000), 1);
	assert_true(pfd.revents & POLLHUP);
	close(fds[0]);
	end(&d);
}

/* As by a freezer: the supervisor is the first to go on. */
static void who_was_stopped_judges_nobody(void **state)
{
	struct daemon d;
	int first;

	begin(&d);
	WAIT_FOR(page->standby);
	first = page->worker;
	kill(first, SIGSTOP);
	kill(d.pid, SIGSTOP);
	poll(NULL, 0, 4000);
	kill(d.pid, SIGCONT);
	poll(NULL, 0, 200);
	kill(first, SIGCONT);
	poll(NULL, 0, 1500);
	assert_int_equal(page->worker, first);
	/* The worker alone is another matter. */
	kill(first, SIGSTOP);
	WAIT_FOR(page->served == 2);
	end(&d);
}

static void a_stopped_standby_goes_all_the_same(void **state)
{
	struct daemon d;

	begin(&d);
	WAIT_FOR(page->standby);
	kill(page->standby, SIGSTOP);
	kill(page->worker, SIGKILL);
	WAIT_FOR(page->served == 2);
	end(&d);
}

/* Whoever is adopted is nobody's child, so that how it ended is not known. */
static void an_adopted_worker_that_keeps_nothing(void **state)
{
	struct daemon d;

	begin_with(&d, false);
	WAIT_FOR(page->worker);
	kill(d.pid, SIGKILL);
	waitpid(d.pid, NULL, 0);
	launch(&d);
	poll(NULL, 0, 500);
	kill(page->worker, SIGKILL);
	assert_int_equal(await_end(&d), EXIT_FAILURE);
	remove_lock(&d);
	/* But one that stops is no failure. */
	begin_with(&d, false);
	WAIT_FOR(page->worker);
	kill(d.pid, SIGKILL);
	waitpid(d.pid, NULL, 0);
	launch(&d);
	poll(NULL, 0, 500);
	end(&d);
}

static int needs_root(void **state)
{
	if (geteuid() != 0)
		exit(77);
	log_set_level(LOG_LEVEL_ERR);
	page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return page == MAP_FAILED;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_standby_takes_over),
		cmocka_unit_test(a_stop_outlives_its_worker),
		cmocka_unit_test(a_refused_stop_is_over),
		cmocka_unit_test(a_stop_waits_for_a_worker),
		cmocka_unit_test(nothing_kept_nothing_stands_by),
		cmocka_unit_test(a_standby_that_fails_is_not_tried_all_the_time),
		cmocka_unit_test(a_standby_drops_nothing),
		cmocka_unit_test(a_successor_has_what_runs),
		cmocka_unit_test(what_the_manager_has_is_not_held_twice),
		cmocka_unit_test(who_was_stopped_judges_nobody),
		cmocka_unit_test(a_stopped_standby_goes_all_the_same),
		cmocka_unit_test(an_adopted_worker_that_keeps_nothing),
	};

	return cmocka_run_group_tests(tests, needs_root, NULL);
}

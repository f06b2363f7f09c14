// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The commands that change something and those that take time, against a server of this process
 * with two options and one job, which gets on each time somebody looks.
 */
#include "common/portfile.h"
#include "common/util.h"
#include "daemon/stats/server.h"
#include "tests/ctl/exposition.h"
#include "tests/ctl/program.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#define LOOKS	     3 /* that a job takes */
#define FIRST_WORKER 790
#define SUPERVISOR   700

static char run_dir[] = "/tmp/zswapd-test-XXXXXX";

/* The server's thread, the owner's and the test's. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct stats_option options[2];
static struct stats_job job;

/* What becomes of jobs; set by the test while they run. */
static _Atomic enum nlproto_job_state job_end;
static _Atomic uint64_t job_found, job_bytes;
static atomic_bool job_stands_still, job_is_quick, another_is_shown;
static atomic_bool reload_fails_in_part, shrinks_unseen, memory_is_above;

/* Who serves and how; of an upgrade: refused, or what its answer was. */
static _Atomic uint32_t worker_pid, supervisor_pid;
static atomic_bool upgrade_is_refused, has_upgraded;

static struct stats_server *server;
static atomic_bool owner_ends;
static pthread_t owner;

static void give_counters(void *ctx, uint64_t values[COUNTER_COUNT])
{
	for (unsigned i = 0; i < COUNTER_COUNT; i++)
		values[i] = 1000 + i;
	values[CTR_memory_limit_bytes] = MIB(64);
	values[CTR_memory_used_bytes] = memory_is_above ? MIB(65) : MIB(64);
}

static void give_status(void *ctx, struct stats_status *ret)
{
	strcpy(ret->path, "/dev/zswap/ctl-test");
	strcpy(ret->transport, "fuse");
	ret->state = NLPROTO_STATE_RUNNING;
	ret->pid = worker_pid;
	ret->supervision = true;
	ret->supervisor = supervisor_pid;
	ret->standby = 720;
	if (worker_pid == FIRST_WORKER)
		return;
	strcpy(ret->takeover, "worker 812 took over from a worker that \"died\"");
	ret->takeover_time = 1796077503000000000;
	ret->takeover_ns = 45000000;
}

static void give_histograms(void *ctx, struct histogram values[HISTOGRAM_COUNT])
{
	for (unsigned i = 0; i < HISTOGRAM_COUNT; i++) {
		values[i].buckets[20 + i] = 99;
		values[i].buckets[60] = 1;
		values[i].sum = 12345678;
	}
}

static bool give_option(void *ctx, unsigned index, struct stats_option *ret)
{
	if (index >= ARRAY_SIZE(options))
		return false;
	pthread_mutex_lock(&lock);
	*ret = options[index];
	pthread_mutex_unlock(&lock);
	return true;
}

static void give_job(void *ctx, struct stats_job ret[STATS_JOBS])
{
	bool another = atomic_load(&another_is_shown);

	pthread_mutex_lock(&lock);
	if (job.state == NLPROTO_JOB_STATE_RUNNING && !job_stands_still) {
		job.done += job.total / LOOKS;
		if (job.done >= job.total) {
			job.done = job.total;
			job.state = job_end;
			job.found = job_found;
			job.error = job_end == NLPROTO_JOB_STATE_FAILED ? EIO : 0;
		}
	}
	ret[another ? 1 : 0] = job;
	if (another)
		ret[0] = (struct stats_job){
			.id = 1000, .kind = NLPROTO_JOB_SHRINK, .state = NLPROTO_JOB_STATE_RUNNING};
	pthread_mutex_unlock(&lock);
}

static struct stats_job job_now(void)
{
	struct stats_job j;

	pthread_mutex_lock(&lock);
	j = job;
	pthread_mutex_unlock(&lock);
	return j;
}

/* Under the lock. */
static void begin(enum nlproto_job_kind kind)
{
	job = (struct stats_job){
		.id = job.id + 1,
		.kind = kind,
		.state = NLPROTO_JOB_STATE_RUNNING,
		.unit = kind == NLPROTO_JOB_CHECK ? NLPROTO_UNIT_PAGES : NLPROTO_UNIT_BYTES,
		.total = 3 << 20,
	};
	if (job_is_quick) {
		job.done = job.total;
		job.state = NLPROTO_JOB_STATE_DONE;
	}
}

static int start_job(void *ctx, enum nlproto_job_kind kind, uint64_t bytes,
		     char text[static NLPROTO_LINE_MAX])
{
	int r = 0;

	pthread_mutex_lock(&lock);
	if (job.state == NLPROTO_JOB_STATE_RUNNING) {
		strcpy(text, "another job is under way");
		r = -EBUSY;
	} else {
		begin(kind);
		job_bytes = bytes;
	}
	pthread_mutex_unlock(&lock);
	return r;
}

static int cancel_job(void *ctx, char text[static NLPROTO_LINE_MAX])
{
	pthread_mutex_lock(&lock);
	if (job.state == NLPROTO_JOB_STATE_RUNNING)
		job.state = NLPROTO_JOB_STATE_CANCELLED;
	pthread_mutex_unlock(&lock);
	return 0;
}

static const struct stats_server_ops ops = {
	.counters = give_counters,
	.status = give_status,
	.histograms = give_histograms,
	.option = give_option,
	.job = give_job,
	.job_start = start_job,
	.job_cancel = cancel_job,
	.changes = true,
};

/* A limit that goes down begins a job, as the daemon's does. */
static int change(const struct stats_change *c, char *text)
{
	char *old = options[0].value;

	if (c->kind == STATS_CHANGE_UPGRADE && upgrade_is_refused) {
		strcpy(text, "version 0.0.9 is older than what runs");
		return -EPROTONOSUPPORT;
	}
	if (c->kind == STATS_CHANGE_UPGRADE) {
		strcpy(text, "0.2.0 takes over from 0.1.0");
		has_upgraded = true;
		return 0;
	}
	if (c->kind == STATS_CHANGE_RELOAD && reload_fails_in_part) {
		/* Longer than an error's text may be. */
		sprintf(text,
			"memory.level: 1 -> 2\n%0300d\n%0300d\nmemory.limit: stays 5: no room", 1,
			2);
		return STATS_CHANGE_PARTLY;
	}
	if (c->kind == STATS_CHANGE_RELOAD) {
		strcpy(text, "memory.limit: needs\ndevice.name: a \x1b[1mrestart");
		return 0;
	}
	if (strcmp(c->key, "memory.limit")) {
		strcpy(text, "there is no such option");
		return -ENOENT;
	}
	sprintf(text, "%s: %s -> %s", c->key, old, c->value);
	if (strtoull(c->value, NULL, 10) < strtoull(old, NULL, 10) && !shrinks_unseen)
		begin(NLPROTO_JOB_SHRINK);
	strcpy(old, c->value);
	return 0;
}

static void *owner_main(void *arg)
{
	struct pollfd pfd = {.fd = stats_server_change_fd(server), .events = POLLIN};
	struct stats_change c;
	char text[STATS_REPORT_MAX];
	int r;

	while (!owner_ends) {
		if (poll(&pfd, 1, 20) <= 0 || !stats_server_take_change(server, &c))
			continue;
		pthread_mutex_lock(&lock);
		r = change(&c, text);
		pthread_mutex_unlock(&lock);
		stats_server_finish_change(server, r, text);
	}
	return NULL;
}

static int start(void **state)
{
	if (geteuid())
		return 0;
	strcpy(options[0].key, "memory.limit");
	strcpy(options[0].value, "268435456");
	strcpy(options[0].def, "20%");
	strcpy(options[0].origin, "/etc/zswapd/zswapd.conf:7");
	strcpy(options[0].range, "bytes, K, M, G, T or % of RAM");
	strcpy(options[0].text, "Memory \"for\" pages.");
	options[0].live = true;
	strcpy(options[1].key, "device.name");
	strcpy(options[1].value, "ctl-test");
	memset(&job, 0, sizeof(job));
	worker_pid = FIRST_WORKER;
	supervisor_pid = SUPERVISOR;
	upgrade_is_refused = has_upgraded = false;
	job_end = NLPROTO_JOB_STATE_DONE;
	job_found = 0;
	job_bytes = 7;
	job_stands_still = job_is_quick = another_is_shown = false;
	shrinks_unseen = memory_is_above = false;
	owner_ends = false;
	assert_int_equal(stats_server_new(&server, "ctl-test", &ops, NULL), 0);
	assert_int_equal(stats_server_set_run_dir(server, run_dir), 0);
	assert_int_equal(stats_server_start(server), 0);
	return pthread_create(&owner, NULL, owner_main, NULL);
}

static int stop(void **state)
{
	if (geteuid())
		return 0;
	owner_ends = true;
	pthread_join(owner, NULL);
	stats_server_free(server);
	return 0;
}

/* Changing takes root, so these tests do. */
#define NEED_ROOT()             \
	do {                    \
		if (geteuid())  \
			skip(); \
	} while (0)

static void options_are_read_by_everybody(void **state)
{
	NEED_ROOT();
	assert_int_equal(program_run(true, "get"), 0);
	assert_string_equal(program_out,
			    "memory.limit      268435456 (256.0 MiB)   /etc/zswapd/zswapd.conf:7\n"
			    "device.name       ctl-test                ?\n");
	assert_int_equal(program_run(true, "get memory.limit"), 0);
	assert_string_equal(program_out, "268435456\n");
	assert_int_equal(program_run(true, "set memory.limit"), 1);
	assert_string_equal(program_out, "");
	assert_has(program_err, "the value for memory.limit is missing");
	assert_has(program_err, "memory.limit = 268435456\n");
	assert_has(program_err, "  may be     bytes, K, M, G, T or % of RAM\n");
	assert_int_equal(program_run(true, "get --verbose memory.limit"), 0);
	assert_string_equal(program_out, "memory.limit = 268435456\n"
					 "  what       Memory \"for\" pages.\n"
					 "  may be     bytes, K, M, G, T or % of RAM\n"
					 "  default    20%\n"
					 "  set by     /etc/zswapd/zswapd.conf:7\n"
					 "  changes    at run time\n");
	assert_int_equal(program_run(true, "get --json"), 0);
	assert_string_equal(
		program_out,
		"{\n"
		"  \"memory.limit\": {\"value\": \"268435456\", \"default\": \"20%\", \"origin\": "
		"\"/etc/zswapd/zswapd.conf:7\", \"live\": true, \"range\": \"bytes, K, M, G, T or "
		"% of RAM\", \"text\": \"Memory \\\"for\\\" pages.\"},\n"
		"  \"device.name\": {\"value\": \"ctl-test\", \"default\": null, \"origin\": null, "
		"\"live\": false, \"range\": null, \"text\": null}\n"
		"}\n");
	strcpy(options[0].value, "0");
	strcpy(options[0].in_force, "7340032");
	assert_int_equal(program_run(true, "get memory.limit"), 0);
	assert_string_equal(program_out, "7340032\n");
	assert_int_equal(program_run(true, "get"), 0);
	assert_has(program_out, "memory.limit      0, in force 7340032 (7.0 MiB) /etc");
	assert_int_equal(program_run(true, "get --verbose memory.limit"), 0);
	assert_has(program_out, "memory.limit = 0\n  in force   7340032\n");
	assert_int_equal(program_run(true, "get --json memory.limit"), 0);
	assert_has(program_out, "{\"value\": \"0\", \"in_force\": \"7340032\", \"default\"");
	pthread_mutex_lock(&lock);
	options[0].in_force[0] = '\0';
	pthread_mutex_unlock(&lock);
	assert_int_equal(program_run(true, "get no.such"), 5);
	assert_string_equal(program_out, "");
	assert_has(program_err, "no.such");
}

static void changing_takes_root(void **state)
{
	static const char *const commands[] = {
		"set memory.limit 1G", "reload",  "writeback", "compact", "check",
		"job --cancel",	       "upgrade",
	};

	NEED_ROOT();
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		assert_int_equal(program_run(true, commands[i]), 5);
		assert_string_equal(program_out, "");
		assert_has(program_err, "refused");
		assert_has(program_err, "uid 65534");
	}
	assert_string_equal(options[0].value, "268435456");
	assert_int_equal(job_now().id, 0);
}

static void a_higher_limit_is_set_at_once(void **state)
{
	NEED_ROOT();
	assert_int_equal(program_run(false, "set memory.limit 1073741824"), 0);
	assert_string_equal(program_out, "memory.limit: 268435456 -> 1073741824\n");
	assert_int_equal(program_run(false, "set nonsense 1"), 5);
	assert_has(program_err, "no such option");
}

static void a_lower_limit_is_waited_for(void **state)
{
	NEED_ROOT();
	assert_int_equal(program_run(false, "set memory.limit 67108864"), 0);
	assert_string_equal(program_out, "memory.limit: 268435456 -> 67108864\n"
					 "shrink: 3.0 MiB of memory have become free\n");
	/* No bar where no terminal is. */
	assert_string_equal(program_err, "");
	assert_int_equal(job_now().state, NLPROTO_JOB_STATE_DONE);
	/* Raised again: the old job is not told of once more. */
	assert_int_equal(program_run(false, "set memory.limit 268435456"), 0);
	assert_string_equal(program_out, "memory.limit: 67108864 -> 268435456\n");
	/* So quick that it is over before anybody looks. */
	job_is_quick = true;
	assert_int_equal(program_run(false, "set memory.limit 67108864"), 0);
	assert_string_equal(program_out, "memory.limit: 268435456 -> 67108864\n"
					 "shrink: 3.0 MiB of memory have become free\n");
	job_is_quick = false;
	job_stands_still = true;
	assert_int_equal(program_run(false, "set --no-wait memory.limit 16777216"), 0);
	assert_int_equal(job_now().state, NLPROTO_JOB_STATE_RUNNING);
	assert_int_equal(program_run(false, "set --no-wait memory.limit 1677721"), 0);
	assert_has(program_out, "'zswapctl job' shows how far it is");
}

/* Another job hides the way down; then memory itself is looked at. */
static void a_lower_limit_is_waited_for_beside_a_job(void **state)
{
	pid_t pid;

	NEED_ROOT();
	shrinks_unseen = true;
	memory_is_above = true;
	pid = program_start(false, "set memory.limit 67108864");
	usleep(1200000);
	memory_is_above = false;
	assert_int_equal(program_end(pid), 0);
	assert_has(program_out, "64.0 MiB of memory are in use, within the limit of 64.0 MiB\n");
	job_stands_still = true;
	assert_int_equal(program_run(false, "check --no-wait"), 0);
	memory_is_above = true;
	pid = program_start(false, "set memory.limit 67108863");
	usleep(1200000);
	memory_is_above = false;
	assert_int_equal(program_end(pid), 0);
	assert_has(program_out, "within the limit");
	memory_is_above = true;
	assert_int_equal(program_run(false, "set --no-wait memory.limit 67108862"), 0);
	assert_has(program_out, "in the background; 'zswapctl status'");
	pid = program_start(false, "set memory.limit 67108861");
	usleep(700000);
	kill(pid, SIGINT);
	assert_int_equal(program_end(pid), 8);
	assert_has(program_err, "interrupted; 65.0 MiB are in use, above the limit of 64.0 MiB");
	/* A job that begins meanwhile takes the place of the one that is shown. */
	shrinks_unseen = false;
	pid = program_start(false, "set memory.limit 67108860");
	usleep(700000);
	pthread_mutex_lock(&lock);
	begin(NLPROTO_JOB_CHECK);
	pthread_mutex_unlock(&lock);
	usleep(700000);
	memory_is_above = false;
	assert_int_equal(program_end(pid), 0);
	assert_has(program_out, "within the limit");
}

static void jobs_end_with_their_result(void **state)
{
	NEED_ROOT();
	assert_int_equal(program_run(true, "job"), 0);
	assert_string_equal(program_out, "no job so far\n");
	assert_int_equal(program_run(true, "job --wait"), 0);
	assert_int_equal(program_run(false, "writeback 64M"), 0);
	assert_string_equal(program_out, "writeback: 3.0 MiB of memory have become free\n");
	assert_true(job_bytes == MIB(64));
	assert_int_equal(program_run(false, "writeback"), 0);
	assert_true(job_bytes == STATS_JOB_ALL);
	assert_int_equal(program_run(false, "compact"), 0);
	assert_has(program_out, "compact: 3.0 MiB of memory and store have become free");
	assert_int_equal(program_run(false, "check"), 0);
	assert_string_equal(program_out, "check: 3145728 pages verified, none damaged\n");
	job_found = 2;
	assert_int_equal(program_run(false, "check"), 7);
	assert_string_equal(program_out, "check: 3145728 pages verified, 2 damaged\n");
	/* Of a job that has ended the status is the same to who asks later. */
	assert_int_equal(program_run(true, "job"), 7);
	assert_string_equal(program_out, "check: 3145728 pages verified, 2 damaged\n");
	assert_int_equal(program_run(true, "job --wait"), 7);
	assert_int_equal(program_run(true, "job --wait"), 7);
	job_end = NLPROTO_JOB_STATE_FAILED;
	assert_int_equal(program_run(false, "compact"), 5);
	assert_has(program_out, "compact: failed after 3.0 MiB: Input/output error");
	assert_int_equal(program_run(true, "job"), 5);
	assert_int_equal(program_run(true, "job --wait"), 5);
}

static void a_job_can_be_left_and_found_again(void **state)
{
	NEED_ROOT();
	job_stands_still = true;
	assert_int_equal(program_run(false, "check --no-wait"), 0);
	assert_string_equal(program_out, "check: begun\n");
	assert_int_equal(program_run(false, "compact"), 5);
	assert_has(program_err, "another job is under way");
	assert_int_equal(program_run(true, "job"), 0);
	assert_has(program_out, "check [  ");
	assert_has(program_out, "0 pages of 3145728 pages");
	job_stands_still = false;
	assert_int_equal(program_run(true, "job --wait"), 0);
	assert_has(program_out, "none damaged");
	job_stands_still = true;
	assert_int_equal(program_run(false, "writeback --no-wait"), 0);
	assert_int_equal(program_run(false, "job --cancel"), 0);
	assert_has(program_out, "writeback: cancelled after 0 B");
}

/* A command that follows its job, which stands still. */
static pid_t start_check(void)
{
	pid_t pid;

	job_stands_still = true;
	pid = program_start(false, "check");
	for (int i = 0; i < 1000 && !job_now().id; i++)
		usleep(20000);
	usleep(300000);
	return pid;
}

static void ctrl_c_leaves_the_job(void **state)
{
	pid_t pid;

	NEED_ROOT();
	pid = start_check();
	kill(pid, SIGINT);
	assert_int_equal(program_end(pid), 8);
	assert_string_equal(program_out, "");
	assert_has(program_err, "the check goes on");
	assert_int_equal(job_now().state, NLPROTO_JOB_STATE_RUNNING);
	/* Another one comes to the front: ours is still the one that is watched. */
	pid = program_start(false, "job --wait");
	usleep(300000);
	another_is_shown = true;
	job_stands_still = false;
	assert_int_equal(program_end(pid), 0);
	assert_has(program_out, "check: 3145728 pages verified, none damaged");
	another_is_shown = false;
	job_stands_still = true;
	assert_int_equal(program_run(false, "check --no-wait"), 0);
	/* Somebody ends it while we watch. */
	pid = program_start(true, "job --wait");
	usleep(300000);
	cancel_job(NULL, (char[NLPROTO_LINE_MAX]){0});
	assert_int_equal(program_end(pid), 5);
	assert_has(program_out, "cancelled");
	/* The daemon ends while we watch. */
	pid = program_start(false, "writeback");
	usleep(300000);
	stop(NULL);
	assert_int_equal(program_end(pid), 2);
	assert_has(program_err, "no zswapd for device");
	start(NULL);
}

static void wait_for_output(const char *word)
{
	for (int i = 0; i < 1000; i++) {
		program_peek();
		if (strstr(program_out, word))
			return;
		usleep(20000);
	}
	fail_msg("'%s' has not come: %s", word, program_out);
}

/* Until the program has subscribed, nothing can be asked of it. */
static void post_until(const char *word)
{
	for (int i = 0; i < 100; i++) {
		stats_server_post(server, NLPROTO_EVENT_STORE_ERROR, NULL, "the \"drive\" failed");
		usleep(200000);
		program_peek();
		if (strstr(program_out, word))
			return;
	}
	fail_msg("no event came: %s", program_out);
}

static pid_t start_upgrade(void)
{
	pid_t pid = program_start(false, "upgrade");

	for (int i = 0; i < 1000 && !has_upgraded; i++)
		usleep(20000);
	assert_true(has_upgraded);
	usleep(300000);
	return pid;
}

static void an_upgrade_is_followed(void **state)
{
	pid_t pid;

	NEED_ROOT();
	pid = start_upgrade();
	/* Between the two nobody answers. */
	stop(NULL);
	usleep(300000);
	start(NULL);
	worker_pid = 812;
	assert_int_equal(program_end(pid), 0);
	assert_string_equal(program_out, "0.2.0 takes over from 0.1.0\n"
					 "zswapd " ZSWAPD_VERSION " -> " ZSWAPD_VERSION
					 ": worker 812 took over from 790 after 45 ms\n");
	assert_int_equal(program_run(false, "upgrade --no-wait"), 0);
	assert_string_equal(program_out, "0.2.0 takes over from 0.1.0\n");
	upgrade_is_refused = true;
	assert_int_equal(program_run(false, "upgrade"), 5);
	assert_string_equal(program_out, "");
	assert_has(program_err, "refused: version 0.0.9 is older than what runs\n");
}

static void an_upgrade_that_does_not_come_to_its_end(void **state)
{
	pid_t pid;

	NEED_ROOT();
	pid = start_upgrade();
	kill(pid, SIGINT);
	assert_int_equal(program_end(pid), 8);
	assert_has(program_err, "interrupted; worker 790 still serves");
	/* The new supervisor has failed. */
	has_upgraded = false;
	pid = start_upgrade();
	supervisor_pid = 0;
	assert_int_equal(program_end(pid), 5);
	assert_has(program_err, "the new program has failed; worker 790, version " ZSWAPD_VERSION
				", goes on without a supervisor");
}

static void a_takeover_ends_what_the_worker_was_doing(void **state)
{
	pid_t pid;

	NEED_ROOT();
	pid = start_check();
	stop(NULL);
	usleep(300000);
	start(NULL);
	worker_pid = 812;
	assert_int_equal(program_end(pid), 5);
	assert_has(program_err, "worker 812 has taken over from 790, with which the check has "
				"ended; begin it again\n");
	/* Memory shrinks on with the next worker. */
	worker_pid = FIRST_WORKER;
	memory_is_above = true;
	pid = program_start(false, "set memory.limit 67108864");
	usleep(700000);
	stop(NULL);
	usleep(300000);
	start(NULL);
	worker_pid = 812;
	memory_is_above = true;
	usleep(700000);
	memory_is_above = false;
	assert_int_equal(program_end(pid), 0);
	assert_has(program_out, "within the limit");
}

/* A file of its port is what a worker leaves that is killed. */
static void a_question_between_two_workers_is_asked_again(void **state)
{
	uint32_t port;
	pid_t pid;

	NEED_ROOT();
	port = stats_server_port(server);
	stop(NULL);
	assert_int_equal(portfile_write(run_dir, "ctl-test", port), 0);
	pid = program_start(false, "get memory.limit");
	usleep(300000);
	start(NULL);
	assert_int_equal(program_end(pid), 0);
	assert_string_equal(program_out, "268435456\n");
	/* Nor is it asked for ever. */
	stop(NULL);
	assert_int_equal(portfile_write(run_dir, "ctl-test", port), 0);
	assert_int_equal(program_run(false, "get memory.limit"), 2);
	portfile_remove(run_dir, "ctl-test", port);
	start(NULL);
}

static void events_tell_of_a_takeover(void **state)
{
	pid_t pid;

	NEED_ROOT();
	pid = program_start(true, "events --json --seconds 60");
	post_until("store_error");
	stop(NULL);
	start(NULL);
	worker_pid = 812;
	wait_for_output("{\"event\": \"restarted\", \"device\": \"ctl-test\", \"text\": "
			"\"worker 812 took over from a worker that \\\"died\\\"\"}\n");
	stats_server_post(server, NLPROTO_EVENT_SUPERVISOR_FOUND, NULL, "found one");
	wait_for_output("\"event\": \"supervisor_found\"");
	kill(pid, SIGTERM);
	assert_int_equal(program_end(pid), 128 + SIGTERM);
}

static void reload_says_what_changed(void **state)
{
	NEED_ROOT();
	assert_int_equal(program_run(false, "reload"), 0);
	/* What it says cannot steer a terminal. */
	assert_string_equal(program_out, "memory.limit: needs\ndevice.name: a ?[1mrestart\n");
	reload_fails_in_part = true;
	assert_int_equal(program_run(false, "reload"), 5);
	reload_fails_in_part = false;
	assert_has(program_out, "memory.level: 1 -> 2\n000");
	assert_has(program_out, "1\n000");
	assert_has(program_out, "2\nmemory.limit: stays 5: no room\n");
	assert_has(program_err, "not all of it could be applied");
}

static void events_come_as_they_happen(void **state)
{
	pid_t pid;

	NEED_ROOT();
	for (int unprivileged = 0; unprivileged < 2; unprivileged++) {
		pid = program_start(unprivileged, "events --count 2 --json");
		post_until("\"event\": \"store_error\"");
		assert_has(program_out, "{\"time\": \"2");
		assert_has(program_out, "\"device\": \"ctl-test\"");
		assert_has(program_out, "\"text\": \"the \\\"drive\\\" failed\"}\n");
		stats_server_post(server, NLPROTO_EVENT_CONFIG_CHANGED, "memory.limit", "1 -> 2");
		assert_int_equal(program_end(pid), 0);
	}
	assert_int_equal(program_run(true, "events --seconds 1"), 0);
	pid = program_start(true, "events");
	post_until("  ctl-test  store_error       the \"drive\" failed");
	pthread_mutex_lock(&lock);
	begin(NLPROTO_JOB_COMPACT);
	pthread_mutex_unlock(&lock);
	wait_for_output("  ctl-test  job_finished      job 1, compact");
	kill(pid, SIGTERM);
	assert_int_equal(program_end(pid), 128 + SIGTERM);
}

static void events_go_on_with_a_new_daemon(void **state)
{
	pid_t pid;

	NEED_ROOT();
	pid = program_start(true, "events --json --seconds 60");
	post_until("store_error");
	stop(NULL);
	usleep(1500000);
	start(NULL);
	stats_server_post(server, NLPROTO_EVENT_STORE_ERROR, NULL, "not seen");
	wait_for_output("{\"event\": \"restarted\", \"device\": \"ctl-test\", \"text\": null}\n");
	stats_server_post(server, NLPROTO_EVENT_CONFIG_CHANGED, "a.b", "1 -> 2");
	wait_for_output("1 -> 2");
	kill(pid, SIGTERM);
	assert_int_equal(program_end(pid), 128 + SIGTERM);

	pid = program_start(true, "events --seconds 9");
	post_until("store_error");
	stop(NULL);
	assert_int_equal(program_end(pid), 2);
	assert_has(program_err, "has ended; waiting for it");
	assert_has(program_err, "no zswapd for device");
	start(NULL);
}

static void all_numbers_for_prometheus(void **state)
{
	const char *fault;

	NEED_ROOT();
	assert_int_equal(program_run(true, "stats --prometheus"), 0);
	fault = exposition_fault(program_out);
	if (fault)
		fail_msg("%s", fault);
	assert_has(program_out, "zswapd_read_latency_seconds_count{device=\"ctl-test\"} 100\n");
	assert_has(program_out, "zswapd_compress_time_seconds_bucket{device=\"ctl-test\",le=");
	assert_int_equal(program_run(true, "status"), 0);
	assert_has(program_out, "\nlatency      swap-in p50 ");
	assert_has_not(program_out, "?");
}

static int set_up(void **state)
{
	return mkdtemp(run_dir) ? chmod(run_dir, 0755) : -1;
}

static int tear_down(void **state)
{
	return rmdir(run_dir);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, start, stop)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(options_are_read_by_everybody),
		TEST(changing_takes_root),
		TEST(a_higher_limit_is_set_at_once),
		TEST(a_lower_limit_is_waited_for),
		TEST(a_lower_limit_is_waited_for_beside_a_job),
		TEST(jobs_end_with_their_result),
		TEST(a_job_can_be_left_and_found_again),
		TEST(ctrl_c_leaves_the_job),
		TEST(an_upgrade_is_followed),
		TEST(an_upgrade_that_does_not_come_to_its_end),
		TEST(a_takeover_ends_what_the_worker_was_doing),
		TEST(a_question_between_two_workers_is_asked_again),
		TEST(events_tell_of_a_takeover),
		TEST(reload_says_what_changed),
		TEST(events_come_as_they_happen),
		TEST(events_go_on_with_a_new_daemon),
		TEST(all_numbers_for_prometheus),
	};

	if (argc != 2) {
		fprintf(stderr, "usage: %s ZSWAPCTL\n", argv[0]);
		return 2;
	}
	program_init(argv[1], run_dir);
	return cmocka_run_group_tests(tests, set_up, tear_down);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * writeback, compact, check, job: what the daemon does on its own once it was asked.  The program
 * only watches; Ctrl-C ends the watching and never the job.
 */
#include "common/size.h"
#include "common/util.h"
#include "ctl/cell.h"
#include "ctl/cmd.h"
#include "ctl/progress.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>

#define LOOK_MS	     200
#define SILENCES_MAX 5		       /* unanswered looks in a row, of CTL_TIMEOUT_MS each */
#define AWAY_MAX     (10000 / LOOK_MS) /* looks in a row at which nobody is there */
#define STILL_NS     30000000000ull

static volatile sig_atomic_t interrupted;

static void on_interrupt(int sig)
{
	interrupted = 1;
}

void catch_interrupt(void)
{
	const struct sigaction act = {.sa_handler = on_interrupt};

	sigaction(SIGINT, &act, NULL);
}

bool was_interrupted(void)
{
	return interrupted;
}

static int terminal_width(void)
{
	struct winsize ws;

	return ioctl(STDERR_FILENO, TIOCGWINSZ, &ws) == 0 && ws.ws_col > 0 ? ws.ws_col - 1 : 79;
}

/* On stderr and only on a terminal: results go to stdout and may be piped. */
static void show_progress(const struct ctl_job *j, uint64_t first_done, double seconds)
{
	char line[PROGRESS_MAX];

	if (!isatty(STDERR_FILENO))
		return;
	progress_line(line, terminal_width(), j, first_done, seconds);
	fprintf(stderr, "\r%s\x1b[K", line);
	fflush(stderr);
}

static void wipe_progress(void)
{
	if (isatty(STDERR_FILENO))
		fputs("\r\x1b[K", stderr);
}

static enum exit_code goes_on(const struct ctl_job *j)
{
	char name[PROGRESS_NAME_MAX];

	wipe_progress();
	progress_name(name, j);
	fprintf(stderr,
		"zswapctl: interrupted; the %s goes on. 'zswapctl job' shows how far it is,\n"
		"%s ends it.\n",
		name,
		j->kind.known && j->kind.v == NLPROTO_JOB_SHRINK ? "setting memory.limit up again"
								 : "'zswapctl job --cancel'");
	return EXIT_GOES_ON;
}

static enum exit_code end_of(const struct ctl_job *j)
{
	char text[PROGRESS_MAX];

	progress_result(text, j);
	printf("%s\n", text);
	if (j->state.known && j->state.v == NLPROTO_JOB_STATE_NONE)
		return EXIT_OK;
	if (!j->state.known || j->state.v != NLPROTO_JOB_STATE_DONE)
		return EXIT_REFUSED;
	return j->found.known && j->found.v ? EXIT_FOUND : EXIT_OK;
}

static bool is_running(const struct ctl_job *j)
{
	return j->state.known && j->state.v == NLPROTO_JOB_STATE_RUNNING;
}

/* In a row. */
struct failures {
	unsigned silences, aways;
};

/*
 * What is now; -EAGAIN to look again.  Silence now and then is no reason to give up a job of
 * minutes.  Between two workers nobody is there, or a stranger.
 */
static int look(struct context *ctx, const struct ctl_request *rq, struct ctl_reply *r,
		struct failures *f)
{
	int err = request_quietly(ctx, rq, r);

	if (err == -ETIMEDOUT)
		return ++f->silences < SILENCES_MAX ? -EAGAIN : err;
	if (err == -ECONNREFUSED || err == -EPERM)
		return ++f->aways < AWAY_MAX ? -EAGAIN : err;
	*f = (struct failures){0};
	return err;
}

/* Not known if it does not say so, or is not there. */
static struct ctl_num serving_worker(struct context *ctx)
{
	static struct ctl_reply r;

	return ask_quietly(ctx, NLPROTO_CMD_STATUS, &r) == 0 ? r.status.pid : (struct ctl_num){0};
}

/* The numbers begin anew with each worker, so that one may well be there and be another job. */
static enum exit_code lost_sight(struct context *ctx, const struct ctl_job *first,
				 struct ctl_num worker)
{
	struct ctl_num now = serving_worker(ctx);
	char name[PROGRESS_NAME_MAX];

	wipe_progress();
	progress_name(name, first);
	if (!worker.known || !now.known || now.v == worker.v) {
		fprintf(stderr, "zswapctl: others have begun meanwhile; what became of this one "
				"is in the daemon's log\n");
		return EXIT_PARTIAL;
	}
	fprintf(stderr,
		"zswapctl: worker %" PRIu64 " has taken over from %" PRIu64
		", with which the %s has ended; begin it again\n",
		now.v, worker.v, name);
	return first->kind.known && first->kind.v == NLPROTO_JOB_SHRINK ? EXIT_PARTIAL
									: EXIT_REFUSED;
}

enum exit_code follow_job(struct context *ctx, const struct ctl_job *first)
{
	const struct ctl_request rq = {.cmd = NLPROTO_CMD_JOB, .job = first->id};
	const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000l};
	static struct ctl_reply r;
	struct ctl_job j = *first;
	struct ctl_num worker = serving_worker(ctx);
	uint64_t began = now_ns();
	struct failures failures = {0};
	int err;

	while (is_running(&j) && !interrupted) {
		show_progress(&j, first->done.v, (double)(now_ns() - began) / 1e9);
		nanosleep(&pause, NULL);
		err = look(ctx, &rq, &r, &failures);
		if (err == -EAGAIN)
			continue;
		/* A daemon that doesn't know the question answers with another job. */
		if ((err == 1 && r.error == -ENOENT) ||
		    (!err && (r.job.id.v != first->id.v || r.job.kind.v != first->kind.v)))
			return lost_sight(ctx, first, worker);
		if (err) {
			wipe_progress();
			return explain(ctx, &r, err);
		}
		j = r.job;
	}
	if (is_running(&j))
		return goes_on(first);
	wipe_progress();
	return end_of(&j);
}

static enum exit_code memory_goes_on(struct ctl_num used, struct ctl_num limit, const char *why)
{
	wipe_progress();
	fprintf(stderr,
		"zswapctl: %s; %s are in use, above the limit of %s, and pages still leave\n"
		"memory. 'zswapctl status' shows how far it is.\n",
		why, cell_bytes(used).s, cell_bytes(limit).s);
	return EXIT_GOES_ON;
}

static void show_memory(struct ctl_num used, struct ctl_num limit)
{
	if (isatty(STDERR_FILENO))
		fprintf(stderr, "\r%s in use, the limit is %s\x1b[K", cell_bytes(used).s,
			cell_bytes(limit).s);
}

/* An answer with both numbers: 0.  Else tells why not, and *ret_code is how to end. */
static int look_at_memory(struct context *ctx, struct ctl_num *ret_used, struct ctl_num *ret_limit,
			  enum exit_code *ret_code, struct failures *failures)
{
	const struct ctl_request rq = {.cmd = NLPROTO_CMD_STATS};
	static struct ctl_reply r;
	int err = look(ctx, &rq, &r, failures);

	if (err == -EAGAIN)
		return err;
	if (err) {
		wipe_progress();
		*ret_code = explain(ctx, &r, err);
		return err;
	}
	*ret_used = ctl_stats_get(&r.stats, "memory_used_bytes");
	*ret_limit = ctl_stats_get(&r.stats, "memory_limit_bytes");
	if (ret_used->known && ret_limit->known)
		return 0;
	wipe_progress();
	fprintf(stderr, "zswapctl: how much memory is in use could not be read\n");
	*ret_code = EXIT_PARTIAL;
	return -ENODATA;
}

enum exit_code follow_memory(struct context *ctx)
{
	const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000l};
	struct ctl_num used, limit;
	uint64_t least = UINT64_MAX, moved = now_ns();
	struct failures failures = {0};
	bool waited = false;
	enum exit_code code;
	int err;

	while (true) {
		err = look_at_memory(ctx, &used, &limit, &code, &failures);
		if (err && err != -EAGAIN)
			return code;
		if (!err && used.v <= limit.v)
			break;
		waited = true;
		if (!err && used.v < least) {
			least = used.v;
			moved = now_ns();
		}
		if (!err && interrupted)
			return memory_goes_on(used, limit, "interrupted");
		if (!err && now_ns() - moved > STILL_NS)
			return memory_goes_on(used, limit, "nothing has moved for a while");
		if (!err)
			show_memory(used, limit);
		nanosleep(&pause, NULL);
	}
	wipe_progress();
	if (waited)
		printf("%s of memory are in use, within the limit of %s\n", cell_bytes(used).s,
		       cell_bytes(limit).s);
	return EXIT_OK;
}

/* Starts the job of @rq and, unless told otherwise, watches it. */
static enum exit_code start_job(struct context *ctx, const struct ctl_request *rq, bool wait)
{
	static struct ctl_reply r;
	char name[PROGRESS_NAME_MAX];
	enum exit_code code;
	struct ctl_job job;

	if (wait)
		catch_interrupt();
	code = request(ctx, rq, &r);
	if (code != EXIT_OK)
		return code;
	job = r.job;
	if (!job.known) {
		fprintf(stderr, "zswapctl: zswapd does not say which job it has begun\n");
		return EXIT_PROTOCOL;
	}
	if (wait)
		return follow_job(ctx, &job);
	progress_name(name, &job);
	printf("%s: begun\n", name);
	return EXIT_OK;
}

static enum exit_code plain_job(struct context *ctx, const struct command *self, int argc,
				char **argv, enum nlproto_cmd cmd)
{
	static int no_wait;
	static const struct option longopts[] = {
		{"no-wait", no_argument, &no_wait, 1},
		CMD_COMMON_LONG,
	};
	struct ctl_request rq = {.cmd = cmd};
	enum exit_code code;

	if (!cmd_options(ctx, self, argc, argv, longopts, NULL, 0, 1, &code))
		return code;
	if (argc > optind && cmd != NLPROTO_CMD_WRITEBACK)
		return usage(self->name, "'%s' is one argument too many", argv[optind]);
	if (argc > optind) {
		rq.bytes.known = true;
		if (size_parse(argv[optind], 0, &rq.bytes.v) < 0 || !rq.bytes.v)
			return usage(self->name, "'%s' is no size, such as 64M", argv[optind]);
	}
	return start_job(ctx, &rq, !no_wait);
}

enum exit_code cmd_writeback(struct context *ctx, const struct command *self, int argc, char **argv)
{
	return plain_job(ctx, self, argc, argv, NLPROTO_CMD_WRITEBACK);
}

enum exit_code cmd_compact(struct context *ctx, const struct command *self, int argc, char **argv)
{
	return plain_job(ctx, self, argc, argv, NLPROTO_CMD_COMPACT);
}

enum exit_code cmd_check(struct context *ctx, const struct command *self, int argc, char **argv)
{
	return plain_job(ctx, self, argc, argv, NLPROTO_CMD_CHECK);
}

enum exit_code cmd_job(struct context *ctx, const struct command *self, int argc, char **argv)
{
	static int cancel, wait;
	static const struct option longopts[] = {
		{"cancel", no_argument, &cancel, 1},
		{"wait", no_argument, &wait, 1},
		CMD_COMMON_LONG,
	};
	static struct ctl_reply r;
	char text[PROGRESS_MAX];
	struct ctl_request rq = {.cmd = NLPROTO_CMD_JOB};
	struct ctl_job job;
	enum exit_code code;

	if (!cmd_options(ctx, self, argc, argv, longopts, NULL, 0, 0, &code))
		return code;
	if (cancel && wait)
		return usage("job", "--cancel and --wait exclude each other");
	if (cancel)
		rq.cmd = NLPROTO_CMD_CANCEL;
	if (wait)
		catch_interrupt();
	code = request(ctx, &rq, &r);
	if (code != EXIT_OK)
		return code;
	job = r.job;
	/* One that has ended by now has an outcome as well, whoever asks. */
	if (!is_running(&job) && !cancel)
		return end_of(&job);
	if (wait)
		return follow_job(ctx, &job);
	if (!cancel)
		progress_line(text, 79, &job, 0, 0);
	else
		progress_result(text, &job);
	printf("%s\n", text);
	return EXIT_OK;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * upgrade: the daemon answers that it will, and what comes of it is seen from outside.  Its
 * supervisor executes the new program, which prepares a standby; then another worker answers for
 * the device.  If that program fails the old worker goes on, without a supervisor.
 */
#include "common/util.h"
#include "ctl/cell.h"
#include "ctl/cmd.h"
#include "ctl/render.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define ANSWER_MS 25000 /* the new program is asked what it is, and may have to be read first */
#define LOOK_MS	  50
#define WAIT_NS	  30000000000ull
#define LOST_NS	  10000000000ull /* a program that is to adopt the worker has come long before */

static struct ctl_reply reply;

static enum exit_code begin(struct context *ctx)
{
	const struct ctl_request rq = {.cmd = NLPROTO_CMD_UPGRADE, .timeout_ms = ANSWER_MS};
	int err = request_quietly(ctx, &rq, &reply);

	if (err == -ETIMEDOUT) {
		fprintf(stderr,
			"zswapctl: zswapd (%s) did not say within %d s what becomes of the "
			"upgrade; 'zswapctl status' shows who serves\n",
			ctx->device, ANSWER_MS / 1000);
		return EXIT_NO_DAEMON;
	}
	if (err)
		return explain(ctx, &reply, err);
	for (size_t i = 0; i < reply.lines.n; i++) {
		put_printable(stdout, reply.lines.line[i]);
		fputc('\n', stdout);
	}
	fflush(stdout);
	return EXIT_OK;
}

static const char *version(const struct ctl_status *st)
{
	return st->daemon_version.known ? st->daemon_version.s : "?";
}

static void tell_success(const struct ctl_status *before, const struct ctl_status *now)
{
	fputs("zswapd ", stdout);
	put_printable(stdout, version(before));
	fputs(" -> ", stdout);
	put_printable(stdout, version(now));
	printf(": worker %" PRIu64 " took over from %" PRIu64, now->pid.v, before->pid.v);
	if (now->takeover_ns.known)
		printf(" after %s", cell_time(now->takeover_ns).s);
	putchar('\n');
}

/* The old worker and the supervisor have died together, while one followed the other. */
static enum exit_code tell_loss(const struct ctl_status *before, const struct ctl_status *now)
{
	fprintf(stderr,
		"zswapctl: worker %" PRIu64 " serves, but has taken nothing over from %" PRIu64
		", which died meanwhile; see the log\n",
		now->pid.v, before->pid.v);
	return EXIT_REFUSED;
}

static enum exit_code tell_failure(const struct ctl_status *st)
{
	fprintf(stderr, "zswapctl: the new program has failed; worker %" PRIu64 ", version ",
		st->pid.v);
	put_printable(stderr, version(st));
	fputs(", goes on without a supervisor.  See the log, and start zswapd again: it adopts "
	      "this worker.\n",
	      stderr);
	return EXIT_REFUSED;
}

static enum exit_code tell_delay(const struct ctl_status *st, const char *why)
{
	fprintf(stderr,
		"zswapctl: %s; worker %" PRIu64 " still serves.  The upgrade goes on: 'zswapctl "
		"status' shows who serves, and the log what holds it up.\n",
		why, st->pid.v);
	return EXIT_GOES_ON;
}

static enum exit_code follow(struct context *ctx, const struct ctl_status *before)
{
	const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000l};
	uint64_t began = now_ns(), now, supervised = began;
	struct ctl_status last = *before;
	int err = 0;

	while ((now = now_ns()) - began < WAIT_NS) {
		if (was_interrupted())
			return tell_delay(&last, "interrupted");
		nanosleep(&pause, NULL);
		err = ask_quietly(ctx, NLPROTO_CMD_STATUS, &reply);
		/* Between two workers nobody answers. */
		if (err)
			continue;
		last = reply.status;
		if (last.pid.known && last.pid.v != before->pid.v) {
			if (!last.takeover.known)
				return tell_loss(before, &last);
			tell_success(before, &last);
			return EXIT_OK;
		}
		if (!last.supervisor.known || last.supervisor.v)
			supervised = now;
		if (now - supervised > LOST_NS)
			return tell_failure(&last);
	}
	return err ? explain(ctx, &reply, err)
		   : tell_delay(&last, "nobody has taken over for half a minute");
}

enum exit_code cmd_upgrade(struct context *ctx, const struct command *self, int argc, char **argv)
{
	static int no_wait;
	static const struct option longopts[] = {
		{"no-wait", no_argument, &no_wait, 1},
		CMD_COMMON_LONG,
	};
	static struct ctl_status before;
	enum exit_code code;

	if (!cmd_options(ctx, self, argc, argv, longopts, NULL, 0, 0, &code))
		return code;
	code = ask(ctx, NLPROTO_CMD_STATUS, &reply);
	if (code != EXIT_OK)
		return code;
	before = reply.status;
	if (!no_wait)
		catch_interrupt();
	code = begin(ctx);
	if (code != EXIT_OK || no_wait)
		return code;
	if (before.pid.known)
		return follow(ctx, &before);
	fprintf(stderr, "zswapctl: which worker serves could not be read\n");
	return EXIT_PARTIAL;
}

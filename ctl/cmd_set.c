// SPDX-License-Identifier: GPL-2.0-or-later
/* get, set, reload: the options of a daemon that runs. */
#include "common/util.h"
#include "ctl/cmd.h"
#include "ctl/render.h"

#include <stdio.h>
#include <string.h>

static struct ctl_reply reply;

static void put_lines(const struct ctl_lines *lines)
{
	for (size_t i = 0; i < lines->n; i++) {
		put_printable(stdout, lines->line[i]);
		fputc('\n', stdout);
	}
}

/* What was asked for is one value, so that a script needs no parsing. */
static enum exit_code show_one(const char *key, bool verbose, bool json)
{
	const struct ctl_option *o = ctl_options_get(&reply.options, key);

	if (!o || !o->value.known) {
		fprintf(stderr, "zswapctl: the value of %s could not be read\n", key);
		return EXIT_PARTIAL;
	}
	if (json) {
		render_options_json(stdout, &reply.options);
	} else if (verbose) {
		render_options_verbose(stdout, &reply.options);
	} else {
		put_printable(stdout, o->in_force.known ? o->in_force.s : o->value.s);
		fputc('\n', stdout);
	}
	return EXIT_OK;
}

enum exit_code cmd_get(struct context *ctx, const struct command *self, int argc, char **argv)
{
	static int json, verbose;
	static const struct option longopts[] = {
		{"json", no_argument, &json, 1},
		{"verbose", no_argument, &verbose, 1},
		CMD_COMMON_LONG,
	};
	struct ctl_request rq = {.cmd = NLPROTO_CMD_GET};
	enum exit_code code;

	if (!cmd_options(ctx, self, argc, argv, longopts, NULL, 0, 1, &code))
		return code;
	if (json && verbose)
		return usage("get", "--json and --verbose exclude each other");
	rq.key = argc > optind ? argv[optind] : NULL;
	code = request(ctx, &rq, &reply);
	if (code != EXIT_OK)
		return code;
	if (rq.key)
		return show_one(rq.key, verbose, json);
	if (json)
		render_options_json(stdout, &reply.options);
	else if (verbose)
		render_options_verbose(stdout, &reply.options);
	else
		render_options_text(stdout, &reply.options);
	if (!reply.options.unreadable)
		return EXIT_OK;
	fprintf(stderr, "zswapctl: %zu options could not be read\n", reply.options.unreadable);
	return EXIT_PARTIAL;
}

/* The job that is there now; one of number 0 if there is none. */
static struct ctl_job job_now(struct context *ctx)
{
	if (ask_quietly(ctx, NLPROTO_CMD_JOB, &reply) != 0 || !reply.job.known)
		return (struct ctl_job){0};
	return reply.job;
}

/*
 * Lowering the limit takes time.  The daemon shows it as a job, which may be over by now: then its
 * number tells that it is none of before.  But it shows one job at a time, so another may hide it:
 * in the end it is the memory in use that counts.
 */
static enum exit_code follow_shrinking(struct context *ctx, const struct ctl_job *before, bool wait)
{
	struct ctl_job job = job_now(ctx);
	bool runs = job.state.known && job.state.v == NLPROTO_JOB_STATE_RUNNING;
	bool shrinks = job.known && job.kind.v == NLPROTO_JOB_SHRINK;
	enum exit_code code = EXIT_OK;

	if (!wait && runs) {
		printf("pages leave memory in the background; %s shows how far it is\n",
		       shrinks ? "'zswapctl job'" : "'zswapctl status'");
		return EXIT_OK;
	}
	if (shrinks && (runs || job.id.v != before->id.v))
		code = follow_job(ctx, &job);
	if (!wait || (code != EXIT_OK && code != EXIT_PARTIAL))
		return code;
	return follow_memory(ctx);
}

/* Says what could be given: asking for it takes no root. */
static enum exit_code value_is_missing(struct context *ctx, const char *key)
{
	const struct ctl_request rq = {.cmd = NLPROTO_CMD_GET, .key = key};
	enum exit_code code = usage("set", "the value for %s is missing", key);

	if (need_device(ctx) == EXIT_OK && request_quietly(ctx, &rq, &reply) == 0) {
		fflush(stderr);
		render_options_verbose(stderr, &reply.options);
	}
	return code;
}

enum exit_code cmd_set(struct context *ctx, const struct command *self, int argc, char **argv)
{
	static int no_wait;
	static const struct option longopts[] = {
		{"no-wait", no_argument, &no_wait, 1},
		CMD_COMMON_LONG,
	};
	struct ctl_request rq = {.cmd = NLPROTO_CMD_SET};
	struct ctl_job before;
	enum exit_code code;

	if (!cmd_options(ctx, self, argc, argv, longopts, NULL, 1, 2, &code))
		return code;
	if (argc - optind < 2)
		return value_is_missing(ctx, argv[optind]);
	rq.key = argv[optind];
	rq.value = argv[optind + 1];
	code = need_device(ctx);
	if (code != EXIT_OK)
		return code;
	if (!no_wait)
		catch_interrupt();
	before = job_now(ctx);
	code = request(ctx, &rq, &reply);
	if (code != EXIT_OK)
		return code;
	put_lines(&reply.lines);
	fflush(stdout);
	return strcmp(rq.key, "memory.limit") ? EXIT_OK : follow_shrinking(ctx, &before, !no_wait);
}

enum exit_code cmd_reload(struct context *ctx, const struct command *self, int argc, char **argv)
{
	static const struct option longopts[] = {CMD_COMMON_LONG};
	struct ctl_request rq = {.cmd = NLPROTO_CMD_RELOAD};
	enum exit_code code;

	if (!cmd_options(ctx, self, argc, argv, longopts, NULL, 0, 0, &code))
		return code;
	code = request(ctx, &rq, &reply);
	if (code != EXIT_OK)
		return code;
	put_lines(&reply.lines);
	if (!reply.lines.n)
		printf("nothing has changed\n");
	if (reply.partly.known && reply.partly.v) {
		fflush(stdout);
		fprintf(stderr, "zswapctl: not all of it could be applied; correct the files and "
				"reload again\n");
		return EXIT_REFUSED;
	}
	if (!reply.lines.unreadable)
		return EXIT_OK;
	fprintf(stderr, "zswapctl: %zu lines could not be read\n", reply.lines.unreadable);
	return EXIT_PARTIAL;
}

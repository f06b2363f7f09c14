// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * status, stats, version: one question, one text.  What the answer lacks is shown as unknown and
 * told by the exit code, never by leaving out the rest.
 */
#include "common/util.h"
#include "ctl/cmd.h"
#include "ctl/render.h"

#include <stdio.h>

/* Of some size, and one after the other is enough. */
static struct ctl_reply status_reply, stats_reply;

enum exit_code cmd_status(struct context *ctx, const struct command *self, int argc, char **argv)
{
	static int verbose;
	static const struct option longopts[] = {
		{"verbose", no_argument, &verbose, 1},
		CMD_COMMON_LONG,
	};
	enum exit_code code, stats_code;

	if (!cmd_options(ctx, self, argc, argv, longopts, NULL, 0, 0, &code))
		return code;
	code = ask(ctx, NLPROTO_CMD_STATUS, &status_reply);
	if (code != EXIT_OK)
		return code;
	stats_code = ask(ctx, NLPROTO_CMD_STATS, &stats_reply);
	render_status(stdout, status_reply.device, &status_reply.status, &stats_reply.stats,
		      verbose);
	return stats_code == EXIT_OK && !stats_reply.stats.unreadable ? EXIT_OK : EXIT_PARTIAL;
}

enum exit_code cmd_stats(struct context *ctx, const struct command *self, int argc, char **argv)
{
	static int json, prometheus;
	static const struct option longopts[] = {
		{"json", no_argument, &json, 1},
		{"prometheus", no_argument, &prometheus, 1},
		CMD_COMMON_LONG,
	};
	enum exit_code code;

	if (!cmd_options(ctx, self, argc, argv, longopts, NULL, 0, 0, &code))
		return code;
	if (json && prometheus)
		return usage("stats", "--json and --prometheus exclude each other");
	code = ask(ctx, NLPROTO_CMD_STATS, &stats_reply);
	if (code != EXIT_OK)
		return code;
	if (json)
		render_stats_json(stdout, &stats_reply.stats);
	else if (prometheus)
		render_stats_prometheus(stdout, stats_reply.device, &stats_reply.stats);
	else
		render_stats_text(stdout, &stats_reply.stats);
	if (!stats_reply.stats.unreadable)
		return EXIT_OK;
	fprintf(stderr, "zswapctl: %zu counters could not be read\n", stats_reply.stats.unreadable);
	return EXIT_PARTIAL;
}

enum exit_code cmd_version(struct context *ctx, const struct command *self, int argc, char **argv)
{
	static const struct option longopts[] = {CMD_COMMON_LONG};
	enum exit_code code;

	if (!cmd_options(ctx, self, argc, argv, longopts, NULL, 0, 0, &code))
		return code;
	printf("zswapctl %s, protocol %d\n", ZSWAPD_VERSION, NLPROTO_VERSION);
	code = ask(ctx, NLPROTO_CMD_VERSION, &status_reply);
	if (code == EXIT_OK)
		render_version(stdout, &status_reply.status);
	return code;
}

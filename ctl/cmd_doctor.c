// SPDX-License-Identifier: GPL-2.0-or-later
/* doctor: what the daemon answers is only a part of what is looked at, so its silence ends nothing.
 */
#include "common/util.h"
#include "ctl/cmd.h"
#include "ctl/doctor.h"
#include "ctl/find.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct ctl_reply status_reply, stats_reply;

static void get_option(struct context *ctx, const char *key, struct ctl_text *ret)
{
	const struct ctl_request rq = {.cmd = NLPROTO_CMD_GET, .key = key};
	const struct ctl_option *o;

	if (request_quietly(ctx, &rq, &stats_reply) != 0)
		return;
	o = ctl_options_get(&stats_reply.options, key);
	if (o)
		*ret = o->value;
}

/* Why STATUS brought nothing.  VERSION is answered whatever the protocol. */
static void explain_silence(struct context *ctx, struct doctor_machine *m, int err)
{
	const struct ctl_status *st = &stats_reply.status;

	if (err == -ECONNREFUSED)
		snprintf(m->silence, sizeof(m->silence), "nobody answers for device '%s'",
			 ctx->device);
	else
		error_text(ctx, &status_reply, err, m->silence, sizeof(m->silence));
	if ((err != 1 && err != -EPROTO) ||
	    ask_quietly(ctx, NLPROTO_CMD_VERSION, &stats_reply) != 0 || !st->protocol.known ||
	    st->protocol.v == NLPROTO_VERSION)
		return;
	m->other_protocol = true;
	snprintf(m->silence, sizeof(m->silence),
		 "zswapd %.63s speaks version %" PRIu64 " of the protocol, zswapctl " ZSWAPD_VERSION
		 " version %d",
		 st->daemon_version.known ? st->daemon_version.s : "?", st->protocol.v,
		 NLPROTO_VERSION);
}

/* Everything that the daemon may know; what fails is left unknown. */
static void ask_daemon(struct context *ctx, struct doctor_machine *m)
{
	int err = ask_quietly(ctx, NLPROTO_CMD_STATUS, &status_reply);

	if (err) {
		explain_silence(ctx, m, err);
		return;
	}
	m->status = &status_reply.status;
	get_option(ctx, "swap.discard", &m->swap_discard);
	get_option(ctx, "swap.enable", &m->swap_enable);
	if (ask_quietly(ctx, NLPROTO_CMD_STATS, &stats_reply) == 0)
		m->stats = &stats_reply.stats;
}

enum exit_code cmd_doctor(struct context *ctx, const struct command *self, int argc, char **argv)
{
	static int quiet;
	static const struct option longopts[] = {
		{"quiet", no_argument, &quiet, 1},
		CMD_COMMON_LONG,
	};
	static struct doctor_report report;
	/* For tests, and for looking at another system's tree. */
	const char *root = getenv("ZSWAPD_ROOT");
	struct doctor_machine m = {.root = root ? root : "", .run_dir = ctx->run_dir};
	enum exit_code code;

	if (!cmd_options(ctx, self, argc, argv, longopts, NULL, 0, 0, &code))
		return code;
	code = need_device(ctx);
	if (code != EXIT_OK)
		return code;
	strcpy(m.device, ctx->device);
	ask_daemon(ctx, &m);
	doctor_run(&m, &report);
	doctor_print(stdout, &m, &report, quiet);
	if (report.count[DOCTOR_FINDING])
		return EXIT_FOUND;
	return report.count[DOCTOR_UNSEEN] ? EXIT_PARTIAL : EXIT_OK;
}

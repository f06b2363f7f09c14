// SPDX-License-Identifier: GPL-2.0-or-later
/* events: one line for each, as they come, until Ctrl-C, --count or --seconds ends it. */
#include "common/util.h"
#include "ctl/cmd.h"
#include "ctl/events.h"
#include "ctl/find.h"
#include "ctl/render.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Less than what ctl_events_next() must be called in. */
#define ROUND_MS 1000

struct follow {
	bool json;
	uint64_t left;	   /* events; UINT64_MAX: no limit */
	uint64_t deadline; /* ns; UINT64_MAX: none */
};

static enum exit_code parse_limit(const char *what, const char *text, uint64_t max, uint64_t *ret)
{
	char *end;
	unsigned long long v;

	if (!text)
		return EXIT_OK;
	errno = 0;
	v = strtoull(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || errno || !v || v > max)
		return usage("events", "'%s' is no number of %s", text, what);
	*ret = v;
	return EXIT_OK;
}

static void tell_lost(uint64_t lost, bool json)
{
	if (!lost)
		return;
	if (json)
		printf("{\"event\": \"lost\", \"count\": %" PRIu64 "}\n", lost);
	else
		fprintf(stderr, "zswapctl: %" PRIu64 " events were lost here\n", lost);
}

/* 0, or what ctl_events_next() failed with. */
static int follow(struct ctl_events *e, struct follow *f)
{
	struct ctl_event event;
	uint64_t lost, now;
	int r;

	while (f->left && (now = now_ns()) < f->deadline) {
		r = ctl_events_next(e,
				    (int)min_u64(ROUND_MS, (f->deadline - now + 999999) / 1000000),
				    &event, &lost);
		if (r == -EPROTO || r == -EINTR)
			continue;
		if (r < 0)
			return r;
		tell_lost(lost, f->json);
		if (r == 1) {
			f->left -= f->left != UINT64_MAX;
			if (f->json)
				render_event_json(stdout, &event);
			else
				render_event_text(stdout, &event);
		}
		/* Who reads this wants it now, and a reader that has gone ends it. */
		if (fflush(stdout) == EOF)
			return 0;
	}
	return 0;
}

static enum exit_code run(struct context *ctx, struct follow *f)
{
	static struct ctl_reply r;
	struct ctl_events *e;
	int err;

	err = ctl_events_new(&e, ctl_find_port(ctx->run_dir, ctx->device), 0, ctx->device,
			     r.error_text);
	if (err)
		return explain(ctx, &r, err);
	err = follow(e, f);
	ctl_events_free(e);
	if (err == -ECONNREFUSED) {
		fprintf(stderr, "zswapctl: zswapd (%s) has ended\n", ctx->device);
		return EXIT_NO_DAEMON;
	}
	r.error_text[0] = '\0';
	return err ? explain(ctx, &r, err) : EXIT_OK;
}

enum exit_code cmd_events(struct context *ctx, const struct command *self, int argc, char **argv)
{
	static int json;
	static const struct option longopts[] = {
		{"json", no_argument, &json, 1},
		{"count", required_argument, NULL, CMD_VALUE(0)},
		{"seconds", required_argument, NULL, CMD_VALUE(1)},
		CMD_COMMON_LONG,
	};
	struct follow f = {.left = UINT64_MAX, .deadline = UINT64_MAX};
	const char *values[2] = {NULL, NULL};
	uint64_t seconds = 0;
	enum exit_code code;

	if (!cmd_options(ctx, self, argc, argv, longopts, values, 0, 0, &code))
		return code;
	code = parse_limit("events", values[0], UINT64_MAX - 1, &f.left);
	if (code == EXIT_OK)
		code = parse_limit("seconds", values[1], 1000000000, &seconds);
	if (code == EXIT_OK)
		code = need_device(ctx);
	if (code != EXIT_OK)
		return code;
	f.json = json;
	if (seconds)
		f.deadline = now_ns() + seconds * 1000000000ull;
	return run(ctx, &f);
}

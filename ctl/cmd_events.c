// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * events: one line for each, as they come, until Ctrl-C, --count or --seconds ends it.
 *
 * A daemon that goes is waited for, since it may be restarted: it is looked for again, maybe at
 * another port, and followed anew.  What happened meanwhile nobody has counted, so the gap is told.
 */
#include "common/util.h"
#include "ctl/cmd.h"
#include "ctl/events.h"
#include "ctl/find.h"
#include "ctl/json.h"
#include "ctl/render.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Less than what ctl_events_next() must be called in. */
#define ROUND_MS 1000

/* How long a daemon that has gone is waited for, and how often it is looked for. */
#define AWAY_NS	     120000000000ull
#define AWAY_LOOK_MS 500

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

/*
 * Nobody can say what happened in between, but for how this worker came.  Its event was sent before
 * it was known who follows, so that only the group has it: then @told.
 */
static void tell_restart(struct context *ctx, bool json, bool told)
{
	static struct ctl_reply r;
	struct ctl_text how = {0};

	if (told)
		how = (struct ctl_text){true, "another worker has taken over"};
	else if (ask_quietly(ctx, NLPROTO_CMD_STATUS, &r) == 0)
		how = r.status.takeover;
	if (json) {
		printf("{\"event\": \"restarted\", \"device\": \"%s\", \"text\": ", ctx->device);
		json_text(stdout, &how);
		puts("}");
		return;
	}
	fprintf(stderr, "zswapctl: zswapd (%s): ", ctx->device);
	put_printable(stderr, how.known ? how.s : "it was started anew");
	fputs("; there is a gap here\n", stderr);
}

/* 0, or what ctl_events_next() failed with. */
static int follow(struct context *ctx, struct ctl_events *e, struct follow *f)
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
		if (ctl_events_restarted(e))
			tell_restart(ctx, f->json,
				     r == 1 && event.kind.v == NLPROTO_EVENT_TAKEOVER);
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

/* Not there, or not there yet: while it is away, a stranger may have its port. */
static bool is_away(int err)
{
	return err == -ECONNREFUSED || err == -ETIMEDOUT || err == -EPERM;
}

/* As ctl_events_new(), but for a daemon that was there and may come back. */
static int find_again(struct context *ctx, const struct follow *f, struct ctl_events **ret,
		      char *error_text)
{
	const struct timespec pause = {.tv_nsec = AWAY_LOOK_MS * 1000000l};
	uint64_t until = min_u64(now_ns() + AWAY_NS, f->deadline);
	int err;

	fprintf(stderr, "zswapctl: zswapd (%s) has ended; waiting for it to come back\n",
		ctx->device);
	do {
		nanosleep(&pause, NULL);
		err = ctl_events_new(ret, ctl_find_port(ctx->run_dir, ctx->device), 0, ctx->device,
				     error_text);
	} while (is_away(err) && now_ns() < until);
	return err;
}

static enum exit_code run(struct context *ctx, struct follow *f)
{
	static struct ctl_reply r;
	struct ctl_events *e;
	int err;

	err = ctl_events_new(&e, ctl_find_port(ctx->run_dir, ctx->device), 0, ctx->device,
			     r.error_text);
	while (!err) {
		err = follow(ctx, e, f);
		ctl_events_free(e);
		r.error_text[0] = '\0';
		if (!err)
			return EXIT_OK;
		if (!is_away(err))
			break;
		err = find_again(ctx, f, &e, r.error_text);
		if (!err)
			tell_restart(ctx, f->json, false);
	}
	return explain(ctx, &r, err);
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

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * top: samples come from ctl/top_feed.h, the picture from ctl/top_view.h, and it is shown by
 * ctl/top_screen.h.  Here is the loop between them, which ends with a key, a signal, or the
 * terminal.  Signals are read as data, so that the terminal is given back before one takes effect.
 */
#include "common/util.h"
#include "ctl/cmd.h"
#include "ctl/top_feed.h"
#include "ctl/top_model.h"
#include "ctl/top_screen.h"
#include "ctl/top_view.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>

#define INTERVAL_MIN 0.1
#define INTERVAL_MAX 60.0

#define ESCAPE	     27

struct top {
	const char *device;
	double interval_s;
	struct top_feed *feed;
	struct top_model model;
	struct top_sample sample;
	int signal_fd;
	int signal; /* that ended it, 0 if none did */
	bool end;
};

static enum exit_code parse_interval(const char *text, double *ret)
{
	char *end;
	double v = strtod(text, &end);

	if (end == text || *end || !(v >= INTERVAL_MIN && v <= INTERVAL_MAX))
		return usage("top", "'%s' is no interval: %g to %g seconds", text, INTERVAL_MIN,
			     INTERVAL_MAX);
	*ret = v;
	return EXIT_OK;
}

static void draw(struct top *t)
{
	struct canvas c;
	int width, height;

	top_screen_size(&width, &height);
	if (canvas_init(&c, width, height, top_screen_utf8()) < 0)
		return; /* the next one may have more luck */
	top_view_draw(&c, &t->model, t->device, t->interval_s);
	top_screen_draw(&c);
	canvas_deinit(&c);
}

static void take_keys(struct top *t)
{
	int key;

	while ((key = top_screen_key()) != SCREEN_NO_KEY) {
		if (key == 'q' || key == 'Q' || key == ESCAPE)
			t->end = true;
		else if (key == SCREEN_REDRAW)
			top_screen_redraw();
		else
			top_feed_hurry(t->feed);
	}
}

static void take_signal(struct top *t)
{
	struct signalfd_siginfo si;

	if (read(t->signal_fd, &si, sizeof(si)) != sizeof(si))
		return;
	if (si.ssi_signo == SIGWINCH) {
		/* What terminals make of their old content when they change is up to them. */
		top_screen_redraw();
		return;
	}
	t->signal = (int)si.ssi_signo;
	t->end = true;
}

static void loop(struct top *t)
{
	struct pollfd pfd[] = {
		{.fd = STDIN_FILENO, .events = POLLIN},
		{.fd = t->signal_fd, .events = POLLIN},
		{.fd = top_feed_fd(t->feed), .events = POLLIN},
	};

	while (!t->end) {
		draw(t);
		if (poll(pfd, ARRAY_SIZE(pfd), -1) < 0 && errno != EINTR)
			return;
		/* Also after Ctrl-Z and `fg`, which interrupt poll(). */
		take_keys(t);
		if (pfd[0].revents & (POLLHUP | POLLERR | POLLNVAL))
			return;
		if (pfd[1].revents)
			take_signal(t);
		if (top_feed_take(t->feed, &t->sample))
			top_model_take(&t->model, &t->sample);
	}
}

static enum exit_code open_screen(void)
{
	const char *term = getenv("TERM");
	int r = top_screen_open();

	if (r == -ENOTTY)
		return usage("top", "top needs a terminal; 'zswapctl status' shows as much once");
	if (r < 0)
		return usage("top",
			     "TERM=%s is no terminal that top can draw on; 'zswapctl status' shows "
			     "as much once",
			     term ? term : "");
	return EXIT_OK;
}

static enum exit_code run(struct context *ctx, struct top *t)
{
	enum exit_code code = open_screen();
	int r;

	if (code != EXIT_OK)
		return code;
	r = top_feed_start(&t->feed, ctx->run_dir, ctx->device,
			   (uint64_t)(t->interval_s * 1000000000.0));
	if (r == 0)
		loop(t);
	top_screen_close();
	top_feed_stop(t->feed);
	if (r == 0)
		return EXIT_OK;
	fprintf(stderr, "zswapctl: cannot start a thread: %s\n", strerror(-r));
	return EXIT_SYSTEM;
}

enum exit_code cmd_top(struct context *ctx, const struct command *self, int argc, char **argv)
{
	static const struct option longopts[] = {
		{"interval", required_argument, NULL, CMD_VALUE(0)},
		CMD_COMMON_LONG,
	};
	static struct top t = {.interval_s = 1};
	const char *values[1] = {NULL};
	enum exit_code code;
	sigset_t set;

	if (!cmd_options(ctx, self, argc, argv, longopts, values, 0, 0, &code))
		return code;
	code = values[0] ? parse_interval(values[0], &t.interval_s) : EXIT_OK;
	if (code == EXIT_OK)
		code = need_device(ctx);
	if (code != EXIT_OK)
		return code;
	t.device = ctx->device;
	top_model_init(&t.model);
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGQUIT);
	sigaddset(&set, SIGWINCH);
	sigprocmask(SIG_BLOCK, &set, NULL);
	t.signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (t.signal_fd < 0) {
		fprintf(stderr, "zswapctl: signalfd: %s\n", strerror(errno));
		return EXIT_SYSTEM;
	}
	code = run(ctx, &t);
	close_fd(t.signal_fd);
	if (t.signal) {
		/* Ends as the signal would have had it; ncurses may have set handlers. */
		signal(t.signal, SIG_DFL);
		raise(t.signal);
		sigprocmask(SIG_UNBLOCK, &set, NULL);
	}
	return code;
}

// SPDX-License-Identifier: GPL-2.0-or-later
#include "ctl/cmd.h"
#include "common/portfile.h"
#include "ctl/find.h"
#include "ctl/render.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* Between two workers nobody is there. */
#define AWAY_MS	   50
#define AWAY_LOOKS 20

static const char exit_help[] =
	"Exit codes:\n"
	"  0  done; doctor, check, job: nothing was found\n"
	"  1  wrong usage\n"
	"  2  the daemon is not there or does not answer\n"
	"  3  the answer is not understood, or does not come from zswapd\n"
	"  4  shown, but some values could not be read or looked at\n"
	"  5  the daemon refused, or a job or an upgrade failed or was cancelled\n"
	"  6  a system call or writing the output failed\n"
	"  7  doctor, check, job: something was found\n"
	"  8  not waited for to the end; the daemon goes on with what was begun\n";

#define COMMON_OPTIONS                                                                              \
	"  -d, --device NAME  the daemon that serves /dev/zswap/NAME; needed only if several run\n" \
	"  -h, --help         this text\n"

void cmd_help_all(void)
{
	printf("Usage: zswapctl [--device NAME] COMMAND [OPTIONS] [ARGUMENTS]\n\n"
	       "Shows and changes what zswapd does.\n\nCommands:\n");
	for (const struct command *c = commands; c->name; c++)
		printf("  %-10s %s\n", c->name, c->summary);
	printf("\nOptions:\n" COMMON_OPTIONS "  -V, --version      version of zswapctl\n\n"
	       "zswapctl COMMAND --help tells about one command.  Reading is open to every user,\n"
	       "changing anything needs root.\n\n%s",
	       exit_help);
}

static void help_one(const struct command *c)
{
	printf("Usage: zswapctl [--device NAME] %s%s%s\n\n%s\n\nOptions:\n" COMMON_OPTIONS "%s\n%s",
	       c->name, *c->args ? " " : "", c->args, c->summary, c->details, exit_help);
}

enum exit_code usage(const char *command, const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "zswapctl: ");
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, "\nTry: zswapctl %s%s--help\n", command, *command ? " " : "");
	return EXIT_USAGE;
}

/* Short options may stand in a cluster. */
enum exit_code cmd_bad_option(const char *command, int opt, char **argv)
{
	const char *fault = opt == ':' ? "needs a value" : "is unknown or takes no value";

	if (optopt > 0 && optopt < 128 && argv[optind - 1][1] != '-')
		return usage(command, "option '-%c' %s", optopt, fault);
	return usage(command, "option '%s' %s", argv[optind - 1], fault);
}

enum exit_code cmd_set_device(struct context *ctx, const char *name)
{
	if (!nlproto_name_ok(name))
		return usage("", "'%s' cannot be a device name", name);
	strcpy(ctx->device, name);
	return EXIT_OK;
}

/* True to go on; false: *ret_code is how to end. */
static bool take_option(struct context *ctx, const struct command *self, int opt, char **argv,
			const char **values, enum exit_code *ret_code)
{
	*ret_code = EXIT_OK;
	if (opt == 0)
		return true;
	if (opt >= CMD_VALUE(0)) {
		values[opt - CMD_VALUE(0)] = optarg;
		return true;
	}
	if (opt == 'd')
		*ret_code = cmd_set_device(ctx, optarg);
	else if (opt == 'h')
		help_one(self);
	else
		*ret_code = cmd_bad_option(self->name, opt, argv);
	return opt == 'd' && *ret_code == EXIT_OK;
}

bool cmd_options(struct context *ctx, const struct command *self, int argc, char **argv,
		 const struct option *longopts, const char **values, int min_args, int max_args,
		 enum exit_code *ret_code)
{
	int opt;

	optind = 0; /* glibc: start over, with the new argv */
	opterr = 0;
	/* Options end at the first argument, so that a value may be negative. */
	while ((opt = getopt_long(argc, argv, "+:d:h", longopts, NULL)) != -1)
		if (!take_option(ctx, self, opt, argv, values, ret_code))
			return false;
	if (argc - optind < min_args) {
		*ret_code = usage(self->name, "%s needs %s", self->name, self->args);
		return false;
	}
	if (argc - optind > max_args) {
		*ret_code =
			usage(self->name, "'%s' is one argument too many", argv[optind + max_args]);
		return false;
	}
	return true;
}

enum exit_code error_text(const struct context *ctx, const struct ctl_reply *r, int error,
			  char *buf, size_t size)
{
	const char *d = ctx->device;

	switch (error) {
	case 1:
		snprintf(buf, size, "zswapd (%s) refused: %s", d, r->error_text);
		return EXIT_REFUSED;
	case -ECONNREFUSED:
		snprintf(
			buf, size,
			"no zswapd for device '%s' is running here. Is the service started, is the "
			"name right (--device), is this its network namespace?",
			d);
		return EXIT_NO_DAEMON;
	case -ETIMEDOUT:
		snprintf(buf, size, "zswapd (%s) did not answer in full within %d s", d,
			 CTL_TIMEOUT_MS / 1000);
		return EXIT_NO_DAEMON;
	case -EPERM:
	case -EPROTO:
		snprintf(buf, size, "no usable answer for device '%s': %s", d,
			 r->error_text[0] ? r->error_text : strerror(-error));
		return EXIT_PROTOCOL;
	default:
		snprintf(buf, size, "cannot ask zswapd (%s): %s", d, strerror(-error));
		return EXIT_SYSTEM;
	}
}

enum exit_code explain(const struct context *ctx, const struct ctl_reply *r, int error)
{
	char text[NLPROTO_TEXT_MAX + sizeof(r->error_text)];
	enum exit_code code = error_text(ctx, r, error, text, sizeof(text));

	fputs("zswapctl: ", stderr);
	put_printable(stderr, text);
	fputc('\n', stderr);
	return code;
}

enum exit_code need_device(struct context *ctx)
{
	char choices[NLPROTO_TEXT_MAX];

	if (!ctx->device[0] && ctl_find_device(ctx->run_dir, ctx->device, choices))
		return usage("", "several devices are served, say which with --device: %s",
			     choices);
	return EXIT_OK;
}

int request_quietly(struct context *ctx, const struct ctl_request *rq, struct ctl_reply *r)
{
	struct ctl_request named = *rq;
	int err = 0;

	r->error_text[0] = '\0';
	named.device = ctx->device;
	if (!ctx->client)
		err = ctl_client_new(&ctx->client, ctl_find_port(ctx->run_dir, ctx->device), 0);
	if (!err)
		err = ctl_client_request(ctx->client, &named, r);
	if (err < 0) {
		/* Who asks again may find another worker at another port. */
		ctl_client_free(ctx->client);
		ctx->client = NULL;
	}
	return err;
}

int ask_quietly(struct context *ctx, enum nlproto_cmd cmd, struct ctl_reply *r)
{
	struct ctl_request rq = {.cmd = cmd};

	return request_quietly(ctx, &rq, r);
}

/* One that stops in order takes its port file with it. */
static bool was_killed(const struct context *ctx)
{
	uint32_t port;

	return portfile_read(ctx->run_dir, ctx->device, &port) == 0;
}

enum exit_code request(struct context *ctx, const struct ctl_request *rq, struct ctl_reply *r)
{
	const struct timespec pause = {.tv_nsec = AWAY_MS * 1000000l};
	enum exit_code code = need_device(ctx);
	int err;

	if (code != EXIT_OK)
		return code;
	err = request_quietly(ctx, rq, r);
	/* Nothing has been asked yet, so that it can be once more, of the next worker. */
	for (int i = 0; err == -ECONNREFUSED && was_killed(ctx) && i < AWAY_LOOKS; i++) {
		nanosleep(&pause, NULL);
		err = request_quietly(ctx, rq, r);
	}
	return err ? explain(ctx, r, err) : EXIT_OK;
}

enum exit_code ask(struct context *ctx, enum nlproto_cmd cmd, struct ctl_reply *r)
{
	struct ctl_request rq = {.cmd = cmd};

	return request(ctx, &rq, r);
}

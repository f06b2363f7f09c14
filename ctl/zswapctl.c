// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * zswapctl [OPTIONS] COMMAND [OPTIONS]
 *
 * A table of commands; each opens its own question to the daemon and renders the answer.  What the
 * answer lacks is shown as unknown and told by the exit code, never by leaving out the rest.
 */
#include "common/portfile.h"
#include "common/util.h"
#include "ctl/client.h"
#include "ctl/find.h"
#include "ctl/render.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum exit_code {
	EXIT_OK = 0,
	EXIT_USAGE = 1,
	EXIT_NO_DAEMON = 2,
	EXIT_PROTOCOL = 3,
	EXIT_PARTIAL = 4,
	EXIT_REFUSED = 5,
	EXIT_SYSTEM = 6,
};

static const char exit_help[] = "Exit codes:\n"
				"  0  done\n"
				"  1  wrong usage\n"
				"  2  the daemon is not there or does not answer\n"
				"  3  the answer is not understood, or does not come from zswapd\n"
				"  4  shown, but some values could not be read\n"
				"  5  the daemon refused\n"
				"  6  a system call or writing the output failed\n";

struct context {
	char device[NLPROTO_NAME_MAX];
	const char *run_dir;
	struct ctl_client *client; /* opened by the first ask() */
};

struct command {
	const char *name;
	const char *args;
	const char *summary;
	const char *details;
	enum exit_code (*run)(struct context *ctx, int argc, char **argv);
};

static const struct command commands[];

#define COMMON_OPTIONS                                                                              \
	"  -d, --device NAME  the daemon that serves /dev/zswap/NAME; needed only if several run\n" \
	"  -h, --help         this text\n"

static void print_help(void)
{
	printf("Usage: zswapctl [--device NAME] COMMAND [OPTIONS]\n\n"
	       "Shows what zswapd does.\n\nCommands:\n");
	for (const struct command *c = commands; c->name; c++)
		printf("  %-10s %s\n", c->name, c->summary);
	printf("\nOptions:\n" COMMON_OPTIONS "  -V, --version      version of zswapctl\n\n"
	       "zswapctl COMMAND --help tells about one command.\n\n%s",
	       exit_help);
}

static void print_command_help(const struct command *c)
{
	printf("Usage: zswapctl [--device NAME] %s%s%s\n\n%s\n\nOptions:\n%s" COMMON_OPTIONS "\n%s",
	       c->name, *c->args ? " " : "", c->args, c->summary, c->details, exit_help);
}

/* @command: the one whose help is pointed at, may be empty. */
__attribute__((format(printf, 2, 3))) static enum exit_code usage(const char *command,
								  const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "zswapctl: ");
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, "\nTry: zswapctl %s%s--help\n", command, *command ? " " : "");
	return EXIT_USAGE;
}

/* @opt is what getopt_long() returned for it; short options may stand in a cluster. */
static enum exit_code bad_option(const char *command, int opt, char **argv)
{
	const char *fault = opt == ':' ? "needs a value" : "is unknown or takes no value";

	if (optopt > 0 && optopt < 128 && argv[optind - 1][1] != '-')
		return usage(command, "option '-%c' %s", optopt, fault);
	return usage(command, "option '%s' %s", argv[optind - 1], fault);
}

static enum exit_code set_device(struct context *ctx, const char *name)
{
	if (!nlproto_name_ok(name))
		return usage("", "'%s' cannot be a device name", name);
	strcpy(ctx->device, name);
	return EXIT_OK;
}

static enum exit_code explain(const struct context *ctx, const struct ctl_reply *r, int error)
{
	const char *d = ctx->device;

	switch (error) {
	case 1:
		fprintf(stderr, "zswapctl: zswapd (%s) refused: %s\n", d, r->error_text);
		return EXIT_REFUSED;
	case -ECONNREFUSED:
		fprintf(stderr,
			"zswapctl: no zswapd for device '%s' is running here. Is the service "
			"started, is the name right (--device), is this its network namespace?\n",
			d);
		return EXIT_NO_DAEMON;
	case -ETIMEDOUT:
		fprintf(stderr, "zswapctl: zswapd (%s) did not answer in full within %d s\n", d,
			CTL_TIMEOUT_MS / 1000);
		return EXIT_NO_DAEMON;
	case -EPERM:
	case -EPROTO:
		fprintf(stderr, "zswapctl: no usable answer for device '%s': %s\n", d,
			r->error_text[0] ? r->error_text : strerror(-error));
		return EXIT_PROTOCOL;
	default:
		fprintf(stderr, "zswapctl: cannot ask zswapd (%s): %s\n", d, strerror(-error));
		return EXIT_SYSTEM;
	}
}

/* Settles which daemon is meant, when no option did. */
static enum exit_code need_device(struct context *ctx)
{
	char choices[NLPROTO_TEXT_MAX];

	if (!ctx->device[0] && ctl_find_device(ctx->run_dir, ctx->device, choices))
		return usage("", "several devices are served, say which with --device: %s",
			     choices);
	return EXIT_OK;
}

/* A failure is told on stderr. */
static enum exit_code ask(struct context *ctx, enum nlproto_cmd cmd, struct ctl_reply *r)
{
	enum exit_code code = need_device(ctx);
	int err = 0;

	if (code != EXIT_OK)
		return code;
	r->error_text[0] = '\0';
	if (!ctx->client)
		err = ctl_client_new(&ctx->client, ctl_find_port(ctx->run_dir, ctx->device), 0);
	if (err == 0)
		err = ctl_client_ask(ctx->client, cmd, ctx->device, r);
	return err ? explain(ctx, r, err) : EXIT_OK;
}

/*
 * The options of a command: @longopts beyond the common ones set the int that they point to.
 * Leaves optind at the first argument.  False: *ret_code says how to end.
 */
static bool parse_options(struct context *ctx, const struct command *c, int argc, char **argv,
			  const struct option *longopts, enum exit_code *ret_code)
{
	int opt;

	optind = 0; /* glibc: start over, with the new argv */
	opterr = 0;
	while ((opt = getopt_long(argc, argv, "+:d:h", longopts, NULL)) != -1) {
		switch (opt) {
		case 0:
			break;
		case 'd':
			*ret_code = set_device(ctx, optarg);
			if (*ret_code != EXIT_OK)
				return false;
			break;
		case 'h':
			print_command_help(c);
			*ret_code = EXIT_OK;
			return false;
		default:
			*ret_code = bad_option(c->name, opt, argv);
			return false;
		}
	}
	if (optind < argc) {
		*ret_code = usage(c->name, "'%s' is one argument too many", argv[optind]);
		return false;
	}
	return true;
}

/* clang-format off */
#define COMMON_LONG                                   \
	{"device", required_argument, NULL, 'd'},     \
	{"help", no_argument, NULL, 'h'},             \
	{0}
/* clang-format on */

static const struct command *find_command(const char *name)
{
	for (const struct command *c = commands; c->name; c++)
		if (!strcmp(c->name, name))
			return c;
	return NULL;
}

/* Of some size, and one after the other is enough. */
static struct ctl_reply status_reply, stats_reply;

static enum exit_code run_status(struct context *ctx, int argc, char **argv)
{
	static const struct option longopts[] = {COMMON_LONG};
	enum exit_code code, stats_code;

	if (!parse_options(ctx, find_command("status"), argc, argv, longopts, &code))
		return code;
	code = ask(ctx, NLPROTO_CMD_STATUS, &status_reply);
	if (code != EXIT_OK)
		return code;
	stats_code = ask(ctx, NLPROTO_CMD_STATS, &stats_reply);
	render_status(stdout, status_reply.device, &status_reply.status, &stats_reply.stats);
	return stats_code == EXIT_OK && !stats_reply.stats.unreadable ? EXIT_OK : EXIT_PARTIAL;
}

static enum exit_code run_stats(struct context *ctx, int argc, char **argv)
{
	static int json, prometheus;
	static const struct option longopts[] = {
		{"json", no_argument, &json, 1},
		{"prometheus", no_argument, &prometheus, 1},
		COMMON_LONG,
	};
	enum exit_code code;

	if (!parse_options(ctx, find_command("stats"), argc, argv, longopts, &code))
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

static enum exit_code run_version(struct context *ctx, int argc, char **argv)
{
	static const struct option longopts[] = {COMMON_LONG};
	const struct ctl_status *st = &status_reply.status;
	enum exit_code code;

	if (!parse_options(ctx, find_command("version"), argc, argv, longopts, &code))
		return code;
	printf("zswapctl %s, protocol %d\n", ZSWAPD_VERSION, NLPROTO_VERSION);
	code = ask(ctx, NLPROTO_CMD_VERSION, &status_reply);
	if (code == EXIT_OK)
		render_version(stdout, st);
	return code;
}

static const struct command commands[] = {
	{"status", "", "One screen: device, tiers, hit rates, store, health.", "", run_status},
	{"stats", "[--json|--prometheus]", "All counters.",
	 "      --json         one flat object, {\"name\": value}; null if unreadable\n"
	 "      --prometheus   exposition format, names prefixed with zswapd_\n",
	 run_stats},
	{"version", "", "Versions of zswapctl and of the running daemon.", "", run_version},
	{0},
};

/* Options before the command.  Returns false if that was all; else optind is at the command. */
static bool parse_global(struct context *ctx, int argc, char **argv, enum exit_code *ret_code)
{
	static const struct option longopts[] = {
		{"version", no_argument, NULL, 'V'},
		COMMON_LONG,
	};
	int opt;

	opterr = 0;
	*ret_code = EXIT_OK;
	while ((opt = getopt_long(argc, argv, "+:d:hV", longopts, NULL)) != -1) {
		switch (opt) {
		case 'd':
			*ret_code = set_device(ctx, optarg);
			if (*ret_code != EXIT_OK)
				return false;
			break;
		case 'h':
			print_help();
			return false;
		case 'V':
			printf("zswapctl %s\n", ZSWAPD_VERSION);
			return false;
		default:
			*ret_code = bad_option("", opt, argv);
			return false;
		}
	}
	return true;
}

static enum exit_code run(struct context *ctx, int argc, char **argv)
{
	const struct command *c;
	enum exit_code code;

	if (!parse_global(ctx, argc, argv, &code))
		return code;
	if (optind == argc)
		return usage("", "no command given");
	c = find_command(argv[optind]);
	if (!c)
		return usage("", "unknown command '%s'", argv[optind]);
	return c->run(ctx, argc - optind, argv + optind);
}

int main(int argc, char **argv)
{
	const char *run_dir = getenv("ZSWAPD_RUN_DIR");
	struct context ctx = {.run_dir = run_dir && *run_dir ? run_dir : PORTFILE_DIR};
	enum exit_code code = run(&ctx, argc, argv);

	ctl_client_free(ctx.client);
	if (fflush(stdout) == EOF || ferror(stdout)) {
		fprintf(stderr, "zswapctl: cannot write the output: %s\n", strerror(errno));
		return EXIT_SYSTEM;
	}
	return (int)code;
}

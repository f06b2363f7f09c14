// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * zswapctl [OPTIONS] COMMAND [OPTIONS] [ARGUMENTS]
 *
 * The table of commands and the options before them; the commands are in the cmd_*.c files.
 */
#include "common/portfile.h"
#include "common/util.h"
#include "ctl/cmd.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WAIT_OPTION "      --no-wait      begins it and returns at once\n"

#define WAIT_NOTE                                                                                \
	"\nCtrl-C ends the waiting, not the work: 'zswapctl job' shows how far it is, and can\n" \
	"end it.\n"

const struct command commands[] = {
	{"status", "[--verbose]", "One screen: device, tiers, hit rates, latency, health.",
	 "      --verbose      the report of the last crash is not cut\n", cmd_status},
	{"stats", "[--json|--prometheus]", "All counters and histograms.",
	 "      --json         one object, {\"name\": value}; null if unreadable\n"
	 "      --prometheus   exposition format, names prefixed with zswapd_\n",
	 cmd_stats},
	{"top", "[--interval SECONDS]", "Live view: tiers, rates, latencies.",
	 "      --interval S   seconds between two looks, 0.1 to 60, 1 by default\n\n"
	 "Keys: q quits, space looks at once, Ctrl-L draws anew.  Percentiles and shares are of\n"
	 "the last ten seconds.  NO_COLOR=1 shows it without colours.\n",
	 cmd_top},
	{"events", "[--json] [--count N] [--seconds S]", "What happens, as it happens.",
	 "      --json         one object a line\n"
	 "      --count N      ends after N events\n"
	 "      --seconds S    ends after S seconds\n",
	 cmd_events},
	{"get", "[--json|--verbose] [KEY]", "Options: all, or the value of one.",
	 "      --json         everything about them, as an object\n"
	 "      --verbose      everything about them, for people\n",
	 cmd_get},
	{"set", "[--no-wait] KEY VALUE", "Changes an option while swap is in use.",
	 WAIT_OPTION
	 "\nVALUE is written as in the configuration file, and lasts until the daemon "
	 "ends or reads\nits files again.  A lower memory.limit writes pages back.\n" WAIT_NOTE,
	 cmd_set},
	{"reload", "", "Reads the configuration files again.", "", cmd_reload},
	{"writeback", "[--no-wait] [SIZE]", "Writes pages from memory to the store.",
	 WAIT_OPTION
	 "\nSIZE is how much memory to free, such as 64M; without it, all that can be.\n" WAIT_NOTE,
	 cmd_writeback},
	{"compact", "[--no-wait]", "Empties sparse segments, to free their memory and store.",
	 WAIT_OPTION WAIT_NOTE, cmd_compact},
	{"check", "[--no-wait]", "Reads and verifies every page.", WAIT_OPTION WAIT_NOTE,
	 cmd_check},
	{"job", "[--wait|--cancel]", "The work under way, or the last one.",
	 "      --wait         shows how it gets on until it ends\n"
	 "      --cancel       ends it\n\n"
	 "The exit code is the outcome of work that has ended.\n",
	 cmd_job},
	{"upgrade", "[--no-wait]", "Goes on with zswapd as it is installed now.",
	 "      --no-wait      does not wait until it has taken over\n\n"
	 "The supervisor asks the program at its path what it is, executes it, and another\n"
	 "worker takes over; swap stays in use.  A program that is older, or keeps its state in\n"
	 "another way, is refused.\n",
	 cmd_upgrade},
	{"doctor", "[--quiet]", "Checks this machine and the daemon, and says what to do.",
	 "      --quiet        only what was found and what could not be looked at\n\n"
	 "Works without root and without a daemon; what it could not look at then is marked\n"
	 "with '?'.\n",
	 cmd_doctor},
	{"version", "", "Versions of zswapctl and of the running daemon.", "", cmd_version},
	{0},
};

static const struct command *find_command(const char *name)
{
	for (const struct command *c = commands; c->name; c++)
		if (!strcmp(c->name, name))
			return c;
	return NULL;
}

/* Options before the command.  Returns false if that was all; else optind is at the command. */
static bool parse_global(struct context *ctx, int argc, char **argv, enum exit_code *ret_code)
{
	static const struct option longopts[] = {
		{"version", no_argument, NULL, 'V'},
		CMD_COMMON_LONG,
	};
	int opt;

	opterr = 0;
	*ret_code = EXIT_OK;
	while ((opt = getopt_long(argc, argv, "+:d:hV", longopts, NULL)) != -1) {
		switch (opt) {
		case 'd':
			*ret_code = cmd_set_device(ctx, optarg);
			if (*ret_code != EXIT_OK)
				return false;
			break;
		case 'h':
			cmd_help_all();
			return false;
		case 'V':
			printf("zswapctl %s\n", ZSWAPD_VERSION);
			return false;
		default:
			*ret_code = cmd_bad_option("", opt, argv);
			return false;
		}
	}
	return true;
}

/* help [COMMAND], as people try it: --help, or COMMAND --help. */
static enum exit_code help(struct context *ctx, int argc, char **argv)
{
	static char help_option[] = "--help";
	char *args[] = {argc > 1 ? argv[1] : NULL, help_option, NULL};
	const struct command *c = argc > 1 ? find_command(argv[1]) : NULL;

	if (argc > 2)
		return usage("", "'%s' is one argument too many", argv[2]);
	if (argc > 1 && !c)
		return usage("", "unknown command '%s'", argv[1]);
	if (c)
		return c->run(ctx, c, 2, args);
	cmd_help_all();
	return EXIT_OK;
}

static enum exit_code run(struct context *ctx, int argc, char **argv)
{
	const struct command *c;
	enum exit_code code;

	if (!parse_global(ctx, argc, argv, &code))
		return code;
	if (optind == argc)
		return usage("", "no command given");
	if (!strcmp(argv[optind], "help"))
		return help(ctx, argc - optind, argv + optind);
	c = find_command(argv[optind]);
	if (!c)
		return usage("", "unknown command '%s'", argv[optind]);
	return c->run(ctx, c, argc - optind, argv + optind);
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

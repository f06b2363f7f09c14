// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * zswapd's command line.  Exit status: 0 stopped in order, 1 could not start or had to stop, 2
 * wrong usage or configuration.
 */
#include "common/log.h"
#include "daemon/config/config.h"
#include "daemon/super/super.h"

#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>

enum {
	EXIT_OK = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2
};

struct arguments {
	struct config_source source;
	bool check;
	bool print;
	bool debug;
};

static const char usage[] =
	"usage: zswapd [--config FILE] [--check-config | --print-config] [--debug]\n"
	"\n"
	"Serves a compressed swap device from the foreground until SIGTERM; SIGHUP reads the\n"
	"configuration again.\n"
	"\n"
	"  --config FILE    read this file only, instead of zswapd.conf and zswapd.conf.d/*.conf\n"
	"                   in /run/zswapd, /etc/zswapd, /usr/local/lib/zswapd, /usr/lib/zswapd\n"
	"  --check-config   say whether the configuration is right, and exit; 2 if it is wrong\n"
	"  --print-config   print it as it was resolved, with who set what, and exit; 2 if it is\n"
	"                   wrong\n"
	"  --takeover-version\n"
	"                   print what another version must know before this one takes over from\n"
	"                   it, and exit\n"
	"  --debug          log more\n"
	"  --version        print the version and exit\n"
	"  --help           print this and exit\n";

/* -1: go on; else the exit status. */
static int parse_arguments(int argc, char **argv, struct arguments *ret)
{
	static const struct option options[] = {
		{"config", required_argument, NULL, 'c'},
		{"check-config", no_argument, NULL, 'C'},
		{"print-config", no_argument, NULL, 'P'},
		{"debug", no_argument, NULL, 'd'},
		{"version", no_argument, NULL, 'V'},
		/* For the program that this one is to replace. */
		{"takeover-version", no_argument, NULL, 'T'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	int opt;

	while ((opt = getopt_long(argc, argv, "c:dVh", options, NULL)) >= 0) {
		switch (opt) {
		case 'c':
			ret->source.file = optarg;
			break;
		case 'C':
			ret->check = true;
			break;
		case 'P':
			ret->print = true;
			break;
		case 'd':
			ret->debug = true;
			break;
		case 'V':
			puts("zswapd " ZSWAPD_VERSION);
			return EXIT_OK;
		case 'T':
			super_print_version();
			return EXIT_OK;
		case 'h':
			fputs(usage, stdout);
			return EXIT_OK;
		default:
			fputs(usage, stderr);
			return EXIT_USAGE;
		}
	}
	if (optind == argc)
		return -1;
	fprintf(stderr, "zswapd: unexpected argument '%s'\n%s", argv[optind], usage);
	return EXIT_USAGE;
}

static int read_config(struct arguments *a, struct config *ret)
{
	uint64_t ram;
	int r;

	r = config_ram_bytes(&ram);
	if (r < 0)
		return r;
	r = config_root(&a->source.root);
	if (r < 0)
		return r;
	return config_read(ret, ram, &a->source, NULL);
}

int main(int argc, char **argv)
{
	struct arguments a = {0};
	struct config config;
	int status = parse_arguments(argc, argv, &a);

	if (status >= 0)
		return status;
	if (a.debug)
		log_set_level(LOG_LEVEL_DEBUG);
	if (read_config(&a, &config) < 0)
		return EXIT_USAGE;
	if (a.print)
		return config_print(stdout, &config) < 0 ? EXIT_FAILED : EXIT_OK;
	config_log(&config);
	if (a.check) {
		puts("the configuration is right");
		return fflush(stdout) ? EXIT_FAILED : EXIT_OK;
	}
	return super_run(
		&(struct super_options){.config = &config, .source = &a.source, .argv = argv});
}

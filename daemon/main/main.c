// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * zswapd's command line.  Exit status: 0 stopped in order, 1 could not start or had to stop, 2
 * wrong usage or configuration.
 */
#include "common/log.h"
#include "daemon/config/config.h"
#include "daemon/worker/worker.h"

#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_CONFIG "/etc/zswapd/zswapd.conf"

enum {
	EXIT_OK = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2
};

struct arguments {
	const char *config; /* NULL: the default one, if it is there */
	bool check;
	bool debug;
};

static const char usage[] =
	"usage: zswapd [--config FILE] [--check-config] [--debug]\n"
	"\n"
	"Serves a compressed swap device from the foreground until SIGTERM.\n"
	"\n"
	"  --config FILE    read this file instead of " DEFAULT_CONFIG "\n"
	"  --check-config   print the resolved configuration and exit; 2 if it is wrong\n"
	"  --debug          log more\n"
	"  --version        print the version and exit\n"
	"  --help           print this and exit\n";

/* -1: go on; else the exit status. */
static int parse_arguments(int argc, char **argv, struct arguments *ret)
{
	static const struct option options[] = {
		{"config", required_argument, NULL, 'c'}, {"check-config", no_argument, NULL, 'C'},
		{"debug", no_argument, NULL, 'd'},	  {"version", no_argument, NULL, 'V'},
		{"help", no_argument, NULL, 'h'},	  {0},
	};
	int opt;

	while ((opt = getopt_long(argc, argv, "c:dVh", options, NULL)) >= 0) {
		switch (opt) {
		case 'c':
			ret->config = optarg;
			break;
		case 'C':
			ret->check = true;
			break;
		case 'd':
			ret->debug = true;
			break;
		case 'V':
			puts("zswapd " ZSWAPD_VERSION);
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

static int read_config(const struct arguments *a, struct config *ret)
{
	uint64_t ram;
	int r = config_ram_bytes(&ram);

	if (r < 0) {
		log_err("cannot tell how much memory there is: %s", strerror(-r));
		return r;
	}
	config_init_defaults(ret, ram);
	if (a->config)
		r = config_load(ret, a->config);
	else if (access(DEFAULT_CONFIG, F_OK) == 0)
		r = config_load(ret, DEFAULT_CONFIG);
	else
		log_notice("no " DEFAULT_CONFIG ": going on with defaults (see --check-config)");
	return r < 0 ? r : config_validate(ret);
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
	if (a.check)
		return config_print(stdout, &config) < 0 ? EXIT_FAILED : EXIT_OK;
	return worker_run(&config) < 0 ? EXIT_FAILED : EXIT_OK;
}

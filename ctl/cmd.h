/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the commands of zswapctl share: exit codes, options, help, and asking the daemon with all
 * failures told on stderr.  A command is a row of the table in zswapctl.c and a function cmd_*() in
 * the file of its group.
 */
#ifndef ZSWAPD_CTL_CMD_H
#define ZSWAPD_CTL_CMD_H

#include <getopt.h>
#include <stdbool.h>

#include "ctl/client.h"

enum exit_code {
	EXIT_OK = 0,
	EXIT_USAGE = 1,
	EXIT_NO_DAEMON = 2,
	EXIT_PROTOCOL = 3,
	EXIT_PARTIAL = 4,
	EXIT_REFUSED = 5,
	EXIT_SYSTEM = 6,
	EXIT_FOUND = 7,
	EXIT_GOES_ON = 8,
};

struct context {
	char device[NLPROTO_NAME_MAX]; /* empty until an option or need_device() settled it */
	const char *run_dir;
	struct ctl_client *client; /* opened by the first question */
};

struct command {
	const char *name;
	const char *args;    /* as in the usage line */
	const char *summary; /* one line for the list of commands */
	const char *details; /* options and notes for its own help, whole lines */
	enum exit_code (*run)(struct context *ctx, const struct command *self, int argc,
			      char **argv);
};

/* Ends with a row of name NULL. */
extern const struct command commands[];

typedef enum exit_code command_fn(struct context *ctx, const struct command *self, int argc,
				  char **argv);

command_fn cmd_check, cmd_compact, cmd_doctor, cmd_events, cmd_get, cmd_job, cmd_reload, cmd_set,
	cmd_stats, cmd_status, cmd_top, cmd_upgrade, cmd_version, cmd_writeback;

/* --- options and help --- */

/* The long options that every command takes; ends the table. */
/* clang-format off */
#define CMD_COMMON_LONG                               \
	{"device", required_argument, NULL, 'd'},     \
	{"help", no_argument, NULL, 'h'},             \
	{0}
/* clang-format on */

/* An option with a value has CMD_VALUE(i) as its val; the value goes to values[i]. */
#define CMD_VALUE(i) (256 + (i))

/*
 * Takes the options of @self and leaves optind at the first of its @min_args to @max_args
 * arguments.  Options beyond the common ones are flags, which set the int they point to, or have a
 * CMD_VALUE().  False: all was said, *ret_code is how to end.
 */
bool cmd_options(struct context *ctx, const struct command *self, int argc, char **argv,
		 const struct option *longopts, const char **values, int min_args, int max_args,
		 enum exit_code *ret_code);

/* For --device; refuses what cannot be a name. */
enum exit_code cmd_set_device(struct context *ctx, const char *name);

/* @opt is what getopt_long() returned for a wrong option. */
enum exit_code cmd_bad_option(const char *command, int opt, char **argv);

/* @command: the one whose help is pointed at, may be empty.  Returns EXIT_USAGE. */
__attribute__((format(printf, 2, 3))) enum exit_code usage(const char *command, const char *fmt,
							   ...);

void cmd_help_all(void);

/* --- the daemon --- */

/* Settles which daemon is meant, when no option did. */
enum exit_code need_device(struct context *ctx);

/* As ctl_client_request() and ctl_client_ask(); need_device() comes before. */
int request_quietly(struct context *ctx, const struct ctl_request *rq, struct ctl_reply *r);
int ask_quietly(struct context *ctx, enum nlproto_cmd cmd, struct ctl_reply *r);

/* These two settle the device as well, and tell on stderr what fails.  @rq->device is filled in. */
enum exit_code request(struct context *ctx, const struct ctl_request *rq, struct ctl_reply *r);
enum exit_code ask(struct context *ctx, enum nlproto_cmd cmd, struct ctl_reply *r);

/* In words, why ctl_client_*() failed with @error; and how to end for it. */
enum exit_code error_text(const struct context *ctx, const struct ctl_reply *r, int error,
			  char *buf, size_t size);

/* The same, told on stderr. */
enum exit_code explain(const struct context *ctx, const struct ctl_reply *r, int error);

/*
 * Shows how job @first gets on until it ends, and what became of it.  Ctrl-C ends the showing only,
 * with EXIT_GOES_ON, provided that catch_interrupt() was called, before the job was begun.
 */
enum exit_code follow_job(struct context *ctx, const struct ctl_job *first);

/*
 * Waits, in the same way, until no more memory is in use than the limit allows.  What does not move
 * for half a minute is left to the daemon with EXIT_GOES_ON.
 */
enum exit_code follow_memory(struct context *ctx);
void catch_interrupt(void);
bool was_interrupted(void);

#endif

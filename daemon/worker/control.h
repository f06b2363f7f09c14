/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The configuration of a daemon that runs: asked for, changed, and read again from its files.
 *
 * An option is known by "section.key".  config_options[].live says whether it can change while
 * swap is in use; the others wait for the next start.  A value that is set at run time is written
 * to no file.  It lasts until it is set again or the files are read again: then the files count,
 * so that afterwards what runs is what they say.
 *
 * Every function may be called by any thread but a data thread, and from no callback.  They take
 * turns by a mutex, under which files are read, log lines written and callbacks called; no data
 * thread ever takes it.
 *
 * Who gets a text gets it whole or cut at its end, NUL-terminated, without a newline at the end.
 * What goes wrong is told in the text and, for reloads and changes, logged.
 */
#ifndef ZSWAPD_WORKER_CONTROL_H
#define ZSWAPD_WORKER_CONTROL_H

#include "daemon/config/config.h"

#include <stdbool.h>

#define CONTROL_KEY_MAX	   32	/* holds "section.key" */
#define CONTROL_TEXT_MAX   512	/* holds one error, or what one change did */
#define CONTROL_REPORT_MAX 4096 /* holds what a reload did, a line each */

struct control;

struct control_ops {
	/*
	 * Makes option @id, which is live, in what runs as it is in @c.  0, or a negative errno
	 * with the reason and the way out in @reason; what runs is then as before.
	 */
	int (*apply)(void *ctx, enum config_option_id id, const struct config *c,
		     char reason[static CONFIG_REASON_MAX]);
	/*
	 * Option @key has another value: "section.key: OLD -> NEW (ORIGIN)" is @text, which may
	 * have CONTROL_TEXT_MAX bytes.  Called by the thread that asked for the change.
	 */
	void (*changed)(void *ctx, const char *key, const char *text);
	/* @state, as for sd_notify(3), is true now; only a daemon that has been ready says so. */
	void (*notify)(void *ctx, const char *state);
};

struct control_value {
	char key[CONTROL_KEY_MAX];
	char value[CONFIG_TEXT_MAX];	/* as the file would have it, sizes in bytes */
	char origin[CONFIG_ORIGIN_MAX]; /* "default", "FILE:LINE", "set at run time", ... */
	char range[CONFIG_RANGE_MAX];	/* what it may be, for people */
	bool live;
	const char *def, *text; /* static: the default as the file would have it; what it does */
};

/*
 * @config is what runs, and is copied; @source is where it came from, its strings outlive the
 * control.  -ENOMEM.
 */
int control_new(struct control **ret, const struct config *config,
		const struct config_source *source, const struct control_ops *ops, void *ctx);
/* NULL is allowed. */
void control_free(struct control *c);

/* The option number @id, from 0 to CONFIG_OPTION_COUNT - 1: for lists. */
void control_get_id(struct control *c, enum config_option_id id, struct control_value *ret);

/* What runs. */
void control_config(struct control *c, struct config *ret);

/*
 * Sets option @key to @value, which is written as in the file.  0: it runs, and @text is
 * "section.key: OLD -> NEW", also if both are the same.  -ENOENT: no such option; -EOPNOTSUPP: it
 * can't change while zswapd runs; -EINVAL, -ERANGE: not a value for it, or at odds with another;
 * else what applying it said.  Nothing is changed then.
 */
int control_set(struct control *c, const char *key, const char *value,
		char text[static CONTROL_TEXT_MAX]);

#define CONTROL_PARTLY 1

/*
 * Reads the files again, makes what is live as they say, and tells systemd (RELOADING=1, READY=1).
 * @report has a line for each option that differed: changed, "needs a restart", or why not.  0;
 * CONTROL_PARTLY: a value could not be applied; or a negative errno: the files can't be used, as
 * @report says, and nothing has changed.
 */
int control_reload(struct control *c, char report[static CONTROL_REPORT_MAX]);

#endif

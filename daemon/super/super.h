/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The supervisor: what is left of a daemon when its worker dies.
 *
 * It is small, locked in memory and has one thread.  It holds the descriptors that a device and its
 * pages live by, forks the worker that does everything else, and once that is ready, a standby that
 * has everything mapped and locked in advance.  When the worker dies the standby is ordered to go,
 * and another is forked.  No step of this needs another program: not the service manager, which may
 * be swapped out itself.
 *
 * A worker that dies again and again is replaced ever more slowly, and the device is never given
 * up.  One that lives and does not answer is killed, and then replaced.
 *
 * When the supervisor dies its worker goes on.  Who starts next under that device's name, asks it
 * for all of this and goes on as its supervisor.  An upgrade is the same: the supervisor executes
 * the new program, which adopts the worker, prepares a standby of its own, and has it take over.
 */
#ifndef ZSWAPD_SUPER_SUPER_H
#define ZSWAPD_SUPER_SUPER_H

#include "daemon/config/config.h"

struct super_options {
	const struct config *config;
	const struct config_source *source; /* where it came from */
	char **argv;			    /* for an upgrade */
};

/* Until the daemon is told to stop, and has; returns the process's exit status. */
int super_run(const struct super_options *o);

/*
 * What a program says of itself, for `zswapd --takeover-version`: a line that super_can_follow()
 * understands, whatever the versions.
 */
void super_print_version(void);

/*
 * Whether the program that printed @line can take over from this one; @reason, of @size bytes, says
 * why not, or which version it is.
 */
bool super_can_follow(const char *line, char *reason, size_t size);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which daemon is meant, and where it listens.  Neither answer is trusted: ctl/client.h checks who
 * answers.
 */
#ifndef ZSWAPD_CTL_FIND_H
#define ZSWAPD_CTL_FIND_H

#include <stdint.h>

#include "common/nlproto.h"

/* The device name of the default configuration. */
#define CTL_DEFAULT_DEVICE "zswap0"

/*
 * Without a name: the one device that has a port file in @run_dir, or the default name when none
 * has.  Returns 0, or the number of devices if there are several, the first few of which are
 * written to @ret_choices, separated by spaces.
 */
unsigned ctl_find_device(const char *run_dir, char ret_name[static NLPROTO_NAME_MAX],
			 char ret_choices[static NLPROTO_TEXT_MAX]);

/* The port of the port file, else the one derived from the name. */
uint32_t ctl_find_port(const char *run_dir, const char *name);

#endif

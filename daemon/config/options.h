/* SPDX-License-Identifier: GPL-2.0-or-later */
/* clang-format off */
/*
 * Every option of the configuration file, declared once.  The defaults, the parser, the checks and
 * what --print-config prints, the manual and what may be set at run time are made from this table.
 * Sections and keys are stable names.
 *
 * X(section, key, field, type, min, max, choices, default, when, text)
 *
 * field    the member of struct config
 * type     NAME    min to max characters a-z, 0-9, _ and -
 *          CHOICE  one of the words in choices, as the index in that list
 *          BOOL    yes, no, on, off, true, false, 1 or 0
 *          INT     a whole number from min to max
 *          SIZE    bytes from min to max, or a share of RAM
 *          PAGED   a SIZE that is rounded down to whole 4 KiB pages
 *          PATH    an absolute path of at most max bytes, or none
 * default  as it would stand in the file; a size that is a share of RAM is moved into its range, so
 *          that the defaults hold on a very small and a very large machine
 * when     a change takes effect: LIVE at once, by a reload or `zswapctl set` (then the worker has
 *          a function that applies it, daemon/worker/live.c); START with the next start
 */
/* clang-format on */
#ifndef ZSWAPD_DAEMON_CONFIG_OPTIONS_H
#define ZSWAPD_DAEMON_CONFIG_OPTIONS_H

#include "common/util.h"

#include <stdint.h>

#define CONFIG_NAME_MAX	       31
#define CONFIG_PATH_MAX	       255
#define CONFIG_QUEUES_MAX      64

#define CONFIG_DEVICE_SIZE_MIN MIB(1)
#define CONFIG_DEVICE_SIZE_MAX (GIB(1) << 14) /* 16 TiB: slot numbers have 32 bits */

/* A handful of open segments per thread and the reserve, and still a tier worth the name. */
#define CONFIG_MEMORY_LIMIT_MIN MIB(16)

/* Below this, cleaning has no room to move survivors to. */
#define CONFIG_STORE_SIZE_MIN MIB(16)

/* clang-format off */
#define CONFIG_OPTIONS(X)                                                                                             \
	X(device, name,      device_name,      NAME,   1, CONFIG_NAME_MAX, NULL, "zswap0", START,                     \
	  "Name of the block device, which appears as /dev/zswap/NAME.")                                              \
	X(device, transport, device_transport, CHOICE, 0, 0, "auto|ublk|fuse", "auto", START,                         \
	  "How the device reaches the kernel; auto takes ublk where the kernel has it.")                              \
	X(device, size,      device_size,      PAGED,  CONFIG_DEVICE_SIZE_MIN, CONFIG_DEVICE_SIZE_MAX, NULL, "50%",   \
	  START, "Size of the device: how much uncompressed memory can be swapped to it.")                            \
	X(device, queues,    device_queues,    INT,    0, CONFIG_QUEUES_MAX, NULL, "0", START,                        \
	  "Request queues, each served by a thread of its own; 0 lets zswapd choose.")                                \
	X(device, watchdog,  device_watchdog,  INT,    0, 3600, NULL, "30", START,                                    \
	  "Seconds after which a worker that does not answer is replaced; 0 never replaces it.")                      \
	X(swap,   enable,    swap_enable,      BOOL,   0, 0, NULL, "yes", START,                                      \
	  "Whether zswapd swaps on the device once it answers, and off before it leaves.")                            \
	X(swap,   priority,  swap_priority,    INT,    -1, 32767, NULL, "100", START,                                 \
	  "Priority among swap devices, higher is used first; -1 lets the kernel choose.")                            \
	X(swap,   discard,   swap_discard,     CHOICE, 0, 0, "off|pages", "pages", START,                             \
	  "Whether the kernel reports pages it has freed; off keeps their memory in use.")                            \
	X(memory, limit,     memory_limit,     SIZE,   CONFIG_MEMORY_LIMIT_MIN, INT64_MAX, NULL, "20%", LIVE,         \
	  "Memory for compressed pages; beyond it the oldest go to the store.")                                       \
	X(memory, reserve,   memory_reserve,   SIZE,   0, INT64_MAX, NULL, "0", LIVE,                                 \
	  "Part of the limit that is kept free ahead of need; 0 lets zswapd choose.")                                 \
	X(memory, level,     memory_level,     INT,    -7, 19, NULL, "1", LIVE,                                       \
	  "zstd level; higher is denser and slower, negative levels are the fastest.")                                \
	X(store,  path,      store_path,       PATH,   0, CONFIG_PATH_MAX, NULL, "none", START,                       \
	  "Block device or file that holds pages evicted from memory; none keeps all in memory.")                     \
	X(store,  size,      store_size,       SIZE,   0, INT64_MAX, NULL, "0", START,                                \
	  "Bytes of the store to use; 0 takes a whole block device, a file needs a size.")                            \
	X(store,  poll,      store_poll,       CHOICE, 0, 0, "off|spin|hybrid", "off", LIVE,                          \
	  "How the read of a single page waits for the store; spin and hybrid need polled queues.")                   \
	X(store,  required,  store_required,   BOOL,   0, 0, NULL, "no", START,                                       \
	  "Whether to end if the store is not there; no keeps all pages in memory then.")                             \
	X(read,   overlap,   read_overlap,     BOOL,   0, 0, NULL, "on", LIVE,                                        \
	  "Whether resident pages are decompressed while reads from the store are in flight.")                        \
	X(security, seccomp, security_seccomp, CHOICE, 0, 0, "off|log|on", "on", START,                               \
	  "Whether system calls that are not needed are refused; log has the kernel log them.")
/* clang-format on */

#endif

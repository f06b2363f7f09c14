/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A device's name on the system: one daemon a name, a stable path, an answer before it is used.
 *
 * Main thread only.
 */
#ifndef ZSWAPD_WORKER_DEVICE_H
#define ZSWAPD_WORKER_DEVICE_H

#include <stdbool.h>
#include <stddef.h>

#define DEVICE_RUN_DIR	"/run/zswapd"
#define DEVICE_LINK_DIR "/dev/zswap"

struct device_lock {
	int fd;
};

#define DEVICE_LOCK_NULL ((struct device_lock){.fd = -1})

/*
 * Makes DEVICE_RUN_DIR and holds DEVICE_RUN_DIR/NAME.lock, which contains our pid.  -EBUSY: another
 * daemon holds it; the log names it.  The lock ends with the process, whatever becomes of it.
 */
int device_lock(struct device_lock *ret, const char *name);
void device_unlock(struct device_lock *l);

/* DEVICE_LINK_DIR/@name -> @device, in place of an older link.  -EEXIST: something else is there.
 */
int device_link(const char *name, const char *device);
void device_unlink(const char *name);

/* The device that the link leads to, which may be gone; false if there is none. */
bool device_linked(const char *name, char *ret, size_t size);

/* Reads the device's first 4 KiB, for 30 seconds at most (-ETIMEDOUT). */
int device_probe(const char *device);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A device's name on the system: one daemon a name, a stable path, an answer before it is used.
 *
 * Main thread only.
 */
#ifndef ZSWAPD_WORKER_DEVICE_H
#define ZSWAPD_WORKER_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#define DEVICE_RUN_DIR	    "/run/zswapd"
#define DEVICE_LINK_DIR	    "/dev/zswap"

#define DEVICE_PATH_MAX	    32

#define DEVICE_LISTENER_MAX 64

/* Where a new supervisor calls the worker of the device @name.  Returns @path. */
const char *device_listener(const char *name, char path[static DEVICE_LISTENER_MAX]);

/*
 * A disk.  The kernel gives a path to one disk after the other, but a sequence number to one only
 * (Documentation/ABI/stable/sysfs-block, diskseq).
 */
struct device_disk {
	char path[DEVICE_PATH_MAX]; /* "/dev/ublkb0"; empty: none */
	uint64_t diskseq;
};

/* The disk at @path; diskseq is 0 if it can't be told. */
void device_disk(const char *path, struct device_disk *ret);

/* Whether @d is still there. */
bool device_there(const struct device_disk *d);

/*
 * DEVICE_LINK_DIR/@name -> @device, in place of an older link, and an event that tells udev of it.
 * -EEXIST: something else is there.
 */
int device_link(const char *name, const char *device);
void device_unlink(const char *name);

/* Reads the device's first 4 KiB, for 30 seconds at most (-ETIMEDOUT). */
int device_probe(const char *device);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Commands to /dev/ublk-control, each with a bound on how long it may take.
 *
 * The driver carries them out in a kernel thread of this process and can be held up for ever, by
 * another device's removal for example.  A command that does not return in time is given up: it
 * stays with the kernel, its buffers with it, and later commands are given less time.  Should it
 * make a device later, that is removed again, as long as this process lives.
 *
 * One thread at a time.  Errors are the driver's, negative, and logged here unless said otherwise.
 * Any call: -ETIMEDOUT.
 */
#ifndef ZSWAPD_UBLK_CONTROL_H
#define ZSWAPD_UBLK_CONTROL_H

#include "daemon/ublk/abi.h"

#include <sched.h>
#include <stdbool.h>

struct ublk_control;

/* -ENOENT: no ublk in this kernel; -EACCES, -EPERM. */
int ublk_control_open(struct ublk_control **ret);
/* NULL is fine.  What a command that was given up may still touch stays until that comes back. */
void ublk_control_close(struct ublk_control *c);

/* Whether opcodes are ioctl-encoded, for I/O commands too.  Known after the first command. */
bool ublk_control_encoded(const struct ublk_control *c);

/*
 * Adds a device as @info asks, dev_id UINT32_MAX for any, and puts what became of it there.
 * -EEXIST: the id is taken; -EACCES: ublks_max devices are there.
 */
int ublk_add(struct ublk_control *c, struct ublk_dev_info *info);
/* -ENODEV, not logged: no such device. */
int ublk_info(struct ublk_control *c, uint32_t id, struct ublk_dev_info *ret);
int ublk_set_params(struct ublk_control *c, uint32_t id, const struct ublk_params *params);
/* The CPUs whose requests queue @q gets.  Not logged. */
int ublk_queue_cpus(struct ublk_control *c, uint32_t id, unsigned q, cpu_set_t *ret);
/* All tags of all queues must be fetched, or on their way; makes /dev/ublkbN. */
int ublk_start(struct ublk_control *c, uint32_t id);
/* Takes /dev/ublkbN away; the queues must serve until this returns. */
int ublk_stop(struct ublk_control *c, uint32_t id);
/*
 * Takes /dev/ublkcN away, which nobody of us may have open.  -EBUSY, not logged: somebody has
 * /dev/ublkbN open still; the device goes when that ends.
 */
int ublk_delete(struct ublk_control *c, uint32_t id);
/* -EBUSY, not logged: its former server has not been cleared away yet. */
int ublk_start_recovery(struct ublk_control *c, uint32_t id);
/* As ublk_start() for a device that is being recovered. */
int ublk_end_recovery(struct ublk_control *c, uint32_t id);

#endif

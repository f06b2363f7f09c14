/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One daemon for each device name: RUN_DIR/NAME.lock, which has the supervisor's pid.
 *
 * The lock belongs to the open file description, so that it is held as long as any process of the
 * daemon lives, and ends with the last one.
 */
#ifndef ZSWAPD_SUPER_LOCK_H
#define ZSWAPD_SUPER_LOCK_H

#define LOCK_PID_MAX 16

/*
 * Makes the directory, takes the lock and writes our pid; the descriptor.  -EBUSY, not logged:
 * @holder says whose it is, or "?".
 */
int lock_take(const char *run_dir, const char *name, char holder[static LOCK_PID_MAX]);

/* Writes our pid to a lock that was another's before. */
void lock_sign(int fd, const char *name);

#endif

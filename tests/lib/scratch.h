/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A scratch directory on a disk, loop devices over files in it, and mounts: everything that a test
 * makes through here is undone by scratch_deinit(), also after a failed assertion.
 */
#ifndef ZSWAPD_TESTS_SCRATCH_H
#define ZSWAPD_TESTS_SCRATCH_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#define SCRATCH_LOOPS 4
#define SCRATCH_DEV   32

struct scratch {
	char dir[64];
	char loops[SCRATCH_LOOPS][SCRATCH_DEV]; /* "" is unused */
	char mounts[SCRATCH_LOOPS][PATH_MAX];
};

/* NULL if loop devices can be made here, else the reason why not. */
const char *scratch_no_loops(void);

/* Under $ZSWAPD_TEST_DIR or /var/tmp, which unlike /tmp is seldom in memory.  Fails the test. */
void scratch_init(struct scratch *s);
void scratch_deinit(struct scratch *s);

/* "DIR/name", valid until the next four calls. */
const char *scratch_path(const struct scratch *s, const char *name)
	__attribute__((returns_nonnull));

/* A file of @size zero bytes, mode 0600. */
const char *scratch_file(const struct scratch *s, const char *name, uint64_t size)
	__attribute__((returns_nonnull));

/* A loop device over a new file @name. */
const char *scratch_loop(struct scratch *s, const char *name, uint64_t size);

/* Mounts @dev on a new directory @name; its path. */
const char *scratch_mount(struct scratch *s, const char *dev, const char *type, const char *name);
void scratch_umount(struct scratch *s, const char *dir);

/* The exit status of a shell command, its output thrown away; -1 if it did not run. */
int scratch_run(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Whether @program is installed. */
bool scratch_has(const char *program);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a successor must know about a FUSE connection that it did not open: a sealed memfd.
 *
 * The kernel sends INIT once, at the mount.  A successor's session has never seen it, so it is kept
 * as it came, beside what the kernel was promised in the answer.
 *
 * Main thread only.
 */
#ifndef ZSWAPD_FUSE_NOTE_H
#define ZSWAPD_FUSE_NOTE_H

#include <linux/fuse.h>
#include <stdbool.h>
#include <stdint.h>

#define FUSE_NOTE_INIT_MAX 256u

struct fuse_note {
	uint64_t magic; /* set by note_save() */
	uint32_t version;
	uint32_t io_max; /* bytes of the largest request */
	uint64_t device_bytes;
	uint32_t reserved;
	uint32_t init_len;
	/* The message, its header included. */
	_Alignas(8) uint8_t init[FUSE_NOTE_INIT_MAX];
};

/* A memfd of @note, which nobody can change any more.  Logged. */
int note_save(const struct fuse_note *note, int *ret_fd);

/* -EBADMSG: no note, of another version, or one that could have been changed; logged. */
int note_load(struct fuse_note *ret, int fd);

/* Whether the kernel that sent @init sends unanswered requests again when asked to (since 6.9). */
bool note_resends(const void *init, uint32_t len);

#endif

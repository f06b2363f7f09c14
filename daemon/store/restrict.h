/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What may be asked of an io_uring, from the moment it is enabled until its end.
 *
 * The kernel carries a ring's operations out without looking at a seccomp filter, and they include
 * opening files and sockets.  So a ring is made disabled (IORING_SETUP_R_DISABLED), and enabled
 * with the few operations that it is for; see docs/SECURITY.md.
 */
#ifndef ZSWAPD_STORE_RESTRICT_H
#define ZSWAPD_STORE_RESTRICT_H

#include <liburing.h>
#include <stddef.h>
#include <stdint.h>

struct restrict_lists {
	const uint8_t *ops; /* enum io_uring_op */
	size_t nops;
	const uint8_t *registers; /* IORING_REGISTER_..., afterwards */
	size_t nregisters;
};

#define RESTRICT_MAX 16 /* of both together */

/* Restricts and enables @u.  Negative errno of io_uring_register(2). */
int restrict_enable(struct io_uring *u, const struct restrict_lists *lists);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The FUSE transport: one file, served over /dev/fuse, under a loop device with direct I/O.
 * For kernels without ublk; works wherever FUSE and loop are.
 */
#ifndef ZSWAPD_FUSE_TRANSPORT_FUSE_H
#define ZSWAPD_FUSE_TRANSPORT_FUSE_H

#include "daemon/transport/transport.h"

extern const struct transport_ops transport_fuse;

#endif

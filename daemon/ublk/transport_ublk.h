/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The ublk transport: a queue and a data thread for each CPU, requests and answers by io_uring.
 * Linux 6.1 or later with the module ublk_drv.
 */
#ifndef ZSWAPD_UBLK_TRANSPORT_UBLK_H
#define ZSWAPD_UBLK_TRANSPORT_UBLK_H

#include "daemon/transport/transport.h"

extern const struct transport_ops transport_ublk;

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which transport carries the device: the one that is configured, or the first that works.
 *
 * Main thread only.  What does not work is logged, with the reason.
 */
#ifndef ZSWAPD_WORKER_CARRIER_H
#define ZSWAPD_WORKER_CARRIER_H

#include "daemon/config/config.h"
#include "daemon/transport/transport.h"

struct carrier {
	const struct config *config;
	/* the one that was chosen or, after carrier_open(), that carries */
	const struct transport_ops *ops;
	unsigned nqueues; /* for the engine: at least as many as the transport will have */
};

/* Chooses, after loading the kernel modules that are needed.  -EOPNOTSUPP. */
int carrier_choose(struct carrier *c, const struct config *config);

/*
 * Chooses the transport of @device, which is to be taken over with @kept.  -ENODEV: none that is
 * configured can.  -ESTALE: nobody can any more.  Other errors: another try may.
 */
int carrier_choose_for(struct carrier *c, const struct config *config, const char *device,
		       const struct transport_kept *kept);

/*
 * The first part of a takeover by the transport that was chosen for it; see transport.h.
 * @o->nqueues is set here.
 */
int carrier_prepare(const struct carrier *c, struct transport **ret, struct transport_options *o);

/*
 * Makes the device; if that fails and the choice was ours, with the next transport that can be
 * used.  @o->nqueues is set here.
 */
int carrier_open(struct carrier *c, struct transport **ret, struct transport_options *o);

#endif

// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/worker/carrier.h"
#include "common/log.h"
#include "common/util.h"
#include "daemon/ublk/transport_ublk.h"
#include "daemon/worker/run.h"
#include "fuse/transport_fuse.h"

#include <errno.h>
#include <string.h>

#define MODPROBE_MS 10000

/* Best first. */
static const struct transport_ops *const transports[] = {&transport_ublk, &transport_fuse};

static bool wanted(const struct transport_ops *ops, enum config_transport want)
{
	switch (want) {
	case CONFIG_TRANSPORT_AUTO:
		return true;
	case CONFIG_TRANSPORT_UBLK:
		return ops == &transport_ublk;
	case CONFIG_TRANSPORT_FUSE:
		return ops == &transport_fuse;
	}
	return false;
}

/* Whether it is there afterwards is for the transport to find out. */
static void load_modules(const struct transport_ops *ops)
{
	for (const char *const *m = ops->modules; *m; m++) {
		const char *const argv[] = {"modprobe", "-q", *m, NULL};
		struct run run;
		int status;

		if (!run_installed(argv[0]) || run_start(&run, argv) < 0)
			return;
		if (run_wait(&run, MODPROBE_MS, &status) < 0)
			run_deinit(&run);
	}
}

/* NULL, or why not. */
static const char *why_not(const struct transport_ops *ops)
{
	const char *why = ops->unusable();

	if (!why)
		return NULL;
	load_modules(ops);
	return ops->unusable();
}

/* The next one after @ops (NULL: the first) that is wanted and usable. */
static const struct transport_ops *next(const struct carrier *c, const struct transport_ops *ops)
{
	size_t i = 0;

	if (ops) {
		while (transports[i++] != ops)
			;
	}
	for (; i < ARRAY_SIZE(transports); i++) {
		const char *why;

		if (!wanted(transports[i], c->config->device_transport))
			continue;
		why = why_not(transports[i]);
		if (!why)
			return transports[i];
		log_msg(c->config->device_transport == CONFIG_TRANSPORT_AUTO ? LOG_LEVEL_NOTICE
									     : LOG_LEVEL_ERR,
			"[device] transport: %s can't be used: %s", transports[i]->name, why);
	}
	return NULL;
}

static unsigned queues(const struct carrier *c, const struct transport_ops *ops)
{
	unsigned n = (unsigned)c->config->device_queues;

	if (n)
		return n;
	/* Each queue holds segments open; they shall not be most of the front tier. */
	n = ops->default_queues();
	while (n > 1 && engine_memory_min(n) > c->config->memory_limit / 2)
		n--;
	return n;
}

/* For what carrier_open() may go on with, since the right to load modules is given up meanwhile. */
static void load_modules_of_others(const struct carrier *c)
{
	for (size_t i = 0; i < ARRAY_SIZE(transports); i++) {
		if (transports[i] != c->ops && wanted(transports[i], c->config->device_transport))
			why_not(transports[i]);
	}
}

int carrier_choose(struct carrier *c, const struct config *config)
{
	c->config = config;
	c->ops = next(c, NULL);
	if (!c->ops) {
		log_err("[device] transport: there is none that works here");
		return -EOPNOTSUPP;
	}
	load_modules_of_others(c);
	c->nqueues = queues(c, c->ops);
	return 0;
}

/* Its modules are loaded, since the device is there; which of them it is decides. */
int carrier_choose_for(struct carrier *c, const struct config *config, const char *device,
		       const struct transport_kept *kept)
{
	int n = -ENODEV;

	c->config = config;
	for (size_t i = 0; i < ARRAY_SIZE(transports) && n == -ENODEV; i++) {
		if (!wanted(transports[i], config->device_transport) || !transports[i]->queues_of)
			continue;
		c->ops = transports[i];
		n = c->ops->queues_of(device, kept);
	}
	if (n == -ESTALE)
		return n;
	if (n < 0) {
		log_err("%s can't be taken over by the transport %s: %s; start with the former "
			"configuration, or swap off first",
			device, c->ops->name, strerror(-n));
		return n;
	}
	/* A device that has queues has those that it was made with. */
	c->nqueues = n > 0 ? (unsigned)n : queues(c, c->ops);
	return 0;
}

int carrier_prepare(const struct carrier *c, struct transport **ret, struct transport_options *o)
{
	o->nqueues = c->nqueues;
	return c->ops->prepare(ret, o);
}

int carrier_open(struct carrier *c, struct transport **ret, struct transport_options *o)
{
	int r;

	while (true) {
		const struct transport_ops *other;

		o->nqueues = (unsigned)min_u64(queues(c, c->ops), c->nqueues);
		r = c->ops->open(ret, o);
		if (r == 0)
			return r;
		other = next(c, c->ops);
		if (!other)
			return r;
		log_warn("[device] transport: %s does not work here (%s); going on with %s",
			 c->ops->name, strerror(-r), other->name);
		c->ops = other;
	}
}

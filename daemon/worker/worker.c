// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/worker/worker.h"
#include "common/log.h"
#include "common/size.h"
#include "common/util.h"
#include "daemon/store/store.h"
#include "daemon/worker/swap.h"
#include "daemon/worker/worker_impl.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <systemd/sd-daemon.h>

#define TICK_MS 200 /* how long a line of the data path may wait to be written */

/* 0: nothing is swapped to the device any more.  Else why not, logged; the device goes on. */
static int stop_swap(struct worker *w)
{
	const char *dev = w->disk.path;
	uint64_t needed, available;
	char need_text[SIZE_TEXT_MAX], have_text[SIZE_TEXT_MAX];
	int r;

	r = swap_off_check(dev, &needed, &available);
	if (r == -ENOENT)
		return 0;
	if (r == -ENOMEM) {
		log_err("stop: refused: %s are swapped out and only %s would hold them; end programs or "
			"add other swap, then stop again",
			size_format(need_text, needed), size_format(have_text, available));
		return r;
	}
	if (r < 0)
		log_warn("stop: cannot tell whether memory holds what is swapped: %s",
			 strerror(-r));
	return swap_off(dev);
}

static void reload(struct worker *w)
{
	char report[CONTROL_REPORT_MAX];

	control_reload(w->control, report); /* logs what it did */
	endpoint_refresh(w->endpoint);
}

/* True if the worker is to end. */
static bool asked_to_stop(struct worker *w)
{
	struct signalfd_siginfo si;

	if (read(w->signal_fd, &si, sizeof(si)) != sizeof(si))
		return false;
	if (si.ssi_signo == SIGHUP) {
		reload(w);
		return false;
	}
	w->state = NLPROTO_STATE_STOPPING;
	log_info("stop: asked to by signal %u", si.ssi_signo);
	sd_notify(0, "STOPPING=1\nSTATUS=Swapping off");
	/* Swapping off takes the CPU and the store that a job would have. */
	engine_job_cancel(w->engine);
	if (stop_swap(w) == 0)
		return true;
	w->state = NLPROTO_STATE_RUNNING;
	sd_notify(0, "READY=1\nSTATUS=Refused to stop: swapped pages do not fit into memory");
	return false;
}

/*
 * The device can't be served any more.  Where it waits for a successor, everything is left to that
 * one: 1.  Else it is over: -EIO.
 */
static int device_failed(struct worker *w)
{
	const struct transport_ops *ops = w->carrier.ops;

	if (ops->gone && !ops->gone(w->transport)) {
		log_err("%s can't be served by this process; it and its pages are left to a "
			"successor",
			w->disk.path);
		return 1;
	}
	log_err("the kernel has taken %s away; what was swapped to it is lost", w->disk.path);
	return -EIO;
}

/* 0: asked to stop, and nothing is swapped any more; else as device_failed(). */
static int serve(struct worker *w)
{
	struct pollfd fds[] = {
		{.fd = w->signal_fd, .events = POLLIN},
		{.fd = w->carrier.ops->failed_fd(w->transport), .events = POLLIN},
		{.fd = endpoint_fd(w->endpoint), .events = POLLIN},
	};

	while (true) {
		poll(fds, ARRAY_SIZE(fds), TICK_MS);
		log_drain();
		if (fds[1].revents)
			return device_failed(w);
		if (fds[2].revents)
			endpoint_work(w->endpoint);
		if (fds[0].revents && asked_to_stop(w))
			return 0;
	}
}

static void announce(struct worker *w)
{
	char device[SIZE_TEXT_MAX], memory[SIZE_TEXT_MAX], store[SIZE_TEXT_MAX] = "no store";

	size_format(device, w->config->device_size);
	size_format(memory, engine_memory_limit(w->engine));
	if (w->store)
		size_format(store, (uint64_t)w->store->nplaces * STORE_PLACE_SIZE);
	log_info("ready: " DEVICE_LINK_DIR "/%s is %s by %s, %s; front tier %s, store %s%s%s",
		 w->config->device_name, w->disk.path, w->carrier.ops->name, device, memory, store,
		 w->store ? " at " : "", w->store ? w->store->path : "");
	w->state = NLPROTO_STATE_RUNNING;
	sd_notify(0, "READY=1\nSTATUS=Serving swap");
}

int worker_run(const struct config *config, const struct config_source *source)
{
	struct worker w = {
		.config = config,
		.source = source,
		.signal_fd = -1,
		.lock = DEVICE_LOCK_NULL,
	};
	int r;

	w.state = NLPROTO_STATE_STARTING;
	r = steps_run(&w);
	if (r == 0) {
		announce(&w);
		r = serve(&w);
		if (r <= 0) {
			steps_undo(&w);
			log_info("stopped");
		}
	}
	log_drain();
	/* Everything that matters is undone; memory that a thread still looks at stays until then.
	 */
	if (w.left_behind)
		_exit(r == 0 ? EXIT_SUCCESS : EXIT_FAILURE);
	return r > 0 ? -EIO : r;
}

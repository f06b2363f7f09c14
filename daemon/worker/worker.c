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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define TICK_MS	 200	       /* how long a line of the data path may wait to be written */
#define COUNT_NS 1000000000ull /* between looks at the counters for a report of a crash */

/* The service manager's patience is for a daemon that gets nowhere. */
static void tell_progress(void *ctx, uint64_t left)
{
	struct worker *w = ctx;
	char text[SIZE_TEXT_MAX], state[128];

	snprintf(state, sizeof(state), "EXTEND_TIMEOUT_USEC=%u\nSTATUS=Swapping off, %s to go",
		 3 * SWAP_OFF_REPORT_S * 1000000u, size_format(text, left));
	supervised_notify(&w->supervised, state);
}

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
	if (engine_store_state(w->engine) == ENGINE_STORE_STALLED)
		log_warn("stop: the store does not answer; swapping off waits for it, and is given "
			 "up when no page has come back for two minutes");
	return swap_off(dev, tell_progress, w);
}

static void reload(struct worker *w)
{
	char report[CONTROL_REPORT_MAX];

	control_reload(w->control, report); /* logs what it did */
	endpoint_refresh(w->endpoint);
}

/* After what may have changed the configuration: a successor goes on with what runs. */
static void publish_config(struct worker *w)
{
	struct config config;

	control_config(w->control, &config);
	watch_set_config(w->start->watch, &config);
}

static void publish_counters(struct worker *w)
{
	uint64_t now = now_ns(), v[COUNTER_COUNT];

	if (now - w->counted < COUNT_NS)
		return;
	w->counted = now;
	engine_counters(w->engine, v);
	watch_set_counters(w->start->watch, v);
}

/* True if the worker is to end. */
static bool asked_to_stop(struct worker *w)
{
	struct beat *beat = &w->start->watch->beats[0];
	struct signalfd_siginfo si;

	if (read(w->signal_fd, &si, sizeof(si)) != sizeof(si))
		return false;
	if (si.ssi_signo == SIGHUP) {
		reload(w);
		publish_config(w);
		return false;
	}
	w->state = NLPROTO_STATE_STOPPING;
	beat_end(beat); /* swapping off takes as long as it takes */
	log_info("stop: asked to by signal %u", si.ssi_signo);
	supervised_notify(&w->supervised, "STOPPING=1\nSTATUS=Swapping off");
	/* Swapping off takes the CPU and the store that a job would have. */
	engine_job_cancel(w->engine);
	if (stop_swap(w) == 0)
		return true;
	w->state = NLPROTO_STATE_RUNNING;
	beat_begin(beat);
	supervised_notify(&w->supervised,
			  "READY=1\nSTATUS=Refused to stop: swapped pages do not fit into memory");
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

static void hear_supervisor(struct worker *w)
{
	char text[NLPROTO_LINE_MAX];
	int pid;

	supervised_work(&w->supervised);
	pid = supervised_by(&w->supervised);
	if (!supervision_changed(&w->supervision, pid))
		return;
	if (pid)
		snprintf(text, sizeof(text), "supervisor %d has adopted worker %d", pid, getpid());
	else if (w->supervised.upgrading)
		snprintf(text, sizeof(text),
			 "the supervisor executes another program, which is to adopt worker %d",
			 getpid());
	else
		snprintf(text, sizeof(text),
			 "the supervisor is gone, and worker %d goes on without; start zswapd "
			 "again, and it adopts this worker",
			 getpid());
	endpoint_post(w->endpoint,
		      pid ? NLPROTO_EVENT_SUPERVISOR_FOUND : NLPROTO_EVENT_SUPERVISOR_LOST, text);
}

/* 0: asked to stop, and nothing is swapped any more; else as device_failed(). */
static int serve(struct worker *w)
{
	enum {
		SIGNAL,
		FAILED,
		CLIENT,
		SUPERVISOR,
		CALL,
		SOURCES
	};

	while (true) {
		struct pollfd fds[SOURCES] = {
			[SIGNAL] = {.fd = w->signal_fd},
			[FAILED] = {.fd = w->carrier.ops->failed_fd(w->transport)},
			[CLIENT] = {.fd = endpoint_fd(w->endpoint)},
			[SUPERVISOR] = {.fd = w->supervised.link},
			[CALL] = {.fd = kept_get(w->supervised.kept, KEPT_LISTENER)},
		};

		for (unsigned i = 0; i < SOURCES; i++)
			fds[i].events = POLLIN;
		poll(fds, SOURCES, TICK_MS);
		beat_turn(&w->start->watch->beats[0]);
		log_drain();
		publish_counters(w);
		if (fds[FAILED].revents)
			return device_failed(w);
		if (fds[CLIENT].revents) {
			endpoint_work(w->endpoint);
			publish_config(w);
		}
		if (fds[SUPERVISOR].revents || fds[CALL].revents)
			hear_supervisor(w);
		if (fds[SIGNAL].revents && asked_to_stop(w))
			return 0;
	}
}

static void announce(struct worker *w)
{
	char device[SIZE_TEXT_MAX], memory[SIZE_TEXT_MAX], store[SIZE_TEXT_MAX] = "no store";

	size_format(device, w->config.device_size);
	size_format(memory, engine_memory_limit(w->engine));
	if (w->store)
		size_format(store, (uint64_t)w->store->nplaces * STORE_PLACE_SIZE);
	log_info("ready: " DEVICE_LINK_DIR "/%s is %s by %s, %s; front tier %s, store %s%s%s",
		 w->config.device_name, w->disk.path, w->carrier.ops->name, device, memory, store,
		 w->store ? " at " : "", w->store ? w->store->path : "");
	w->state = NLPROTO_STATE_RUNNING;
	supervised_notify(&w->supervised, "READY=1\nSTATUS=Serving swap");
}

/*
 * A device whose pages are there goes to the next one, unless it is gone itself.  So do pages that
 * could not be looked at, but for those of another version.
 */
static bool may_another_try(const struct worker *w, int error)
{
	if (*w->handover.owner.device)
		return handover_device_there(&w->handover);
	return error != -EBADMSG && kept_get(w->supervised.kept, KEPT_STATE) >= 0;
}

/* The supervisor's to remove, if there is one.  While we live nobody else listens there. */
static void forget_listener(const struct worker *w)
{
	char path[DEVICE_LISTENER_MAX];

	if (!supervised_by(&w->supervised))
		unlink(device_listener(w->config.device_name, path));
}

static enum worker_exit run(struct worker *w)
{
	int r = steps_run(w);

	if (r == -ECANCELED)
		return WORKER_STOPPED;
	if (r < 0)
		return may_another_try(w, r) ? WORKER_AGAIN : WORKER_FAILED;
	announce(w);
	beat_begin(&w->start->watch->beats[0]);
	r = serve(w);
	beat_end(&w->start->watch->beats[0]);
	if (r > 0)
		return WORKER_AGAIN;
	steps_undo(w);
	forget_listener(w);
	log_info("stopped");
	return r == 0 ? WORKER_STOPPED : WORKER_FAILED;
}

enum worker_exit worker_run(const struct worker_start *start)
{
	struct worker w = {
		.start = start,
		.config = *start->config,
		.signal_fd = -1,
		.buffers_fd = -1,
		.supervised = {.link = start->link, .kept = start->kept},
		.handover = HANDOVER_NULL,
	};
	enum worker_exit status;

	w.state = NLPROTO_STATE_STARTING;
	supervision_init(&w.supervision, start->watch, supervised_by(&w.supervised));
	status = run(&w);
	log_drain();
	/* Everything that matters is undone; memory that a thread still looks at stays until then.
	 */
	if (w.left_behind)
		_exit(status);
	return status;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Starting is a table of steps, each with what undoes it; stopping goes through it backwards.
 */
#include "common/log.h"
#include "common/size.h"
#include "common/util.h"
#include "daemon/engine/engine.h"
#include "daemon/guard/guard.h"
#include "daemon/policy/mover.h"
#include "daemon/store/polled.h"
#include "daemon/store/store.h"
#include "daemon/worker/live.h"
#include "daemon/worker/swap.h"
#include "daemon/worker/worker_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>

#define STORE_WAIT_MS 3500u

static int open_signals(struct worker *w)
{
	w->signal_fd = system_open_signals();
	return w->signal_fd < 0 ? w->signal_fd : 0;
}

static void close_signals(struct worker *w)
{
	w->signal_fd = close_fd(w->signal_fd);
}

/* True if the pages and the device of a worker that died are to be taken over. */
static bool inherits(const struct worker *w)
{
	return *w->handover.owner.device;
}

static int receive_pages(struct worker *w)
{
	int r = handover_receive(&w->handover, &w->supervised);

	/* It would make a device of its own, beside the one that is served. */
	return r == 0 && w->start->standby && !inherits(w) ? -ENODEV : r;
}

static void close_pages(struct worker *w)
{
	handover_deinit(&w->handover);
}

static int choose_transport(struct worker *w)
{
	int r;

	if (!inherits(w))
		return carrier_choose(&w->carrier, &w->config);
	r = carrier_choose_for(&w->carrier, &w->config, w->handover.owner.device,
			       &w->handover.kept);
	if (r != -ESTALE || w->start->standby)
		return r;
	log_warn("the pages of %s are lost, since nobody can serve it again; a new device is made",
		 w->handover.owner.device);
	handover_give_up(&w->handover, &w->supervised);
	return carrier_choose(&w->carrier, &w->config);
}

static int prepare_system(struct worker *w)
{
	return system_prepare(&w->grants);
}

static int adapt_reclaim(struct worker *w)
{
	reclaim_adapt(&w->reclaim, RECLAIM_BOOST_PATH, DEVICE_RUN_DIR "/watermark_boost");
	return 0;
}

static void restore_reclaim(struct worker *w)
{
	reclaim_restore(&w->reclaim);
}

/*
 * True if the store is not there and need not be, or if the pages that are taken over never had
 * one. A drive that is found late is waited for, but the start of the system waits for us.
 */
static bool goes_without_store(const struct worker *w)
{
	static const uint8_t none[STATE_STORE_ID];
	const char *path = w->config.store_path;

	if (!*path)
		return true;
	if (w->config.store_required)
		return false;
	if (inherits(w)) {
		if (memcmp(w->handover.owner.store, none, sizeof(none)) != 0)
			return false;
		if (!w->start->standby)
			log_notice("store %s: the pages to be taken over were without it from the "
				   "start and stay so; stop and start to use it",
				   path);
		return true;
	}
	if (store_await(path, STORE_WAIT_MS) == 0)
		return false;
	log_warn(
		"store %s is not there, after %u ms; all pages stay in memory: when [memory] limit is "
		"reached, swapping out fails.  Stop and start when it is there, or set [store] "
		"required to yes",
		path, STORE_WAIT_MS);
	return true;
}

static int open_store(struct worker *w)
{
	struct store_options o = {.path = w->config.store_path,
				  .size = w->config.store_size,
				  .fd = kept_get(w->supervised.kept, KEPT_STORE),
				  .keep = inherits(w) ? w->handover.owner.store : NULL};
	int r;

	if (goes_without_store(w))
		return 0;
	r = store_open(&w->store, &o);
	if (r == 0 && !w->start->standby)
		r = supervised_keep(&w->supervised, KEPT_STORE, w->store->fd);
	if (r < 0)
		return r;
	/* Polling may be switched on later, so this is found out in any case. */
	w->store_polls = polled_probe(w->store->fd, w->store->path,
				      w->config.store_poll != CONFIG_POLL_OFF) == 0;
	return 0;
}

static void close_store(struct worker *w)
{
	if (w->left_behind)
		return;
	store_free(w->store);
	w->store = NULL;
}

/* While there is one thread, since each has its own. */
static int drop_capabilities(struct worker *w)
{
	(void)w;
	guard_drop_capabilities();
	return 0;
}

static int open_engine(struct worker *w)
{
	struct engine_options o = {
		.device_bytes = w->config.device_size,
		.memory_limit = w->config.memory_limit,
		.memory_max = w->config.ram_bytes,
		.memory_reserve = w->config.memory_reserve,
		.level = w->config.memory_level,
		.overlap = w->config.read_overlap,
		.poll = (enum engine_poll)w->config.store_poll, /* same order: see live.c */
		.nqueues = w->carrier.nqueues,
		.store = {.fd = -1},
		.state_fd = w->handover.state_fd,
		.front_fd = w->handover.front_fd,
		.standby = w->start->standby,
	};
	int r;

	if (w->store) {
		o.store = (struct engine_store){.fd = w->store->fd,
						.nplaces = w->store->nplaces,
						.data_offset = w->store->data_offset,
						.dio_align = w->store->dio_align,
						.polls = w->store_polls};
		memcpy(o.store.id, w->store->id, sizeof(o.store.id));
	}
	r = engine_new(&w->engine, &o);
	if (r < 0)
		return r;
	w->handover.state_fd = w->handover.front_fd = -1; /* the engine's now */
	return 0;
}

static void close_engine(struct worker *w)
{
	if (w->left_behind)
		return;
	engine_free(w->engine);
	w->engine = NULL;
}

/* What was set since this process was forked. */
static void take_config(struct worker *w)
{
	if (!watch_config(w->start->watch, &w->config))
		return;
	engine_set_level(w->engine, w->config.memory_level);
	engine_set_overlap(w->engine, w->config.read_overlap);
	engine_set_poll(w->engine, (enum engine_poll)w->config.store_poll);
}

static bool hold_pages(void *engine)
{
	return engine_standby_hold(engine);
}

/* To a standby that was told to stop, nothing was to be stopped. */
static void forget_signals(void)
{
	const struct timespec none = {0};
	sigset_t stop;

	sigemptyset(&stop);
	sigaddset(&stop, SIGTERM);
	sigaddset(&stop, SIGINT);
	while (sigtimedwait(&stop, NULL, &none) > 0)
		;
}

static int await_order(struct worker *w)
{
	if (!w->start->standby)
		return 0;
	if (!supervised_await_order(&w->supervised, hold_pages, w->engine))
		return -ECANCELED;
	supervision_ordered(&w->supervision);
	prctl(PR_SET_NAME, WORKER_COMM);
	forget_signals();
	if (!handover_device_there(&w->handover)) {
		log_err("%s is gone, and what was swapped to it", w->handover.owner.device);
		return -ENODEV;
	}
	take_config(w);
	return engine_take_over(w->engine);
}

/* Nobody but this process is shown on the page from here on. */
static int begin_watch(struct worker *w)
{
	watch_begin(w->start->watch);
	supervision_begin(&w->supervision);
	watch_catch_crashes(w->start->watch);
	return 0;
}

static int prepare_mover(struct worker *w)
{
	return mover_prepare(&w->mover, w->engine);
}

static int start_mover(struct worker *w)
{
	mover_go(w->mover);
	return 0;
}

static void stop_mover(struct worker *w)
{
	mover_stop(w->mover);
	w->mover = NULL;
}

/* With one memfd for this process and its successors. */
static int open_buffers(struct worker *w)
{
	int fd = kept_copy(w->supervised.kept, KEPT_BUFFERS), r;

	if (fd < 0) {
		fd = memfd_create("zswapd-buffers", MFD_CLOEXEC);
		if (fd < 0)
			return -errno;
		r = supervised_keep(&w->supervised, KEPT_BUFFERS, fd);
		if (r < 0) {
			close(fd);
			return r;
		}
	}
	w->buffers_fd = fd;
	return 0;
}

static void close_buffers(struct worker *w)
{
	w->buffers_fd = close_fd(w->buffers_fd);
}

static struct transport_options transport_options(struct worker *w)
{
	struct transport_options o = {
		.name = w->config.device_name,
		.run_dir = DEVICE_RUN_DIR,
		.device_bytes = w->config.device_size,
		.store_fd = w->store ? w->store->fd : -1,
		.engine = w->engine,
		.beats = w->start->watch->beats + 1,
		.buffers_fd = w->buffers_fd,
	};

	if (inherits(w)) {
		o.takeover = w->handover.owner.device;
		o.kept = &w->handover.kept;
	}
	return o;
}

static int prepare_transport(struct worker *w)
{
	struct transport_options o = transport_options(w);

	return inherits(w) ? carrier_prepare(&w->carrier, &w->transport, &o) : 0;
}

static int open_transport(struct worker *w)
{
	struct transport_options o = transport_options(w);
	int r;

	r = inherits(w) ? w->carrier.ops->resume(w->transport)
			: carrier_open(&w->carrier, &w->transport, &o);
	if (r < 0)
		return r;
	device_disk(w->carrier.ops->device(w->transport), &w->disk);
	if (inherits(w))
		supervision_took_over(&w->supervision);
	return 0;
}

static void close_transport(struct worker *w)
{
	w->transport->ops->close(w->transport);
	w->transport = NULL;
	device_unlink(w->config.device_name);
}

/* From here on the pages outlive this process, if the device does. */
static int leave_pages(struct worker *w)
{
	const struct transport_ops *ops = w->carrier.ops;
	int r;

	if (!ops->queues_of || (ops->keep && ops->keep(w->transport, &w->kept) < 0))
		return 0;
	engine_set_device(w->engine, w->disk.path, w->disk.diskseq);
	r = handover_deposit(&w->supervised, w->engine, &w->kept);
	w->left = r == 0;
	return r;
}

static void withdraw_pages(struct worker *w)
{
	if (w->left)
		handover_withdraw(&w->supervised);
}

/* What is wrong with a device that was taken over is no reason to let all of its pages go. */
static int unless_inherited(const struct worker *w, int r)
{
	return inherits(w) ? 0 : r;
}

/*
 * Not one that was taken over: programs are waiting for it already, and a read of our own that
 * waits with them, in the kernel, would keep this process from ending if it died meanwhile; who is
 * to serve it next has to wait for that end.
 */
static int probe_device(struct worker *w)
{
	return inherits(w) ? 0 : device_probe(w->disk.path);
}

static int link_device(struct worker *w)
{
	return unless_inherited(w, device_link(w->config.device_name, w->disk.path));
}

static int control_apply(void *ctx, enum config_option_id id, const struct config *c,
			 char reason[static CONFIG_REASON_MAX])
{
	return live_apply(((struct worker *)ctx)->engine, id, c, reason);
}

static void control_changed(void *ctx, const char *key, const char *text)
{
	endpoint_changed(((struct worker *)ctx)->endpoint, key, text);
}

/* While it starts or stops, the daemon must not say that it is ready. */
static void control_notify(void *ctx, const char *state)
{
	if (((struct worker *)ctx)->state == NLPROTO_STATE_RUNNING)
		supervised_notify(&((struct worker *)ctx)->supervised, state);
}

static void log_kept(const struct config *c)
{
	char limit[SIZE_TEXT_MAX];

	if (!strcmp(c->origin[CONFIG_OPTION_memory_limit], LIVE_KEPT_ORIGIN))
		log_notice("memory.limit: %s, " LIVE_KEPT_ORIGIN
			   "; 'zswapctl reload' makes it what the files say",
			   size_format(limit, c->memory_limit));
}

static int make_control(struct worker *w)
{
	static const struct control_ops ops = {
		.apply = control_apply, .changed = control_changed, .notify = control_notify};

	if (inherits(w)) {
		live_kept(w->engine, &w->config);
		log_kept(&w->config);
	}
	watch_set_config(w->start->watch, &w->config);
	return control_new(&w->control, &w->config, w->start->source, &ops, w);
}

static void free_control(struct worker *w)
{
	control_free(w->control);
	w->control = NULL;
}

/* The supervisor takes its time to answer, and must not take this for a worker that hangs. */
static int upgrade(void *ctx, char *text, size_t size)
{
	struct worker *w = ctx;
	struct beat *beat = &w->start->watch->beats[0];
	int r;

	beat_end(beat);
	r = supervised_upgrade(&w->supervised, text, size);
	beat_begin(beat);
	return r;
}

static int start_endpoint(struct worker *w)
{
	struct endpoint_source src = {
		.config = &w->config,
		.transport = w->carrier.ops->name,
		.engine = w->engine,
		.control = w->control,
		.grants = &w->grants,
		.state = &w->state,
		.store_missing = *w->config.store_path && !w->store,
		.supervision = &w->supervision,
		.upgrade = upgrade,
		.ctx = w,
	};

	endpoint_start(&w->endpoint, &src);
	return 0;
}

static void stop_endpoint(struct worker *w)
{
	w->left_behind = endpoint_stop(w->endpoint) < 0;
	w->endpoint = NULL;
}

/*
 * A swap device is listed by its path in the namespace of who swapped it on.  When that one is
 * gone, as a service's is with its last process, /dev/ublkb0 becomes /ublkb0, and nobody else can
 * swap it off by what is listed.  So the namespace stays for as long as the pages do.
 */
static void keep_mounts(struct worker *w)
{
	cleanup_fd int fd = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		log_warn("the mount namespace can't be kept: %s", strerror(errno));
	else
		supervised_keep(&w->supervised, KEPT_MOUNTS, fd);
}

static int start_swap(struct worker *w)
{
	uint64_t total, used;
	int r;

	if (!w->config.swap_enable)
		return 0;
	/* After a takeover it never went off: formatted only if it certainly is no swap. */
	if (inherits(w) && swap_usage(w->disk.path, &total, &used) != -ENOENT)
		return 0;
	r = swap_format(w->disk.path, w->config.device_name);
	if (r < 0)
		return r;
	keep_mounts(w);
	return swap_on(w->disk.path, w->config.swap_priority,
		       w->config.swap_discard == CONFIG_DISCARD_PAGES);
}

static int drop_calls(struct worker *w)
{
	guard_filter(GUARD_WORKER, (enum guard_filtering)w->config.security_seccomp);
	return 0;
}

static const struct step {
	const char *what; /* completes "cannot ..." */
	int (*run)(struct worker *w);
	void (*undo)(struct worker *w);
} steps[] = {
	{"read signals", open_signals, close_signals},
	{"take over what a former daemon left", receive_pages, close_pages},
	{"choose a transport", choose_transport, NULL},
	{"lock memory", prepare_system, NULL},
	{"adapt the kernel's reclaim", adapt_reclaim, restore_reclaim},
	{"open the store", open_store, close_store},
	{"give up capabilities", drop_capabilities, NULL},
	{"make the tiers", open_engine, close_engine},
	{"prepare the mover", prepare_mover, stop_mover},
	{"make buffers", open_buffers, close_buffers},
	{"prepare the device", prepare_transport, NULL},
	{"take over", await_order, NULL},
	{"be watched", begin_watch, NULL},
	{"start the mover", start_mover, NULL},
	{"make the device", open_transport, close_transport},
	{"leave the pages to a successor", leave_pages, withdraw_pages},
	{"read from the device", probe_device, NULL},
	{"link the device", link_device, NULL}, /* undone when the device is gone */
	{"take requests", make_control, free_control},
	{"start the statistics", start_endpoint, stop_endpoint},
	{"swap on the device", start_swap, NULL}, /* swapping off can be refused: see stop_swap() */
	{"give up system calls", drop_calls, NULL},
};

static void undo(struct worker *w, size_t n)
{
	while (n-- > 0) {
		if (steps[n].undo)
			steps[n].undo(w);
	}
}

int steps_run(struct worker *w)
{
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		int r = steps[i].run(w);

		if (r == 0)
			continue;
		if (r == -ECANCELED)
			return r;
		log_err("start: cannot %s: %s", steps[i].what, strerror(-r));
		if (!inherits(w))
			undo(w, i);
		else
			log_err("%s and its pages are left as they are, for another try",
				w->handover.owner.device);
		return r;
	}
	return 0;
}

void steps_undo(struct worker *w)
{
	undo(w, ARRAY_SIZE(steps));
}

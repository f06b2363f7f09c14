// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * From the lock of the device's name to a worker, of one's own or of a supervisor that has died;
 * and the end.
 */
#include "common/log.h"
#include "common/util.h"
#include "daemon/guard/guard.h"
#include "daemon/super/lock.h"
#include "daemon/super/super_impl.h"
#include "daemon/worker/device.h"
#include "daemon/worker/system.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#define HOLDER_NS 3000000000ull /* of the lock, who is not seen to be a worker */
#define PAUSE_MS  20

/* What the service manager has kept of a daemon of which nothing lives. */
static void take_from_manager(struct super *s)
{
	char **names = NULL;
	int n = sd_listen_fds_with_names(1, &names);

	if (n < 0)
		log_warn("cannot take what the service manager passed on: %s", strerror(-n));
	for (int i = 0; i < n; i++) {
		int fd = SD_LISTEN_FDS_START + i;

		/* Of two of a name, the manager's later one counts. */
		if (strncmp(names[i], "zswapd-", 7) != 0)
			close_fd(fd);
		else if (kept_put(&s->kept, names[i], fd) < 0)
			log_warn("the service manager passed on too much: %s is not taken",
				 names[i]);
		free(names[i]);
	}
	free(names);
}

/* The worker has given us all of them, and a device would not go while others hold them too. */
static void leave_what_manager_passed(void)
{
	int n = sd_listen_fds(1);

	for (int i = 0; i < n; i++)
		close_fd(SD_LISTEN_FDS_START + i);
}

static int keep_watch(struct super *s)
{
	int fd, r = watch_new(&s->watch, &fd);

	return r < 0 ? r : kept_put(&s->kept, KEPT_WATCH, fd);
}

static int start_worker(struct super *s, int lock)
{
	char path[DEVICE_LISTENER_MAX];
	int r = kept_put(&s->kept, KEPT_LOCK, lock), listener;

	take_from_manager(s);
	upgrade_settle(s, true);
	if (r == 0)
		r = keep_watch(s);
	if (r == 0) {
		listener = link_listen(device_listener(s->o->config->device_name, path));
		r = listener < 0 ? listener : kept_put(&s->kept, KEPT_LISTENER, listener);
	}
	return r < 0 ? r : child_fork(s, &s->worker, false);
}

/*
 * Everything of the worker's, but a page that we can't read.  -EAGAIN: there may be no worker
 * behind the lock, and whoever holds it is about to end.
 */
static int adopt_worker(struct super *s, const char *holder, bool patient)
{
	char path[DEVICE_LISTENER_MAX];
	int r = adopt(s, device_listener(s->o->config->device_name, path));

	if (r == -ENOENT && patient)
		return -EAGAIN;
	if (r < 0) {
		log_err("[device] name: %s is served by another zswapd (pid %s)%s; stop it or "
			"choose another name",
			s->o->config->device_name, holder,
			r == -EBUSY || r == -ENOENT ? "" : ", whose worker does not answer");
		return -EBUSY;
	}
	r = watch_attach(&s->watch, kept_get(&s->kept, KEPT_WATCH));
	if (r == -EBADMSG) {
		s->blind = true;
		r = keep_watch(s);
	}
	if (r < 0)
		return r;
	upgrade_settle(s, false);
	leave_what_manager_passed();
	lock_sign(kept_get(&s->kept, KEPT_LOCK), s->o->config->device_name);
	if (s->worker.pid)
		log_info("worker %d serves %s and is adopted", s->worker.pid,
			 s->o->config->device_name);
	else
		s->go_at = now_ns();
	for (unsigned i = 0; i < s->kept.n; i++) {
		if (!kept_is_private(s->kept.entries[i].name))
			notify_fd(&s->notify, &s->kept, s->kept.entries[i].name, false);
	}
	if (s->worker.pid) {
		notify_text(&s->notify, "READY=1\nSTATUS=Serving swap");
		s->fork_at = now_ns(); /* once rights are given up */
	}
	return 0;
}

/* The name is ours, or its worker is. */
static int find_worker(struct super *s)
{
	uint64_t deadline = now_ns() + HOLDER_NS;
	char holder[LOCK_PID_MAX];
	int r;

	while (true) {
		r = lock_take(DEVICE_RUN_DIR, s->o->config->device_name, holder);
		if (r >= 0)
			return start_worker(s, r);
		if (r != -EBUSY)
			return r;
		r = adopt_worker(s, holder, now_ns() < deadline);
		if (r != -EAGAIN)
			return r;
		poll(NULL, 0, PAUSE_MS);
	}
}

/* The first worker has been forked with all rights; those that follow need no more than this. */
static void give_up_rights(const struct super *s)
{
	guard_drop_capabilities();
	guard_filter(GUARD_SUPERVISOR, (enum guard_filtering)s->o->config->security_seccomp);
}

int super_start(struct super *s)
{
	struct system_grants grants;
	int r;

	guard_begin();
	s->signal_fd = system_open_signals();
	if (s->signal_fd < 0)
		return s->signal_fd;
	r = system_prepare(&grants);
	if (r < 0)
		return r;
	system_warn(&grants);
	notify_init(&s->notify);
	upgrade_init(s);
	r = find_worker(s);
	if (r < 0)
		return r;
	give_up_rights(s);
	return 0;
}

void super_stop(struct super *s)
{
	char path[DEVICE_LISTENER_MAX];

	child_end(&s->standby);
	run_deinit(&s->upgrade.run);
	/* A worker that lives is called there. */
	if (!s->worker.pid && kept_get(&s->kept, KEPT_LISTENER) >= 0)
		unlink(device_listener(s->o->config->device_name, path));
	watch_free(s->watch);
	kept_deinit(&s->kept);
	notify_deinit(&s->notify);
	close_fd(s->signal_fd);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Making and taking away the device: /dev/fuse, mount, threads, the file, the loop device.
 *
 * There is no mount helper: the descriptor is opened here and given to the kernel.  The file system
 * is mounted nowhere: fsmount(2) makes a mount that only a descriptor of ours leads to, so that
 * nobody can open the file past the loop device, and nothing is left behind whatever happens to the
 * daemon.  Once the loop device holds the file that descriptor is closed.  A mount namespace would
 * not do as well: see docs/SECURITY.md.  How the device goes on after its server's death is
 * takeover.c's.
 */
#include "common/log.h"
#include "fuse/internal.h"
#include "fuse/transport_fuse.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mount.h>

static const char *unusable(void)
{
	if (access("/dev/fuse", R_OK | W_OK) < 0)
		return "/dev/fuse can't be opened (is the module fuse loaded?)";
	if (access("/dev/loop-control", R_OK | W_OK) < 0)
		return "/dev/loop-control can't be opened (is the module loop loaded?)";
	return NULL;
}

/*
 * One.  All threads would read the same queue, so a second one mostly takes requests away from the
 * first one's batch and costs a wake-up; measured, one thread serves more requests than two.
 */
static unsigned default_queues(void)
{
	return 1;
}

/* A setting of a file system that is being made; a flag if @value is NULL. */
static int set(int fs, const char *key, const char *value)
{
	return fsconfig(fs, value ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG, key, value, 0);
}

static int configure(int fs, int fuse_fd)
{
	char fd[16], max_read[16];

	snprintf(fd, sizeof(fd), "%d", fuse_fd);
	snprintf(max_read, sizeof(max_read), "%u", FUSE_IO_MAX);
	if (set(fs, "source", "zswapd") < 0 || set(fs, "subtype", "zswapd") < 0 ||
	    set(fs, "fd", fd) < 0 || set(fs, "rootmode", "40000") < 0 ||
	    set(fs, "user_id", "0") < 0 || set(fs, "group_id", "0") < 0 ||
	    set(fs, "max_read", max_read) < 0)
		return -errno;
	return fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0 ? -errno : 0;
}

static int mount_fuse(struct fuse_transport *t)
{
	const unsigned flags =
		MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC | MOUNT_ATTR_NOATIME;
	cleanup_fd int fs = fsopen("fuse", FSOPEN_CLOEXEC);
	int r = fs < 0 ? -errno : configure(fs, t->fd);

	if (r == 0) {
		t->mount_fd = fsmount(fs, FSMOUNT_CLOEXEC, flags);
		r = t->mount_fd < 0 ? -errno : 0;
	}
	if (r < 0)
		log_err("fuse: cannot make the file system: %s", strerror(-r));
	return r;
}

static void unmount_fuse(struct fuse_transport *t)
{
	t->mount_fd = close_fd(t->mount_fd);
}

static int open_session(struct fuse_transport *t)
{
	int r;

	t->fd = open("/dev/fuse", O_RDWR | O_CLOEXEC | O_NONBLOCK);
	if (t->fd < 0) {
		r = -errno;
		log_err("fuse: cannot open /dev/fuse: %s", strerror(-r));
		return r;
	}
	r = session_open(t);
	if (r < 0)
		t->fd = close_fd(t->fd);
	return r;
}

int fuse_start_threads(struct fuse_transport *t)
{
	t->threads = calloc(t->o.nqueues, sizeof(*t->threads));
	if (!t->threads)
		return -ENOMEM;
	for (; t->nthreads < t->o.nqueues; t->nthreads++) {
		int r = fuse_thread_start(&t->threads[t->nthreads], t, t->nthreads);

		if (r < 0)
			return r;
	}
	return 0;
}

void fuse_go(struct fuse_transport *t)
{
	atomic_store_explicit(&t->go, true, memory_order_release);
	for (unsigned i = 0; i < t->nthreads; i++)
		data_thread_wake(&t->threads[i].base);
}

static int attach(struct fuse_transport *t)
{
	cleanup_fd int file = openat(t->mount_fd, FUSE_FILE_NAME, O_RDWR | O_CLOEXEC | O_DIRECT);
	char info[64];

	if (file < 0) {
		int r = -errno;

		log_err("fuse: cannot open the device's file: %s", strerror(-r));
		return r;
	}
	snprintf(info, sizeof(info), "zswapd:%s", t->o.name);
	return loopdev_attach(file, info, t->device);
}

/*
 * Also for a transport that was opened half way.  A device that could not be taken over stays, as
 * long as others keep its descriptors.
 */
static void tear_down(struct fuse_transport *t)
{
	/* First, since the unmount can end the connection, which is no failure now. */
	atomic_store(&t->stop, true);
	unmount_fuse(t);
	/* Closing the descriptor below ends requests that somebody still waits for. */
	for (unsigned i = 0; i < t->nthreads; i++)
		data_thread_wake(&t->threads[i].base);
	for (unsigned i = 0; i < t->nthreads; i++)
		data_thread_join(&t->threads[i].base);
	session_close(t);
	close_fd(t->fd);
	close_fd(t->loop_fd);
	close_fd(t->note_fd);
	close_fd(t->failed_fd);
	free(t->threads);
	free(t);
}

static int make(struct fuse_transport *t)
{
	int r = open_session(t);

	if (r == 0)
		r = mount_fuse(t);
	if (r == 0)
		r = fuse_start_threads(t);
	if (r == 0) {
		fuse_go(t);
		r = attach(t);
	}
	if (r < 0)
		return r;
	fuse_hold(t);
	unmount_fuse(t);
	return 0;
}

static struct fuse_transport *downcast(const struct transport *t)
{
	return container_of(t, struct fuse_transport, base);
}

/* A transport, and with @how its device. */
static int new_transport(struct transport **ret, const struct transport_options *o,
			 int (*how)(struct fuse_transport *t))
{
	struct fuse_transport *t = calloc(1, sizeof(*t));
	int r;

	if (!t)
		return -ENOMEM;
	t->base.ops = &transport_fuse;
	t->o = *o;
	t->fd = t->mount_fd = t->loop_fd = t->note_fd = -1;
	t->failed_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r = t->failed_fd < 0 ? -errno : how(t);
	if (r < 0) {
		tear_down(t);
		return r;
	}
	*ret = &t->base;
	return 0;
}

static int fuse_open(struct transport **ret, const struct transport_options *o)
{
	return new_transport(ret, o, make);
}

static int fuse_prepare(struct transport **ret, const struct transport_options *o)
{
	return new_transport(ret, o, fuse_adopt);
}

static int resume(struct transport *base)
{
	struct fuse_transport *t = downcast(base);
	int r = fuse_resume(t);

	if (r < 0)
		tear_down(t);
	return r;
}

static int fuse_close(struct transport *base)
{
	struct fuse_transport *t = downcast(base);
	int r;

	/* The loop device holds the last reference to the file system, and takes it along. */
	atomic_store(&t->closing, true);
	t->loop_fd = close_fd(t->loop_fd);
	r = loopdev_detach(t->device);
	if (r < 0)
		log_warn("fuse: %s is still open somewhere; it is taken away all the same",
			 t->device);
	tear_down(t);
	return r;
}

static const char *fuse_device(const struct transport *t)
{
	return downcast(t)->device;
}

static int fuse_failed_fd(const struct transport *t)
{
	return downcast(t)->failed_fd;
}

static const char *const modules[] = {"fuse", "loop", NULL};

const struct transport_ops transport_fuse = {
	.name = "fuse",
	.modules = modules,
	.unusable = unusable,
	.default_queues = default_queues,
	.queues_of = fuse_queues_of,
	.keep = fuse_keep,
	.gone = fuse_gone,
	.open = fuse_open,
	.prepare = fuse_prepare,
	.resume = resume,
	.close = fuse_close,
	.device = fuse_device,
	.failed_fd = fuse_failed_fd,
};

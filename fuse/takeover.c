// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A device that outlives its server.
 *
 * The connection lives as long as somebody has its descriptor of /dev/fuse, the loop device as long
 * as somebody has it open.  Both are given to whoever keeps them for a successor, with the note
 * (see note.h), and while nobody serves, requests wait in the kernel: new ones in its queue, and
 * those that the dead server had read in a list of what it has not answered.  The successor has the
 * latter queued again (NOTIFY_RESEND); they come once more, with the highest bit of their name set,
 * by which they must be answered.  An answer is taken whole or not at all, so no request is lost
 * and none is answered by halves.
 *
 * RESEND queues all that is unanswered, so it must be written before any thread of ours has read a
 * request: it would be served twice at once, and the slower of two writes could undo what was
 * written after both were answered.  The former server is dead by then, since this process has the
 * lock of the device's name.
 */
#include "common/log.h"
#include "fuse/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/fs.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#define NAME_FUSE     "zswapd-fuse"
#define NAME_LOOP     "zswapd-loop"
#define NAME_NOTE     "zswapd-fuse-init"
#define NOTIFY_RESEND 7 /* since 6.9; older headers have no name for it */

void fuse_hold(struct fuse_transport *t)
{
	/* acquire: pairs with the release in note_init(). */
	if (!atomic_load_explicit(&t->noted, memory_order_acquire) ||
	    !note_resends(t->note.init, t->note.init_len)) {
		log_notice(
			"fuse: this kernel (older than 6.9) sends no request twice: if this daemon "
			"is killed, what is swapped is lost");
		return;
	}
	t->note.io_max = FUSE_IO_MAX;
	t->note.device_bytes = t->o.device_bytes;
	if (note_save(&t->note, &t->note_fd) < 0)
		return;
	/* For reading: udev would look at the device again after one who could write. */
	t->loop_fd = open(t->device, O_RDONLY | O_CLOEXEC);
	if (t->loop_fd < 0)
		log_warn("fuse: cannot hold %s for a successor: %s", t->device, strerror(errno));
}

static void add(struct transport_kept *k, const char *name, int fd)
{
	snprintf(k->fds[k->n].name, sizeof(k->fds[k->n].name), "%s", name);
	k->fds[k->n++].fd = fd;
}

int fuse_keep(const struct transport *base, struct transport_kept *ret)
{
	const struct fuse_transport *t = container_of(base, struct fuse_transport, base);
	struct transport_kept k = {0};

	if (t->note_fd < 0 || t->loop_fd < 0)
		return -EOPNOTSUPP;
	add(&k, NAME_FUSE, t->fd);
	add(&k, NAME_LOOP, t->loop_fd);
	add(&k, NAME_NOTE, t->note_fd);
	*ret = k;
	return 0;
}

static int find(const struct transport_kept *k, const char *name)
{
	for (unsigned i = 0; k && i < k->n; i++) {
		if (strcmp(k->fds[i].name, name) == 0)
			return k->fds[i].fd;
	}
	return -1;
}

static int take(struct transport_kept *k, const char *name)
{
	int fd = find(k, name);

	for (unsigned i = 0; k && i < k->n; i++) {
		if (k->fds[i].fd == fd)
			k->fds[i].fd = -1;
	}
	return fd;
}

/* The kernel says so of a connection that was aborted, and of a descriptor that never had one. */
static bool disconnected(int fd)
{
	struct pollfd p = {.fd = fd};

	return poll(&p, 1, 0) == 1 && (p.revents & (POLLERR | POLLNVAL));
}

bool fuse_gone(const struct transport *base)
{
	return disconnected(container_of(base, struct fuse_transport, base)->fd);
}

static bool can_serve(const char *device, const struct transport_kept *kept)
{
	static const char *const names[] = {NAME_FUSE, NAME_LOOP, NAME_NOTE};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (find(kept, names[i]) >= 0)
			continue;
		log_warn("fuse: %s can't be served again: %s was not kept", device, names[i]);
		return false;
	}
	if (!disconnected(find(kept, NAME_FUSE)))
		return true;
	log_warn("fuse: %s can't be served again: its connection was ended", device);
	return false;
}

int fuse_queues_of(const char *device, const struct transport_kept *kept)
{
	unsigned number;

	if (sscanf(device, "/dev/loop%u", &number) != 1)
		return -ENODEV;
	if (can_serve(device, kept))
		return 0; /* any number of threads reads one connection */
	/* It may still be swap; then it goes once that is off. */
	loopdev_forsake(device);
	return -ESTALE;
}

/* True if @t->loop_fd is the device, as large as it must be. */
static bool is_device(const struct fuse_transport *t)
{
	struct stat kept, named;
	uint64_t bytes;

	if (fstat(t->loop_fd, &kept) < 0 || stat(t->device, &named) < 0 || !S_ISBLK(kept.st_mode) ||
	    kept.st_rdev != named.st_rdev) {
		log_err("fuse: what was kept of %s is another device", t->device);
		return false;
	}
	if (ioctl(t->loop_fd, BLKGETSIZE64, &bytes) < 0)
		bytes = 0;
	if (bytes == t->o.device_bytes && t->note.device_bytes == bytes)
		return true;
	log_err("fuse: %s has %" PRIu64 " bytes over a file of %" PRIu64 ", and %" PRIu64
		" are configured; start with the former configuration",
		t->device, bytes, t->note.device_bytes, t->o.device_bytes);
	return false;
}

static int check_note(const struct fuse_transport *t)
{
	if (t->note.io_max > FUSE_IO_MAX) {
		log_err("fuse: %s has requests of %u bytes; this version serves at most %u; start the "
			"version that made it",
			t->device, t->note.io_max, FUSE_IO_MAX);
		return -EINVAL;
	}
	return is_device(t) ? 0 : -EINVAL;
}

int fuse_adopt(struct fuse_transport *t)
{
	int r;

	snprintf(t->device, sizeof(t->device), "%s", t->o.takeover);
	t->fd = take(t->o.kept, NAME_FUSE);
	t->loop_fd = take(t->o.kept, NAME_LOOP);
	t->note_fd = take(t->o.kept, NAME_NOTE);
	if (t->fd < 0 || t->loop_fd < 0 || t->note_fd < 0) {
		log_err("fuse: %s can't be served again: its descriptors were not kept", t->device);
		return -ESTALE;
	}
	r = note_load(&t->note, t->note_fd);
	if (r == 0)
		r = check_note(t);
	if (r == 0)
		r = session_open(t);
	if (r == 0)
		r = session_replay(t);
	if (r == 0)
		r = fuse_start_threads(t);
	return r;
}

/* Has the kernel queue what the former server read and did not answer. */
static int resend(const struct fuse_transport *t)
{
	const struct fuse_out_header h = {.len = sizeof(h), .error = NOTIFY_RESEND};
	int r = 0;

	if (write(t->fd, &h, sizeof(h)) != sizeof(h)) {
		r = -errno;
		log_err("fuse: the kernel does not send again what %s was asked: %s", t->device,
			strerror(-r));
	}
	return r;
}

int fuse_resume(struct fuse_transport *t)
{
	int r = resend(t);

	if (r == 0)
		fuse_go(t);
	return r;
}

// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/worker/device.h"
#include "common/log.h"
#include "common/textfile.h"
#include "common/util.h"
#include "daemon/store/ring.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define PROBE_BYTES 4096u
#define PROBE_NS    30000000000ull

const char *device_listener(const char *name, char path[static DEVICE_LISTENER_MAX])
{
	snprintf(path, DEVICE_LISTENER_MAX, DEVICE_RUN_DIR "/%s.sock", name);
	return path;
}

void device_disk(const char *path, struct device_disk *ret)
{
	char name[96];

	snprintf(ret->path, sizeof(ret->path), "%s", path);
	snprintf(name, sizeof(name), "/sys/block/%s/diskseq",
		 strrchr(ret->path, '/') ? strrchr(ret->path, '/') + 1 : ret->path);
	ret->diskseq = 0;
	textfile_read_u64(name, &ret->diskseq);
}

bool device_there(const struct device_disk *d)
{
	struct device_disk now;

	device_disk(d->path, &now);
	return d->path[0] && now.diskseq && now.diskseq == d->diskseq;
}

/*
 * An event of the device that has its name in it, for udev's rules (systemd/zswapd.rules).  The
 * kernel takes letters and digits only; who has another name does without.  No UUID is special.
 */
static void announce(const char *name, const char *device)
{
	char path[128], event[96];

	snprintf(path, sizeof(path), "/sys/class/block/%s/uevent", strrchr(device, '/') + 1);
	snprintf(event, sizeof(event), "change 7a737761-7064-4000-8000-000000000000 ZSWAPD=%s",
		 name);
	textfile_write(path, event);
}

int device_link(const char *name, const char *device)
{
	char path[128], temporary[160];
	struct stat st;
	int r;

	if (mkdir(DEVICE_LINK_DIR, 0755) < 0 && errno != EEXIST)
		goto fail;
	snprintf(path, sizeof(path), DEVICE_LINK_DIR "/%s", name);
	if (lstat(path, &st) == 0 && !S_ISLNK(st.st_mode)) {
		log_err("%s is no symbolic link of ours; remove it", path);
		return -EEXIST;
	}
	/* Renamed into place, so that the name never leads nowhere. */
	snprintf(temporary, sizeof(temporary), "%s.new", path);
	unlink(temporary);
	if (symlink(device, temporary) == 0 && rename(temporary, path) == 0) {
		announce(name, device);
		return 0;
	}
fail:
	r = -errno;
	log_err("cannot make " DEVICE_LINK_DIR "/%s: %s", name, strerror(-r));
	return r;
}

void device_unlink(const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), DEVICE_LINK_DIR "/%s", name);
	unlink(path);
	rmdir(DEVICE_LINK_DIR); /* succeeds for the last one */
}

/* By io_uring, since a read(2) of a device that does not answer can't be given up. */
int device_probe(const char *device)
{
	cleanup_fd int fd = open(device, O_RDONLY | O_DIRECT | O_CLOEXEC);
	cleanup_free void *page = aligned_alloc(PROBE_BYTES, PROBE_BYTES);
	struct ring_answer answer;
	struct ring ring;
	int r;

	if (fd < 0 || !page) {
		r = fd < 0 ? -errno : -ENOMEM;
		log_err("cannot open %s: %s", device, strerror(-r));
		return r;
	}
	r = ring_init(&ring, 4, fd, 0);
	if (r < 0)
		return r;
	ring_answer_init(&answer);
	ring_store_read(&ring, &answer.op, page, PROBE_BYTES, 0, -1);
	if (!ring_await(&ring, &answer, PROBE_NS)) {
		log_err("%s did not answer a read within 30 s", device);
		page = NULL; /* the read may still come; its page must not be used again */
		return -ETIMEDOUT;
	}
	ring_deinit(&ring);
	if (answer.res == (int32_t)PROBE_BYTES)
		return 0;
	r = answer.res < 0 ? answer.res : -EIO;
	log_err("%s cannot be read: %s", device, strerror(-r));
	return r;
}

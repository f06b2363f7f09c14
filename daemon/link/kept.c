// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/link/kept.h"
#include "common/util.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

static struct kept_entry *find(const struct kept *k, const char *name)
{
	for (unsigned i = 0; i < k->n; i++) {
		if (strcmp(k->entries[i].name, name) == 0)
			return (struct kept_entry *)&k->entries[i];
	}
	return NULL;
}

int kept_put(struct kept *k, const char *name, int fd)
{
	struct kept_entry *e = find(k, name);

	if (strlen(name) >= KEPT_NAME_MAX || (!e && k->n == KEPT_MAX)) {
		close_fd(fd);
		return k->n == KEPT_MAX ? -ENOSPC : -ENAMETOOLONG;
	}
	if (e) {
		close_fd(e->fd);
	} else {
		e = &k->entries[k->n++];
		strcpy(e->name, name);
	}
	e->fd = fd;
	return 0;
}

int kept_get(const struct kept *k, const char *name)
{
	const struct kept_entry *e = find(k, name);

	return e ? e->fd : -1;
}

int kept_copy(const struct kept *k, const char *name)
{
	const struct kept_entry *e = find(k, name);
	int fd = e ? fcntl(e->fd, F_DUPFD_CLOEXEC, 3) : -1;

	if (!e)
		return -ENOENT;
	return fd < 0 ? -errno : fd;
}

void kept_drop(struct kept *k, const char *name)
{
	struct kept_entry *e = find(k, name);

	if (!e)
		return;
	close_fd(e->fd);
	*e = k->entries[--k->n];
}

void kept_deinit(struct kept *k)
{
	while (k->n > 0)
		close_fd(k->entries[--k->n].fd);
}

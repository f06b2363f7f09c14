// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/worker/handover.h"
#include "common/log.h"
#include "common/util.h"
#include "daemon/worker/device.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#define PREFIX	   "zswapd-"
#define STATE_NAME PREFIX "state"
#define FRONT_NAME PREFIX "front"
#define NOTE_MAX   96

static void take(int *slot, int fd)
{
	close_fd(*slot); /* of two of a name, the manager's later one counts */
	*slot = fd;
}

/* The place of @name's descriptor, or NULL if it is none of ours or there are too many. */
static int *slot_of(struct handover *h, const char *name)
{
	struct transport_kept *k = &h->kept;

	if (strcmp(name, STATE_NAME) == 0)
		return &h->state_fd;
	if (strcmp(name, FRONT_NAME) == 0)
		return &h->front_fd;
	for (unsigned i = 0; i < k->n; i++) {
		if (strcmp(name, k->fds[i].name) == 0)
			return &k->fds[i].fd;
	}
	if (strncmp(name, PREFIX, strlen(PREFIX)) != 0 || strlen(name) >= TRANSPORT_KEPT_NAME ||
	    k->n == TRANSPORT_KEPT_MAX)
		return NULL;
	snprintf(k->fds[k->n].name, sizeof(k->fds[k->n].name), "%s", name);
	k->fds[k->n].fd = -1;
	return &k->fds[k->n++].fd;
}

static bool owner_there(const struct state_owner *o)
{
	struct device_disk d = {.diskseq = o->diskseq};

	snprintf(d.path, sizeof(d.path), "%s", o->device);
	return device_there(&d);
}

/* Returns how many, or a negative errno. */
static int receive(struct handover *h)
{
	char **names = NULL;
	int n = sd_listen_fds_with_names(1, &names);

	for (int i = 0; i < n; i++) {
		int fd = SD_LISTEN_FDS_START + i;
		int *slot = slot_of(h, names[i]);

		if (slot)
			take(slot, fd);
		else
			close_fd(fd);
		free(names[i]);
	}
	free(names);
	return n;
}

int handover_receive(struct handover *h)
{
	int r;

	*h = HANDOVER_NULL;
	r = receive(h);
	if (r < 0)
		log_warn("cannot take what the service manager passed on: %s", strerror(-r));
	if (h->state_fd < 0 && h->front_fd < 0 && h->kept.n == 0)
		return 0;
	if (h->state_fd >= 0 && h->front_fd >= 0) {
		r = state_read_owner(h->state_fd, &h->owner);
		if (r < 0 || owner_there(&h->owner))
			return r;
	}
	log_warn("what a former daemon left with the service manager belongs to no device that is "
		 "there; it is given up");
	handover_give_up(h);
	return 0;
}

void handover_give_up(struct handover *h)
{
	handover_withdraw(&h->kept);
	handover_deinit(h);
	*h = HANDOVER_NULL;
}

void handover_deinit(struct handover *h)
{
	h->state_fd = close_fd(h->state_fd);
	h->front_fd = close_fd(h->front_fd);
	for (unsigned i = 0; i < h->kept.n; i++)
		h->kept.fds[i].fd = close_fd(h->kept.fds[i].fd);
}

/* As sd_notify(): positive if there is somebody who keeps it. */
static int deposit(const char *name, int fd)
{
	char note[NOTE_MAX];

	snprintf(note, sizeof(note), "FDSTORE=1\nFDNAME=%s", name);
	return sd_pid_notify_with_fds(0, 0, note, &fd, 1);
}

static void withdraw(const char *name)
{
	char note[NOTE_MAX];

	snprintf(note, sizeof(note), "FDSTOREREMOVE=1\nFDNAME=%s", name);
	sd_notify(0, note);
}

void handover_deposit(const struct engine *e, const struct transport_kept *kept)
{
	int r = deposit(STATE_NAME, engine_state_fd(e));

	if (r > 0)
		r = deposit(FRONT_NAME, engine_front_fd(e));
	for (unsigned i = 0; i < kept->n && r > 0; i++)
		r = deposit(kept->fds[i].name, kept->fds[i].fd);
	if (r <= 0)
		log_notice("nobody keeps the pages for a successor (%s): if this daemon is killed, "
			   "what is swapped is lost; run it as a systemd service with "
			   "FileDescriptorStoreMax=",
			   r == 0 ? "there is no service manager" : strerror(-r));
}

void handover_withdraw(const struct transport_kept *kept)
{
	withdraw(STATE_NAME);
	withdraw(FRONT_NAME);
	for (unsigned i = 0; i < kept->n; i++)
		withdraw(kept->fds[i].name);
}

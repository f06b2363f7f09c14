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

#define STATE_NAME "zswapd-state"
#define FRONT_NAME "zswapd-front"

static void take(int *slot, int fd)
{
	close_fd(*slot); /* of two of a name, the manager's later one counts */
	*slot = fd;
}

static bool owner_there(const struct state_owner *o)
{
	struct device_disk d = {.diskseq = o->diskseq};

	snprintf(d.path, sizeof(d.path), "%s", o->device);
	return device_there(&d);
}

int handover_receive(struct handover *h)
{
	char **names = NULL;
	int n = sd_listen_fds_with_names(1, &names);
	int r;

	*h = HANDOVER_NULL;
	for (int i = 0; i < n; i++) {
		int fd = SD_LISTEN_FDS_START + i;

		if (strcmp(names[i], STATE_NAME) == 0)
			take(&h->state_fd, fd);
		else if (strcmp(names[i], FRONT_NAME) == 0)
			take(&h->front_fd, fd);
		else
			close_fd(fd);
		free(names[i]);
	}
	free(names);
	if (n < 0)
		log_warn("cannot take what the service manager passed on: %s", strerror(-n));
	if (h->state_fd < 0 && h->front_fd < 0)
		return 0;
	if (h->state_fd >= 0 && h->front_fd >= 0) {
		r = state_read_owner(h->state_fd, &h->owner);
		if (r < 0 || owner_there(&h->owner))
			return r;
	}
	log_warn("what a former daemon left with the service manager belongs to no device that is "
		 "there; it is given up");
	handover_deinit(h);
	*h = HANDOVER_NULL;
	handover_withdraw();
	return 0;
}

void handover_deinit(struct handover *h)
{
	h->state_fd = close_fd(h->state_fd);
	h->front_fd = close_fd(h->front_fd);
}

static int deposit(const char *state, int fd)
{
	return sd_pid_notify_with_fds(0, 0, state, &fd, 1);
}

void handover_deposit(const struct engine *e)
{
	int r = deposit("FDSTORE=1\nFDNAME=" STATE_NAME, engine_state_fd(e));

	if (r > 0)
		r = deposit("FDSTORE=1\nFDNAME=" FRONT_NAME, engine_front_fd(e));
	if (r <= 0)
		log_notice("nobody keeps the pages for a successor (%s): if this daemon is killed, "
			   "what is swapped is lost; run it as a systemd service with "
			   "FileDescriptorStoreMax=",
			   r == 0 ? "there is no service manager" : strerror(-r));
}

void handover_withdraw(void)
{
	sd_notify(0, "FDSTOREREMOVE=1\nFDNAME=" STATE_NAME);
	sd_notify(0, "FDSTOREREMOVE=1\nFDNAME=" FRONT_NAME);
}

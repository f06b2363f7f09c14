// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/worker/handover.h"
#include "common/log.h"
#include "common/util.h"
#include "daemon/worker/device.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

bool handover_device_there(const struct handover *h)
{
	struct device_disk d = {.diskseq = h->owner.diskseq};

	snprintf(d.path, sizeof(d.path), "%s", h->owner.device);
	return device_there(&d);
}

static bool is_transports(const char *name)
{
	static const char *const others[] = {KEPT_STATE, KEPT_FRONT, KEPT_STORE, KEPT_MOUNTS};

	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		if (strcmp(name, others[i]) == 0)
			return false;
	}
	return !kept_is_private(name);
}

static void receive_transports(struct transport_kept *ret, const struct kept *kept)
{
	for (unsigned i = 0; i < kept->n && ret->n < TRANSPORT_KEPT_MAX; i++) {
		const char *name = kept->entries[i].name;

		if (!is_transports(name) || strlen(name) >= TRANSPORT_KEPT_NAME)
			continue;
		strcpy(ret->fds[ret->n].name, name);
		ret->fds[ret->n++].fd = kept_copy(kept, name);
	}
}

int handover_receive(struct handover *h, struct supervised *s)
{
	int r;

	*h = HANDOVER_NULL;
	h->state_fd = kept_copy(s->kept, KEPT_STATE);
	h->front_fd = kept_copy(s->kept, KEPT_FRONT);
	receive_transports(&h->kept, s->kept);
	if (h->state_fd == -ENOENT && h->front_fd == -ENOENT && h->kept.n == 0) {
		*h = HANDOVER_NULL;
		return 0;
	}
	if (h->state_fd >= 0 && h->front_fd >= 0) {
		r = state_read_owner(h->state_fd, &h->owner);
		if (r < 0 || handover_device_there(h))
			return r;
	}
	log_warn("what a former daemon left belongs to no device that is there; it is given up");
	handover_give_up(h, s);
	return 0;
}

void handover_give_up(struct handover *h, struct supervised *s)
{
	handover_withdraw(s);
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

/* The state comes last: who finds it finds the rest. */
int handover_deposit(struct supervised *s, const struct engine *e,
		     const struct transport_kept *kept)
{
	int r = 0;

	for (unsigned i = 0; i < kept->n && r == 0; i++)
		r = supervised_keep(s, kept->fds[i].name, kept->fds[i].fd);
	if (r == 0)
		r = supervised_keep(s, KEPT_FRONT, engine_front_fd(e));
	return r < 0 ? r : supervised_keep(s, KEPT_STATE, engine_state_fd(e));
}

void handover_withdraw(struct supervised *s)
{
	for (unsigned i = 0; i < s->kept->n;) {
		char name[KEPT_NAME_MAX];

		strcpy(name, s->kept->entries[i].name);
		if (kept_is_private(name))
			i++;
		else
			supervised_drop(s, name);
	}
}

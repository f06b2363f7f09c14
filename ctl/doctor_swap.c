// SPDX-License-Identifier: GPL-2.0-or-later
/* Checks of the device, of swap on it and beside it, and of what resume= points at. */
#include "common/swaps.h"
#include "common/util.h"
#include "ctl/doctor_impl.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define N(m, name) ctl_stats_get((m)->stats, #name)

/* Others may be without a device: the list goes on at the next entry. */
struct areas {
	bool found;
	struct swaps_entry own;
	struct swaps_entry ahead; /* of the others, the one with the highest priority */
	unsigned others;
};

static int look_at_swaps(const struct doctor_machine *m, struct areas *ret)
{
	cleanup_free char *list = doctor_text(m, "/proc/swaps");
	const char *text = list;
	char own[DOCTOR_NODE_MAX + 8];
	struct swaps_entry e;
	int r;

	if (!list)
		return -1;
	*ret = (struct areas){0};
	snprintf(own, sizeof(own), "/dev/%s", m->node);
	while ((r = swaps_next(&text, &e)) > 0) {
		/* Without its /dev: see common/swaps.h. */
		if (m->node[0] && (!strcmp(e.path, own) || !strcmp(e.path, own + strlen("/dev")))) {
			ret->found = true;
			ret->own = e;
		} else if (!ret->others++ || e.priority > ret->ahead.priority) {
			ret->ahead = e;
		}
	}
	return r;
}

void doctor_check_device(const struct doctor_machine *m, struct doctor_report *r)
{
	long long v;

	if (!m->node[0]) {
		if (m->status)
			doctor_finding(r, "device",
				       "Look into the daemon's log. In a container or chroot, the "
				       "device may exist outside only.",
				       "/dev/zswap/%s is not there although the daemon answers",
				       m->device);
		else
			doctor_unseen(r, "device", "/dev/zswap/%s is not there", m->device);
		return;
	}
	if (doctor_number(m, &v, "/sys/class/block/%s/queue/rotational", m->node) < 0)
		doctor_unseen(r, "device", "/sys tells nothing about %s", m->node);
	else if (v)
		doctor_finding(r, "device",
			       "Run 'swapoff', then 'echo 0 > /sys/block/DEVICE/queue/rotational' "
			       "for it, then 'swapon'.",
			       "%s counts as a rotating disk: for all swap of this machine the "
			       "kernel then reads ahead by place on the disk",
			       m->node);
	else
		doctor_good(r, "device", "/dev/zswap/%s is /dev/%s", m->device, m->node);
}

static void no_swap(const struct doctor_machine *m, struct doctor_report *r)
{
	if (m->swap_enable.known && !strcmp(m->swap_enable.s, "no"))
		doctor_note(r, "swap", "%s is not in use as swap: swap.enable is no", m->node);
	else
		doctor_finding(r, "swap",
			       "Run 'swapon --discard=pages --priority 100 /dev/zswap/NAME', or "
			       "restart the service. The daemon's log says why it did not.",
			       "%s is not in use as swap", m->node);
}

void doctor_check_swap(const struct doctor_machine *m, struct doctor_report *r)
{
	struct areas a;

	if (!m->node[0]) {
		doctor_unseen(r, "swap", "without the device, nothing can be said about it");
		return;
	}
	if (look_at_swaps(m, &a) < 0) {
		doctor_unseen(r, "swap", "/proc/swaps cannot be read");
		return;
	}
	if (!a.found) {
		no_swap(m, r);
		return;
	}
	if (a.others && a.ahead.priority > a.own.priority)
		doctor_finding(r, "swap",
			       "Swap the other off, or swap it on again with a lower priority "
			       "(swapon --priority, pri= in /etc/fstab), or raise swap.priority "
			       "of zswapd.",
			       "%s has priority %d and is filled before %s with %d", a.ahead.path,
			       a.ahead.priority, m->node, a.own.priority);
	else if (a.others && a.ahead.priority == a.own.priority)
		doctor_finding(r, "swap",
			       "Give them different priorities: swap.priority of zswapd, pri= in "
			       "/etc/fstab.",
			       "%s has the same priority %d as %s: pages go to both in turn",
			       a.ahead.path, a.ahead.priority, m->node);
	else
		doctor_good(r, "swap", "%s has priority %d%s", m->node, a.own.priority,
			    a.others ? ", above all others" : " and is the only one");
}

/* --- discard --- */

/* Pages that the device still keeps although swap has freed them, as a share of those it keeps. */
static bool piles_up(const struct doctor_machine *m, double *ret_share)
{
	struct ctl_num used, discarded;
	struct areas a;

	if (!m->stats || look_at_swaps(m, &a) < 0 || !a.found)
		return false;
	used = N(m, slots_used);
	discarded = N(m, pages_discarded_total);
	/* Freed clusters are discarded whole and late, so small differences mean nothing. */
	if (!used.known || !discarded.known || discarded.v || used.v * 4096 < a.own.used + MIB(64))
		return false;
	*ret_share = 1 - (double)a.own.used / ((double)used.v * 4096);
	return true;
}

static const char swapon_discard[] =
	"Set swap.discard = pages and restart the service, or swap on with "
	"'swapon --discard=pages'.";

void doctor_check_discard(const struct doctor_machine *m, struct doctor_report *r)
{
	bool health = m->status && m->status->health.known &&
		      (m->status->health.v & NLPROTO_HEALTH_NO_DISCARD);
	double share;
	long long v;

	if (m->swap_discard.known && !strcmp(m->swap_discard.s, "off"))
		doctor_finding(r, "discard", swapon_discard,
			       "swap.discard is off: what programs free keeps its memory");
	else if (m->node[0] &&
		 doctor_number(m, &v, "/sys/class/block/%s/queue/discard_max_bytes", m->node) ==
			 0 &&
		 !v)
		doctor_finding(r, "discard",
			       "Look into the daemon's log; restart the service to make the device "
			       "anew.",
			       "%s takes no discards: what programs free keeps its memory",
			       m->node);
	else if (health)
		doctor_finding(r, "discard", swapon_discard, "%s", nlproto_health_text(9));
	else if (piles_up(m, &share))
		doctor_finding(
			r, "discard", swapon_discard,
			"not one page was discarded and %.0f %% of what is kept is no longer "
			"used: it was swapped on without discard",
			share * 100);
	else if (!m->stats || !m->node[0])
		doctor_unseen(r, "discard", "needs the device and an answer of the daemon");
	else
		doctor_good(r, "discard", "%" PRIu64 " pages were discarded",
			    N(m, pages_discarded_total).v);
}

/* --- hibernation --- */

/* The last resume= counts.  False without any. */
static bool resume_of(const char *cmdline, char *ret, size_t size)
{
	bool found = false;

	for (const char *p = cmdline; *p; p += strspn(p, " \n")) {
		size_t n = strcspn(p, " \n");

		if (!strncmp(p, "resume=", 7)) {
			snprintf(ret, size, "%.*s", (int)n - 7, p + 7);
			found = true;
		}
		p += n;
	}
	return found;
}

static bool has_word(const char *cmdline, const char *word)
{
	size_t len = strlen(word);

	for (const char *p = cmdline; *p; p += strspn(p, " \n")) {
		size_t n = strcspn(p, " \n");

		if (n == len && !strncmp(p, word, n))
			return true;
		p += n;
	}
	return false;
}

/* @spec: a path, MAJOR:MINOR, or TAG=value as udev makes links for. */
static bool is_device(const struct doctor_machine *m, const char *spec)
{
	static const struct {
		const char *tag, *dir;
	} tags[] = {
		{"UUID=", "/dev/disk/by-uuid/"},
		{"LABEL=", "/dev/disk/by-label/"},
		{"PARTUUID=", "/dev/disk/by-partuuid/"},
	};
	char path[PATH_MAX], node[DOCTOR_NODE_MAX], number[32];

	if (doctor_line(m, number, sizeof(number), "/sys/class/block/%s/dev", m->node) == 0 &&
	    !strcmp(spec, number))
		return true;
	/* What mkswap wrote, known without udev. */
	if (!strncmp(spec, "LABEL=", 6) && !strcmp(spec + 6, m->device))
		return true;
	snprintf(path, sizeof(path), "%s", spec);
	for (size_t i = 0; i < ARRAY_SIZE(tags); i++)
		if (!strncmp(spec, tags[i].tag, strlen(tags[i].tag)))
			snprintf(path, sizeof(path), "%s%s", tags[i].dir,
				 spec + strlen(tags[i].tag));
	return path[0] == '/' && doctor_node(m, path, node) && !strcmp(node, m->node);
}

static bool can_hibernate(const struct doctor_machine *m, const char *cmdline)
{
	char state[64], disk[128];

	return !has_word(cmdline, "nohibernate") &&
	       doctor_line(m, state, sizeof(state), "/sys/power/state") == 0 &&
	       has_word(state, "disk") &&
	       doctor_line(m, disk, sizeof(disk), "/sys/power/disk") == 0 &&
	       !strstr(disk, "[disabled]");
}

static const char resume_elsewhere[] =
	"Name another swap device, on a drive, in resume= and in the initramfs, or put nohibernate "
	"on the kernel's command line.";

void doctor_check_hibernation(const struct doctor_machine *m, struct doctor_report *r)
{
	cleanup_free char *cmdline = doctor_text(m, "/proc/cmdline");
	char spec[PATH_MAX] = "", number[32] = "";
	struct areas a;

	if (!cmdline) {
		doctor_unseen(r, "hibernation", "/proc/cmdline cannot be read");
		return;
	}
	doctor_line(m, number, sizeof(number), "/sys/power/resume");
	if (resume_of(cmdline, spec, sizeof(spec)) && m->node[0] && is_device(m, spec))
		doctor_finding(r, "hibernation", resume_elsewhere,
			       "resume=%s on the kernel's command line is this device, which "
			       "cannot hold a hibernation image: it would be lost",
			       spec);
	else if (number[0] && strcmp(number, "0:0") && m->node[0] && is_device(m, number))
		doctor_finding(r, "hibernation", resume_elsewhere,
			       "/sys/power/resume (%s) is this device, which cannot hold a "
			       "hibernation image: it would be lost",
			       number);
	else if (!can_hibernate(m, cmdline))
		doctor_good(r, "hibernation", "this machine does not hibernate");
	else if (!spec[0] && (!number[0] || !strcmp(number, "0:0")) && look_at_swaps(m, &a) == 0 &&
		 a.found && (!a.others || a.ahead.priority <= a.own.priority))
		doctor_finding(r, "hibernation", resume_elsewhere,
			       "the machine can hibernate and no resume= is set: systemd would "
			       "take the swap of the highest priority, which is this device");
	else
		doctor_good(r, "hibernation", "resume= does not name this device");
}

// SPDX-License-Identifier: GPL-2.0-or-later
/* Checks of what is there for the day on which the worker dies, and of those that did. */
#include "ctl/doctor_impl.h"

#include <inttypes.h>
#include <string.h>

/* How many have died, and of what, is of use to who mends it. */
static void check_deaths(const struct doctor_machine *m, struct doctor_report *r)
{
	struct ctl_num deaths = m->status->deaths;

	if (!deaths.known)
		doctor_unseen(r, "crashes", "the daemon does not tell of its workers' deaths");
	else if (deaths.v)
		doctor_finding(r, "crashes",
			       "The pages are all there. Report it with 'zswapctl status "
			       "--verbose' and the log; look for more of it in the kernel's log.",
			       "%" PRIu64 " %s died and %s replaced; the last: %.360s%s", deaths.v,
			       deaths.v == 1 ? "worker has" : "workers have",
			       deaths.v == 1 ? "was" : "were", m->status->report,
			       strlen(m->status->report) > 360 ? "..." : "");
	else
		doctor_good(r, "crashes", "no worker has died");
}

void doctor_check_supervision(const struct doctor_machine *m, struct doctor_report *r)
{
	struct ctl_num supervisor, standby;

	if (!m->status) {
		doctor_unseen(r, "takeover", "needs an answer of the daemon");
		return;
	}
	supervisor = m->status->supervisor;
	standby = m->status->standby;
	if (!supervisor.known || !standby.known)
		doctor_unseen(r, "takeover", "the daemon does not tell of its supervisor");
	else if (!supervisor.v)
		doctor_finding(r, "takeover",
			       "Start zswapd again (systemctl start zswapd): it adopts the worker "
			       "that serves.",
			       "there is no supervisor: if the worker dies, nothing takes over");
	else if ((m->status->health.v & NLPROTO_HEALTH_NO_STANDBY))
		doctor_finding(r, "takeover", "Look into its log (journalctl -u zswapd) for why.",
			       "no standby has been prepared for more than a minute: a takeover "
			       "would take longer, and would need memory");
	else if (!standby.v)
		doctor_note(r, "takeover", "supervisor %" PRIu64 " prepares a standby",
			    supervisor.v);
	else
		doctor_good(r, "takeover",
			    "standby %" PRIu64 " of supervisor %" PRIu64 " is prepared", standby.v,
			    supervisor.v);
	check_deaths(m, r);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/* Checks of the daemon: what the kernel tells about its process, and what it tells about itself. */
#include "common/portfile.h"
#include "common/size.h"
#include "common/textfile.h"
#include "common/util.h"
#include "ctl/doctor_impl.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Flags of a task in /proc/PID/task/TID/stat; the first two are what PR_SET_IO_FLUSHER sets. */
#define PF_MEMALLOC_NOIO  0x00080000ul
#define PF_LOCAL_THROTTLE 0x00100000ul
#define PF_IO_WORKER	  0x00000010ul

/* What one share of memory may be before the rest of the machine feels it. */
#define LIMIT_SHARE_MAX 0.6

/* More than the best ratio that programs' pages have been seen to compress to. */
#define PROMISE_RATIO_MAX 6

#define STORE_SHARE_HIGH  0.9

#define N(m, name)	  ctl_stats_get((m)->stats, #name)

static bool has_health(const struct doctor_machine *m, enum nlproto_health bit)
{
	return m->status && m->status->health.known && (m->status->health.v & bit);
}

/* False, and said so, if there is no process to look at. */
static bool need_process(const struct doctor_machine *m, struct doctor_report *r, const char *topic)
{
	if (m->proc[0])
		return true;
	doctor_unseen(r, topic, "%s",
		      m->status ? "/proc does not show the daemon's process here"
				: "needs an answer of the daemon");
	return false;
}

static bool need_stats(const struct doctor_machine *m, struct doctor_report *r, const char *topic)
{
	if (m->stats)
		return true;
	doctor_unseen(r, topic, "needs an answer of the daemon");
	return false;
}

void doctor_check_daemon(const struct doctor_machine *m, struct doctor_report *r)
{
	const char *state;
	uint32_t port;

	if (m->other_protocol) {
		doctor_finding(r, "version",
			       "Restart the service, so that the installed version runs, or call "
			       "the zswapctl that belongs to the daemon.",
			       "%s", m->silence);
		return;
	}
	if (!m->status && portfile_read(m->run_dir, m->device, &port) == 0) {
		doctor_finding(r, "daemon",
			       "Look into its log (journalctl -u zswapd), and start it again. "
			       "Inside a container it may be out of sight.",
			       "%s/%s.port is left from a daemon that does not answer: %s",
			       m->run_dir, m->device, m->silence);
		return;
	}
	if (!m->status) {
		doctor_finding(r, "daemon",
			       "Start it (systemctl start zswapd), name its device (--device), or "
			       "ask in its network namespace.",
			       "%s", m->silence);
		return;
	}
	state = m->status->state.known ? nlproto_state_text(m->status->state.v) : NULL;
	if (!m->status->state.known)
		doctor_unseen(r, "daemon", "its state cannot be read");
	else if (m->status->state.v == NLPROTO_STATE_FAILED)
		doctor_finding(r, "daemon",
			       "Look into its log. Programs with swapped pages get errors: save "
			       "what can be saved and restart the machine.",
			       "it failed: the device answers with errors only");
	else
		doctor_good(r, "daemon", "%s", state ? state : "in a state unknown here");
}

void doctor_check_version(const struct doctor_machine *m, struct doctor_report *r)
{
	char exe[PATH_MAX], path[PATH_MAX];
	const struct ctl_text *v;
	ssize_t n;

	if (!m->status)
		return; /* said by doctor_check_daemon() */
	v = &m->status->daemon_version;
	if (!v->known)
		doctor_unseen(r, "version", "the daemon does not tell its version");
	else if (strcmp(v->s, ZSWAPD_VERSION))
		doctor_finding(r, "version",
			       "Run 'zswapctl upgrade', so that the installed version runs; an "
			       "older one takes a stop and a start.",
			       "zswapd is %s, zswapctl is %s", v->s, ZSWAPD_VERSION);
	else
		doctor_good(r, "version", "zswapd and zswapctl are %s", ZSWAPD_VERSION);
	/* Only root may look; not worth a line if not. */
	n = readlink(doctor_path(m, path, "%s/exe", m->proc), exe, sizeof(exe) - 1);
	exe[n > 0 ? n : 0] = '\0';
	if (m->proc[0] && strstr(exe, " (deleted)"))
		doctor_finding(r, "version", "Run 'zswapctl upgrade'.",
			       "the running daemon's program was replaced on disk");
}

void doctor_check_locked(const struct doctor_machine *m, struct doctor_report *r)
{
	static const char todo[] = "Start it as root, or set LimitMEMLOCK=infinity in its unit.";
	cleanup_free char *text = NULL;
	char size[SIZE_TEXT_MAX];
	uint64_t locked, swapped, resident = 0;

	if (has_health(m, NLPROTO_HEALTH_MEMORY_UNLOCKED)) {
		doctor_finding(r, "memory", todo,
			       "not locked: the daemon itself may be swapped out, and then waits "
			       "for itself");
		return;
	}
	if (!need_process(m, r, "memory"))
		return;
	text = doctor_text(m, "%s/status", m->proc);
	if (!text || textfile_size(text, "VmLck", &locked) < 0 ||
	    textfile_size(text, "VmSwap", &swapped) < 0)
		doctor_unseen(r, "memory", "%s/status cannot be read", m->proc);
	else if (swapped)
		doctor_finding(r, "memory", todo, "%s of the daemon itself is swapped out",
			       size_format(size, swapped));
	else if (!locked)
		doctor_finding(r, "memory", todo, "none of the daemon's memory is locked");
	else
		doctor_good(r, "memory", "locked, %s resident",
			    textfile_size(text, "VmRSS", &resident) == 0
				    ? size_format(size, resident)
				    : "?");
}

/* Field 9 of a stat line; the name before it may hold blanks and parentheses. */
static bool task_flags(const char *stat, unsigned long *ret)
{
	const char *p = strrchr(stat, ')');
	unsigned long flags;

	if (!p || sscanf(p + 1, " %*c %*d %*d %*d %*d %*d %lu", &flags) != 1)
		return false;
	*ret = flags;
	return true;
}

/* Threads that lack the marks of an I/O flusher; the kernel's own helpers are left out. */
static int count_unmarked(const struct doctor_machine *m, unsigned *ret_all, unsigned *ret_unmarked)
{
	const unsigned long want = PF_MEMALLOC_NOIO | PF_LOCAL_THROTTLE;
	char path[PATH_MAX], stat[512];
	unsigned long flags;
	struct dirent *e;
	DIR *dir;

	dir = opendir(doctor_path(m, path, "%s/task", m->proc));
	if (!dir)
		return -errno;
	*ret_all = *ret_unmarked = 0;
	while ((e = readdir(dir))) {
		if (e->d_name[0] < '0' || e->d_name[0] > '9' ||
		    doctor_line(m, stat, sizeof(stat), "%s/task/%s/stat", m->proc, e->d_name) < 0 ||
		    !task_flags(stat, &flags) || (flags & PF_IO_WORKER))
			continue;
		(*ret_all)++;
		*ret_unmarked += (flags & want) != want;
	}
	closedir(dir);
	return *ret_all ? 0 : -ENOENT;
}

void doctor_check_flusher(const struct doctor_machine *m, struct doctor_report *r)
{
	static const char todo[] = "Grant it CAP_SYS_RESOURCE: as a service run by root it has it.";
	unsigned all, unmarked;

	if (has_health(m, NLPROTO_HEALTH_NO_IO_FLUSHER)) {
		doctor_finding(
			r, "I/O flusher", todo,
			"refused (PR_SET_IO_FLUSHER): the kernel may let the daemon wait for "
			"its own swap");
		return;
	}
	if (!need_process(m, r, "I/O flusher"))
		return;
	if (count_unmarked(m, &all, &unmarked) < 0)
		doctor_unseen(r, "I/O flusher", "%s/task cannot be read", m->proc);
	else if (unmarked)
		doctor_finding(r, "I/O flusher", todo,
			       "%u of %u threads are not marked: the kernel may let them wait for "
			       "their own swap",
			       unmarked, all);
	else
		doctor_good(r, "I/O flusher", "all %u threads are marked", all);
}

void doctor_check_oom(const struct doctor_machine *m, struct doctor_report *r)
{
	long long v;

	if (!need_process(m, r, "OOM score"))
		return;
	if (doctor_number(m, &v, "%s/oom_score_adj", m->proc) < 0)
		doctor_unseen(r, "OOM score", "%s/oom_score_adj cannot be read", m->proc);
	else if (v != -1000)
		doctor_finding(r, "OOM score",
			       "Set OOMScoreAdjust=-1000 in its unit, or grant it "
			       "CAP_SYS_RESOURCE.",
			       "it is %lld: short of memory, the kernel may kill the daemon and "
			       "with it what is swapped",
			       v);
	else
		doctor_good(r, "OOM score", "-1000: the daemon is left alone");
}

/* --- memory cgroup --- */

/* The smallest limit in @file of the group @dir below @mount and those above it, 0 for none. */
static uint64_t limit_upwards(const struct doctor_machine *m, const char *mount, const char *dir,
			      const char *file, char ret_where[static PATH_MAX])
{
	char at[PATH_MAX], text[32];
	uint64_t least = 0;

	snprintf(at, sizeof(at), "%s", dir);
	for (;;) {
		char *slash = strrchr(at, '/'), *end;
		uint64_t v;

		if (doctor_line(m, text, sizeof(text), "/sys/fs/cgroup%s%s/%s", mount, at, file) ==
		    0) {
			v = strtoull(text, &end, 10);
			/* "max" is no number; v1's "none" is the largest one. */
			if (end != text && v < (1ull << 62) && (!least || v < least)) {
				least = v;
				snprintf(ret_where, PATH_MAX, "%s", *at ? at : "/");
			}
		}
		if (!slash)
			return least;
		*slash = '\0';
	}
}

static uint64_t cgroup_limit(const struct doctor_machine *m, const char *line,
			     char ret_where[static PATH_MAX])
{
	static const char *const files[] = {"memory.max", "memory.high"};
	static const char *const mounts[] = {"", "/unified"};
	const char *controllers = strchr(line, ':');
	const char *dir = controllers ? strchr(controllers + 1, ':') : NULL;
	char where[PATH_MAX];
	uint64_t least = 0;

	if (!dir)
		return 0;
	if (!strncmp(controllers, ":memory:", 8))
		return limit_upwards(m, "/memory", dir + 1, "memory.limit_in_bytes", ret_where);
	if (controllers[1] != ':')
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(mounts) * ARRAY_SIZE(files); i++) {
		uint64_t v = limit_upwards(m, mounts[i / 2], dir + 1, files[i % 2], where);

		if (v && (!least || v < least)) {
			least = v;
			strcpy(ret_where, where);
		}
	}
	return least;
}

void doctor_check_cgroup(const struct doctor_machine *m, struct doctor_report *r)
{
	cleanup_free char *text = NULL;
	char where[PATH_MAX], size[SIZE_TEXT_MAX], *save = NULL;

	if (!need_process(m, r, "cgroup"))
		return;
	text = doctor_text(m, "%s/cgroup", m->proc);
	if (!text) {
		doctor_unseen(r, "cgroup", "%s/cgroup cannot be read", m->proc);
		return;
	}
	for (char *l = strtok_r(text, "\n", &save); l; l = strtok_r(NULL, "\n", &save)) {
		uint64_t limit = cgroup_limit(m, l, where);

		if (!limit)
			continue;
		doctor_finding(r, "cgroup",
			       "Take MemoryMax= and MemoryHigh= away from its unit and slice, or "
			       "run it in a group of its own.",
			       "the daemon runs in the memory cgroup %.200s with a limit of %s: at "
			       "that limit it would wait for its own swap",
			       where, size_format(size, limit));
		return;
	}
	doctor_good(r, "cgroup", "no memory limit on the daemon");
}

/* --- sizes --- */

void doctor_check_limit(const struct doctor_machine *m, struct doctor_report *r)
{
	cleanup_free char *text = NULL;
	char a[SIZE_TEXT_MAX], b[SIZE_TEXT_MAX];
	struct ctl_num limit, meta, device, store;
	uint64_t ram;

	if (!need_stats(m, r, "sizes"))
		return;
	limit = N(m, memory_limit_bytes);
	meta = N(m, memory_metadata_bytes);
	device = N(m, device_bytes);
	store = N(m, store_size_bytes);
	text = doctor_text(m, "/proc/meminfo");
	if (!text || textfile_size(text, "MemTotal", &ram) < 0 || !limit.known || !meta.known ||
	    !device.known || !store.known)
		doctor_unseen(r, "sizes", "not all sizes are known");
	else if ((double)(limit.v + meta.v) > LIMIT_SHARE_MAX * (double)ram)
		doctor_finding(r, "sizes", "Lower it: 'zswapctl set memory.limit 40%'.",
			       "memory.limit with index is %s of %s of RAM, all of it locked: "
			       "little is left for programs",
			       size_format(a, limit.v + meta.v), size_format(b, ram));
	else if (device.v > PROMISE_RATIO_MAX * (limit.v + store.v))
		doctor_finding(r, "sizes",
			       "Raise memory.limit or store.size, or lower device.size.",
			       "the device promises %s but memory and store hold %s: when they are "
			       "full, swapping out fails",
			       size_format(a, device.v), size_format(b, limit.v + store.v));
	else
		doctor_good(r, "sizes", "%s for pages in memory, of %s of RAM",
			    size_format(a, limit.v), size_format(b, ram));
}

/* --- store and pages --- */

/* What the daemon concludes itself; true if there is a finding. */
static bool check_store_state(const struct doctor_machine *m, struct doctor_report *r)
{
	if (has_health(m, NLPROTO_HEALTH_STORE_LOST))
		doctor_finding(r, "store",
			       "See the kernel's log about the drive. End programs, or swap off "
			       "while memory has room; then replace it and restart the service.",
			       "it is lost: no page leaves memory any more, and those in it can't "
			       "be read");
	else if (has_health(m, NLPROTO_HEALTH_STORE_STALLED))
		doctor_finding(
			r, "store",
			"See the kernel's log about the drive. When it answers, all goes on.",
			"it does not answer: what needs it waits, and nothing is dropped");
	else if (has_health(m, NLPROTO_HEALTH_STORE_FAILED))
		doctor_finding(r, "store",
			       "See the kernel's log about the drive, and replace it. Swap off to "
			       "bring back what is in memory.",
			       "it failed: pages stay in memory");
	else if (has_health(m, NLPROTO_HEALTH_STORE_MISSING))
		doctor_finding(
			r, "store",
			"Attach the drive, or mount what store.path lies on; then stop and start "
			"zswapd.",
			"it was not there at the start: when memory.limit is reached, "
			"swapping out fails");
	else
		return false;
	return true;
}

void doctor_check_store(const struct doctor_machine *m, struct doctor_report *r)
{
	struct ctl_num size, stored, used, retired, errors_r, errors_w;
	char text[SIZE_TEXT_MAX];

	if (check_store_state(m, r))
		return;
	if (!need_stats(m, r, "store"))
		return;
	size = N(m, store_size_bytes);
	stored = N(m, stored_compressed_bytes);
	used = N(m, store_used_bytes);
	retired = N(m, store_retired_bytes);
	errors_r = N(m, store_read_errors_total);
	errors_w = N(m, store_write_errors_total);
	if (!size.known || !stored.known || !errors_r.known || !errors_w.known)
		doctor_unseen(r, "store", "its figures are not all known");
	else if (errors_r.v + errors_w.v)
		doctor_finding(
			r, "store", "See the kernel's log about the drive, and its SMART data.",
			"%" PRIu64 " reads and %" PRIu64 " writes failed", errors_r.v, errors_w.v);
	else if (retired.known && retired.v)
		doctor_finding(r, "store",
			       "See the kernel's log about the drive, and its SMART data.",
			       "%s of it are not used any more, since writing there failed",
			       size_format(text, retired.v));
	else if (!size.v)
		doctor_note(r, "store",
			    "there is none: when memory.limit is reached, swapping out fails");
	else if ((double)stored.v > STORE_SHARE_HIGH * (double)size.v ||
		 has_health(m, NLPROTO_HEALTH_STORE_FULL))
		doctor_finding(r, "store", "Make it larger: store.size, or a larger device.",
			       "it is full: %.0f %% of %s hold pages",
			       100.0 * (double)stored.v / (double)size.v,
			       size_format(text, size.v));
	else if (used.known && used.v + MIB(2) >= size.v)
		doctor_note(r, "store",
			    "all of it was written to, but only %.0f %% of %s hold pages that are "
			    "still needed; the rest is cleaned as room is needed",
			    100.0 * (double)stored.v / (double)size.v, size_format(text, size.v));
	else
		doctor_good(r, "store", "%.0f %% of %s hold pages, no errors",
			    100.0 * (double)stored.v / (double)size.v, size_format(text, size.v));
}

/* Damage and refusals that the daemon has counted, each with its own way out. */
void doctor_check_pages(const struct doctor_machine *m, struct doctor_report *r)
{
	struct ctl_num bad, lost, rejected;
	bool found;

	if (!need_stats(m, r, "pages"))
		return;
	bad = N(m, checksum_failures_total);
	lost = N(m, slots_lost);
	rejected = N(m, writes_rejected_total);
	found = (bad.known && bad.v) || (lost.known && lost.v) || (rejected.known && rejected.v);
	if (bad.known && bad.v)
		doctor_finding(r, "pages",
			       "Run 'zswapctl check' for the extent. Test the drive, then the "
			       "memory.",
			       "%" PRIu64 " pages failed their checksum and were answered with an "
			       "I/O error",
			       bad.v);
	if (lost.known && lost.v)
		doctor_finding(r, "pages",
			       "Programs that need them end with SIGBUS; restart those that did.",
			       "%" PRIu64 " pages are lost", lost.v);
	if (rejected.known && rejected.v)
		doctor_finding(r, "pages",
			       "Raise memory.limit or store.size, or lower device.size.",
			       "%" PRIu64 " pages were refused because neither memory nor store "
			       "had room",
			       rejected.v);
	if (found)
		return;
	if (bad.known && lost.known && rejected.known)
		doctor_good(r, "pages", "none damaged, lost or refused");
	else
		doctor_unseen(r, "pages", "their figures are not all known");
}

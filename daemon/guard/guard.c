// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Capabilities are a thread's and not a process's, so they are dropped while there is one thread.
 * What stays is what serving takes until the end:
 *
 *   CAP_SYS_ADMIN     swapon and swapoff, loop devices, ublk's commands
 *   CAP_IPC_LOCK      locking memory as the front tier grows, beyond RLIMIT_MEMLOCK
 *   CAP_SYS_RESOURCE  PR_SET_IO_FLUSHER for threads, a standby's OOM score, the last blocks of a
 *                     file system
 *
 * A supervisor needs none of them for itself; its children do, and inherit them.  Loading modules
 * (CAP_SYS_MODULE), and opening what others than root own (CAP_DAC_OVERRIDE), is over by then.
 */
#include "daemon/guard/guard.h"
#include "common/log.h"
#include "common/util.h"

#include <errno.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <sys/stat.h>

static const cap_value_t kept[] = {CAP_SYS_ADMIN, CAP_IPC_LOCK, CAP_SYS_RESOURCE};

void guard_begin(void)
{
	/* Whatever root's umask: nothing of ours is for others to write to. */
	umask(umask(077) | 022);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		log_notice("no_new_privs can't be set: %s", strerror(errno));
	/* A core file would hold what is swapped; how a worker died is on the watch page. */
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		log_notice("core files can't be prevented: %s", strerror(errno));
}

static bool is_kept(cap_value_t c)
{
	for (size_t i = 0; i < ARRAY_SIZE(kept); i++) {
		if (kept[i] == c)
			return true;
	}
	return false;
}

/* What a program that is executed could have at most.  Takes CAP_SETPCAP. */
static void bound(void)
{
	for (cap_value_t c = 0; c < cap_max_bits(); c++) {
		if (!is_kept(c) && cap_get_bound(c) == 1 && cap_drop_bound(c) < 0)
			log_debug("capability %d stays in the bounding set: %s", c,
				  strerror(errno));
	}
}

/* All of @kept that there is of it. */
static int keep(cap_t now, cap_t next, cap_flag_t flag)
{
	for (size_t i = 0; i < ARRAY_SIZE(kept); i++) {
		cap_flag_value_t there;

		if (cap_get_flag(now, kept[i], flag, &there) < 0 ||
		    cap_set_flag(next, flag, 1, &kept[i], there) < 0)
			return -errno;
	}
	return 0;
}

static int reduce(cap_t now, cap_t next)
{
	int r = keep(now, next, CAP_PERMITTED);

	if (r == 0)
		r = keep(now, next, CAP_EFFECTIVE);
	return r == 0 && cap_set_proc(next) < 0 ? -errno : r;
}

void guard_drop_capabilities(void)
{
	cap_t now = cap_get_proc(), next = cap_init();
	int r = now && next ? 0 : -errno;

	bound();
	cap_reset_ambient();
	if (r == 0)
		r = reduce(now, next);
	if (r < 0)
		log_warn("capabilities that are not needed can't be dropped: %s", strerror(-r));
	cap_free(now);
	cap_free(next);
}

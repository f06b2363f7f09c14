// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/worker/system.h"
#include "common/log.h"
#include "common/textfile.h"
#include "common/thread.h"
#include "common/util.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/signalfd.h>

int system_open_signals(void)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

static bool set_oom_score(void)
{
	static const char score[] = "-1000";
	cleanup_fd int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	return fd >= 0 && write(fd, score, sizeof(score) - 1) == sizeof(score) - 1;
}

int system_prepare(struct system_grants *ret)
{
	struct system_grants g = {0};

	/* One arena, never given back: what was touched once stays locked and is used again. */
	mallopt(M_ARENA_MAX, 1);
	mallopt(M_TRIM_THRESHOLD, 1 << 30);
	g.locked = mlockall(MCL_CURRENT | MCL_FUTURE) == 0;
	if (!g.locked) {
		log_err("memory can't be locked: %s; run as root or raise LimitMEMLOCK=, since a daemon "
			"that can be swapped out would wait for itself",
			strerror(errno));
		return -EPERM;
	}
	g.oom_exempt = set_oom_score();
	g.io_flusher = thread_mark_io_flusher();
	*ret = g;
	return 0;
}

bool system_kernel_zswap(void)
{
	char text[16];

	return textfile_read_line("/sys/module/zswap/parameters/enabled", text, sizeof(text)) ==
		       0 &&
	       (text[0] == 'Y' || text[0] == '1');
}

static void check_kernel_zswap(void)
{
	if (system_kernel_zswap())
		log_warn(
			"kernel zswap is enabled: it stands in front of this device too, compresses "
			"first and writes pages decompressed; turn it off with "
			"'echo N > /sys/module/zswap/parameters/enabled'");
}

/* cgroup v1 and v2; a file that is missing is a limit that is not there. */
static void check_own_cgroup(void)
{
	char path[512], value[32], *save = NULL;
	cleanup_free char *cgroups = NULL;

	if (textfile_read("/proc/self/cgroup", &cgroups) < 0)
		return;
	for (char *line = strtok_r(cgroups, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		unsigned long long limit;
		char *controllers = strchr(line, ':');
		char *dir = controllers ? strchr(controllers + 1, ':') : NULL;

		if (!dir)
			continue;
		*dir++ = '\0';
		controllers++;
		if (strcmp(controllers, "memory") == 0)
			snprintf(path, sizeof(path),
				 "/sys/fs/cgroup/memory%s/memory.limit_in_bytes", dir);
		else if (*controllers == '\0')
			snprintf(path, sizeof(path), "/sys/fs/cgroup%s/memory.max", dir);
		else
			continue;
		if (textfile_read_line(path, value, sizeof(value)) < 0)
			continue;
		limit = strtoull(value, NULL, 10);
		if (limit > 0 && limit < 1ull << 60)
			log_warn(
				"this daemon runs in a memory cgroup limited to %llu bytes (%s): at the "
				"limit it would wait for its own swap; start it outside",
				limit, path);
	}
}

void system_warn(const struct system_grants *g)
{
	if (!g->oom_exempt)
		log_warn(
			"the OOM score can't be lowered (no CAP_SYS_RESOURCE): short of memory, the "
			"kernel may kill this daemon and with it what is swapped; grant that, or set "
			"OOMScoreAdjust=-1000");
	if (!g->io_flusher)
		log_warn(
			"threads can't be marked as I/O flushers: an allocation in the kernel may wait "
			"for this daemon's own swap; grant CAP_SYS_RESOURCE");
	check_kernel_zswap();
	check_own_cgroup();
}

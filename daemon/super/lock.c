// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/super/lock.h"
#include "common/log.h"
#include "common/util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

void lock_sign(int fd, const char *name)
{
	char pid[LOCK_PID_MAX];
	int n = snprintf(pid, sizeof(pid), "%d\n", getpid());

	if (ftruncate(fd, 0) < 0 || pwrite(fd, pid, (size_t)n, 0) != n)
		log_warn("cannot write to the lock of %s: %s", name, strerror(errno));
}

/* Who can write there could pass for a worker, or for the one who answers zswapctl. */
static int check_directory(const char *run_dir)
{
	struct stat st;

	if (lstat(run_dir, &st) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & (S_IWGRP | S_IWOTH)))
		return 0;
	log_err("%s is no directory that belongs to user %u and to which only that one can write; "
		"remove it, it is made again",
		run_dir, geteuid());
	return -EPERM;
}

int lock_take(const char *run_dir, const char *name, char holder[static LOCK_PID_MAX])
{
	cleanup_fd int fd = -1;
	char path[128];
	ssize_t n;
	int r;

	if (mkdir(run_dir, 0755) < 0 && errno != EEXIST) {
		r = -errno;
		log_err("cannot make %s: %s", run_dir, strerror(-r));
		return r;
	}
	r = check_directory(run_dir);
	if (r < 0)
		return r;
	snprintf(path, sizeof(path), "%s/%s.lock", run_dir, name);
	/* Whoever can open it can lock it. */
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0) {
		r = -errno;
		log_err("cannot open %s: %s", path, strerror(-r));
		return r;
	}
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		n = pread(fd, holder, LOCK_PID_MAX - 1, 0);
		holder[n > 0 ? n : 0] = '\0';
		holder[strcspn(holder, "\n")] = '\0';
		if (!*holder)
			strcpy(holder, "?");
		return -EBUSY;
	}
	fchmod(fd, 0600); /* a former version's */
	lock_sign(fd, name);
	r = fd;
	fd = -1;
	return r;
}

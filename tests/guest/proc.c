// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/guest/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/util.h"

ssize_t proc_read(const char *path, char *buf, size_t size)
{
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = read(fd, buf, size - 1);
	if (n < 0)
		return -errno;
	buf[n] = '\0';
	return n;
}

uint64_t proc_field(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	return at ? strtoull(at + strlen(name), NULL, 10) : 0;
}

struct dir_entry {
	uint64_t ino;
	int64_t off;
	unsigned short len;
	unsigned char type;
	char name[];
};

void proc_each(const char *path, void (*each)(void *arg, int number), void *arg)
{
	cleanup_fd int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char buf[4096] __attribute__((aligned(8)));
	long n;

	while (fd >= 0 && (n = syscall(SYS_getdents64, fd, buf, sizeof(buf))) > 0) {
		for (long at = 0; at < n;) {
			const struct dir_entry *e = (const struct dir_entry *)(buf + at);
			char *end;
			long number = strtol(e->name, &end, 10);

			if (!*end && number > 0)
				each(arg, (int)number);
			at += e->len;
		}
	}
}

struct search {
	const char *comm;
	pid_t found;
};

static void look(void *arg, int pid)
{
	struct search *s = arg;
	char path[64], text[64];

	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	if (proc_read(path, text, sizeof(text)) <= 0)
		return;
	text[strcspn(text, "\n")] = '\0';
	if (strcmp(text, s->comm) == 0 && pid > s->found)
		s->found = pid;
}

pid_t proc_find(const char *comm)
{
	struct search s = {.comm = comm};

	proc_each("/proc", look, &s);
	return s.found;
}

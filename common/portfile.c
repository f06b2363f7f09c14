// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/portfile.h"
#include "common/util.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define SUFFIX ".port"

static int make_path(char *buf, size_t size, const char *dir, const char *name, const char *suffix)
{
	int n;

	if (!nlproto_name_ok(name))
		return -EINVAL;
	n = snprintf(buf, size, "%s/%s%s", dir, name, suffix);
	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

static int write_new(const char *path, const char *text, size_t len)
{
	cleanup_fd int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
	ssize_t n;

	if (fd < 0)
		return -errno;
	if (fchmod(fd, 0644) < 0) /* whatever the umask */
		return -errno;
	n = write(fd, text, len);
	if (n < 0)
		return -errno;
	return (size_t)n == len ? 0 : -ENOSPC;
}

int portfile_write(const char *dir, const char *name, uint32_t port)
{
	char path[PATH_MAX], tmp[PATH_MAX], text[16];
	int n, r;

	r = make_path(path, sizeof(path), dir, name, SUFFIX);
	if (r < 0)
		return r;
	r = make_path(tmp, sizeof(tmp), dir, name, SUFFIX ".new");
	if (r < 0)
		return r;
	if (mkdir(dir, 0755) < 0 && errno != EEXIST)
		return -errno;
	n = snprintf(text, sizeof(text), "%u\n", port);
	r = write_new(tmp, text, (size_t)n);
	if (r == 0 && rename(tmp, path) < 0)
		r = -errno;
	if (r < 0)
		unlink(tmp);
	return r;
}

int portfile_read(const char *dir, const char *name, uint32_t *ret_port)
{
	char path[PATH_MAX], text[16];
	unsigned long v;
	ssize_t n;
	char *end;
	int r;

	r = make_path(path, sizeof(path), dir, name, SUFFIX);
	if (r < 0)
		return r;

	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return -errno;
	n = read(fd, text, sizeof(text) - 1);
	if (n < 0)
		return -errno;
	text[n] = '\0';
	errno = 0;
	v = strtoul(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || strcmp(end, "\n") || errno || v == 0 ||
	    v > UINT32_MAX)
		return -EINVAL;
	*ret_port = (uint32_t)v;
	return 0;
}

void portfile_remove(const char *dir, const char *name, uint32_t port)
{
	char path[PATH_MAX];
	uint32_t there;

	if (portfile_read(dir, name, &there) < 0 || there != port)
		return;
	if (make_path(path, sizeof(path), dir, name, SUFFIX) == 0)
		unlink(path);
}

size_t portfile_list(const char *dir, char (*names)[NLPROTO_NAME_MAX], size_t max)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	size_t n = 0;

	if (!d)
		return 0;
	while ((e = readdir(d))) {
		size_t len = strlen(e->d_name), tail = strlen(SUFFIX);
		char name[NLPROTO_NAME_MAX];

		if (len <= tail || len - tail >= sizeof(name) ||
		    strcmp(e->d_name + len - tail, SUFFIX))
			continue;
		memcpy(name, e->d_name, len - tail);
		name[len - tail] = '\0';
		if (!nlproto_name_ok(name))
			continue;
		if (n < max)
			memcpy(names[n], name, sizeof(name));
		n++;
	}
	closedir(d);
	return n;
}

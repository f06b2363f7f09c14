// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/textfile.h"
#include "common/util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX_BYTES MIB(1)

int textfile_read(const char *path, char **ret_text)
{
	cleanup_fd int fd = -1;
	cleanup_free char *text = NULL;
	size_t size = 0, len = 0;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	for (;;) {
		ssize_t n;

		if (size - len < 2) {
			char *bigger;

			size = size ? size * 2 : 4096;
			bigger = realloc(text, size);
			if (!bigger)
				return -ENOMEM;
			text = bigger;
		}
		n = read(fd, text + len, size - len - 1);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		len += (size_t)n;
		if (len > TEXT_MAX_BYTES)
			return -EFBIG;
	}
	text[len] = '\0';
	*ret_text = text;
	text = NULL;
	return 0;
}

int textfile_read_line(const char *path, char *ret_line, size_t size)
{
	cleanup_free char *text = NULL;
	size_t len;
	int r;

	r = textfile_read(path, &text);
	if (r < 0)
		return r;
	len = strcspn(text, "\n");
	if (len >= size)
		return -ENOBUFS;
	memcpy(ret_line, text, len);
	ret_line[len] = '\0';
	return 0;
}

int textfile_read_u64(const char *path, uint64_t *ret)
{
	char line[32], *end;
	uint64_t v;
	int r;

	r = textfile_read_line(path, line, sizeof(line));
	if (r < 0)
		return r;
	errno = 0;
	v = strtoull(line, &end, 10);
	if (errno || end == line || *end || line[0] == '-')
		return -EBADMSG;
	*ret = v;
	return 0;
}

int textfile_write(const char *path, const char *text)
{
	cleanup_fd int fd = -1;
	size_t len = strlen(text);
	ssize_t n;

	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	do {
		n = write(fd, text, len);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	return (size_t)n == len ? 0 : -EIO;
}

int textfile_size(const char *text, const char *name, uint64_t *ret_bytes)
{
	size_t len = strlen(name);
	const char *line = text;
	char *end;
	unsigned long long v;

	while (strncmp(line, name, len) != 0 || line[len] != ':') {
		line = strchr(line, '\n');
		if (!line)
			return -EBADMSG;
		line++;
	}
	line += len + 1;
	line += strspn(line, " \t");
	if (*line < '0' || *line > '9')
		return -EBADMSG;
	errno = 0;
	v = strtoull(line, &end, 10);
	if (errno || v > UINT64_MAX / 1024 || strncmp(end, " kB", 3) != 0)
		return -EBADMSG;
	*ret_bytes = KIB(v);
	return 0;
}

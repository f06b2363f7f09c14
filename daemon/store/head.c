// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/store/head.h"
#include "common/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Zeroed, aligned for O_DIRECT; the head is small enough to be allocated whole every time. */
static void *buffer_new(const struct store *s)
{
	size_t align = s->dio_align < 4096 ? 4096 : s->dio_align;
	void *p = aligned_alloc(align, STORE_DATA_OFFSET);

	if (p)
		memset(p, 0, STORE_DATA_OFFSET);
	return p;
}

/* What one request must cover at least. */
static size_t head_length(const struct store *s)
{
	return s->dio_align < SUPERBLOCK_SIZE ? SUPERBLOCK_SIZE : s->dio_align;
}

int head_read(const struct store *s, struct superblock *ret_sb, enum superblock_state *ret_state)
{
	cleanup_free void *buffer = buffer_new(s);
	enum superblock_state state;
	ssize_t n;

	if (!buffer)
		return -ENOMEM;
	n = pread(s->fd, buffer, head_length(s), 0);
	if (n < 0) {
		int r = -errno;

		log_err("store %s: cannot read its superblock: %s", s->path, strerror(-r));
		return r;
	}
	if (n < SUPERBLOCK_SIZE) {
		*ret_state = SUPERBLOCK_FOREIGN;
		return 0;
	}
	state = superblock_check(buffer);
	if (state == SUPERBLOCK_VALID)
		memcpy(ret_sb, buffer, sizeof(*ret_sb));
	*ret_state = state;
	return 0;
}

int head_write(const struct store *s, const struct superblock *sb, bool whole)
{
	cleanup_free void *buffer = buffer_new(s);
	size_t len = whole ? STORE_DATA_OFFSET : head_length(s);
	ssize_t n;
	int r;

	if (!buffer)
		return -ENOMEM;
	memcpy(buffer, sb, sizeof(*sb));
	n = pwrite(s->fd, buffer, len, 0);
	if (n == (ssize_t)len && fdatasync(s->fd) == 0)
		return 0;
	r = n >= 0 && n < (ssize_t)len ? -EIO : -errno;
	log_err("store %s: cannot write its superblock: %s", s->path, strerror(-r));
	return r;
}

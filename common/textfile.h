/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Small text files of /proc and /sys, read and written whole.  Not for data threads: it allocates
 * and may block.  Nothing is logged here, since a missing attribute is often an answer.
 */
#ifndef ZSWAPD_COMMON_TEXTFILE_H
#define ZSWAPD_COMMON_TEXTFILE_H

#include <stddef.h>
#include <stdint.h>

/*
 * Reads all of @path, at most 1 MiB, into a NUL-terminated string that the caller frees.  Files of
 * /proc have no size and may come in pieces, so it reads until the end.  -EFBIG if there is more,
 * else the errno of open or read.
 */
int textfile_read(const char *path, char **ret_text);

/* The first line of @path without its newline; -ENOBUFS if it does not fit @size. */
int textfile_read_line(const char *path, char *ret_line, size_t size);

/*
 * The size in a line "NAME:   123 kB" of @text, as /proc/meminfo and /proc/PID/status have it, in
 * bytes.  -EBADMSG: there is no such line, or it is no such number.
 */
int textfile_size(const char *text, const char *name, uint64_t *ret_bytes);

/* The first line of @path as a decimal number; -EBADMSG if it is none. */
int textfile_read_u64(const char *path, uint64_t *ret);

/* Writes @text in one write(2), as sysfs wants it; never creates a file. */
int textfile_write(const char *path, const char *text);

#endif

// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/swaps.h"
#include "common/util.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_octal(char c)
{
	return c >= '0' && c <= '7';
}

/* @len bytes of @in; false if the result does not fit PATH_MAX. */
static bool unescape(const char *in, size_t len, char out[PATH_MAX])
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		char c = in[i];

		if (c == '\\' && len - i > 3 && is_octal(in[i + 1]) && is_octal(in[i + 2]) &&
		    is_octal(in[i + 3])) {
			c = (char)((in[i + 1] - '0') << 6 | (in[i + 2] - '0') << 3 |
				   (in[i + 3] - '0'));
			i += 3;
		}
		if (c == '\0' || n + 1 >= PATH_MAX)
			return false;
		out[n++] = c;
	}
	out[n] = '\0';
	return n > 0;
}

/* The next word of the line at *p; its length, 0 at the end of the line. */
static size_t next_word(const char **p, const char **ret_word)
{
	size_t len;

	*p += strspn(*p, " \t");
	len = strcspn(*p, " \t\n");
	*ret_word = *p;
	*p += len;
	return len;
}

static bool parse_number(const char *word, size_t len, long long min, long long max, long long *ret)
{
	char *end;
	long long v;

	if (len == 0)
		return false;
	errno = 0;
	v = strtoll(word, &end, 10);
	if (errno || end != word + len || v < min || v > max)
		return false;
	*ret = v;
	return true;
}

static bool parse_line(const char *line, struct swaps_entry *ret)
{
	const long long max_kib = INT64_MAX / 1024;
	long long total, used, priority;
	const char *p = line, *path, *word;
	size_t path_len, len;

	path_len = next_word(&p, &path);
	if (!path_len || !next_word(&p, &word))
		return false;
	len = next_word(&p, &word);
	if (!parse_number(word, len, 0, max_kib, &total))
		return false;
	len = next_word(&p, &word);
	if (!parse_number(word, len, 0, max_kib, &used))
		return false;
	len = next_word(&p, &word);
	if (!parse_number(word, len, INT32_MIN, INT32_MAX, &priority))
		return false;
	if (!unescape(path, path_len, ret->path))
		return false;
	ret->total = KIB(total);
	ret->used = KIB(used);
	ret->priority = (int)priority;
	return true;
}

int swaps_next(const char **text, struct swaps_entry *ret)
{
	struct swaps_entry e;
	const char *line = *text;

	if (strncmp(line, "Filename", strlen("Filename")) == 0) {
		line += strcspn(line, "\n");
		line += *line == '\n';
	}
	if (*line == '\0') {
		*text = line;
		return 0;
	}
	if (!parse_line(line, &e))
		return -EBADMSG;
	*ret = e;
	line += strcspn(line, "\n");
	*text = line + (*line == '\n');
	return 1;
}

static bool is_same(const char *path, const struct stat *st)
{
	struct stat mine;

	if (stat(path, &mine) < 0 || (mine.st_mode & S_IFMT) != (st->st_mode & S_IFMT))
		return false;
	if (S_ISBLK(st->st_mode))
		return mine.st_rdev == st->st_rdev;
	return mine.st_dev == st->st_dev && mine.st_ino == st->st_ino;
}

bool swaps_entry_is(const struct swaps_entry *e, const struct stat *st)
{
	char in_dev[sizeof("/dev") + PATH_MAX];

	if (is_same(e->path, st))
		return true;
	/* The kernel names what it can still climb to: see swaps.h. */
	snprintf(in_dev, sizeof(in_dev), "/dev%s", e->path);
	return S_ISBLK(st->st_mode) && is_same(in_dev, st);
}

int swaps_find(const char *text, const struct stat *st, struct swaps_entry *ret)
{
	struct swaps_entry e;
	int r;

	while ((r = swaps_next(&text, &e)) > 0) {
		if (!swaps_entry_is(&e, st))
			continue;
		if (ret)
			*ret = e;
		return 1;
	}
	return r;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A size is digits, then at most one unit.  Parsing is strict on purpose: a size that means
 * something else than its writer thought costs memory or disk, an error at start costs a minute.
 */
#include "common/size.h"
#include "common/util.h"

#include <errno.h>
#include <stdio.h>
#include <strings.h>

/* Leaves *text behind the last digit. */
static int parse_digits(const char **text, uint64_t *ret_n)
{
	const char *p = *text;
	uint64_t n = 0;

	if (*p < '0' || *p > '9')
		return -EINVAL;
	for (; *p >= '0' && *p <= '9'; p++)
		if (__builtin_mul_overflow(n, UINT64_C(10), &n) ||
		    __builtin_add_overflow(n, (uint64_t)(*p - '0'), &n))
			return -ERANGE;
	*text = p;
	*ret_n = n;
	return 0;
}

/* Whole hundredths first, so that no product needs more than 64 bits for any sane input. */
static int share_of(uint64_t total, uint64_t percent, uint64_t *ret_bytes)
{
	uint64_t whole, rest;

	if (__builtin_mul_overflow(total / 100, percent, &whole) ||
	    __builtin_mul_overflow(total % 100, percent, &rest) ||
	    __builtin_add_overflow(whole, rest / 100, &whole))
		return -ERANGE;
	*ret_bytes = whole;
	return 0;
}

int size_parse(const char *text, uint64_t ram_bytes, uint64_t *ret_bytes)
{
	static const struct {
		const char *name;
		unsigned shift;
	} units[] = {
		{"", 0},   {"K", 10},	{"KiB", 10}, {"M", 20},	  {"MiB", 20},
		{"G", 30}, {"GiB", 30}, {"T", 40},   {"TiB", 40},
	};
	uint64_t n;
	int r;

	r = parse_digits(&text, &n);
	if (r < 0)
		return r;
	if (text[0] == '%' && text[1] == '\0')
		return ram_bytes ? share_of(ram_bytes, n, ret_bytes) : -EINVAL;
	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		if (strcasecmp(text, units[i].name))
			continue;
		if (n > UINT64_MAX >> units[i].shift)
			return -ERANGE;
		*ret_bytes = n << units[i].shift;
		return 0;
	}
	return -EINVAL;
}

const char *size_format(char buf[static SIZE_TEXT_MAX], uint64_t bytes)
{
	static const char prefix[] = "KMGTPE";
	uint64_t unit = 1024, tenths;
	size_t i = 0;

	if (bytes < 1024) {
		snprintf(buf, SIZE_TEXT_MAX, "%u B", (unsigned)bytes);
		return buf;
	}
	for (;;) {
		/* The remainder is below 2^60, so ten times it fits. */
		tenths = bytes / unit * 10 + (bytes % unit * 10 + unit / 2) / unit;
		if (tenths < 10240 || !prefix[i + 1])
			break;
		unit <<= 10;
		i++;
	}
	snprintf(buf, SIZE_TEXT_MAX, "%u.%u %ciB", (unsigned)(tenths / 10), (unsigned)(tenths % 10),
		 prefix[i]);
	return buf;
}

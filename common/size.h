/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sizes as people write and read them.  Units are binary throughout, as in swapon, systemd and
 * zram: K is 1024 bytes.  Pure functions, callable from any thread.
 */
#ifndef ZSWAPD_COMMON_SIZE_H
#define ZSWAPD_COMMON_SIZE_H

#include <stdint.h>

/* Holds the longest text of size_format() and its terminator. */
#define SIZE_TEXT_MAX 16

/*
 * size_parse() - bytes from "4096", "64K", "64KiB", "2M", "1G", "1T" or "25%".
 *
 * The unit's case does not matter.  "KB" and its like are refused: half the world takes them for
 * 1000.  A share is one of @ram_bytes, rounded down, and may be above 100 %; @ram_bytes 0 means
 * that shares are not wanted.  Nothing may stand around the number, neither spaces nor a sign.
 *
 * -EINVAL: not a size, or a fraction such as "1.5G".  -ERANGE: does not fit 64 bits.
 */
int size_parse(const char *text, uint64_t ram_bytes, uint64_t *ret_bytes);

/* "512 B", "1.5 KiB", "256.0 MiB", up to "16.0 EiB"; one decimal, rounded.  Returns @buf. */
const char *size_format(char buf[static SIZE_TEXT_MAX], uint64_t bytes);

#endif

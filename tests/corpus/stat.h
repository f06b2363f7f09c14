/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ZSWAPD_TESTS_CORPUS_STAT_H
#define ZSWAPD_TESTS_CORPUS_STAT_H

/*
 * Prints what a file of raw pages is made of: how many, how many same-filled, how the others
 * compress one by one with zstd level 1.  Exit code: 0, or 1 after a message.
 */
int corpus_stat(const char *path);

#endif

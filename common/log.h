/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Log lines for people, to stderr with the journal's <N> priority prefix.
 *
 * Two ways in.  log_msg() writes at once and may wait for a moment when the reader does not read;
 * it is for the main and stats threads.  log_post() is for data threads and the mover, which makes
 * room for them: it formats into a fixed ring and returns; the text is written by whoever calls
 * log_drain() (the main thread, a few times a second).  A full ring drops the line and counts it,
 * and the next drained line says how many were lost.
 */
#ifndef ZSWAPD_COMMON_LOG_H
#define ZSWAPD_COMMON_LOG_H

enum log_level {
	LOG_LEVEL_ERR = 3,
	LOG_LEVEL_WARN = 4,
	LOG_LEVEL_NOTICE = 5,
	LOG_LEVEL_INFO = 6,
	LOG_LEVEL_DEBUG = 7,
};

/* Lines above @level are dropped.  Call before threads are started. */
void log_set_level(enum log_level level);

void log_msg(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Any thread; never blocks, never allocates. */
void log_post(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Writes what log_post() left.  One thread at a time. */
void log_drain(void);

#define log_err(...)	log_msg(LOG_LEVEL_ERR, __VA_ARGS__)
#define log_warn(...)	log_msg(LOG_LEVEL_WARN, __VA_ARGS__)
#define log_notice(...) log_msg(LOG_LEVEL_NOTICE, __VA_ARGS__)
#define log_info(...)	log_msg(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...)	log_msg(LOG_LEVEL_DEBUG, __VA_ARGS__)

/*
 * Allows @burst lines per @interval_ns; the counterpart for messages that a fault could repeat a
 * million times.  Lock-free, any thread.
 */
struct log_limit {
	_Atomic unsigned long long window_start_ns;
	_Atomic unsigned count;
	_Atomic unsigned suppressed;
};

/*
 * True if a line may be written now; *ret_suppressed is then the number of lines left out since the
 * last one that was written.
 */
_Bool log_limit_ok(struct log_limit *l, unsigned burst, unsigned long long interval_ns,
		   unsigned *ret_suppressed);

#endif

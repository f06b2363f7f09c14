// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/log.h"
#include "common/util.h"

#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define LINE_MAX_BYTES 240 /* of the ring, whose lines are short and made on a data thread */
#define TEXT_MAX_BYTES 640 /* of others, which may hold two paths */
#define EMIT_WAIT_MS   500
#define RING_LINES     256 /* a power of two */

/*
 * A bounded queue in the manner of D. Vyukov: each cell carries a sequence number that says whose
 * turn it is.  cell.seq == pos: free for the producer that claims pos; cell.seq == pos + 1: filled.
 */
struct cell {
	_Atomic unsigned seq;
	enum log_level level;
	char text[LINE_MAX_BYTES];
};

static struct {
	struct cell cells[RING_LINES];
	_Atomic unsigned head;
	unsigned tail; /* the drainer's only */
	_Atomic unsigned dropped;
	_Atomic bool ready;
} ring;

static enum log_level max_level = LOG_LEVEL_INFO;

void log_set_level(enum log_level level)
{
	max_level = level;
}

/*
 * Whoever reads the log may wait for memory that only this daemon can give, so nobody waits long
 * for him: then the line is lost.  Those that follow are not waited for at all until he is back,
 * else a few hundred of them would hold the main thread up for minutes.
 */
static bool reader_is_there(void)
{
	/* relaxed: a hint, which orders nothing. */
	static _Atomic bool away;
	int wait = atomic_load_explicit(&away, memory_order_relaxed) ? 0 : EMIT_WAIT_MS;
	struct pollfd pfd = {.fd = STDERR_FILENO, .events = POLLOUT};
	bool there = poll(&pfd, 1, wait) != 0;

	atomic_store_explicit(&away, !there, memory_order_relaxed);
	return there;
}

/* One write(2) a line, so that lines of several threads do not mix.  False: it is lost. */
static bool write_line(enum log_level level, const char *text)
{
	char line[TEXT_MAX_BYTES + 32], prefix[8] = "";
	int n;

	/* The priority is for the journal, not for somebody at a terminal. */
	if (!isatty(STDERR_FILENO))
		snprintf(prefix, sizeof(prefix), "<%d>", level);
	n = snprintf(line, sizeof(line), "%szswapd: %s\n", prefix, text);
	if (n < 0)
		return false;
	if ((size_t)n >= sizeof(line)) {
		n = sizeof(line) - 1;
		line[n - 1] = '\n';
	}
	return reader_is_there() && write(STDERR_FILENO, line, (size_t)n) >= 0;
}

static void emit(enum log_level level, const char *text)
{
	static _Atomic unsigned lost;
	char note[64];
	unsigned n;

	if (!write_line(level, text)) {
		atomic_fetch_add_explicit(&lost, 1, memory_order_relaxed);
		return;
	}
	n = atomic_exchange_explicit(&lost, 0, memory_order_relaxed);
	snprintf(note, sizeof(note), "%u log lines were lost, since nobody read them", n);
	if (n && !write_line(LOG_LEVEL_WARN, note))
		atomic_fetch_add_explicit(&lost, n, memory_order_relaxed);
}

void log_msg(enum log_level level, const char *fmt, ...)
{
	char text[TEXT_MAX_BYTES];
	va_list ap;

	if (level > max_level)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	emit(level, text);
}

static void ring_init_once(void)
{
	static _Atomic bool started;

	/* The first line of all; a loser of this race drops its line below rather than wait. */
	if (atomic_exchange(&started, true))
		return;
	for (unsigned i = 0; i < RING_LINES; i++)
		atomic_store_explicit(&ring.cells[i].seq, i, memory_order_relaxed);
	atomic_store_explicit(&ring.ready, true, memory_order_release);
}

void log_post(enum log_level level, const char *fmt, ...)
{
	struct cell *cell;
	unsigned pos;
	va_list ap;

	if (level > max_level)
		return;
	/* acquire: pairs with the release in ring_init_once(), so that seq is seen initialised. */
	if (unlikely(!atomic_load_explicit(&ring.ready, memory_order_acquire))) {
		ring_init_once();
		if (!atomic_load_explicit(&ring.ready, memory_order_acquire))
			goto drop;
	}
	pos = atomic_load_explicit(&ring.head, memory_order_relaxed);
	for (;;) {
		cell = &ring.cells[pos & (RING_LINES - 1)];
		/* acquire: the drainer's reads of the old text are over before it is overwritten.
		 */
		unsigned seq = atomic_load_explicit(&cell->seq, memory_order_acquire);

		if (seq == pos) {
			if (atomic_compare_exchange_weak_explicit(&ring.head, &pos, pos + 1,
								  memory_order_relaxed,
								  memory_order_relaxed))
				break;
		} else if ((int)(seq - pos) < 0) {
			goto drop;
		} else {
			pos = atomic_load_explicit(&ring.head, memory_order_relaxed);
		}
	}
	cell->level = level;
	va_start(ap, fmt);
	vsnprintf(cell->text, sizeof(cell->text), fmt, ap);
	va_end(ap);
	/* release: level and text are visible before the cell counts as filled. */
	atomic_store_explicit(&cell->seq, pos + 1, memory_order_release);
	return;
drop:
	atomic_fetch_add_explicit(&ring.dropped, 1, memory_order_relaxed);
}

void log_drain(void)
{
	unsigned dropped;

	if (!atomic_load_explicit(&ring.ready, memory_order_acquire))
		return;
	for (;;) {
		struct cell *cell = &ring.cells[ring.tail & (RING_LINES - 1)];

		/* acquire: pairs with the producer's release; the text is complete. */
		if (atomic_load_explicit(&cell->seq, memory_order_acquire) != ring.tail + 1)
			break;
		emit(cell->level, cell->text);
		/* release: our reads are over before a producer may reuse the cell. */
		atomic_store_explicit(&cell->seq, ring.tail + RING_LINES, memory_order_release);
		ring.tail++;
	}
	dropped = atomic_exchange_explicit(&ring.dropped, 0, memory_order_relaxed);
	if (dropped)
		log_warn("%u log lines of the data path were dropped (ring full)", dropped);
}

_Bool log_limit_ok(struct log_limit *l, unsigned burst, unsigned long long interval_ns,
		   unsigned *ret_suppressed)
{
	/* relaxed throughout: the figures bound a rate, they order nothing. */
	unsigned long long now = now_ns();
	unsigned long long start = atomic_load_explicit(&l->window_start_ns, memory_order_relaxed);

	if (now - start >= interval_ns &&
	    atomic_compare_exchange_strong_explicit(&l->window_start_ns, &start, now,
						    memory_order_relaxed, memory_order_relaxed))
		atomic_store_explicit(&l->count, 0, memory_order_relaxed);
	if (atomic_fetch_add_explicit(&l->count, 1, memory_order_relaxed) < burst) {
		*ret_suppressed = atomic_exchange_explicit(&l->suppressed, 0, memory_order_relaxed);
		return true;
	}
	atomic_fetch_add_explicit(&l->suppressed, 1, memory_order_relaxed);
	return false;
}

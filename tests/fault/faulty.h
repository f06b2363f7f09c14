/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A store that fails where and when a test says so.
 *
 * It stands in front of ring_store_read() and ring_store_write(), by the linker's --wrap, in a
 * program that links faulty_dep.  Every transfer goes through io_uring and reaches the store all
 * the same; what is altered is its answer, or the moment at which it is sent.  A write that "fails"
 * has written, as on a drive that has lost the answer: nobody may rely on either.
 *
 * For engines whose threads are one: a transfer that was held must be sent by who owns the ring.
 * Polled reads pass by.
 */
#ifndef ZSWAPD_TESTS_FAULT_FAULTY_H
#define ZSWAPD_TESTS_FAULT_FAULTY_H

#include <stdbool.h>
#include <stdint.h>

enum faulty_op {
	FAULTY_READ = 1,
	FAULTY_WRITE = 2,
	FAULTY_BOTH = FAULTY_READ | FAULTY_WRITE,
};

#define FAULTY_ALWAYS UINT32_MAX

/*
 * Each adds a rule for transfers that touch bytes @from to @to - 1 of the store, for the next
 * @count of them.  The first rule that fits counts.
 *
 * @error: negative errno, or a length for a short transfer.
 */
void faulty_fail(enum faulty_op ops, uint64_t from, uint64_t to, int32_t error, uint32_t count);
/* A bit of each 4 KiB is turned in what is read. */
void faulty_corrupt(uint64_t from, uint64_t to, uint32_t count);

/* From now on nothing is answered, since nothing is sent. */
void faulty_hold(void);
/* What was held is sent, in its order, and nothing is held any more. */
void faulty_release(void);
unsigned faulty_held(void);

/* How many transfers rules have altered. */
unsigned faulty_hits(void);

/* No rules, no hits; what is held is forgotten. */
void faulty_reset(void);

#endif

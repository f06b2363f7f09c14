/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Named points between two steps that a death could come between.
 *
 * tests/crash/points.c kills a process at each of them, some passages after it was armed, and
 * proves that its successor has everything.  It takes them from this table, so that a new one is
 * tested by being written down here; one that is never passed makes the test fail.
 *
 * The points are only there in libraries that are built with ZSWAPD_CRASH_POINTS, for that test.
 * Elsewhere a point is no code.
 */
#ifndef ZSWAPD_COMMON_CRASHPOINT_H
#define ZSWAPD_COMMON_CRASHPOINT_H

/*
 * What has just been done, in the order of the sources.  Where: LIFE, while the engine works;
 * STORE, the same, and there is a store; FAULT, the same, and its writes fail at times; TAKEOVER.
 */
#define CRASH_POINTS(X)                                           \
	/* writer.c: an open segment */                           \
	X(open_frame_taken, LIFE)                                 \
	X(open_record_filled, LIFE)                               \
	X(open_where_set, LIFE)                                   \
	X(opened, LIFE)                                           \
	X(seal_length_set, LIFE)                                  \
	X(sealed, LIFE)                                           \
	/* queue.c: a write, a discard */                         \
	X(write_reserved, LIFE)                                   \
	X(write_filled, LIFE)                                     \
	X(write_raw_filled, LIFE)                                 \
	X(write_committed, LIFE)                                  \
	X(write_claimed, LIFE)                                    \
	X(write_exchanged, LIFE)                                  \
	X(write_old_released, LIFE)                               \
	X(discard_cleared, LIFE)                                  \
	X(discard_released, LIFE)                                 \
	X(discard_done, LIFE)                                     \
	/* read.c */                                              \
	X(read_pinned, LIFE)                                      \
	X(read_store_begun, STORE)                                \
	X(read_store_answered, STORE)                             \
	/* writeback.c, evictor.c: a segment leaves memory */     \
	X(evict_place_set, STORE)                                 \
	X(evict_writing, STORE)                                   \
	X(evict_submitted, STORE)                                 \
	X(evict_job_submitted, STORE)                             \
	X(evict_written, STORE)                                   \
	X(evict_stored, STORE)                                    \
	X(evict_frame_cleared, STORE)                             \
	X(evict_frame_punched, STORE)                             \
	X(evict_frame_freed, STORE)                               \
	X(evict_failed_place_cleared, FAULT)                      \
	X(evict_failed_sealed, FAULT)                             \
	X(retire_place_set, FAULT)                                \
	X(retired, FAULT)                                         \
	/* clean.c: objects move to another segment */            \
	X(clean_memory_copied, LIFE)                              \
	X(clean_memory_committed, LIFE)                           \
	X(clean_memory_replaced, LIFE)                            \
	X(clean_memory_released, LIFE)                            \
	X(clean_memory_emptied, LIFE)                             \
	X(clean_store_read, STORE)                                \
	X(clean_store_copied, STORE)                              \
	X(clean_store_committed, STORE)                           \
	X(clean_store_replaced, STORE)                            \
	X(clean_store_released, STORE)                            \
	X(clean_store_emptied, STORE)                             \
	/* evictor.c: nothing in a segment is live */             \
	X(free_state_set, LIFE)                                   \
	X(free_where_cleared, LIFE)                               \
	X(free_record_free, LIFE)                                 \
	X(free_frame_free, LIFE)                                  \
	X(free_place_free, STORE)                                 \
	/* front.c: memory comes and goes */                      \
	X(grow_populated, LIFE)                                   \
	X(grow_generation_set, LIFE)                              \
	X(grown, LIFE)                                            \
	X(shrink_generation_cleared, LIFE)                        \
	X(shrink_punched, LIFE)                                   \
	X(shrunk, LIFE)                                           \
	/* job.c: the limit, and what the mover is asked to do */ \
	X(limit_judged, LIFE)                                     \
	X(limit_set, LIFE)                                        \
	X(job_filled_in, LIFE)                                    \
	X(job_started, LIFE)                                      \
	X(job_progress, LIFE)                                     \
	X(job_ended, LIFE)                                        \
	/* state.c, recover.c, front.c, evictor.c: a takeover */  \
	X(takeover_begun, TAKEOVER)                               \
	X(takeover_pins_reset, TAKEOVER)                          \
	X(takeover_limit_kept, TAKEOVER)                          \
	X(takeover_record_reset, TAKEOVER)                        \
	X(takeover_record_done, TAKEOVER)                         \
	X(takeover_records_done, TAKEOVER)                        \
	X(takeover_frame_settled, TAKEOVER)                       \
	X(takeover_front_settled, TAKEOVER)                       \
	X(takeover_words, TAKEOVER)                               \
	X(takeover_words_done, TAKEOVER)                          \
	X(takeover_record_counted, TAKEOVER)                      \
	X(takeover_index_done, TAKEOVER)                          \
	X(takeover_counted, TAKEOVER)                             \
	X(takeover_sorting_out, TAKEOVER)                         \
	X(takeover_sorted_out, TAKEOVER)

enum crash_point {
#define CRASH_POINT_ID(name, where) CRASH_##name,
	CRASH_POINTS(CRASH_POINT_ID)
#undef CRASH_POINT_ID
	CRASH_POINT_COUNT
};

#ifdef ZSWAPD_CRASH_POINTS
/* The test's.  Any thread. */
void crash_point(enum crash_point p);
#define CRASH_POINT(name) crash_point(CRASH_##name)
#else
#define CRASH_POINT(name) ((void)CRASH_##name)
#endif

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Every number zswapd publishes, declared once: name, kind, unit, text.  The daemon's arrays, the
 * netlink reply, zswapctl's output and the manual are made from this table.  Names are stable:
 * they are JSON keys and, with the prefix zswapd_, Prometheus metrics.
 *
 * kind   COUNTER only rises while the daemon lives; GAUGE moves both ways.
 * unit   NONE is a plain count.
 */
#ifndef ZSWAPD_COMMON_COUNTERS_H
#define ZSWAPD_COMMON_COUNTERS_H

#include <stdint.h>

/* clang-format off */
#define ZSWAPD_COUNTERS(X)                                                                                            \
	X(device_bytes,               GAUGE,   BYTES, "size of the exported device")                                  \
	X(slots_total,                GAUGE,   PAGES, "4 KiB slots of the device")                                    \
	X(slots_used,                 GAUGE,   PAGES, "slots that hold a page")                                       \
	X(slots_same_filled,          GAUGE,   PAGES, "slots whose page is one repeated word, kept in the index")     \
	X(slots_resident,             GAUGE,   PAGES, "slots whose object is in the front tier")                      \
	X(slots_stored,               GAUGE,   PAGES, "slots whose object is only in the store")                      \
	X(slots_lost,                 GAUGE,   PAGES, "slots whose bytes are lost; reading them is an I/O error")     \
	X(memory_limit_bytes,         GAUGE,   BYTES, "limit of the front tier")                                      \
	X(memory_used_bytes,          GAUGE,   BYTES, "memory that holds pages, with headers, slack and reserve")     \
	X(memory_metadata_bytes,      GAUGE,   BYTES, "index and segment records")                                    \
	X(resident_compressed_bytes,  GAUGE,   BYTES, "objects in the front tier, with headers")                      \
	X(stored_compressed_bytes,    GAUGE,   BYTES, "objects only in the store, with headers")                      \
	X(store_size_bytes,           GAUGE,   BYTES, "segment slots of the store")                                   \
	X(store_used_bytes,           GAUGE,   BYTES, "segment slots of the store in use")                            \
	X(store_retired_bytes,        GAUGE,   BYTES, "segment slots of the store that failed a write and are not used again") \
	X(store_state,                GAUGE,   NONE,  "0 no store, 1 ok, 2 degraded, 3 stalled, 4 lost; see zswapctl(1)")    \
	X(pages_read_total,           COUNTER, PAGES, "pages read from the device: the sum of the next four")         \
	X(pages_read_resident_total,  COUNTER, PAGES, "pages read that were in the front tier")                       \
	X(pages_read_stored_total,    COUNTER, PAGES, "pages read that were in the store")                            \
	X(pages_read_same_filled_total, COUNTER, PAGES, "pages read that were same-filled")                           \
	X(pages_read_empty_total,     COUNTER, PAGES, "pages read that had never been written or were discarded")     \
	X(pages_written_total,        COUNTER, PAGES, "pages written to the device")                                  \
	X(pages_incompressible_total, COUNTER, PAGES, "pages written that were kept raw")                             \
	X(pages_discarded_total,      COUNTER, PAGES, "pages that a discard dropped")                                 \
	X(pages_written_back_total,   COUNTER, PAGES, "pages written to the store by eviction")                       \
	X(pages_cleaned_total,        COUNTER, PAGES, "pages moved to another segment by cleaning or second chance")  \
	X(segments_written_total,     COUNTER, NONE,  "segments written to the store")                                \
	X(segments_cleaned_total,     COUNTER, NONE,  "segments emptied by cleaning, in memory and in the store")     \
	X(batches_total,              COUNTER, NONE,  "batches of requests taken from the transport")                 \
	X(batches_overlapped_total,   COUNTER, NONE,  "batches that decompressed while store reads were in flight")   \
	X(store_read_requests_total,  COUNTER, NONE,  "read requests to the store for pages")                         \
	X(store_read_bytes_total,     COUNTER, BYTES, "bytes of these requests")                                      \
	X(store_reads_polled_total,   COUNTER, NONE,  "those of these requests that were polled for")                 \
	X(store_write_requests_total, COUNTER, NONE,  "write requests to the store")                                  \
	X(store_write_bytes_total,    COUNTER, BYTES, "bytes of these requests")                                      \
	X(store_clean_read_bytes_total, COUNTER, BYTES, "bytes read from the store in order to clean it")             \
	X(store_read_errors_total,    COUNTER, NONE,  "failed store reads")                                           \
	X(store_write_errors_total,   COUNTER, NONE,  "failed store writes")                                          \
	X(checksum_failures_total,    COUNTER, PAGES, "objects that failed their check; answered with an I/O error")  \
	X(writes_rejected_total,      COUNTER, PAGES, "pages refused because neither memory nor store had room")      \
	X(writes_stalled_total,       COUNTER, PAGES, "pages that had to wait for room")                              \
	X(readahead_pages_total,      COUNTER, PAGES, "pages read ahead of a request")                                \
	X(readahead_hits_total,       COUNTER, PAGES, "pages read ahead that were then asked for")                    \
	X(takeovers_total,            COUNTER, NONE,  "times that a worker took the state over from another")         \
	X(worker_deaths_total,        COUNTER, NONE,  "workers that have died and were replaced")                     \
	X(supervisor_present,         GAUGE,   NONE,  "1 if a supervisor watches over the worker, 0 if none does")    \
	X(standby_prepared,           GAUGE,   NONE,  "1 if a standby is prepared to take over, 0 if none is")        \
	X(requests_in_flight,         GAUGE,   NONE,  "requests taken from the transport and not yet answered")
/* clang-format on */

enum counter_kind {
	COUNTER_KIND_COUNTER,
	COUNTER_KIND_GAUGE,
};

enum counter_unit {
	COUNTER_UNIT_NONE,
	COUNTER_UNIT_PAGES,
	COUNTER_UNIT_BYTES,
	COUNTER_UNIT_NANOSECONDS,
};

enum counter_id {
#define X(name, kind, unit, text) CTR_##name,
	ZSWAPD_COUNTERS(X)
#undef X
	COUNTER_COUNT
};

struct counter_info {
	const char *name;
	enum counter_kind kind;
	enum counter_unit unit;
	const char *text;
};

/* Indexed by enum counter_id. */
extern const struct counter_info counter_table[COUNTER_COUNT];

#endif

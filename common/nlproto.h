/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The wire protocol between zswapd and zswapctl; docs/NETLINK.md is its text for other readers.
 *
 * Transport.  NETLINK_USERSOCK datagrams, one message a datagram:
 *
 *	nlmsghdr | nlproto_hdr | attributes (type, length, value; nested where the tables say so)
 *
 * A request carries NLM_F_REQUEST and gets one answer: a reply, a multi-part reply closed by
 * NLMSG_DONE, or NLMSG_ERROR with the kernel's extended error text (NLMSGERR_ATTR_MSG).  What is
 * not a request is never answered, so two endpoints cannot keep each other busy.  Events come
 * without being asked for, to the multicast group and to those who subscribed.
 *
 * Address.  A machine may run a daemon for each device name.  nlproto_port() derives the preferred
 * port from the name.  Any user may bind any free port, so that one may be taken by a stranger; the
 * daemon then lets the kernel choose.  Either way it writes the port it got to
 * /run/zswapd/NAME.port (common/portfile.h), which only root can write.  Port and file say where to
 * ask, not whom to believe: the client believes an answer that comes from the port it asked, from
 * a process of uid 0 as stamped by the kernel, and that names the device.  The same goes for
 * events, since every user may send to the group.
 *
 * Rights.  Everybody may read; what changes something takes uid 0, again as stamped by the kernel.
 *
 * Versions.  nlproto_hdr.version grows only when an old reader would misread a message.  Commands,
 * attributes, counters, states, events and health bits are added without that: numbers are never
 * reused, and a reader skips what it does not know.  NLPROTO_CMD_VERSION is answered whatever the
 * version of the request, so that a mismatch can be named.
 *
 * All numbers are in host byte order.
 */
#ifndef ZSWAPD_COMMON_NLPROTO_H
#define ZSWAPD_COMMON_NLPROTO_H

#include <stdbool.h>
#include <stdint.h>

/* nlmsg_type of requests and replies. */
#define NLPROTO_MSG_TYPE 0x7a73

#define NLPROTO_VERSION	 1

/*
 * Preferred port: the base, with 16 bits of the name's hash.  libnl and the kernel pick a process'
 * port from its pid; this base is one a process would reach only with its 490th socket.
 */
#define NLPROTO_PORT_BASE 0x7a730000u

/*
 * Multicast group of the events.  Joining it needs CAP_NET_ADMIN, as for all USERSOCK groups;
 * sending to it needs nothing.
 */
#define NLPROTO_GROUP 26

/* Of NLPROTO_A_SECONDS: how long a subscription lasts if not said, and at most. */
#define NLPROTO_SUBSCRIBE_SECONDS     60
#define NLPROTO_SUBSCRIBE_SECONDS_MAX 300

/* Longest request in bytes; longer ones are refused with EMSGSIZE. */
#define NLPROTO_REQUEST_MAX 4096

/* Longest message of a reply: with the kernel's bookkeeping a part still fits one page of 4096. */
#define NLPROTO_PART_MAX 3584

/* Longest strings, with the NUL. */
#define NLPROTO_NAME_MAX   64  /* device, counter and option names, transport, versions */
#define NLPROTO_NOTE_MAX   128 /* where an option's value comes from, and what it may be */
#define NLPROTO_TEXT_MAX   256 /* values, paths and what an option is */
#define NLPROTO_LINE_MAX   512 /* error texts and lines for people */
#define NLPROTO_REPORT_MAX 640 /* the report of a worker's death */

struct nlproto_hdr {
	uint8_t cmd;	   /* enum nlproto_cmd; a reply repeats the request's */
	uint8_t version;   /* NLPROTO_VERSION of the sender */
	uint16_t reserved; /* 0; a request with anything else is refused */
};

/* R: anybody.  W: uid 0 only, else EPERM. */
enum nlproto_cmd {
	NLPROTO_CMD_UNSPEC,
	NLPROTO_CMD_VERSION = 1,    /* R */
	NLPROTO_CMD_STATUS = 2,	    /* R */
	NLPROTO_CMD_STATS = 3,	    /* R, in parts */
	NLPROTO_CMD_GET = 4,	    /* R, the option KEY; all, in parts, without */
	NLPROTO_CMD_SET = 5,	    /* W, KEY and VALUE; the option as it is now */
	NLPROTO_CMD_WRITEBACK = 6,  /* W, starts a job: BYTES, or all without, go to the store */
	NLPROTO_CMD_COMPACT = 7,    /* W, starts a job: sparse segments are emptied into others */
	NLPROTO_CMD_CHECK = 8,	    /* W, starts a job: every page is read and verified */
	NLPROTO_CMD_JOB = 9,	    /* R, the job under way, or the last one */
	NLPROTO_CMD_RELOAD = 10,    /* W, a line for each option that differs, in parts */
	NLPROTO_CMD_SUBSCRIBE = 11, /* R, events to the asker's port for SECONDS */
	NLPROTO_CMD_EVENT = 12,	    /* sent by the daemon only */
	NLPROTO_CMD_CANCEL = 13,    /* W, ends the job under way */
	NLPROTO_CMD_UPGRADE = 14,   /* W, goes on with the program as it is installed now */
};

/* Attributes that follow nlproto_hdr. */
enum nlproto_attr {
	NLPROTO_A_UNSPEC,
	NLPROTO_A_DEVICE = 1,	      /* string; every reply; in a request: whom it is meant for */
	NLPROTO_A_DAEMON_VERSION = 2, /* string; VERSION, STATUS */
	NLPROTO_A_PROTOCOL = 3,	      /* u8: NLPROTO_VERSION of the daemon; VERSION */
	NLPROTO_A_PATH = 4,	      /* string: the device node; STATUS */
	NLPROTO_A_TRANSPORT = 5,      /* string; STATUS */
	NLPROTO_A_PID = 6,	      /* u32: the worker, in the daemon's pid namespace; STATUS */
	NLPROTO_A_STATE = 7,	      /* u8: enum nlproto_state; STATUS, EVENT */
	NLPROTO_A_HEALTH = 8,	      /* u32: bits of enum nlproto_health; STATUS */
	NLPROTO_A_LAST_ERROR = 9,     /* string, left out if there was none; STATUS */
	NLPROTO_A_COUNTERS = 10,      /* nested: any number of NLPROTO_L_COUNTER; STATS */
	NLPROTO_A_HISTOGRAMS = 11,    /* nested: any number of NLPROTO_L_HISTOGRAM; STATS */
	NLPROTO_A_OPTIONS = 12,	      /* nested: any number of NLPROTO_L_OPTION; GET, SET */
	NLPROTO_A_KEY = 13,	      /* string: "section.key"; requests GET, SET; EVENT */
	NLPROTO_A_VALUE = 14,	      /* string, as in the configuration file; request SET */
	NLPROTO_A_BYTES = 15,	      /* u64; request WRITEBACK */
	NLPROTO_A_JOB = 16,	/* nested: enum nlproto_job_attr; WRITEBACK, COMPACT, CHECK, CANCEL,
				 * JOB, EVENT */
	NLPROTO_A_SECONDS = 17, /* u32: what is asked for, what is granted; SUBSCRIBE */
	NLPROTO_A_EVENT = 18,	/* u8: enum nlproto_event; EVENT */
	NLPROTO_A_EVENT_SEQ = 19,   /* u64; EVENT: its number; SUBSCRIBE: that of the last event */
	NLPROTO_A_TIME = 20,	    /* u64: CLOCK_REALTIME in ns; EVENT; SUBSCRIBE: of event 0 */
	NLPROTO_A_COUNT = 21,	    /* u64: how many since the last event of the kind; EVENT */
	NLPROTO_A_TEXT = 22,	    /* string, a line for people; EVENT */
	NLPROTO_A_LINES = 23,	    /* nested: any number of NLPROTO_L_LINE; SET, RELOAD */
	NLPROTO_A_PARTLY = 24,	    /* u8 1: some could not be applied; RELOAD */
	NLPROTO_A_STORE_STATE = 25, /* u8: enum nlproto_store_state; STATUS, EVENT */
	NLPROTO_A_SUPERVISOR = 26,  /* u32: its pid, 0: there is none; STATUS, EVENT */
	NLPROTO_A_STANDBY = 27,	    /* u32: pid of the one that is prepared, 0: none is; STATUS */
	NLPROTO_A_DEATHS = 28,	    /* u32: of workers so far; STATUS */
	NLPROTO_A_REPORT = 29,	 /* string: of the last death, left out if there was none; STATUS */
	NLPROTO_A_TAKEOVER = 30, /* string: how this worker came, if not as the first; STATUS */
	NLPROTO_A_TAKEOVER_TIME = 31, /* u64: CLOCK_REALTIME in ns, when it served; STATUS */
	NLPROTO_A_TAKEOVER_NS = 32,   /* u64: how long that took from its order on; STATUS */
	NLPROTO_A_MAX = NLPROTO_A_TAKEOVER_NS,
};

/* Members of the lists NLPROTO_A_COUNTERS, _HISTOGRAMS, _OPTIONS and _LINES. */
enum nlproto_list {
	NLPROTO_L_UNSPEC,
	NLPROTO_L_COUNTER = 1,	 /* nested: enum nlproto_counter_attr */
	NLPROTO_L_HISTOGRAM = 2, /* nested: enum nlproto_histogram_attr */
	NLPROTO_L_OPTION = 3,	 /* nested: enum nlproto_option_attr */
	NLPROTO_L_LINE = 4,	 /* string, a line for people */
};

enum nlproto_counter_attr {
	NLPROTO_C_UNSPEC,
	NLPROTO_C_NAME = 1,  /* string, from counter_table */
	NLPROTO_C_KIND = 2,  /* u8: enum nlproto_kind */
	NLPROTO_C_UNIT = 3,  /* u8: enum nlproto_unit */
	NLPROTO_C_VALUE = 4, /* u64 */
	NLPROTO_C_MAX = NLPROTO_C_VALUE,
};

/*
 * A histogram with more buckets than a message holds comes in pieces, each with some of the buckets
 * and everything else.  Buckets come in the order of their values.
 */
enum nlproto_histogram_attr {
	NLPROTO_H_UNSPEC,
	NLPROTO_H_NAME = 1,    /* string */
	NLPROTO_H_UNIT = 2,    /* u8: enum nlproto_unit, of the bounds and the sum */
	NLPROTO_H_COUNT = 3,   /* u64: all that was counted, the sum of the buckets' counts */
	NLPROTO_H_SUM = 4,     /* u64: of the values */
	NLPROTO_H_BUCKETS = 5, /* array of struct nlproto_bucket; empty ones are left out */
	NLPROTO_H_MAX = NLPROTO_H_BUCKETS,
};

/* Values from @lower to @upper, both included.  In a message it is aligned to 4 bytes only. */
struct nlproto_bucket {
	uint64_t lower;
	uint64_t upper;
	uint64_t count;
};

enum nlproto_option_attr {
	NLPROTO_O_UNSPEC,
	NLPROTO_O_KEY = 1,	/* string: "section.key" */
	NLPROTO_O_VALUE = 2,	/* string, as in the configuration file */
	NLPROTO_O_DEFAULT = 3,	/* string, the same way */
	NLPROTO_O_ORIGIN = 4,	/* string: "default", "FILE:LINE" or who set it */
	NLPROTO_O_LIVE = 5,	/* u8: 1 if SET and RELOAD can change it, 0 if it takes a restart */
	NLPROTO_O_TEXT = 6,	/* string: what it does */
	NLPROTO_O_RANGE = 7,	/* string: what it may be */
	NLPROTO_O_IN_FORCE = 8, /* string: what comes of VALUE, if that is another */
	NLPROTO_O_MAX = NLPROTO_O_IN_FORCE,
};

enum nlproto_job_attr {
	NLPROTO_J_UNSPEC,
	NLPROTO_J_ID = 1,    /* u32: number of the job since the daemon started */
	NLPROTO_J_KIND = 2,  /* u8: enum nlproto_job_kind */
	NLPROTO_J_STATE = 3, /* u8: enum nlproto_job_state */
	NLPROTO_J_UNIT = 4,  /* u8: enum nlproto_unit, of DONE and TOTAL */
	NLPROTO_J_DONE = 5,  /* u64 */
	NLPROTO_J_TOTAL = 6, /* u64: an estimate, which may move while the job runs */
	NLPROTO_J_FOUND = 7, /* u64: CHECK: pages that are damaged */
	NLPROTO_J_ERROR = 8, /* u32: positive errno of a job that failed */
	NLPROTO_J_MAX = NLPROTO_J_ERROR,
};

/* The numbers of enum counter_kind and enum counter_unit on the wire. */
enum nlproto_kind {
	NLPROTO_KIND_COUNTER = 0,
	NLPROTO_KIND_GAUGE = 1,
};

enum nlproto_unit {
	NLPROTO_UNIT_NONE = 0,
	NLPROTO_UNIT_PAGES = 1, /* of 4096 bytes */
	NLPROTO_UNIT_BYTES = 2,
	NLPROTO_UNIT_NANOSECONDS = 3,
};

/* clang-format off */
#define NLPROTO_STATES(X)                                                      \
	X(STARTING,   0, "starting")   /* the device does not answer yet */    \
	X(RUNNING,    1, "running")                                            \
	X(RECOVERING, 2, "recovering") /* taking the state over from a dead worker */ \
	X(STOPPING,   3, "stopping")   /* swapoff or teardown under way */     \
	X(FAILED,     4, "failed")     /* the device answers with errors only */

/* A bit that is set is a finding; 0 is good health. */
#define NLPROTO_HEALTH_BITS(X)                                                                 \
	X(MEMORY_UNLOCKED, 0, "memory not locked: the daemon itself may be swapped out")       \
	X(NO_IO_FLUSHER,   1, "PR_SET_IO_FLUSHER refused: reclaim may wait for the daemon")    \
	X(OOM_EXPOSED,     2, "OOM score not lowered: the OOM killer may choose the daemon")   \
	X(STORE_FAILED,    3, "store failed: pages stay in memory")                            \
	X(STORE_FULL,      4, "store full")                                                    \
	X(CHECKSUM,        5, "pages failed their checksum")                                   \
	X(PAGES_LOST,      6, "pages lost: reading them is an I/O error")                      \
	X(WRITES_REJECTED, 7, "writes rejected: neither memory nor store had room")            \
	X(KERNEL_ZSWAP,    8, "kernel zswap is enabled and compresses in front of the device") \
	X(NO_DISCARD,      9, "swap used without discard: freed pages keep their space")       \
	X(STORE_MISSING,  10, "store not there at the start: all pages stay in memory")        \
	X(STORE_STALLED,  11, "store stalled: it owes answers and gives none")                 \
	X(STORE_LOST,     12, "store lost: no page leaves memory, those in it can't be read")  \
	X(NO_SUPERVISOR,  13, "no supervisor: nothing takes over from this worker if it dies") \
	X(NO_STANDBY,     14, "no standby prepared: a takeover would take longer")

/* The numbers are also those of the counter store_state. */
#define NLPROTO_STORE_STATES(X)                                                              \
	X(NONE,     0, "none")     /* there is no store */                                   \
	X(OK,       1, "ok")                                                                 \
	X(DEGRADED, 2, "degraded") /* requests have failed within the last minute, or fail */ \
	X(STALLED,  3, "stalled")  /* it owes answers and has given none for five seconds */ \
	X(LOST,     4, "lost")     /* nothing is written to it any more */

/* X(NAME, number, "name", "text").  One of them at a time; the next number starts when it is over. */
#define NLPROTO_JOB_KINDS(X)                                                            \
	X(NONE,      0, "none",      "no job so far")                                   \
	X(WRITEBACK, 1, "writeback", "pages are written to the store")                  \
	X(COMPACT,   2, "compact",   "sparse segments are emptied into others")         \
	X(CHECK,     3, "check",     "every page is read and verified")                 \
	X(SHRINK,    4, "shrink",    "pages leave memory, since its limit was lowered")

#define NLPROTO_JOB_STATES(X)          \
	X(NONE,      0, "none")        \
	X(RUNNING,   1, "running")     \
	X(DONE,      2, "done")        \
	X(FAILED,    3, "failed")      \
	X(CANCELLED, 4, "cancelled")

/* X(NAME, number, "name", "text").  The text stands for kinds; TEXT says what happened this time. */
#define NLPROTO_EVENTS(X)                                                                        \
	X(LIMIT_REACHED,    1, "limit_reached",    "memory has reached its limit")               \
	X(STORE_ERROR,      2, "store_error",      "the store failed to read or to write")       \
	X(CHECKSUM_FAILURE, 3, "checksum_failure", "pages failed their checksum")                \
	X(WRITES_REJECTED,  4, "writes_rejected",  "neither memory nor store had room")          \
	X(TAKEOVER,         5, "takeover",         "a worker took the state over from another")  \
	X(CONFIG_CHANGED,   6, "config_changed",   "options have other values")                  \
	X(STATE_CHANGED,    7, "state_changed",    "the daemon is in another state")             \
	X(JOB_FINISHED,     8, "job_finished",     "a job has ended")                            \
	X(STORE_STATE,      9, "store_state",      "the store is in another state")             \
	X(SUPERVISOR_LOST,  10, "supervisor_lost", "the worker goes on without a supervisor")   \
	X(SUPERVISOR_FOUND, 11, "supervisor_found", "a supervisor has adopted the worker")
/* clang-format on */

enum nlproto_job_kind {
#define X(name, nr, word, text) NLPROTO_JOB_##name = nr,
	NLPROTO_JOB_KINDS(X)
#undef X
};

enum nlproto_job_state {
#define X(name, nr, word) NLPROTO_JOB_STATE_##name = nr,
	NLPROTO_JOB_STATES(X)
#undef X
};

enum nlproto_event {
#define X(name, nr, word, text) NLPROTO_EVENT_##name = nr,
	NLPROTO_EVENTS(X)
#undef X
	NLPROTO_EVENT_MAX = NLPROTO_EVENT_SUPERVISOR_FOUND,
};

enum nlproto_state {
#define X(name, nr, text) NLPROTO_STATE_##name = nr,
	NLPROTO_STATES(X)
#undef X
};

enum nlproto_store_state {
#define X(name, nr, word) NLPROTO_STORE_##name = nr,
	NLPROTO_STORE_STATES(X)
#undef X
};

enum nlproto_health {
#define X(name, bit, text) NLPROTO_HEALTH_##name = 1u << bit,
	NLPROTO_HEALTH_BITS(X)
#undef X
};

/* 1 to NLPROTO_NAME_MAX - 1 of [A-Za-z0-9_.-], not starting with a dot or a dash. */
bool nlproto_name_ok(const char *name);

/* The preferred port of the daemon that serves device @name. */
uint32_t nlproto_port(const char *name);

/* These five: NULL for a number that is not in the table. */
const char *nlproto_state_text(uint64_t state);
const char *nlproto_store_state_name(uint64_t state);
const char *nlproto_job_name(uint64_t kind);
const char *nlproto_job_state_name(uint64_t state);
const char *nlproto_event_name(uint64_t event);

/* Text of the health bit number @bit (0 to 31), NULL if it is not in the table. */
const char *nlproto_health_text(unsigned bit);

#endif

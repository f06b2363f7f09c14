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
 * not a request is never answered, so two endpoints cannot keep each other busy.
 *
 * Address.  A machine may run a daemon for each device name.  nlproto_port() derives the preferred
 * port from the name.  Any user may bind any free port, so that one may be taken by a stranger; the
 * daemon then lets the kernel choose.  Either way it writes the port it got to
 * /run/zswapd/NAME.port (common/portfile.h), which only root can write.  Port and file say where to
 * ask, not whom to believe: the client believes an answer that comes from the port it asked, from
 * a process of uid 0 as stamped by the kernel, and that names the device.
 *
 * Versions.  nlproto_hdr.version grows only when an old reader would misread a message.  Commands,
 * attributes, counters, states and health bits are added without that: numbers are never reused,
 * and a reader skips what it does not know.  NLPROTO_CMD_VERSION is answered whatever the version
 * of the request, so that a mismatch can be named.
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

/* Multicast group of the events.  Joining it needs CAP_NET_ADMIN, as for all USERSOCK groups. */
#define NLPROTO_GROUP 26

/* Longest request in bytes; longer ones are refused with EMSGSIZE. */
#define NLPROTO_REQUEST_MAX 4096

/* Longest message of a reply: with the kernel's bookkeeping a part still fits one page. */
#define NLPROTO_PART_MAX 2048

/* Longest strings, with the NUL. */
#define NLPROTO_NAME_MAX 64  /* device and counter names, transport, versions */
#define NLPROTO_TEXT_MAX 256 /* paths and error texts */

struct nlproto_hdr {
	uint8_t cmd;	   /* enum nlproto_cmd; a reply repeats the request's */
	uint8_t version;   /* NLPROTO_VERSION of the sender */
	uint16_t reserved; /* 0; a request with anything else is refused */
};

enum nlproto_cmd {
	NLPROTO_CMD_UNSPEC,
	NLPROTO_CMD_VERSION = 1,
	NLPROTO_CMD_STATUS = 2,
	NLPROTO_CMD_STATS = 3,
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
	NLPROTO_A_STATE = 7,	      /* u8: enum nlproto_state; STATUS */
	NLPROTO_A_HEALTH = 8,	      /* u32: bits of enum nlproto_health; STATUS */
	NLPROTO_A_LAST_ERROR = 9,     /* string, left out if there was none; STATUS */
	NLPROTO_A_COUNTERS = 10,      /* nested: any number of NLPROTO_L_COUNTER; STATS */
	NLPROTO_A_MAX = NLPROTO_A_COUNTERS,
};

/* Members of the list NLPROTO_A_COUNTERS. */
enum nlproto_list {
	NLPROTO_L_UNSPEC,
	NLPROTO_L_COUNTER = 1, /* nested: enum nlproto_counter_attr */
};

enum nlproto_counter_attr {
	NLPROTO_C_UNSPEC,
	NLPROTO_C_NAME = 1,  /* string, from counter_table */
	NLPROTO_C_KIND = 2,  /* u8: enum nlproto_kind */
	NLPROTO_C_UNIT = 3,  /* u8: enum nlproto_unit */
	NLPROTO_C_VALUE = 4, /* u64 */
	NLPROTO_C_MAX = NLPROTO_C_VALUE,
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
	X(NO_DISCARD,      9, "swap used without discard: freed pages keep their space")
/* clang-format on */

enum nlproto_state {
#define X(name, nr, text) NLPROTO_STATE_##name = nr,
	NLPROTO_STATES(X)
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

/* NULL for a state that is not in the table. */
const char *nlproto_state_text(uint64_t state);

/* Text of the health bit number @bit (0 to 31), NULL if it is not in the table. */
const char *nlproto_health_text(unsigned bit);

#endif

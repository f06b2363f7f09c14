/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Between a supervisor and a worker: messages, each with a text and at most one descriptor.
 *
 * A link is a SOCK_SEQPACKET socket: a pair made before the fork or, when a new supervisor has
 * adopted a worker that runs, a connection to the worker's listener, RUN_DIR/NAME.sock, which only
 * root can reach.  Its end is how either side learns that the other is gone.
 *
 * Nothing here waits: what the peer does not take is lost with -EAGAIN, and its queue holds more
 * than a worker ever has to say at once.
 *
 * Any thread, one at a time for each direction.
 */
#ifndef ZSWAPD_LINK_LINK_H
#define ZSWAPD_LINK_LINK_H

#include <stdint.h>

#define LINK_TEXT_MAX 1024u /* bytes, with the NUL */

enum link_type {
	/* from the worker */
	LINK_KEEP = 1, /* text: a name for the descriptor that comes with it */
	LINK_DROP,     /* text: a name whose descriptor is not needed any more */
	LINK_NOTIFY,   /* text: for the service manager, as for sd_notify(3) */
	LINK_PREPARED, /* the standby waits for its order */
	LINK_HELLO,    /* "PID VERSION": after the descriptors, to a supervisor that adopts it */
	LINK_REFUSED,  /* text: why it can't be adopted */
	LINK_UPGRADE,  /* asks the supervisor to go on with the program as it is installed now */
	/* from the supervisor */
	LINK_GO,     /* the standby is to take over */
	LINK_ANSWER, /* to LINK_UPGRADE: "0 TEXT" or "ERRNO TEXT" */
};

struct link_message {
	uint32_t type;
	char text[LINK_TEXT_MAX]; /* NUL-terminated */
	int fd;			  /* the receiver's; -1: none came */
};

/* Both ends, close-on-exec and non-blocking. */
int link_pair(int fds[2]);

/* @fd < 0: none.  -EPIPE, -ECONNRESET: the peer is gone; -EAGAIN; -EMSGSIZE. */
int link_send(int sock, enum link_type type, const char *text, int fd);

/* 1: *ret is a message.  0: the peer is gone.  -EAGAIN: there is none; -EBADMSG: no message of
 * ours. */
int link_receive(int sock, struct link_message *ret);

/* A listener at @path, in place of an older one; connections to it are links.  Logged. */
int link_listen(const char *path);

/* One that has called and is root, else -EAGAIN, -EPERM. */
int link_accept(int listener);

/* Calls whoever listens at @path.  -ENOENT, -ECONNREFUSED: nobody does. */
int link_connect(const char *path);

#endif

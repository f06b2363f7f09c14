/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a process gives up for good.  docs/SECURITY.md says what is guaranteed by it.
 *
 *   when                              what goes
 *   guard_begin(), at the start       gaining rights by executing a program; core files, and being
 *                                     looked at by others than root
 *   guard_drop_capabilities(), when   all capabilities but three, for children and programs, too
 *   devices and store are open
 *   guard_filter(), when it serves    system calls
 *
 * What can't be given up, since the kernel does not know it or the process never had it, is no
 * error: the daemon serves as well without.
 */
#ifndef ZSWAPD_GUARD_GUARD_H
#define ZSWAPD_GUARD_GUARD_H

enum guard_role {
	/* Its children and the program that it executes for an upgrade inherit its filter, so that
	 * this one refuses what no daemon ever needs, and nothing else. */
	GUARD_SUPERVISOR,
	/* Only what a worker that serves needs, until it has swapped off and ended. */
	GUARD_WORKER,
};

/* As [security] seccomp has it. */
enum guard_filtering {
	GUARD_FILTER_OFF,
	GUARD_FILTER_LOG, /* the kernel logs what it would refuse, and lets it pass */
	GUARD_FILTER_ON,
};

/* Main thread, before there are others. */
void guard_begin(void);

/* The calling thread's, and those of threads and processes that it starts from here on. */
void guard_drop_capabilities(void);

/*
 * For all threads of the process, whoever started them.  Refused calls fail: a worker's with
 * ENOSYS, a supervisor's with EPERM.  A filter that can't be installed is logged.
 */
void guard_filter(enum guard_role role, enum guard_filtering how);

#endif

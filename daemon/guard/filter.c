// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Two filters.  The worker's names what may be called, the supervisor's what may not: a filter
 * stays with a process through fork and exec, so the supervisor's must do for every successor that
 * is ever forked from it, for mkswap, and for a later version of this program, which an upgrade
 * executes and which may call what this one does not know.  A worker's ends with the worker; the
 * only program that it still runs is swapoff.
 *
 * What the worker's refuses fails with ENOSYS.  That is what a library meets on an older kernel and
 * has a way around, so that an update of the C library that has a new call is no outage.  For the
 * same reason nothing is killed: a refused call does no harm, and every successor would make it
 * again.
 *
 * There is no narrower filter for data threads.  All threads share one memory, so whoever has
 * taken one of them over has the others' calls as well.
 *
 * Most calls are allowed whatever their arguments.  The kernel (5.11) remembers these in a bitmap
 * and does not run the filter for them; all that a data thread does is among them.
 *
 * io_uring's operations never come past a filter: see store/ring.c for what keeps them few, and no
 * ring can be made under the worker's.
 */
#include "common/log.h"
#include "common/util.h"
#include "daemon/guard/guard.h"

#include <errno.h>
#include <sched.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#define S(name) SCMP_SYS(name)

/* The tree of comparisons is a binary one, not a list (libseccomp 2.5). */
#define BINARY_TREE 2

/* clang-format off */
/* Whatever the arguments.  Calls that an architecture does not have are passed over. */
static const int worker_calls[] = {
	/* data threads, mover */
	S(clock_gettime), S(fallocate), S(futex), S(io_uring_enter), S(io_uring_register),
	S(madvise), S(nanosleep), S(clock_nanosleep), S(poll), S(ppoll), S(read), S(readv),
	S(sched_yield), S(write), S(writev),
	/* memory; mmap and mprotect stand below */
	S(brk), S(membarrier), S(mincore), S(mlock), S(mlock2), S(mremap), S(munlock), S(munmap),
	/* descriptors and files: configuration, /proc, /sys, links, what lies in /run */
	S(access), S(close), S(close_range), S(dup), S(dup2), S(dup3), S(eventfd2), S(faccessat),
	S(faccessat2), S(fadvise64), S(fchmod), S(fcntl), S(fdatasync), S(flock), S(fstat),
	S(fstatfs), S(fsync), S(ftruncate), S(getcwd), S(getdents64), S(ioctl), S(lseek),
	S(lstat), S(mkdir), S(mkdirat), S(newfstatat), S(open), S(openat), S(pipe2), S(pread64),
	S(preadv), S(pwrite64), S(pwritev), S(readlink), S(readlinkat), S(rename), S(renameat),
	S(renameat2), S(rmdir), S(stat), S(statfs), S(statx), S(symlink), S(symlinkat), S(umask),
	S(unlink), S(unlinkat),
	/* netlink, and the supervisor; socket stands below */
	S(accept), S(accept4), S(bind), S(connect), S(getpeername), S(getsockname), S(getsockopt),
	S(recvfrom), S(recvmsg), S(sendmsg), S(sendto), S(setsockopt), S(shutdown),
	/* the process */
	S(clock_getres), S(exit), S(exit_group), S(getcpu), S(getegid), S(geteuid), S(getgid),
	S(getpid), S(getppid), S(getrandom), S(getrlimit), S(getrusage), S(gettid),
	S(gettimeofday), S(getuid), S(kill), S(prctl), S(prlimit64), S(restart_syscall),
	S(rt_sigaction), S(rt_sigpending), S(rt_sigprocmask), S(rt_sigreturn), S(rt_sigtimedwait),
	S(sched_getaffinity), S(sched_setaffinity), S(set_robust_list), S(set_tid_address),
	S(setpgid), S(sigaltstack), S(sysinfo), S(tgkill), S(time), S(uname),
	/* swapoff(8), and running it; clone stands below */
	S(arch_prctl), S(execve), S(pidfd_open), S(pidfd_send_signal), S(rseq), S(swapoff),
	S(vfork), S(wait4), S(waitid),
};

/* Nobody needs these, whatever version. */
static const int refused_calls[] = {
	/* other processes' memory, descriptors and secrets */
	S(kcmp), S(pidfd_getfd), S(process_madvise), S(process_vm_readv), S(process_vm_writev),
	S(ptrace), S(add_key), S(keyctl), S(request_key), S(userfaultfd),
	/* the kernel's code, its clock, its log, the machine's state */
	S(acct), S(adjtimex), S(bpf), S(clock_adjtime), S(clock_settime), S(delete_module),
	S(finit_module), S(init_module), S(kexec_file_load), S(kexec_load), S(perf_event_open),
	S(quotactl), S(quotactl_fd), S(reboot), S(sethostname), S(setdomainname), S(settimeofday),
	S(stime), S(syslog), S(vhangup),
	/* the machine's ports, old modes of the processor */
	S(ioperm), S(iopl), S(modify_ldt), S(personality), S(vm86), S(vm86old),
	/* becoming another user, being somewhere else */
	S(chroot), S(setfsgid), S(setfsuid), S(setgid), S(setgroups), S(setns), S(setregid),
	S(setresgid), S(setresuid), S(setreuid), S(setuid), S(unshare),
	/* files past their names; the tree that others see */
	S(fanotify_init), S(mount), S(mount_setattr), S(move_mount), S(name_to_handle_at),
	S(open_by_handle_at), S(open_tree), S(pivot_root), S(umount), S(umount2),
	/* what has been left behind */
	S(_sysctl), S(lookup_dcookie), S(nfsservctl), S(remap_file_pages), S(sysfs), S(uselib),
	S(ustat),
};
/* clang-format on */

static const uint64_t namespaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |
				   CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;

/* --- rules; each returns 0 or a negative errno --- */

static int add_list(scmp_filter_ctx ctx, uint32_t action, const int *calls, size_t n)
{
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++)
		r = seccomp_rule_add(ctx, action, calls[i], 0);
	return r;
}

/* The flags of clone3 lie in memory, where no filter sees them; the C library takes clone then. */
static int replace_clone3(scmp_filter_ctx ctx)
{
	return seccomp_rule_add(ctx, SCMP_ACT_ERRNO(ENOSYS), S(clone3), 0);
}

/* Nothing that can be written to is ever executed. */
static int allow_memory(scmp_filter_ctx ctx)
{
	const scmp_datum_t both = PROT_WRITE | PROT_EXEC;
	const scmp_datum_t either[] = {0, PROT_WRITE, PROT_EXEC};
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(either) && r == 0; i++)
		r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, S(mmap), 1,
				     SCMP_A2(SCMP_CMP_MASKED_EQ, both, either[i]));
	if (r == 0)
		r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, S(mprotect), 1,
				     SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
	return r;
}

static int allow_sockets(scmp_filter_ctx ctx)
{
	int r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, S(socket), 1,
				 SCMP_A0(SCMP_CMP_EQ, AF_UNIX, 0));

	return r ? r
		 : seccomp_rule_add(ctx, SCMP_ACT_ALLOW, S(socket), 1,
				    SCMP_A0(SCMP_CMP_EQ, AF_NETLINK, 0));
}

static int add_worker(scmp_filter_ctx ctx)
{
	int r = add_list(ctx, SCMP_ACT_ALLOW, worker_calls, ARRAY_SIZE(worker_calls));

	if (r == 0)
		r = allow_memory(ctx);
	if (r == 0)
		r = allow_sockets(ctx);
	if (r == 0)
		r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, S(clone), 1,
				     SCMP_A0(SCMP_CMP_MASKED_EQ, namespaces, 0));
	return r;
}

static int refuse_sockets(scmp_filter_ctx ctx, uint32_t action)
{
	int r = 0;

	for (unsigned family = 0; family <= AF_NETLINK && r == 0; family++) {
		if (family != AF_UNIX && family != AF_NETLINK)
			r = seccomp_rule_add(ctx, action, S(socket), 1,
					     SCMP_A0_32(SCMP_CMP_EQ, family, 0));
	}
	return r ? r
		 : seccomp_rule_add(ctx, action, S(socket), 1,
				    SCMP_A0_32(SCMP_CMP_GT, AF_NETLINK, 0));
}

static int refuse_namespaces(scmp_filter_ctx ctx, uint32_t action)
{
	int r = 0;

	for (uint64_t rest = namespaces; rest && r == 0; rest &= rest - 1)
		r = seccomp_rule_add(ctx, action, S(clone), 1,
				     SCMP_A0(SCMP_CMP_MASKED_EQ, rest & -rest, rest & -rest));
	return r;
}

static int add_supervisor(scmp_filter_ctx ctx, uint32_t action)
{
	int r = add_list(ctx, action, refused_calls, ARRAY_SIZE(refused_calls));

	if (r == 0)
		r = refuse_sockets(ctx, action);
	if (r == 0)
		r = refuse_namespaces(ctx, action);
	return r;
}

/* --- installing --- */

static int set_attributes(scmp_filter_ctx ctx, uint32_t refuse)
{
	int r = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_TSYNC, 1);

	if (r == 0)
		r = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, BINARY_TREE);
	/* Calls in the manner of another architecture, as of a 32-bit program. */
	if (r == 0)
		r = seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, refuse);
	return r;
}

static int install(enum guard_role role, bool log_only)
{
	bool worker = role == GUARD_WORKER;
	uint32_t refuse = log_only ? SCMP_ACT_LOG : SCMP_ACT_ERRNO(worker ? ENOSYS : EPERM);
	scmp_filter_ctx ctx = seccomp_init(worker ? refuse : SCMP_ACT_ALLOW);
	int r;

	if (!ctx)
		return -ENOMEM;
	r = set_attributes(ctx, refuse);
	if (r == 0)
		r = worker ? add_worker(ctx) : add_supervisor(ctx, refuse);
	if (r == 0 && (!worker || log_only))
		r = replace_clone3(ctx);
	if (r == 0)
		r = seccomp_load(ctx);
	seccomp_release(ctx);
	return r;
}

void guard_filter(enum guard_role role, enum guard_filtering how)
{
	int r;

	if (how == GUARD_FILTER_OFF)
		return;
	r = install(role, how == GUARD_FILTER_LOG);
	if (r < 0)
		log_warn("system calls that are not needed can't be given up: %s", strerror(-r));
}

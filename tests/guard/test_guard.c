// SPDX-License-Identifier: GPL-2.0-or-later
/* What is given up does not come back, so each test gives it up in a process of its own. */
#include "common/util.h"
#include "daemon/guard/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cmocka.h>

#define CHECK(x)                                                                                  \
	do {                                                                                      \
		if (!(x)) {                                                                       \
			fprintf(stderr, "%s:%d: %s (errno %d)\n", __FILE__, __LINE__, #x, errno); \
			_exit(1);                                                                 \
		}                                                                                 \
	} while (0)

#define FAILS(call, error)                                     \
	do {                                                   \
		errno = 0;                                     \
		CHECK((long)(call) == -1 && errno == (error)); \
	} while (0)

static void in_child(void (*f)(void))
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		f();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* The number behind @key in a status file of /proc, or -1. */
static long status_of(const char *path, const char *key, int base)
{
	size_t len = strlen(key);
	char line[256];
	long v = -1;
	FILE *f = fopen(path, "re");

	while (f && fgets(line, sizeof(line), f)) {
		if (strncmp(line, key, len) == 0 && line[len] == ':')
			v = (long)strtoull(line + len + 1, NULL, base);
	}
	if (f)
		fclose(f);
	return v;
}

static bool runs(const char *program, const char *const argv[])
{
	char *const environment[] = {NULL};
	pid_t pid;
	int status;

	return posix_spawn(&pid, program, NULL, NULL, (char *const *)argv, environment) == 0 &&
	       waitpid(pid, &status, 0) == pid && status == 0;
}

/* --- at the start --- */

static void child_begins(void)
{
	umask(0);
	guard_begin();
	CHECK(umask(0) == 022);
	CHECK(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1);
	CHECK(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0);
	if (fork() == 0) /* as a standby */
		_exit(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0 ? 0 : 1);
	int status;
	CHECK(wait(&status) > 0 && status == 0);
	/* A narrower umask stays. */
	umask(0077);
	guard_begin();
	CHECK(umask(0) == 0077);
}

static void at_the_start(void **state)
{
	in_child(child_begins);
}

/* --- capabilities --- */

#define KEPT (1ul << CAP_SYS_ADMIN | 1ul << CAP_IPC_LOCK | 1ul << CAP_SYS_RESOURCE)

static void child_drops(void)
{
	unsigned long before = (unsigned long)status_of("/proc/self/status", "CapPrm", 16);
	unsigned long bound = (unsigned long)status_of("/proc/self/status", "CapBnd", 16);
	/* In the program: all that it could have is there, and no more. */
	char check[256];
	const char *const sh[] = {"sh", "-c", check, NULL};

	guard_begin();
	guard_drop_capabilities();
	CHECK((unsigned long)status_of("/proc/self/status", "CapPrm", 16) == (before & KEPT));
	CHECK((unsigned long)status_of("/proc/self/status", "CapEff", 16) == (before & KEPT));
	CHECK((unsigned long)status_of("/proc/self/status", "CapInh", 16) == 0);
	CHECK((unsigned long)status_of("/proc/self/status", "CapBnd", 16) == (bound & KEPT));
	snprintf(check, sizeof(check),
		 "while read -r key value; do [ $key != CapPrm: ] || exec test $value = %016lx; "
		 "done </proc/self/status; exit 1",
		 before & KEPT);
	CHECK(runs("/bin/sh", sh));
	/* And once more, as a program that is executed for an upgrade does. */
	guard_drop_capabilities();
	CHECK((unsigned long)status_of("/proc/self/status", "CapEff", 16) == (before & KEPT));
}

static void capabilities(void **state)
{
	if (geteuid() != 0)
		skip();
	in_child(child_drops);
}

/* --- the worker's filter --- */

static void refused_by_both(int error)
{
	const uint32_t nothing[8] = {0};

	FAILS(ptrace(PTRACE_TRACEME, 0, NULL, NULL), error);
	FAILS(syscall(SYS_mount, "none", "/nowhere", "tmpfs", 0, NULL), error);
	FAILS(syscall(SYS_unshare, 0), error);
	FAILS(syscall(SYS_setns, -1, 0), error);
	FAILS(syscall(SYS_bpf, 0, nothing, sizeof(nothing)), error);
	FAILS(syscall(SYS_process_vm_readv, getpid(), NULL, 0, NULL, 0, 0), error);
	FAILS(syscall(SYS_init_module, NULL, 0, ""), error);
	FAILS(syscall(SYS_setuid, getuid()), error);
	FAILS(socket(AF_INET, SOCK_DGRAM, 0), error);
	FAILS(socket(AF_INET6, SOCK_STREAM, 0), error);
	FAILS(socket(AF_PACKET, SOCK_RAW, 0), error);
	FAILS(socket(AF_ALG, SOCK_SEQPACKET, 0), error);
	FAILS(syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL), error);
	/* Its flags can't be seen; the C library takes clone instead. */
	FAILS(syscall(SYS_clone3, NULL, 0), ENOSYS);
}

static void allowed_by_both(void)
{
	const char *const true_[] = {"true", NULL};
	cleanup_fd int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	cleanup_fd int netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 2);
	cleanup_fd int unixs = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(fd >= 0 && netlink >= 0 && unixs >= 0 && p != MAP_FAILED);
	CHECK(munmap(p, 4096) == 0);
	/* swapoff(8) is run so. */
	CHECK(runs("/bin/true", true_));
}

static void refused_by_worker(void)
{
	const size_t len = 4096;
	void *p = mmap(NULL, len, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	refused_by_both(ENOSYS);
	FAILS(syscall(SYS_swapon, "/dev/null", 0), ENOSYS);
	FAILS(syscall(SYS_fsopen, "fuse", 0), ENOSYS);
	FAILS(syscall(SYS_io_uring_setup, 1, NULL), ENOSYS);
	FAILS(chmod("/nowhere", 0600), ENOSYS);
	FAILS(syscall(SYS_mknod, "/nowhere", 0, 0), ENOSYS);
	FAILS(mprotect(p, len, PROT_READ | PROT_EXEC), ENOSYS);
	FAILS(mmap(NULL, len, PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), ENOSYS);
	/* One that no kernel has: what a newer C library would see. */
	FAILS(syscall(5000), ENOSYS);
}

struct other {
	pthread_t thread;
	sem_t go;
};

/* Was there before the filter. */
static void *other_main(void *arg)
{
	struct other *o = arg;

	sem_wait(&o->go);
	refused_by_worker();
	allowed_by_both();
	return NULL;
}

static void child_works(void)
{
	struct other o;
	char path[64];

	sem_init(&o.go, 0, 0);
	CHECK(pthread_create(&o.thread, NULL, other_main, &o) == 0);
	guard_begin();
	guard_filter(GUARD_WORKER, GUARD_FILTER_ON);
	snprintf(path, sizeof(path), "/proc/self/task/%d/status", gettid());
	CHECK(status_of(path, "Seccomp", 10) == 2);
	refused_by_worker();
	allowed_by_both();
	sem_post(&o.go);
	CHECK(pthread_join(o.thread, NULL) == 0);
	/* A thread that comes later. */
	CHECK(pthread_create(&o.thread, NULL, other_main, &o) == 0);
	sem_post(&o.go);
	CHECK(pthread_join(o.thread, NULL) == 0);
}

static void a_worker(void **state)
{
	in_child(child_works);
}

/* --- the supervisor's --- */

static void child_supervises(void)
{
	uint32_t params[30] = {0};
	int ring;

	guard_begin();
	guard_filter(GUARD_SUPERVISOR, GUARD_FILTER_ON);
	CHECK(status_of("/proc/self/status", "Seccomp", 10) == 2);
	refused_by_both(EPERM);
	allowed_by_both();
	/* A standby's start, or a later version's. */
	ring = (int)syscall(SYS_io_uring_setup, 1, params);
	CHECK(ring >= 0 || errno != EPERM);
	close_fd(ring);
	FAILS(syscall(SYS_fsopen, "no-such-file-system", 0), geteuid() == 0 ? ENODEV : EPERM);
	FAILS(syscall(5000), ENOSYS);
	/* A worker's comes on top, and an upgrade's own once more. */
	guard_filter(GUARD_SUPERVISOR, GUARD_FILTER_ON);
	allowed_by_both();
	guard_filter(GUARD_WORKER, GUARD_FILTER_ON);
	allowed_by_both();
	FAILS(syscall(SYS_io_uring_setup, 1, NULL), ENOSYS);
}

static void a_supervisor(void **state)
{
	in_child(child_supervises);
}

/* --- for who looks for what is missing --- */

static void child_logs(void)
{
	guard_begin();
	guard_filter(GUARD_WORKER, GUARD_FILTER_LOG);
	CHECK(status_of("/proc/self/status", "Seccomp", 10) == 2);
	CHECK(personality(0xffffffff) >= 0);
	allowed_by_both();
}

static void child_does_without(void)
{
	long before = status_of("/proc/self/status", "Seccomp", 10);

	guard_begin();
	guard_filter(GUARD_WORKER, GUARD_FILTER_OFF);
	CHECK(status_of("/proc/self/status", "Seccomp", 10) == before);
	CHECK(personality(0xffffffff) >= 0);
}

static void less_than_on(void **state)
{
	in_child(child_logs);
	in_child(child_does_without);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(at_the_start), cmocka_unit_test(capabilities),
		cmocka_unit_test(a_worker),	cmocka_unit_test(a_supervisor),
		cmocka_unit_test(less_than_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

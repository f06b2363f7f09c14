// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What a service manager passes on, in a child each, whose descriptors from 3 on are the manager's,
 * and what it is told.
 */
#include "daemon/state/state.h"
#include "daemon/worker/device.h"
#include "daemon/worker/handover.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include <cmocka.h>

#define NOTIFY "@zswapd-test-handover"

static int notify_fd;

/* A descriptor far above those that are passed on. */
static int high(int fd)
{
	int r = fcntl(fd, F_DUPFD_CLOEXEC, 64);

	assert_true(r >= 64);
	close(fd);
	return r;
}

static int setup(void **state)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	char name[64];

	snprintf(name, sizeof(name), NOTIFY "-%d", getpid());
	memcpy(a.sun_path + 1, name + 1, strlen(name) - 1);
	notify_fd = high(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
	assert_int_equal(bind(notify_fd, (struct sockaddr *)&a,
			      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name))),
			 0);
	setenv("NOTIFY_SOCKET", name, 1);
	return 0;
}

static int teardown(void **state)
{
	close(notify_fd);
	return 0;
}

/* The next note, "" if there is none; *ret_fd is what came with it, or -1. */
static void next_note(char *note, size_t size, int *ret_fd)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = {note, size - 1};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   .msg_controllen = sizeof(control)};
	ssize_t n = recvmsg(notify_fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	struct cmsghdr *c = n < 0 ? NULL : CMSG_FIRSTHDR(&m);

	note[n < 0 ? 0 : n] = '\0';
	*ret_fd = -1;
	if (c && c->cmsg_type == SCM_RIGHTS)
		memcpy(ret_fd, CMSG_DATA(c), sizeof(*ret_fd));
}

static void assert_note(const char *text)
{
	char note[256];
	int fd;

	next_note(note, sizeof(note), &fd);
	assert_string_equal(note, text);
	if (fd >= 0)
		close(fd);
}

static void assert_memory_withdrawn(void)
{
	assert_note("FDSTOREREMOVE=1\nFDNAME=zswapd-state");
	assert_note("FDSTOREREMOVE=1\nFDNAME=zswapd-front");
}

static void assert_withdrawn(void)
{
	assert_memory_withdrawn();
	assert_note("");
}

/*
 * Any disk that there is; the tests only look.  The last one: loop0 is what others attach and
 * detach meanwhile, which gives it another number.
 */
static struct device_disk disk;

static void find_disk(void)
{
	glob_t g;

	if (glob("/sys/block/*/diskseq", 0, NULL, &g) == 0) {
		char path[DEVICE_PATH_MAX];

		snprintf(path, sizeof(path), "/dev/%.*s",
			 (int)strcspn(g.gl_pathv[g.gl_pathc - 1] + strlen("/sys/block/"), "/"),
			 g.gl_pathv[g.gl_pathc - 1] + strlen("/sys/block/"));
		device_disk(path, &disk);
		globfree(&g);
	}
}

/* A state that belongs to @d; NULL: to none yet. */
static int state_of(const struct device_disk *d)
{
	const struct state_geometry geo = {.nslots = 100, .nframes = 16};
	struct state_owner owner = {.store = {7}};
	struct state *s;
	int fd;

	assert_int_equal(state_new(&s, &geo), 0);
	if (d) {
		snprintf(owner.device, sizeof(owner.device), "%s", d->path);
		owner.diskseq = d->diskseq;
		state_set_owner(s, &owner);
	}
	fd = high(dup(s->fd));
	state_free(s);
	return fd;
}

static int memory(const char *name)
{
	return high(memfd_create(name, MFD_CLOEXEC));
}

/*
 * What a daemon makes of @fds under @names, as struct handover and the result; the descriptors are
 * told by their inodes.
 */
struct outcome {
	int result;
	struct handover h;
	ino_t state_ino, front_ino, kept_ino[TRANSPORT_KEPT_MAX];
	unsigned open; /* of those passed on */
};

static ino_t inode(int fd)
{
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 ? st.st_ino : 0;
}

static struct outcome receive(const char *names, const int *fds, unsigned n, bool for_us)
{
	struct outcome *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
				      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct outcome o;
	int status;
	pid_t pid;

	assert_true(shared != MAP_FAILED);
	pid = fork();
	if (pid == 0) {
		char number[16];

		for (unsigned i = 0; i < n; i++)
			dup2(fds[i], (int)(SD_LISTEN_FDS_START + i));
		if (n > 0) {
			snprintf(number, sizeof(number), "%d", for_us ? getpid() : getppid());
			setenv("LISTEN_PID", number, 1);
			snprintf(number, sizeof(number), "%u", n);
			setenv("LISTEN_FDS", number, 1);
		}
		if (names)
			setenv("LISTEN_FDNAMES", names, 1);
		shared->result = handover_receive(&shared->h);
		shared->state_ino = inode(shared->h.state_fd);
		shared->front_ino = inode(shared->h.front_fd);
		for (unsigned i = 0; i < shared->h.kept.n; i++)
			shared->kept_ino[i] = inode(shared->h.kept.fds[i].fd);
		for (unsigned i = 0; i < n; i++)
			shared->open += fcntl((int)(SD_LISTEN_FDS_START + i), F_GETFD) >= 0;
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	o = *shared;
	munmap(shared, sizeof(*shared));
	return o;
}

static void assert_nothing(const struct outcome *o)
{
	assert_int_equal(o->result, 0);
	assert_int_equal(o->h.state_fd, -1);
	assert_int_equal(o->h.front_fd, -1);
	assert_int_equal(o->h.kept.n, 0);
	assert_string_equal(o->h.owner.device, "");
}

static void both(void **state)
{
	const int fds[] = {memory("front"), state_of(&disk)};
	struct outcome o = receive("zswapd-front:zswapd-state", fds, 2, true);

	assert_int_equal(o.result, 0);
	assert_string_equal(o.h.owner.device, disk.path);
	assert_int_equal(o.h.owner.store[0], 7);
	assert_true(o.state_ino == inode(fds[1]));
	assert_true(o.front_ino == inode(fds[0]));
	assert_int_equal(o.open, 2);
	assert_note("");
}

static void nothing(void **state)
{
	struct outcome o = receive(NULL, NULL, 0, true);

	assert_nothing(&o);
	assert_note("");
}

static void for_another_process(void **state)
{
	const int fds[] = {state_of(&disk), memory("front")};
	struct outcome o = receive("zswapd-state:zswapd-front", fds, 2, false);

	assert_nothing(&o);
	assert_note("");
}

static void without_names(void **state)
{
	const int fds[] = {state_of(&disk), memory("front")};
	struct outcome o = receive(NULL, fds, 2, true);

	assert_nothing(&o);
	assert_int_equal(o.open, 0);
	assert_note("");
}

static void one_is_missing(void **state)
{
	const int front = memory("front"), pages = state_of(&disk);
	struct outcome o = receive("zswapd-front", &front, 1, true);

	assert_nothing(&o);
	assert_int_equal(o.open, 0);
	assert_withdrawn();
	o = receive("zswapd-state", &pages, 1, true);
	assert_nothing(&o);
	assert_int_equal(o.open, 0);
	assert_withdrawn();
}

static void the_device_is_gone(void **state)
{
	const struct device_disk gone = {.path = "/dev/ublkb-gone", .diskseq = 1};
	const struct device_disk another = {.path = "/dev/null", .diskseq = 1};
	struct device_disk successor = disk;
	int fds[] = {state_of(&gone), memory("front")};
	struct outcome o = receive("zswapd-state:zswapd-front", fds, 2, true);

	assert_nothing(&o);
	assert_int_equal(o.open, 0);
	assert_withdrawn();
	fds[0] = state_of(&another);
	o = receive("zswapd-state:zswapd-front", fds, 2, true);
	assert_nothing(&o);
	assert_withdrawn();
	/* Its name is another disk's by now. */
	successor.diskseq++;
	fds[0] = state_of(&successor);
	o = receive("zswapd-state:zswapd-front", fds, 2, true);
	assert_nothing(&o);
	assert_withdrawn();
	/* There never was one. */
	fds[0] = state_of(NULL);
	o = receive("zswapd-state:zswapd-front", fds, 2, true);
	assert_nothing(&o);
	assert_withdrawn();
}

/* Another version can still read it, so it must not be thrown away. */
static void a_state_of_another_version(void **state)
{
	const int fds[] = {state_of(&disk), memory("front")};
	const uint32_t version = STATE_VERSION + 1;
	struct outcome o;

	assert_int_equal(
		pwrite(fds[0], &version, sizeof(version), offsetof(struct state_header, version)),
		sizeof(version));
	o = receive("zswapd-state:zswapd-front", fds, 2, true);
	assert_int_equal(o.result, -EBADMSG);
	assert_note("");
}

static void not_even_a_state(void **state)
{
	const int fds[] = {high(open("/dev/null", O_RDWR | O_CLOEXEC)), memory("front")};
	struct outcome o = receive("zswapd-state:zswapd-front", fds, 2, true);

	assert_int_equal(o.result, -EBADMSG);
	assert_note("");
}

static void others_are_closed_and_the_last_counts(void **state)
{
	const int fds[] = {memory("else"),  state_of(NULL), memory("old"),
			   state_of(&disk), memory("new"),  memory("else")};
	struct outcome o = receive("stored:zswapd-state:zswapd-front:zswapd-state:zswapd-front:x",
				   fds, 6, true);

	assert_int_equal(o.result, 0);
	assert_string_equal(o.h.owner.device, disk.path);
	assert_true(o.state_ino == inode(fds[3]));
	assert_true(o.front_ino == inode(fds[4]));
	assert_int_equal(o.open, 2);
	assert_note("");
}

/* What else the transport had kept, by its names, and those that are not ours. */
static void the_transports(void **state)
{
	const int fds[] = {memory("loop"),  state_of(&disk), memory("else"),
			   memory("front"), memory("fuse"),  memory("newer loop")};
	struct outcome o = receive(
		"zswapd-loop:zswapd-state:loop:zswapd-front:zswapd-fuse:zswapd-loop", fds, 6, true);

	assert_int_equal(o.result, 0);
	assert_true(o.state_ino == inode(fds[1]));
	assert_true(o.front_ino == inode(fds[3]));
	assert_int_equal(o.h.kept.n, 2);
	assert_string_equal(o.h.kept.fds[0].name, "zswapd-loop");
	assert_true(o.kept_ino[0] == inode(fds[5]));
	assert_string_equal(o.h.kept.fds[1].name, "zswapd-fuse");
	assert_true(o.kept_ino[1] == inode(fds[4]));
	assert_int_equal(o.open, 4);
	assert_note("");
}

/* More than a transport keeps, and a name that does not fit: closed. */
static void too_many(void **state)
{
	const int fds[] = {memory("a"), memory("b"), memory("c"),     memory("d"),
			   memory("e"), memory("f"), state_of(&disk), memory("front")};
	struct outcome o =
		receive("zswapd-name-that-does-not-fit:zswapd-a:zswapd-b:zswapd-c:zswapd-d:"
			"zswapd-e:zswapd-state:zswapd-front",
			fds, 8, true);

	assert_int_equal(o.result, 0);
	assert_int_equal(o.h.kept.n, TRANSPORT_KEPT_MAX);
	assert_string_equal(o.h.kept.fds[TRANSPORT_KEPT_MAX - 1].name, "zswapd-d");
	assert_int_equal(o.open, TRANSPORT_KEPT_MAX + 2);
	assert_note("");
}

/* Without the pages, of no use; whoever waits for the device is not to wait for ever. */
static void the_transports_alone(void **state)
{
	const int fds[] = {memory("fuse"), memory("front")};
	struct outcome o = receive("zswapd-fuse:zswapd-front", fds, 2, true);

	assert_nothing(&o);
	assert_int_equal(o.open, 0);
	assert_memory_withdrawn();
	assert_note("FDSTOREREMOVE=1\nFDNAME=zswapd-fuse");
	assert_note("");
	o = receive("zswapd-fuse", fds, 1, true);
	assert_nothing(&o);
	assert_int_equal(o.open, 0);
	assert_memory_withdrawn();
	assert_note("FDSTOREREMOVE=1\nFDNAME=zswapd-fuse");
	assert_note("");
}

static void deposit_and_withdraw(void **state)
{
	const struct engine_options o = {.device_bytes = MIB(1),
					 .memory_limit = MIB(16),
					 .level = 1,
					 .nqueues = 1,
					 .store = {.fd = -1},
					 .state_fd = -1,
					 .front_fd = -1};
	const struct transport_kept kept = {.n = 1,
					    .fds = {{.name = "zswapd-loop", .fd = memory("loop")}}};
	struct state_owner owner;
	struct engine *e;
	char note[256];
	int fd;

	assert_int_equal(engine_new(&e, &o), 0);
	engine_set_device(e, "/dev/ublkb3", 12);
	handover_deposit(e, &kept);
	next_note(note, sizeof(note), &fd);
	assert_string_equal(note, "FDSTORE=1\nFDNAME=zswapd-state");
	assert_true(fd >= 0 && inode(fd) == inode(engine_state_fd(e)));
	assert_int_equal(state_read_owner(fd, &owner), 0);
	assert_string_equal(owner.device, "/dev/ublkb3");
	assert_int_equal(owner.diskseq, 12);
	close(fd);
	next_note(note, sizeof(note), &fd);
	assert_string_equal(note, "FDSTORE=1\nFDNAME=zswapd-front");
	assert_true(fd >= 0 && inode(fd) == inode(engine_front_fd(e)));
	close(fd);
	next_note(note, sizeof(note), &fd);
	assert_string_equal(note, "FDSTORE=1\nFDNAME=zswapd-loop");
	assert_true(fd >= 0 && inode(fd) == inode(kept.fds[0].fd));
	close(fd);
	assert_note("");
	handover_withdraw(&kept);
	assert_memory_withdrawn();
	assert_note("FDSTOREREMOVE=1\nFDNAME=zswapd-loop");
	assert_note("");
	engine_free(e);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(both),
		T(nothing),
		T(for_another_process),
		T(without_names),
		T(one_is_missing),
		T(the_device_is_gone),
		T(a_state_of_another_version),
		T(not_even_a_state),
		T(others_are_closed_and_the_last_counts),
		T(the_transports),
		T(too_many),
		T(the_transports_alone),
		T(deposit_and_withdraw),
	};

	find_disk();
	if (!disk.diskseq) {
		puts("skipped: there is no disk with a sequence number");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}

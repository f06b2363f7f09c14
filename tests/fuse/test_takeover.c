// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Devices whose server dies: the server is a child, which hands over what it holds by a socket and
 * is killed.
 */
#include "common/textfile.h"
#include "daemon/policy/mover.h"
#include "fuse/internal.h"
#include "fuse/transport_fuse.h"
#include "tests/lib/scratch.h"
#include "tests/lib/stderr.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#define DEVICE_BYTES MIB(8)
#define FD_COUNT     5u

static struct scratch scratch;
/* Of the test, to be undone however it ends. */
static pid_t child;
static unsigned connection; /* its number; 0: none */
static char made[TRANSPORT_DEVICE_MAX];
static uint64_t made_seq; /* the kernel's number of that disk */
static struct beat beats[1];

/* What a dead server has left. */
struct estate {
	char device[TRANSPORT_DEVICE_MAX];
	struct transport_kept kept;
	int state_fd, front_fd;
};

struct server {
	struct engine *engine;
	struct mover *mover;
	struct transport *transport;
};

static int make_engine_for(struct server *s, int state_fd, int front_fd, bool standby)
{
	const struct engine_options o = {.device_bytes = DEVICE_BYTES,
					 .memory_limit = MIB(32),
					 .level = 1,
					 .nqueues = 1,
					 .store = {.fd = -1},
					 .state_fd = state_fd,
					 .front_fd = front_fd,
					 .standby = standby};
	int r = engine_new(&s->engine, &o);

	return r < 0 || standby ? r : mover_start(&s->mover, s->engine);
}

static int make_engine(struct server *s, int state_fd, int front_fd)
{
	return make_engine_for(s, state_fd, front_fd, false);
}

static void free_engine(struct server *s)
{
	mover_stop(s->mover);
	engine_free(s->engine);
}

static struct transport_options options(struct engine *e)
{
	return (struct transport_options){.name = "test",
					  .run_dir = scratch.dir,
					  .device_bytes = DEVICE_BYTES,
					  .nqueues = 1,
					  .store_fd = -1,
					  .engine = e,
					  .beats = beats,
					  .buffers_fd = -1};
}

/* In the child: serves until it is killed. */
static _Noreturn void serve(int to)
{
	struct estate left = {0};
	struct transport_options o;
	struct server s;
	int fds[FD_COUNT];
	union {
		char bytes[CMSG_SPACE(sizeof(fds))];
		struct cmsghdr align;
	} control = {0};
	struct iovec iov = {&left, sizeof(left)};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   .msg_controllen = sizeof(control)};

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (make_engine(&s, -1, -1) < 0)
		_exit(1);
	o = options(s.engine);
	if (transport_fuse.open(&s.transport, &o) < 0 ||
	    transport_fuse.keep(s.transport, &left.kept) < 0 || left.kept.n != FD_COUNT - 2)
		_exit(2);
	snprintf(left.device, sizeof(left.device), "%s", transport_fuse.device(s.transport));
	for (unsigned i = 0; i < left.kept.n; i++)
		fds[i] = left.kept.fds[i].fd;
	fds[left.kept.n] = engine_state_fd(s.engine);
	fds[left.kept.n + 1] = engine_front_fd(s.engine);
	*CMSG_FIRSTHDR(&m) = (struct cmsghdr){.cmsg_level = SOL_SOCKET,
					      .cmsg_type = SCM_RIGHTS,
					      .cmsg_len = CMSG_LEN(sizeof(fds))};
	memcpy(CMSG_DATA(CMSG_FIRSTHDR(&m)), fds, sizeof(fds));
	if (sendmsg(to, &m, 0) != sizeof(left))
		_exit(3);
	while (true)
		pause();
}

static int named(const struct estate *e, const char *name)
{
	for (unsigned i = 0; i < e->kept.n; i++) {
		if (strcmp(e->kept.fds[i].name, name) == 0)
			return e->kept.fds[i].fd;
	}
	return -1;
}

/* Whoever waits for the device gets an error, once and for all. */
static void abort_connection(void)
{
	const char *dir = scratch_path(&scratch, "fusectl");
	char path[256];

	snprintf(path, sizeof(path), "%s/%u/abort", dir, connection);
	if (mkdir(dir, 0700) == 0 && mount("none", dir, "fusectl", 0, NULL) == 0) {
		textfile_write(path, "1");
		umount2(dir, MNT_DETACH);
	}
	rmdir(dir);
}

static uint64_t diskseq_of(const char *dev)
{
	uint64_t seq = 0;
	char path[128];

	snprintf(path, sizeof(path), "/sys/block/%.32s/diskseq", dev + strlen("/dev/"));
	textfile_read_u64(path, &seq);
	return seq;
}

/* Others may have attached the same number by now; then the disk is another one. */
static bool is_attached(const char *dev)
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/block/%.32s/loop/backing_file", dev + strlen("/dev/"));
	return access(path, F_OK) == 0 && diskseq_of(dev) == made_seq;
}

static void start(struct estate *e)
{
	struct loop_info64 info;
	int ends[2], fds[FD_COUNT];
	union {
		char bytes[CMSG_SPACE(sizeof(fds))];
		struct cmsghdr align;
	} control;
	struct iovec iov = {e, sizeof(*e)};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   .msg_controllen = sizeof(control)};

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	child = fork();
	if (child == 0)
		serve(ends[1]);
	close(ends[1]);
	assert_int_equal(recvmsg(ends[0], &m, MSG_CMSG_CLOEXEC), sizeof(*e));
	memcpy(fds, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(fds));
	for (unsigned i = 0; i < e->kept.n; i++)
		e->kept.fds[i].fd = fds[i];
	e->state_fd = fds[e->kept.n];
	e->front_fd = fds[e->kept.n + 1];
	close(ends[0]);
	assert_int_equal(ioctl(named(e, "zswapd-loop"), LOOP_GET_STATUS64, &info), 0);
	memcpy(made, e->device, sizeof(made));
	made_seq = diskseq_of(made);
	connection = info.lo_device & 0xff; /* the file system's number is the connection's too */
}

static void end(void)
{
	int status;

	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, &status, 0), child);
	child = 0;
	assert_true(WIFSIGNALED(status));
}

static void drop(struct estate *e)
{
	for (unsigned i = 0; i < e->kept.n; i++)
		e->kept.fds[i].fd = close_fd(e->kept.fds[i].fd);
}

static int take_over(struct server *s, struct estate *e)
{
	struct transport_options o;
	int r;

	assert_int_equal(make_engine(s, e->state_fd, e->front_fd), 0);
	o = options(s->engine);
	o.takeover = e->device;
	o.kept = &e->kept;
	r = transport_fuse.prepare(&s->transport, &o);
	if (r == 0)
		r = transport_fuse.resume(s->transport);
	if (r < 0)
		free_engine(s);
	return r;
}

/* One page, in a thread of its own, since it waits for a server. */
struct io {
	pthread_t thread;
	const char *device;
	bool write;
	uint64_t slot;
	uint8_t *page;
	ssize_t result;
};

static void *do_io(void *arg)
{
	struct io *io = arg;
	int fd = open(io->device, O_RDWR | O_DIRECT | O_CLOEXEC);

	io->result = io->write ? pwrite(fd, io->page, SLOT_BYTES, (off_t)(io->slot * SLOT_BYTES))
			       : pread(fd, io->page, SLOT_BYTES, (off_t)(io->slot * SLOT_BYTES));
	close(fd);
	return NULL;
}

static void begin_io(struct io *io, const char *device, bool write, uint64_t slot, int fill)
{
	*io = (struct io){.device = device, .write = write, .slot = slot};
	io->page = aligned_alloc(SLOT_BYTES, SLOT_BYTES);
	memset(io->page, fill, SLOT_BYTES);
	memcpy(io->page, &slot, sizeof(slot)); /* not same-filled */
	assert_int_equal(pthread_create(&io->thread, NULL, do_io, io), 0);
}

static void assert_io(struct io *io, int fill)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 20;
	assert_int_equal(pthread_timedjoin_np(io->thread, NULL, &until), 0);
	assert_int_equal(io->result, SLOT_BYTES);
	assert_int_equal(memcmp(io->page, &io->slot, sizeof(io->slot)), 0);
	for (size_t i = sizeof(io->slot); i < SLOT_BYTES; i++)
		assert_int_equal(io->page[i], fill);
	free(io->page);
}

static void write_slot(const char *device, uint64_t slot, int fill)
{
	struct io io;

	begin_io(&io, device, true, slot, fill);
	assert_io(&io, fill);
}

static void assert_slot(const char *device, uint64_t slot, int fill)
{
	struct io io;

	begin_io(&io, device, false, slot, 0);
	assert_io(&io, fill);
}

/* Reads @n requests as the server did before it died; they are never answered. */
static void swallow_requests(int fuse, unsigned n)
{
	cleanup_free uint8_t *buf = malloc(FUSE_WRITE_HEADER + FUSE_IO_MAX);

	while (n > 0) {
		struct pollfd p = {.fd = fuse, .events = POLLIN};
		const struct fuse_in_header *h = (const struct fuse_in_header *)buf;

		assert_int_equal(poll(&p, 1, 10000), 1);
		if (read(fuse, buf, FUSE_WRITE_HEADER + FUSE_IO_MAX) < (ssize_t)sizeof(*h))
			continue;
		assert_true(h->opcode == FUSE_READ || h->opcode == FUSE_WRITE);
		n--;
	}
}

static void assert_removed(struct server *s, struct estate *e, int fuse)
{
	assert_false(transport_fuse.gone(s->transport));
	assert_int_equal(transport_fuse.close(s->transport), 0);
	assert_false(is_attached(e->device));
	/* The connection ends with its file system. */
	assert_int_equal(poll(&(struct pollfd){.fd = fuse}, 1, 5000), 1);
	close(fuse);
	connection = 0;
	free_engine(s);
}

static void requests_that_were_not_answered(void **state)
{
	struct io io[6];
	struct estate e;
	struct server s;
	int fuse;

	start(&e);
	for (uint64_t slot = 0; slot < 6; slot++)
		write_slot(e.device, slot, 0x10 + (int)slot);
	end();
	fuse = dup(named(&e, "zswapd-fuse"));
	/* Some were read by the dead one, the others wait in the queue. */
	for (unsigned i = 0; i < 3; i++)
		begin_io(&io[i], e.device, i == 1, i, i == 1 ? 0x55 : 0);
	swallow_requests(fuse, 3);
	for (unsigned i = 3; i < 6; i++)
		begin_io(&io[i], e.device, i == 4, i, i == 4 ? 0x66 : 0);
	assert_int_equal(take_over(&s, &e), 0);
	for (unsigned i = 0; i < 6; i++)
		assert_io(&io[i], i == 1 ? 0x55 : i == 4 ? 0x66 : 0x10 + (int)i);
	assert_slot(e.device, 1, 0x55);
	assert_slot(e.device, 4, 0x66);
	assert_slot(e.device, 5, 0x15);
	assert_removed(&s, &e, fuse);
}

/* Each takes over from the one before, with what that one had kept. */
static void one_after_the_other(void **state)
{
	struct estate e, next;
	struct server s;
	struct io io;
	int fuse, pages[2];

	start(&e);
	write_slot(e.device, 9, 0x21);
	end();
	fuse = dup(named(&e, "zswapd-fuse"));
	begin_io(&io, e.device, true, 3, 0x77);
	swallow_requests(fuse, 1);
	for (int i = 0; i < 3; i++) {
		next = e;
		for (unsigned k = 0; k < e.kept.n; k++)
			next.kept.fds[k].fd = dup(e.kept.fds[k].fd);
		pages[0] = dup(e.state_fd);
		pages[1] = dup(e.front_fd);
		child = fork();
		if (child == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			if (take_over(&s, &e) < 0)
				_exit(1);
			while (true)
				pause();
		}
		drop(&e);
		close(e.state_fd);
		close(e.front_fd);
		if (i == 0)
			assert_io(&io, 0x77);
		assert_slot(e.device, 9, 0x21 + i);
		write_slot(e.device, 9, 0x22 + i);
		end();
		e = next;
		e.state_fd = pages[0];
		e.front_fd = pages[1];
	}
	assert_int_equal(take_over(&s, &e), 0);
	assert_slot(e.device, 3, 0x77);
	assert_slot(e.device, 9, 0x24);
	assert_removed(&s, &e, fuse);
}

/* Reads without a pause until it is told to stop. */
struct reader {
	pthread_t thread;
	const char *device;
	_Atomic bool stop;
	_Atomic uint64_t reads;
	uint64_t failed, longest;
};

static void *read_on(void *arg)
{
	struct reader *r = arg;
	int fd = open(r->device, O_RDONLY | O_DIRECT | O_CLOEXEC);
	void *page = aligned_alloc(SLOT_BYTES, SLOT_BYTES);

	while (!atomic_load(&r->stop)) {
		uint64_t start = now_ns();

		r->failed += pread(fd, page, SLOT_BYTES, 4 * SLOT_BYTES) != SLOT_BYTES;
		r->longest = max_u64(r->longest, now_ns() - start);
		r->reads++;
	}
	free(page);
	close(fd);
	return NULL;
}

/* @n more than there are. */
static void wait_for_reads(struct reader *r, uint64_t n)
{
	uint64_t until = atomic_load(&r->reads) + n;

	for (unsigned i = 0; i < 10000 && atomic_load(&r->reads) < until; i++)
		poll(NULL, 0, 1);
	assert_true(atomic_load(&r->reads) >= until);
}

/* All that can be done before is done while the former server still serves. */
static void prepared_in_advance(void **state)
{
	struct transport_options o;
	struct reader r = {0};
	uint64_t killed, dead, resumed;
	struct estate e;
	struct server s;
	int fuse;

	start(&e);
	write_slot(e.device, 4, 0x61);
	fuse = dup(named(&e, "zswapd-fuse"));
	assert_int_equal(make_engine_for(&s, e.state_fd, e.front_fd, true), 0);
	o = options(s.engine);
	o.takeover = e.device;
	o.kept = &e.kept;
	assert_int_equal(transport_fuse.prepare(&s.transport, &o), 0);
	/* The other one serves as before, and what it is given now is taken over too. */
	write_slot(e.device, 4, 0x62);
	r.device = e.device;
	assert_int_equal(pthread_create(&r.thread, NULL, read_on, &r), 0);
	wait_for_reads(&r, 100);
	killed = now_ns();
	end();
	dead = now_ns();
	assert_int_equal(engine_take_over(s.engine), 0);
	assert_int_equal(transport_fuse.resume(s.transport), 0);
	resumed = now_ns();
	assert_int_equal(mover_start(&s.mover, s.engine), 0);
	assert_slot(e.device, 4, 0x62);
	wait_for_reads(&r, 100);
	atomic_store(&r.stop, true);
	pthread_join(r.thread, NULL);
	assert_int_equal(r.failed, 0);
	print_message("a reader waited for %.2f ms: %.2f for the death, %.2f for the takeover\n",
		      (double)r.longest / 1e6, (double)(dead - killed) / 1e6,
		      (double)(resumed - dead) / 1e6);
	assert_removed(&s, &e, fuse);
}

/* It stays for as long as it is held, whoever else wants it to go. */
static void somebody_detaches_it_meanwhile(void **state)
{
	struct estate e;
	struct server s;
	int fuse, fd;

	start(&e);
	write_slot(e.device, 2, 0x31);
	end();
	fuse = dup(named(&e, "zswapd-fuse"));
	fd = open(e.device, O_RDONLY | O_CLOEXEC);
	assert_int_equal(ioctl(fd, LOOP_CLR_FD, 0), 0);
	close(fd);
	assert_true(is_attached(e.device));
	assert_int_equal(take_over(&s, &e), 0);
	assert_slot(e.device, 2, 0x31);
	assert_removed(&s, &e, fuse);
}

/* Refused as -EINVAL or whatever @error is, and not touched: the next one can take it over. */
static void assert_refused(struct transport_options o, const struct estate *e, const char *name,
			   int instead, int error, const char *said)
{
	struct transport_kept kept = e->kept;
	struct stderr_capture cap;
	struct transport *t = NULL;
	int r;

	for (unsigned i = 0; i < kept.n; i++) {
		bool this = name && strcmp(kept.fds[i].name, name) == 0;

		kept.fds[i].fd = this ? instead : dup(kept.fds[i].fd);
	}
	o.kept = &kept;
	stderr_capture_begin(&cap);
	r = transport_fuse.prepare(&t, &o);
	stderr_capture_end(&cap);
	assert_int_equal(r, error);
	if (!strstr(cap.text, said))
		fail_msg("'%s' is not in: %s", said, cap.text);
	for (unsigned i = 0; i < kept.n; i++)
		assert_int_equal(kept.fds[i].fd, -1);
}

static void what_does_not_fit(void **state)
{
	struct fuse_note note;
	struct transport_options o, larger;
	struct estate e;
	struct server s;
	int fd, fuse;

	start(&e);
	write_slot(e.device, 2, 0x41);
	end();
	fuse = dup(named(&e, "zswapd-fuse"));
	o = options(NULL); /* nothing gets so far as to need it */
	o.takeover = e.device;
	larger = o;
	larger.device_bytes += MIB(1);
	assert_refused(larger, &e, NULL, -1, -EINVAL, "start with the former configuration");
	assert_refused(o, &e, "zswapd-loop", open("/dev/null", O_RDONLY | O_CLOEXEC), -EINVAL,
		       "is another device");
	assert_refused(o, &e, "zswapd-loop", -1, -ESTALE, "were not kept");
	assert_refused(o, &e, "zswapd-fuse-init", open("/dev/null", O_RDONLY | O_CLOEXEC), -EBADMSG,
		       "it is not sealed");
	assert_int_equal(note_load(&note, named(&e, "zswapd-fuse-init")), 0);
	note.io_max = 2 * FUSE_IO_MAX;
	assert_int_equal(note_save(&note, &fd), 0);
	assert_refused(o, &e, "zswapd-fuse-init", fd, -EINVAL, "start the version that made it");
	note.io_max = FUSE_IO_MAX;
	note.device_bytes = MIB(9);
	assert_int_equal(note_save(&note, &fd), 0);
	assert_refused(o, &e, "zswapd-fuse-init", fd, -EINVAL, "over a file of 9437184");

	assert_int_equal(take_over(&s, &e), 0);
	assert_slot(e.device, 2, 0x41);
	assert_removed(&s, &e, fuse);
}

static void assert_stale(const struct estate *e, const struct transport_kept *kept,
			 const char *said)
{
	struct stderr_capture cap;
	int r;

	stderr_capture_begin(&cap);
	r = transport_fuse.queues_of(e->device, kept);
	stderr_capture_end(&cap);
	assert_int_equal(r, -ESTALE);
	if (!strstr(cap.text, said))
		fail_msg("'%s' is not in: %s", said, cap.text);
}

static void nobody_can_bring_it_back(void **state)
{
	struct transport_kept part;
	struct estate e;

	start(&e);
	end();
	assert_int_equal(transport_fuse.queues_of(e.device, &e.kept), 0);
	assert_int_equal(transport_fuse.queues_of("/dev/ublkb0", &e.kept), -ENODEV);
	assert_int_equal(transport_fuse.queues_of("/dev/sda", &e.kept), -ENODEV);
	assert_stale(&e, NULL, "zswapd-fuse was not kept");
	for (unsigned i = 0; i < e.kept.n; i++) {
		char said[64];

		part = e.kept;
		part.fds[i].fd = -1;
		snprintf(said, sizeof(said), "%s was not kept", part.fds[i].name);
		assert_stale(&e, &part, said);
		part.fds[i] = part.fds[--part.n];
		assert_stale(&e, &part, said);
	}
	abort_connection();
	assert_stale(&e, &e.kept, "its connection was ended");
	drop(&e);
	close(e.state_fd);
	close(e.front_fd);
	/* Nobody holds what was given up. */
	for (int i = 0; i < 100 && is_attached(e.device); i++)
		poll(NULL, 0, 20);
	assert_false(is_attached(e.device));
}

static int setup(void **state)
{
	child = 0;
	connection = 0;
	scratch_init(&scratch);
	return 0;
}

static int teardown(void **state)
{
	if (connection) {
		abort_connection();
		loopdev_forsake(made);
	}
	if (child > 0) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
	scratch_deinit(&scratch);
	return 0;
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(requests_that_were_not_answered),
		T(one_after_the_other),
		T(prepared_in_advance),
		T(somebody_detaches_it_meanwhile),
		T(what_does_not_fit),
		T(nobody_can_bring_it_back),
	};
	const char *why = scratch_no_loops();

	if (!why)
		why = transport_fuse.unusable();
	if (why) {
		printf("skipped: %s\n", why);
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}

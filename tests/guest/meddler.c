// SPDX-License-Identifier: GPL-2.0-or-later
/* clang-format off */
/*
 * Gets in the way of a daemon that makes a ublk device.
 *
 *	meddler hold PATH SECONDS	opens PATH the moment it appears, says "held" and keeps it open,
 *					until a signal with 0 seconds
 *	meddler wedge			a ublk server that stops answering while its device is removed:
 *					the removal hangs in the driver, and whoever wants to make a
 *					device after it.  Says "wedged N", N the device's number.  With
 *					SIGTERM it answers, the device goes, and it ends with 0.
 */
/* clang-format on */
#include "common/util.h"
#include "daemon/ublk/control.h"

#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define DEPTH	 2u
#define IO_BYTES (64u << 10)
#define SECTORS	 2048u
#define GONE_NS	 20000000000ull

static _Noreturn void die(const char *what, int error)
{
	fprintf(stderr, "meddler: %s: %s\n", what, strerror(error));
	exit(1);
}

static void say(const char *text)
{
	puts(text);
	fflush(stdout);
}

/* --- hold --- */

static int hold(const char *path, unsigned seconds)
{
	int fd;

	/* All its time is spent here, so that nobody is faster. */
	while ((fd = open(path, O_RDWR | O_CLOEXEC)) < 0) {
		if (errno == EBUSY)
			return 3;
		if (errno != ENOENT && errno != ENXIO)
			die(path, errno);
	}
	say("held");
	if (seconds)
		sleep(seconds);
	else
		pause();
	close(fd);
	return 0;
}

/* --- wedge --- */

enum behaviour {
	ANSWERS,
	KEEPS,
	ENDS
};

struct server {
	struct ublk_control *control;
	struct ublk_dev_info info;
	bool encoded;
	int fd;
	const struct ublk_io_desc *descs;
	uint8_t *zeroes;
	struct io_uring ring;
	bool kept[DEPTH];
	_Atomic enum behaviour behaviour;
	_Atomic unsigned nkept;
};

static void send_command(struct server *s, enum ublk_io_nr nr, uint16_t tag, int32_t result)
{
	const struct ublk_io_cmd cmd = {
		.tag = tag, .result = result, .addr = (uint64_t)(uintptr_t)s->zeroes};
	struct io_uring_sqe *sqe = io_uring_get_sqe(&s->ring);

	io_uring_prep_rw(IORING_OP_URING_CMD, sqe, s->fd, NULL, 0, 0);
	sqe->cmd_op = ublk_io_op(nr, s->encoded);
	memcpy(sqe->cmd, &cmd, sizeof(cmd));
	io_uring_sqe_set_data64(sqe, tag);
}

static void answer(struct server *s, uint16_t tag)
{
	const struct ublk_io_desc *d = &s->descs[tag];
	uint32_t op = d->op_flags & UBLK_OP_MASK;
	bool data = op == UBLK_OP_READ || op == UBLK_OP_WRITE;

	send_command(s, UBLK_IO_COMMIT_AND_FETCH_REQ, tag, data ? (int32_t)d->nr_sectors * 512 : 0);
}

static void request(struct server *s, uint16_t tag)
{
	if (atomic_load(&s->behaviour) == KEEPS) {
		s->kept[tag] = true;
		atomic_fetch_add(&s->nkept, 1);
	} else {
		answer(s, tag);
	}
}

static void *serve(void *arg)
{
	struct __kernel_timespec ts = {.tv_nsec = 20000000};
	struct server *s = arg;
	unsigned ended = 0;

	for (uint16_t tag = 0; tag < DEPTH; tag++)
		send_command(s, UBLK_IO_FETCH_REQ, tag, 0);
	while (ended < DEPTH) {
		struct io_uring_cqe *cqe;

		io_uring_submit(&s->ring);
		if (io_uring_wait_cqe_timeout(&s->ring, &cqe, &ts) == 0) {
			uint16_t tag = (uint16_t)io_uring_cqe_get_data64(cqe);
			int res = cqe->res;

			io_uring_cqe_seen(&s->ring, cqe);
			if (res == 0)
				request(s, tag);
			else
				ended++;
		}
		for (uint16_t tag = 0; tag < DEPTH; tag++) {
			if (s->kept[tag] && atomic_load(&s->behaviour) == ENDS) {
				s->kept[tag] = false;
				answer(s, tag);
			}
		}
	}
	return NULL;
}

/* Never comes back from the read before it is answered. */
static void *read_once(void *arg)
{
	struct server *s = arg;
	void *page = aligned_alloc(4096, 4096);
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/dev/ublkb%u", s->info.dev_id);
	fd = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
	if (fd < 0)
		die(path, errno);
	if (pread(fd, page, 4096, 0) < 0)
		perror("meddler: read");
	close(fd);
	free(page);
	return NULL;
}

static void make_device(struct server *s)
{
	const struct ublk_params params = {
		.len = sizeof(params),
		.types = UBLK_PARAM_BASIC,
		.basic = {.logical_bs_shift = 12,
			  .physical_bs_shift = 12,
			  .io_opt_shift = 12,
			  .io_min_shift = 12,
			  .max_sectors = IO_BYTES / 512,
			  .dev_sectors = SECTORS},
	};
	char path[32];

	s->info = (struct ublk_dev_info){
		.nr_hw_queues = 1,
		.queue_depth = DEPTH,
		.max_io_buf_bytes = IO_BYTES,
		.dev_id = UINT32_MAX,
		.flags = UBLK_F_CMD_IOCTL_ENCODE,
	};
	if (ublk_control_open(&s->control) < 0 || ublk_add(s->control, &s->info) < 0 ||
	    ublk_set_params(s->control, s->info.dev_id, &params) < 0)
		exit(1);
	s->encoded = ublk_control_encoded(s->control);
	snprintf(path, sizeof(path), "/dev/ublkc%u", s->info.dev_id);
	s->fd = open(path, O_RDWR | O_CLOEXEC);
	if (s->fd < 0)
		die(path, errno);
	s->descs = mmap(NULL, 4096, PROT_READ, MAP_SHARED, s->fd, 0);
	s->zeroes = aligned_alloc(4096, IO_BYTES);
	if (s->descs == MAP_FAILED || !s->zeroes)
		die("mmap", errno);
	memset(s->zeroes, 0, IO_BYTES);
	if (io_uring_queue_init(8, &s->ring, 0) < 0)
		die("ring", EIO);
}

/* It goes last; by then nothing waits for this process any more. */
static bool is_there(const struct server *s)
{
	char path[32];

	snprintf(path, sizeof(path), "/dev/ublkc%u", s->info.dev_id);
	return access(path, F_OK) == 0;
}

static int wedge(void)
{
	const struct timespec pause = {.tv_nsec = 20000000};
	static struct server s;
	pthread_t server, reader;
	uint64_t give_up;
	sigset_t set;
	int signal;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	make_device(&s);
	if (pthread_create(&server, NULL, serve, &s) != 0 ||
	    ublk_start(s.control, s.info.dev_id) < 0)
		return 1;
	atomic_store(&s.behaviour, KEEPS);
	if (pthread_create(&reader, NULL, read_once, &s) != 0)
		return 1;
	while (atomic_load(&s.nkept) == 0)
		nanosleep(&pause, NULL);
	printf("wedged %u\n", s.info.dev_id);
	fflush(stdout);
	/* Given up here after some seconds; the kernel goes on. */
	ublk_delete(s.control, s.info.dev_id);
	sigwait(&set, &signal);
	atomic_store(&s.behaviour, ENDS);
	give_up = now_ns() + GONE_NS;
	while (is_there(&s) && now_ns() < give_up)
		nanosleep(&pause, NULL);
	return is_there(&s);
}

int main(int argc, char *argv[])
{
	if (argc == 4 && strcmp(argv[1], "hold") == 0)
		return hold(argv[2], (unsigned)atoi(argv[3]));
	if (argc == 2 && strcmp(argv[1], "wedge") == 0)
		return wedge();
	fprintf(stderr, "usage: meddler hold PATH SECONDS | meddler wedge\n");
	return 2;
}

// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/store/polled.h"
#include "common/log.h"
#include "common/textfile.h"
#include "common/util.h"
#include "daemon/store/restrict.h"
#include "daemon/store/ring.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#define STORE_FILE     0
#define TIMER_SLACK_NS 1u
#define MEAN_WEIGHT    8   /* of the past, against one read */
#define LATE_WEIGHT    256 /* reads in which lateness is forgotten, about */

#define PROBE_BYTES    4096u
#define PROBE_NS       1000000000u
#define PROBE_PAUSE_NS 20000

/* --- pace --- */

static uint64_t mean_of(uint64_t past, uint64_t one)
{
	return (past * (MEAN_WEIGHT - 1) + one) / MEAN_WEIGHT;
}

void polled_pace_sent(struct polled_pace *p, uint64_t now, bool alone, bool nap)
{
	p->sent = now;
	p->alone = alone;
	p->nap = nap;
	p->slept = false;
}

uint64_t polled_pace_sleep(const struct polled_pace *p, uint64_t now)
{
	uint64_t age = now - p->sent, spent = age + p->late_ns;

	if (age >= POLLED_PATIENCE_NS)
		return POLLED_REST_NS;
	if (p->nap && spent + POLLED_NAP_MIN_NS <= p->mean_ns / 2)
		return p->mean_ns / 2 - spent;
	return 0;
}

void polled_pace_slept(struct polled_pace *p, uint64_t asked, uint64_t took)
{
	p->slept = true;
	if (took >= asked)
		/* One that came out of all proportion late must not end the naps for long. */
		p->late_ns = mean_of(p->late_ns, min_u64(took - asked, p->mean_ns));
}

void polled_pace_missed(struct polled_pace *p)
{
	p->slept = false;
}

/*
 * A read found at the first look after a sleep has taken at most that long.  It can pull the mean
 * down, but does not raise it: otherwise a sleep that is too long would keep its own length up.
 */
void polled_pace_found(struct polled_pace *p, uint64_t now)
{
	uint64_t took = now - p->sent;

	/* Where sleepers are woken late there are no naps to learn from; some day one is tried. */
	p->late_ns -= p->late_ns / LATE_WEIGHT;
	if (!p->alone || took >= POLLED_PATIENCE_NS || (p->slept && took > p->mean_ns))
		return;
	p->mean_ns = p->mean_ns ? mean_of(p->mean_ns, took) : took;
}

/* --- the ring --- */

static int enable(struct polled *p)
{
	static const uint8_t ops[] = {IORING_OP_READ, IORING_OP_READ_FIXED};
	static const uint8_t registers[] = {IORING_REGISTER_BUFFERS, IORING_UNREGISTER_FILES};

	return restrict_enable(&p->u, &(struct restrict_lists){ops, ARRAY_SIZE(ops), registers,
							       ARRAY_SIZE(registers)});
}

int polled_init(struct polled *p, int fd)
{
	struct io_uring_params params = {.flags = IORING_SETUP_IOPOLL | IORING_SETUP_R_DISABLED};
	int r;

	memset(p, 0, sizeof(*p));
	r = io_uring_queue_init_params(POLLED_MAX, &p->u, &params);
	if (r < 0)
		return r;
	r = io_uring_register_files(&p->u, &fd, 1);
	if (r == 0)
		r = enable(p);
	if (r < 0) {
		io_uring_queue_exit(&p->u);
		return r;
	}
	/* By default a sleep may take 50 us longer than asked for, half of a drive's read. */
	prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS, 0, 0, 0);
	p->open = true;
	return 0;
}

void polled_deinit(struct polled *p)
{
	if (p->open) {
		/* As in ring_deinit(): the store is let go here and now. */
		io_uring_unregister_files(&p->u);
		io_uring_queue_exit(&p->u);
	}
	memset(p, 0, sizeof(*p));
}

int polled_set_buffer(struct polled *p, void *base, size_t len)
{
	struct iovec iov = {.iov_base = base, .iov_len = len};

	return io_uring_register_buffers(&p->u, &iov, 1);
}

bool polled_read(struct polled *p, struct ring_op *op, void *buf, unsigned len, uint64_t off,
		 bool fixed, bool nap)
{
	struct io_uring_sqe *sqe;

	if (!p->open || p->inflight == POLLED_MAX)
		return false;
	sqe = io_uring_get_sqe(&p->u);
	if (!sqe)
		return false;
	io_uring_prep_rw(fixed ? IORING_OP_READ_FIXED : IORING_OP_READ, sqe, STORE_FILE, buf, len,
			 off);
	sqe->flags |= IOSQE_FIXED_FILE;
	io_uring_sqe_set_data(sqe, op);
	p->inflight++;
	polled_pace_sent(&p->pace, now_ns(), p->inflight == 1, nap);
	/* Should the kernel be short of memory for it, polled_reap() tries again. */
	io_uring_submit(&p->u);
	return true;
}

unsigned polled_reap(struct polled *p)
{
	struct io_uring_cqe *cqe;
	struct ring_op *op;
	int32_t res;

	if (p->inflight == 0)
		return 0;
	if (io_uring_sq_ready(&p->u))
		io_uring_submit(&p->u);
	/* To peek at an empty completion queue of such a ring is one system call, one look. */
	if (io_uring_peek_cqe(&p->u, &cqe) < 0) {
		polled_pace_missed(&p->pace);
		return 0;
	}
	op = io_uring_cqe_get_data(cqe);
	res = cqe->res;
	/* Seen before it is handled: done() may send the next. */
	io_uring_cqe_seen(&p->u, cqe);
	p->inflight--;
	polled_pace_found(&p->pace, now_ns());
	op->done(op, res, 0);
	return 1;
}

/* --- what can be polled --- */

/* What the queue of the device under @fd says: 1, 0, or -errno if there is no telling. */
static int queue_polls(int fd)
{
	/* A partition's directory lies in that of its disk, which has the queue. */
	static const char *const forms[] = {"/sys/dev/block/%u:%u/queue/io_poll",
					    "/sys/dev/block/%u:%u/../queue/io_poll"};
	char path[64], line[16];
	struct stat st;
	dev_t dev;
	int r = -ENOENT;

	if (fstat(fd, &st) < 0)
		return -errno;
	dev = S_ISBLK(st.st_mode) ? st.st_rdev : st.st_dev;
	for (size_t i = 0; i < ARRAY_SIZE(forms) && r == -ENOENT; i++) {
		snprintf(path, sizeof(path), forms[i], major(dev), minor(dev));
		r = textfile_read_line(path, line, sizeof(line));
	}
	return r < 0 ? r : line[0] != '0';
}

/* Reads until an answer other than "again" is there. */
static int read_once(struct polled *p, void *page)
{
	const struct timespec pause = {.tv_nsec = PROBE_PAUSE_NS};
	struct ring_answer answer;
	uint64_t start = now_ns();

	do {
		ring_answer_init(&answer);
		if (!polled_read(p, &answer.op, page, PROBE_BYTES, 0, false, false))
			return -EBUSY;
		while (polled_reap(p) == 0) {
			if (now_ns() - start >= PROBE_NS)
				return -ETIMEDOUT;
			nanosleep(&pause, NULL);
		}
	} while (answer.res == -EAGAIN && now_ns() - start < PROBE_NS);
	if (answer.res < 0)
		return answer.res;
	return answer.res == (int32_t)PROBE_BYTES ? 0 : -EIO;
}

/*
 * The queue is asked first, because kernels before 6.12 or so take a polled read for a queue that
 * can't, and complete it by an interrupt: it would look as if it worked.
 */
static int probe(int fd, const char **ret_why)
{
	void *page = aligned_alloc(PROBE_BYTES, PROBE_BYTES);
	struct polled p;
	int r;

	*ret_why = "its drive has no queue for that (queue/io_poll is 0)";
	r = queue_polls(fd);
	if (r == 0 || !page) {
		free(page);
		return page ? -EOPNOTSUPP : -ENOMEM;
	}
	*ret_why = NULL;
	r = polled_init(&p, fd);
	if (r == 0) {
		r = read_once(&p, page);
		/* The kernel polls on for what the ring leaves behind. */
		polled_deinit(&p);
	}
	if (r != -ETIMEDOUT) /* then the page is still the drive's */
		free(page);
	return r;
}

int polled_probe(int fd, const char *path, bool wanted)
{
	const char *why;
	int r = probe(fd, &why);

	if (r == 0) {
		log_info("store %s: reads can be polled", path);
		return 0;
	}
	if (wanted)
		log_warn(
			"[store] poll: reads of %s can't be polled: %s; they wait for interrupts; for "
			"an NVMe drive start the kernel with nvme.poll_queues=2 or so, else set poll = "
			"off",
			path, why ? why : strerror(-r));
	return r == -ETIMEDOUT ? r : -EOPNOTSUPP;
}

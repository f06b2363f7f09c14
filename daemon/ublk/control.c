// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/ublk/control.h"
#include "common/log.h"
#include "common/thread.h"
#include "common/util.h"
#include "daemon/store/restrict.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <liburing.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A removal that is stuck and one more command are still below half a minute. */
#define COMMAND_NS 10000000000ull
/*
 * Up to 6.15 the kernel notices a death with all tags of a queue busy by the requests' time-out, 30
 * s.
 */
#define RECOVERY_NS	45000000000ull
#define AFTER_STUCK_NS	3000000000ull
#define GONE_NS		2000000000ull /* for the last reference to a deleted device */
#define GONE_PAUSE_NS	10000000
#define CONTROL_ENTRIES 4u

struct ublk_control {
	int fd;
	struct io_uring ring;
	uint64_t sequence; /* of the last command; tells its completion from those given up */
	uint64_t adding;   /* of an ADD_DEV that was given up, 0: none */
	unsigned late;	   /* commands that were given up and have not come back */
	bool added;	   /* that ADD_DEV has made a device */
	bool encoded;
	bool encoding_known;
	bool stuck; /* a command was given up */
	/* What commands point to; the kernel's while one is under way. */
	union {
		struct ublk_dev_info info;
		struct ublk_params params;
		cpu_set_t cpus;
		uint64_t features;
	} payload;
};

static const char *command_name(enum ublk_ctrl_nr nr)
{
	switch (nr) {
	case UBLK_CTRL_GET_QUEUE_AFFINITY:
		return "GET_QUEUE_AFFINITY";
	case UBLK_CTRL_GET_DEV_INFO:
		return "GET_DEV_INFO";
	case UBLK_CTRL_ADD_DEV:
		return "ADD_DEV";
	case UBLK_CTRL_DEL_DEV:
		return "DEL_DEV";
	case UBLK_CTRL_START_DEV:
		return "START_DEV";
	case UBLK_CTRL_STOP_DEV:
		return "STOP_DEV";
	case UBLK_CTRL_SET_PARAMS:
		return "SET_PARAMS";
	case UBLK_CTRL_START_USER_RECOVERY:
		return "START_USER_RECOVERY";
	case UBLK_CTRL_END_USER_RECOVERY:
		return "END_USER_RECOVERY";
	case UBLK_CTRL_GET_FEATURES:
		return "GET_FEATURES";
	case UBLK_CTRL_DEL_DEV_ASYNC:
		return "DEL_DEV_ASYNC";
	}
	return "?";
}

static void queue_command(struct ublk_control *c, enum ublk_ctrl_nr nr,
			  const struct ublk_ctrl_cmd *cmd)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&c->ring);

	z_assert(sqe); /* one at a time, and a submit takes it over */
	io_uring_prep_rw(IORING_OP_URING_CMD, sqe, c->fd, NULL, 0, 0);
	sqe->cmd_op = ublk_ctrl_op(nr, c->encoded);
	/* The entry has 128 bytes in this ring, of which the type shows 64. */
	memcpy((void *)((uintptr_t)sqe + offsetof(struct io_uring_sqe, cmd)), cmd, sizeof(*cmd));
	io_uring_sqe_set_data64(sqe, ++c->sequence);
}

static void came_late(struct ublk_control *c, uint64_t sequence, int res)
{
	c->late--;
	if (sequence == c->adding && res >= 0)
		c->added = true;
}

/* The answer to the command sent last, into *ret; negative if there was none. */
static int wait_answer(struct ublk_control *c, uint64_t timeout_ns, int *ret)
{
	uint64_t end = now_ns() + timeout_ns;

	while (true) {
		uint64_t now = now_ns();
		uint64_t left = now < end ? end - now : 0;
		struct __kernel_timespec ts = {.tv_sec = (int64_t)(left / 1000000000u),
					       .tv_nsec = (long long)(left % 1000000000u)};
		struct io_uring_cqe *cqe;
		uint64_t sequence;
		int r;

		/* Also when it is late: this thread may have slept longer than the kernel did. */
		r = io_uring_wait_cqe_timeout(&c->ring, &cqe, &ts);
		if (r == -ETIME && left == 0)
			return -ETIMEDOUT;
		if (r == -ETIME || r == -EINTR)
			continue;
		if (r < 0)
			return r;
		sequence = io_uring_cqe_get_data64(cqe);
		*ret = cqe->res;
		io_uring_cqe_seen(&c->ring, cqe);
		if (sequence == c->sequence)
			return 0;
		came_late(c, sequence, *ret);
	}
}

/* Whatever keeps the answer away, the command and its payload are still the kernel's. */
static void give_up(struct ublk_control *c, enum ublk_ctrl_nr nr, uint32_t id, int why)
{
	c->stuck = true;
	c->late++;
	if (nr == UBLK_CTRL_ADD_DEV)
		c->adding = c->sequence;
	log_err("ublk: %s for device %" PRId32 " is given up: %s; the kernel's log may say what "
		"holds it",
		command_name(nr), (int32_t)id,
		why == -ETIMEDOUT ? "it was not answered in time" : strerror(-why));
}

/* @len bytes of the payload go along. */
static int command_within(struct ublk_control *c, uint64_t timeout_ns, enum ublk_ctrl_nr nr,
			  uint32_t id, size_t len, uint64_t data)
{
	struct ublk_ctrl_cmd cmd = {
		.dev_id = id,
		.queue_id = UINT16_MAX,
		.len = (uint16_t)len,
		.addr = len ? (uint64_t)(uintptr_t)&c->payload : 0,
		.data = {data},
	};
	int answer, r;

	/* The payload is still the other one's. */
	if (c->stuck && len)
		return -ETIMEDOUT;
	queue_command(c, nr, &cmd);
	r = io_uring_submit(&c->ring);
	if (r >= 0)
		r = wait_answer(c, c->stuck ? AFTER_STUCK_NS : timeout_ns, &answer);
	if (r == 0)
		return answer;
	give_up(c, nr, id, r);
	return r;
}

static int command(struct ublk_control *c, enum ublk_ctrl_nr nr, uint32_t id, size_t len,
		   uint64_t data)
{
	return command_within(c, COMMAND_NS, nr, id, len, data);
}

static int logged(int r, enum ublk_ctrl_nr nr, uint32_t id)
{
	if (r < 0 && r != -ETIMEDOUT)
		log_err("ublk: %s for device %" PRId32 " failed: %s", command_name(nr), (int32_t)id,
			strerror(-r));
	return r;
}

static int make_ring(struct ublk_control *c)
{
	static const uint8_t ops[] = {IORING_OP_URING_CMD};
	struct io_uring_params p = {.flags = IORING_SETUP_SQE128 | IORING_SETUP_R_DISABLED};
	int r = io_uring_queue_init_params(CONTROL_ENTRIES, &c->ring, &p);

	if (r < 0)
		return r;
	r = restrict_enable(&c->ring, &(struct restrict_lists){ops, ARRAY_SIZE(ops), NULL, 0});
	if (r < 0)
		io_uring_queue_exit(&c->ring);
	return r;
}

int ublk_control_open(struct ublk_control **ret)
{
	struct ublk_control *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return -ENOMEM;
	c->fd = open(UBLK_CONTROL_PATH, O_RDWR | O_CLOEXEC);
	if (c->fd < 0) {
		r = -errno;
		log_err("ublk: cannot open " UBLK_CONTROL_PATH
			": %s; the module ublk_drv must be loaded, and zswapd run as root",
			strerror(-r));
		free(c);
		return r;
	}
	r = make_ring(c);
	if (r < 0) {
		log_err("ublk: cannot set up a ring for commands: %s", strerror(-r));
		close_fd(c->fd);
		free(c);
		return r;
	}
	*ret = c;
	return 0;
}

bool ublk_control_encoded(const struct ublk_control *c)
{
	return c->encoded;
}

/*
 * Kernels since 6.5 can be asked; 6.4 knows encoded opcodes and not this question; those before
 * know numbers only.  Neither says so in a way that tells the two apart, so the first command is
 * tried both ways.
 */
static int probe_encoding(struct ublk_control *c)
{
	int r;

	if (c->encoding_known)
		return 0;
	c->encoded = true;
	r = command(c, UBLK_CTRL_GET_FEATURES, 0, sizeof(c->payload.features), 0);
	if (r == -ETIMEDOUT)
		return r;
	c->encoding_known = r >= 0;
	return 0;
}

/* Like command(), for those that may be the first; @info goes along. */
static int first_command(struct ublk_control *c, enum ublk_ctrl_nr nr, uint32_t id,
			 const struct ublk_dev_info *info)
{
	int r = probe_encoding(c), first;

	if (r < 0)
		return r;
	c->payload.info = *info;
	r = command(c, nr, id, sizeof(*info), 0);
	if (c->encoding_known || r >= 0 || r == -ETIMEDOUT) {
		c->encoding_known |= r >= 0;
		return r;
	}
	first = r;
	c->encoded = false;
	c->payload.info = *info;
	r = command(c, nr, id, sizeof(*info), 0);
	c->encoding_known = r >= 0;
	if (r != -EOPNOTSUPP)
		return r;
	/* A kernel that does not know the numbers meant what it said the first time. */
	c->encoded = true;
	return first;
}

int ublk_add(struct ublk_control *c, struct ublk_dev_info *info)
{
	int r = first_command(c, UBLK_CTRL_ADD_DEV, info->dev_id, info);

	if (r < 0) {
		if (r == -EACCES)
			log_err("ublk: there are as many ublk devices as the module's parameter "
				"ublks_max allows; raise it or remove one");
		else if (r == -EEXIST)
			log_err("ublk: device number %" PRIu32 " is taken", info->dev_id);
		else
			logged(r, UBLK_CTRL_ADD_DEV, info->dev_id);
		return r;
	}
	*info = c->payload.info;
	return 0;
}

int ublk_info(struct ublk_control *c, uint32_t id, struct ublk_dev_info *ret)
{
	int r = first_command(c, UBLK_CTRL_GET_DEV_INFO, id, &(struct ublk_dev_info){0});

	/* Kernels differ in how they say that there is none. */
	if (r == -EINVAL)
		r = -ENODEV;
	if (r < 0)
		return r == -ENODEV ? r : logged(r, UBLK_CTRL_GET_DEV_INFO, id);
	*ret = c->payload.info;
	return 0;
}

int ublk_set_params(struct ublk_control *c, uint32_t id, const struct ublk_params *params)
{
	c->payload.params = *params;
	return logged(command(c, UBLK_CTRL_SET_PARAMS, id, sizeof(c->payload.params), 0),
		      UBLK_CTRL_SET_PARAMS, id);
}

int ublk_queue_cpus(struct ublk_control *c, uint32_t id, unsigned q, cpu_set_t *ret)
{
	int r;

	CPU_ZERO(&c->payload.cpus);
	r = command(c, UBLK_CTRL_GET_QUEUE_AFFINITY, id, sizeof(c->payload.cpus), q);
	if (r < 0)
		return r;
	if (CPU_COUNT(&c->payload.cpus) == 0)
		return -ENODATA;
	*ret = c->payload.cpus;
	return 0;
}

int ublk_start(struct ublk_control *c, uint32_t id)
{
	/* Since 6.17 the driver insists on the process that has /dev/ublkcN open. */
	return logged(command(c, UBLK_CTRL_START_DEV, id, 0, (uint64_t)getpid()),
		      UBLK_CTRL_START_DEV, id);
}

int ublk_stop(struct ublk_control *c, uint32_t id)
{
	return logged(command(c, UBLK_CTRL_STOP_DEV, id, 0, 0), UBLK_CTRL_STOP_DEV, id);
}

static bool gone(struct ublk_control *c, uint32_t id)
{
	const struct timespec pause = {.tv_nsec = GONE_PAUSE_NS};
	uint64_t give_up = now_ns() + GONE_NS;
	struct ublk_dev_info info;

	while (ublk_info(c, id, &info) == 0) {
		if (now_ns() >= give_up)
			return false;
		nanosleep(&pause, NULL);
	}
	return true;
}

/*
 * By DEL_DEV_ASYNC where there is one: DEL_DEV waits until nobody has the device open any more, and
 * on older kernels keeps everybody else from making ublk devices meanwhile.
 */
int ublk_delete(struct ublk_control *c, uint32_t id)
{
	int r = -EOPNOTSUPP;

	if (c->encoded)
		r = command(c, UBLK_CTRL_DEL_DEV_ASYNC, id, 0, 0);
	if (r == 0)
		return c->stuck || gone(c, id) ? 0 : -EBUSY;
	if (r != -EOPNOTSUPP && r != -UBLK_ENOTSUPP)
		return logged(r, UBLK_CTRL_DEL_DEV_ASYNC, id);
	return logged(command(c, UBLK_CTRL_DEL_DEV, id, 0, 0), UBLK_CTRL_DEL_DEV, id);
}

static void release(struct ublk_control *c)
{
	io_uring_queue_exit(&c->ring);
	close_fd(c->fd);
	free(c);
}

/* Until all that was given up has come back, which may be never. */
static void *wait_for_late(void *arg)
{
	struct ublk_control *c = arg;
	struct io_uring_cqe *cqe;

	while (c->late > 0) {
		int r = io_uring_wait_cqe(&c->ring, &cqe);

		if (r == -EINTR)
			continue;
		if (r < 0)
			return NULL;
		came_late(c, io_uring_cqe_get_data64(cqe), cqe->res);
		io_uring_cqe_seen(&c->ring, cqe);
	}
	c->stuck = false;
	if (c->added) {
		uint32_t id = c->payload.info.dev_id;

		log_notice("ublk: the kernel has made device %" PRIu32 " after all; it is removed",
			   id);
		ublk_delete(c, id);
	}
	release(c);
	return NULL;
}

/* What the kernel may still touch, and make, needs somebody who looks after it. */
void ublk_control_close(struct ublk_control *c)
{
	pthread_t thread;

	if (!c)
		return;
	if (c->late == 0 && !c->added)
		release(c);
	else if (thread_start(&thread, "late", wait_for_late, c) == 0)
		pthread_detach(thread);
}

int ublk_start_recovery(struct ublk_control *c, uint32_t id)
{
	int r = command_within(c, RECOVERY_NS, UBLK_CTRL_START_USER_RECOVERY, id, 0, 0);

	return r == -EBUSY ? r : logged(r, UBLK_CTRL_START_USER_RECOVERY, id);
}

int ublk_end_recovery(struct ublk_control *c, uint32_t id)
{
	return logged(command(c, UBLK_CTRL_END_USER_RECOVERY, id, 0, (uint64_t)getpid()),
		      UBLK_CTRL_END_USER_RECOVERY, id);
}

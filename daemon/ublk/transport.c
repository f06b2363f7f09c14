// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Making, taking over and taking away the device.
 *
 *	ADD_DEV, SET_PARAMS	/dev/ublkcN is there; only one may open it
 *	threads start		each fetches all tags of its queue
 *	START_DEV		/dev/ublkbN is there; the kernel reads its first blocks meanwhile
 *	STOP_DEV		/dev/ublkbN is gone; the queues serve until this returns
 *	threads end, close	no reference to /dev/ublkcN is left
 *	DEL_DEV			the number is free again
 *
 * The device is made with USER_RECOVERY and USER_RECOVERY_REISSUE: when its server dies, requests
 * wait, those that were under way too, until a successor that has the pages takes it over
 * (START_USER_RECOVERY, threads, END_USER_RECOVERY).
 */
#include "common/log.h"
#include "daemon/transport/blockdev.h"
#include "daemon/ublk/internal.h"
#include "daemon/ublk/transport_ublk.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <time.h>

#define DEVICE_PREFIX	 "/dev/ublkb"
#define QUEUES_DEFAULT	 8u
#define RAM_PER_QUEUE	 (128ull << 20) /* so that a small machine keeps its memory */
#define NODE_NS		 10000000000ull /* for udev to let go of /dev/ublkcN */
#define FORSAKEN_NS	 12000000000ull
#define RECOVERY_NS	 45000000000ull
#define RECOVERY_SAY_NS	 1000000000ull
#define CANCELLING_NS	 100000000
#define PAUSE_NS	 2000000
#define SECTORS_PER_SLOT (SLOT_BYTES / SECTOR_BYTES)

static const char *unusable(void)
{
	if (access(UBLK_CONTROL_PATH, R_OK | W_OK) < 0)
		return UBLK_CONTROL_PATH " can't be opened (is the module ublk_drv loaded?)";
	return NULL;
}

/* One for each CPU, as long as buffers and threads stay a small part of the machine. */
static unsigned default_queues(void)
{
	unsigned n = QUEUES_DEFAULT;
	struct sysinfo si;
	cpu_set_t cpus;

	if (sched_getaffinity(0, sizeof(cpus), &cpus) == 0)
		n = (unsigned)min_u64(n, (unsigned)CPU_COUNT(&cpus));
	if (sysinfo(&si) == 0)
		n = (unsigned)min_u64(n, (uint64_t)si.totalram * si.mem_unit / RAM_PER_QUEUE);
	return n ? n : 1;
}

static void pause_a_moment(void)
{
	const struct timespec pause = {.tv_nsec = PAUSE_NS};

	nanosleep(&pause, NULL);
}

bool ublk_device_number(const char *path, uint32_t *ret)
{
	size_t len = strlen(DEVICE_PREFIX);
	unsigned long n;
	char *end;

	if (strncmp(path, DEVICE_PREFIX, len) != 0 || path[len] < '0' || path[len] > '9')
		return false;
	n = strtoul(path + len, &end, 10);
	if (*end || n >= INT32_MAX)
		return false;
	*ret = (uint32_t)n;
	return true;
}

/*
 * True once the device's server is dead, which the kernel may take some seconds to notice (6.6 and
 * before look every five).
 */
static bool forsaken(struct ublk_control *c, uint32_t id)
{
	uint64_t give_up = now_ns() + FORSAKEN_NS;
	struct ublk_dev_info info;

	while (ublk_info(c, id, &info) == 0 && (info.flags & UBLK_F_USER_RECOVERY)) {
		if (info.state == UBLK_DEV_QUIESCED)
			return true;
		if (now_ns() >= give_up)
			return false;
		pause_a_moment();
	}
	return false;
}

/*
 * A device whose server was killed waits for ever, and all that was swapped to it.  Nobody can
 * bring its pages back once a daemon starts under its name without them, so those who wait get an
 * error instead.  We hold the name, so its server is dead, whatever its state.  By a control of its
 * own: a removal can get stuck, and must not keep the new device from being made.
 */
static void remove_former(const struct transport_options *o)
{
	struct ublk_dev_info info;
	struct ublk_control *c;

	if (ublk_control_open(&c) < 0)
		return;
	if (ublk_mark_find(c, o, &info)) {
		log_warn("ublk: " DEVICE_PREFIX "%" PRIu32
			 " was left behind by a daemon that died; "
			 "it is removed, and what was swapped to it is lost",
			 info.dev_id);
		if (info.state != UBLK_DEV_DEAD && forsaken(c, info.dev_id))
			ublk_stop(c, info.dev_id);
		ublk_delete(c, info.dev_id);
	}
	ublk_control_close(c);
}

static int add(struct ublk_transport *t)
{
	int r;

	t->info = (struct ublk_dev_info){
		.nr_hw_queues = (uint16_t)t->o.nqueues,
		.queue_depth = UBLK_DEPTH,
		.max_io_buf_bytes = UBLK_IO_MAX,
		.dev_id = UINT32_MAX,
		.server_pid = getpid(),
		.server_flags = ublk_mark_new(&t->o),
		.flags = UBLK_F_USER_RECOVERY | UBLK_F_USER_RECOVERY_REISSUE |
			 UBLK_F_CMD_IOCTL_ENCODE | UBLK_F_NO_AUTO_PART_SCAN,
	};
	r = ublk_add(t->control, &t->info);
	if (r < 0)
		return r;
	t->added = true;
	snprintf(t->device, sizeof(t->device), DEVICE_PREFIX "%" PRIu32, t->info.dev_id);
	if (t->info.queue_depth == UBLK_DEPTH && t->info.max_io_buf_bytes >= UBLK_IO_MAX &&
	    t->info.nr_hw_queues <= t->o.nqueues)
		return 0;
	log_err("ublk: the kernel made a device of %u queues of %u requests of %u bytes, asked for "
		"were %u, %u, %u",
		t->info.nr_hw_queues, t->info.queue_depth, t->info.max_io_buf_bytes, t->o.nqueues,
		UBLK_DEPTH, UBLK_IO_MAX);
	return -EOPNOTSUPP;
}

static int set_params(struct ublk_transport *t)
{
	const uint32_t discard = UBLK_DISCARD_MAX / SECTOR_BYTES;
	const struct ublk_params params = {
		.len = sizeof(params),
		.types = UBLK_PARAM_BASIC | UBLK_PARAM_DISCARD,
		.basic = {.logical_bs_shift = 12,
			  .physical_bs_shift = 12,
			  .io_opt_shift = 12,
			  .io_min_shift = 12,
			  .max_sectors = UBLK_IO_MAX / SECTOR_BYTES,
			  .dev_sectors = t->o.device_bytes / SECTOR_BYTES},
		.discard = {.discard_granularity = SLOT_BYTES,
			    .max_discard_sectors = discard,
			    .max_write_zeroes_sectors = discard,
			    .max_discard_segments = 1},
	};

	return ublk_set_params(t->control, t->info.dev_id, &params);
}

/* Only one may have it open, and udev may be looking at it. */
static int open_node(struct ublk_transport *t)
{
	uint64_t give_up = now_ns() + NODE_NS;
	char path[TRANSPORT_DEVICE_MAX];

	snprintf(path, sizeof(path), "/dev/ublkc%" PRIu32, t->info.dev_id);
	while (true) {
		int r;

		t->fd = open(path, O_RDWR | O_CLOEXEC);
		if (t->fd >= 0)
			return 0;
		r = -errno;
		if ((r != -EBUSY && r != -ENOENT && r != -ENXIO) || now_ns() >= give_up) {
			log_err("ublk: cannot open %s: %s%s", path, strerror(-r),
				r == -EBUSY ? "; another process holds it (udev, or an ublk server)"
					    : "");
			return r;
		}
		pause_a_moment();
	}
}

static int start_threads(struct ublk_transport *t)
{
	t->queues = calloc(t->info.nr_hw_queues, sizeof(*t->queues));
	if (!t->queues)
		return -ENOMEM;
	for (; t->nthreads < t->info.nr_hw_queues; t->nthreads++) {
		int r = ublk_queue_start(&t->queues[t->nthreads], t, t->nthreads);

		if (r < 0)
			return r;
	}
	return 0;
}

/* The device is open: the threads fetch.  release: after t->fd was stored. */
static void go(struct ublk_transport *t)
{
	atomic_store_explicit(&t->go, true, memory_order_release);
	for (unsigned i = 0; i < t->nthreads; i++)
		data_thread_wake(&t->queues[i].base);
}

static int make(struct ublk_transport *t)
{
	int r;

	remove_former(&t->o);
	r = add(t);
	if (r == 0)
		r = set_params(t);
	if (r == 0)
		r = start_threads(t);
	if (r == 0)
		r = open_node(t);
	if (r < 0)
		return r;
	go(t);
	t->started = true; /* maybe half way */
	r = ublk_start(t->control, t->info.dev_id);
	if (r < 0)
		return r;
	blockdev_tune(t->device + strlen("/dev/"), UBLK_REQUESTS_MAX);
	return 0;
}

/* Waits until the kernel has cleared the former server away. */
static int start_recovery(struct ublk_transport *t)
{
	struct ublk_dev_info info;
	uint64_t start = now_ns();
	bool said = false;
	int r;

	while ((r = ublk_start_recovery(t->control, t->info.dev_id)) == -EBUSY) {
		uint64_t waited = now_ns() - start;

		if (waited >= RECOVERY_NS) {
			log_err("ublk: %s: its former server (pid %" PRId32 ") has not gone within "
				"%llu s; if that process still runs, end it",
				t->device, t->info.server_pid, RECOVERY_NS / 1000000000u);
			return -ETIMEDOUT;
		}
		if (waited >= RECOVERY_SAY_NS && !said) {
			log_notice("ublk: %s: waiting for the kernel to let its former server go",
				   t->device);
			said = true;
		}
		pause_a_moment();
	}
	/*
	 * -EINVAL with the device still waiting: a recovery was started before and broken off; the
	 * kernel is ready for the next step.
	 */
	if (r == -EINVAL && ublk_info(t->control, t->info.dev_id, &info) == 0 &&
	    info.state == UBLK_DEV_QUIESCED)
		return 0;
	return r;
}

static int check_takeover(const struct ublk_transport *t)
{
	const uint64_t needed = UBLK_F_USER_RECOVERY | UBLK_F_USER_RECOVERY_REISSUE;

	if ((t->info.flags & needed) != needed) {
		log_err("ublk: %s was not made to be taken over; swap off and start afresh",
			t->device);
		return -ENODEV;
	}
	if (t->info.queue_depth > UBLK_DEPTH || t->info.max_io_buf_bytes > UBLK_IO_MAX ||
	    t->info.nr_hw_queues > t->o.nqueues) {
		log_err("ublk: %s has %u queues of %u requests of %u bytes; this version serves at "
			"most %u, %u, %u here; start the version that made it",
			t->device, t->info.nr_hw_queues, t->info.queue_depth,
			t->info.max_io_buf_bytes, t->o.nqueues, UBLK_DEPTH, UBLK_IO_MAX);
		return -EINVAL;
	}
	return 0;
}

/*
 * Kernels before 6.16 cancel a dead server's commands once more after they have declared the device
 * quiesced, in a work item of their own (ublk_quiesce_work_fn), and take whatever commands are
 * there by then: those of a successor that was faster would be completed twice.  Nobody tells when
 * that is over; it is a matter of a kernel thread being scheduled once.
 */
static void let_cancelling_end(void)
{
	const struct timespec pause = {.tv_nsec = CANCELLING_NS};
	unsigned major, minor;
	struct utsname u;

	if (uname(&u) == 0 && sscanf(u.release, "%u.%u", &major, &minor) == 2 &&
	    (major > 6 || (major == 6 && minor >= 16)))
		return;
	nanosleep(&pause, NULL);
}

/* It is ours to remove. */
static void own(struct ublk_transport *t)
{
	t->added = true;
	t->started = true;
}

/* While the former server may still serve: looks at the device, and leaves it alone. */
static int adopt(struct ublk_transport *t)
{
	uint32_t id;
	int r;

	snprintf(t->device, sizeof(t->device), "%s", t->o.takeover);
	if (!ublk_device_number(t->device, &id)) {
		log_err("ublk: %s is no ublk device, which alone can be taken over", t->device);
		return -ENODEV;
	}
	r = ublk_info(t->control, id, &t->info);
	if (r == 0)
		r = check_takeover(t);
	return r < 0 ? r : start_threads(t);
}

/*
 * All that may fail or take memory has been done: kernels before 6.16 can't start a recovery again
 * that was broken off with part of the queues fetched.
 */
static int resume(struct ublk_transport *t)
{
	int r = start_recovery(t);

	if (r == 0)
		r = open_node(t);
	if (r < 0)
		return r;
	let_cancelling_end();
	go(t);
	r = ublk_end_recovery(t->control, t->info.dev_id);
	if (r < 0)
		return r;
	own(t);
	return 0;
}

/*
 * Also for a device that was made half way.  One that could not be taken over is left as it is, for
 * another try; one of ours goes.  Returns -EBUSY if somebody still has it open.
 */
static int tear_down(struct ublk_transport *t)
{
	int r = 0;

	atomic_store(&t->closing, true);
	if (t->started)
		ublk_stop(t->control, t->info.dev_id);
	atomic_store(&t->stop, true);
	for (unsigned i = 0; i < t->nthreads; i++)
		data_thread_wake(&t->queues[i].base);
	for (unsigned i = 0; i < t->nthreads; i++)
		data_thread_join(&t->queues[i].base);
	close_fd(t->fd);
	if (t->added)
		r = ublk_delete(t->control, t->info.dev_id);
	if (t->added && (r == 0 || r == -EBUSY))
		ublk_mark_remove(&t->o);
	ublk_control_close(t->control);
	close_fd(t->failed_fd);
	free(t->queues);
	free(t);
	return r;
}

static struct ublk_transport *downcast(const struct transport *t)
{
	return container_of(t, struct ublk_transport, base);
}

/* A transport, and with @how its device. */
static int new_transport(struct transport **ret, const struct transport_options *o,
			 int (*how)(struct ublk_transport *t))
{
	struct ublk_transport *t = calloc(1, sizeof(*t));
	int r;

	if (!t)
		return -ENOMEM;
	t->base.ops = &transport_ublk;
	t->o = *o;
	t->fd = -1;
	t->failed_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r = t->failed_fd < 0 ? -errno : ublk_control_open(&t->control);
	if (r == 0)
		r = how(t);
	if (r < 0) {
		tear_down(t);
		return r;
	}
	*ret = &t->base;
	return 0;
}

static int ublk_open(struct transport **ret, const struct transport_options *o)
{
	return new_transport(ret, o, make);
}

static int ublk_prepare(struct transport **ret, const struct transport_options *o)
{
	return new_transport(ret, o, adopt);
}

static int ublk_resume(struct transport *base)
{
	struct ublk_transport *t = downcast(base);
	int r = resume(t);

	if (r < 0)
		tear_down(t);
	return r;
}

static int ublk_close(struct transport *base)
{
	struct ublk_transport *t = downcast(base);
	char device[TRANSPORT_DEVICE_MAX];
	int r;

	memcpy(device, t->device, sizeof(device));
	r = tear_down(t);
	if (r == -EBUSY)
		log_warn("ublk: %s is still open somewhere; it is taken away all the same", device);
	return r;
}

static const char *ublk_device(const struct transport *t)
{
	return downcast(t)->device;
}

static int ublk_failed_fd(const struct transport *t)
{
	return downcast(t)->failed_fd;
}

static const char *const modules[] = {"ublk_drv", NULL};

/* Queues of a device that is to be taken over. */
static int queues_of(const char *device, const struct transport_kept *kept)
{
	struct ublk_control *c;
	struct ublk_dev_info info;
	uint32_t id;
	int r;

	(void)kept; /* the driver keeps the device by itself */
	if (!ublk_device_number(device, &id))
		return -ENODEV;
	r = ublk_control_open(&c);
	if (r < 0)
		return r;
	r = ublk_info(c, id, &info);
	ublk_control_close(c);
	return r < 0 ? r : info.nr_hw_queues;
}

/* Whether the device is beyond being taken over. */
static bool ublk_gone(const struct transport *base)
{
	struct ublk_transport *t = downcast(base);
	struct ublk_dev_info info;
	int r = ublk_info(t->control, t->info.dev_id, &info);

	return r == -ENODEV || (r == 0 && info.state == UBLK_DEV_DEAD);
}

const struct transport_ops transport_ublk = {
	.name = "ublk",
	.modules = modules,
	.unusable = unusable,
	.default_queues = default_queues,
	.queues_of = queues_of,
	.gone = ublk_gone,
	.open = ublk_open,
	.prepare = ublk_prepare,
	.resume = ublk_resume,
	.close = ublk_close,
	.device = ublk_device,
	.failed_fd = ublk_failed_fd,
};

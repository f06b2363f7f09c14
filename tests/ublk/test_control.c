// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The commands against a driver that is made up here: what is submitted is looked at instead, and
 * answered in the ring.  It can be of any age, refuse, and not answer; time passes as it likes.
 */
#include "common/util.h"
#include "daemon/ublk/control.h"
#include "tests/lib/stderr.h"

#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SENT_MAX 64
#define NRS	 0x20

/* --- the driver --- */

static struct {
	bool encoded;  /* knows encoded opcodes: 6.4 */
	bool features; /* can be asked: 6.5 */
	bool plain;    /* knows plain numbers */
	int results[NRS];
	bool silent[NRS]; /* by number: never answers */
	uint32_t next_id;
	bool leaves; /* GET_DEV_INFO finds nothing once DEL_DEV was sent */
	bool deleted;
	uint64_t step_ns; /* that passes with each look at the clock */
	/* by whichever thread sends */
	_Atomic uint64_t now;
	_Atomic unsigned nsent;
	struct {
		uint32_t op;
		struct ublk_ctrl_cmd cmd;
		uint64_t sequence;
		struct io_uring *ring;
	} sent[SENT_MAX];
} driver;

uint64_t __wrap_now_ns(void);
int __wrap_io_uring_submit(struct io_uring *ring);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...);
int __real_open(const char *path, int flags, ...);

uint64_t __wrap_now_ns(void)
{
	return atomic_fetch_add(&driver.now, driver.step_ns) + driver.step_ns;
}

int __wrap_open(const char *path, int flags, ...)
{
	return __real_open(strcmp(path, UBLK_CONTROL_PATH) == 0 ? "/dev/null" : path,
			   flags & ~O_CREAT);
}

int __wrap_open64(const char *path, int flags, ...)
{
	return __wrap_open(path, flags);
}

/* As the kernel does it. */
static void post(struct io_uring *ring, uint64_t sequence, int res)
{
	unsigned tail = *ring->cq.ktail;

	ring->cq.cqes[tail & *ring->cq.kring_mask] =
		(struct io_uring_cqe){.user_data = sequence, .res = res};
	io_uring_smp_store_release(ring->cq.ktail, tail + 1);
}

static int carry_out(uint32_t op, const struct ublk_ctrl_cmd *cmd)
{
	unsigned nr = op & 0xff;
	bool encoded = op > 0xff;

	if (encoded ? !driver.encoded : !driver.plain)
		return encoded ? -EINVAL : -EOPNOTSUPP;
	if (nr == UBLK_CTRL_GET_FEATURES)
		return driver.features ? 0 : -EOPNOTSUPP;
	if (driver.results[nr] < 0)
		return driver.results[nr];
	switch (nr) {
	case UBLK_CTRL_ADD_DEV:
		((struct ublk_dev_info *)(uintptr_t)cmd->addr)->dev_id = driver.next_id;
		break;
	case UBLK_CTRL_DEL_DEV:
	case UBLK_CTRL_DEL_DEV_ASYNC:
		driver.deleted = driver.leaves;
		break;
	case UBLK_CTRL_GET_DEV_INFO:
		if (driver.deleted)
			return -ENODEV;
		((struct ublk_dev_info *)(uintptr_t)cmd->addr)->queue_depth = 99;
		break;
	case UBLK_CTRL_GET_QUEUE_AFFINITY:
		CPU_SET(cmd->data[0] + 1, (cpu_set_t *)(uintptr_t)cmd->addr);
		break;
	}
	return driver.results[nr];
}

int __wrap_io_uring_submit(struct io_uring *ring)
{
	struct io_uring_sqe *sqe;
	unsigned i = atomic_load(&driver.nsent);
	uint32_t op;

	/* One entry, of 128 bytes, which is taken back. */
	ring->sq.sqe_tail--;
	sqe = &ring->sq.sqes[(ring->sq.sqe_tail & *ring->sq.kring_mask) << 1];
	assert_int_equal(sqe->opcode, IORING_OP_URING_CMD);
	assert_true(i < SENT_MAX);
	op = sqe->cmd_op;
	memcpy(&driver.sent[i].cmd, sqe->cmd, sizeof(struct ublk_ctrl_cmd));
	driver.sent[i].op = op;
	driver.sent[i].sequence = sqe->user_data;
	driver.sent[i].ring = ring;
	if (!driver.silent[op & 0xff])
		post(ring, sqe->user_data, carry_out(op, &driver.sent[i].cmd));
	atomic_store(&driver.nsent, i + 1);
	return 1;
}

/* --- tests --- */

static struct ublk_control *control;
static struct stderr_capture cap;

static int setup(void **state)
{
	memset(&driver, 0, sizeof(driver));
	driver.encoded = driver.features = driver.plain = true;
	driver.next_id = 3;
	driver.step_ns = 1000;
	assert_int_equal(ublk_control_open(&control), 0);
	return 0;
}

static int teardown(void **state)
{
	ublk_control_close(control);
	return 0;
}

static void assert_sent(unsigned i, uint32_t op, uint32_t id)
{
	assert_true(i < atomic_load(&driver.nsent));
	assert_int_equal(driver.sent[i].op, op);
	assert_int_equal(driver.sent[i].cmd.dev_id, id);
	assert_int_equal(driver.sent[i].cmd.queue_id, UINT16_MAX);
}

static struct ublk_dev_info asked(uint32_t id)
{
	return (struct ublk_dev_info){.nr_hw_queues = 2, .dev_id = id};
}

static int add(uint32_t id)
{
	struct ublk_dev_info info = asked(id);
	int r;

	stderr_capture_begin(&cap);
	r = ublk_add(control, &info);
	stderr_capture_end(&cap);
	if (r == 0) {
		assert_int_equal(info.dev_id, driver.next_id);
		assert_string_equal(cap.text, "");
	}
	return r;
}

static void a_kernel_of_today(void **state)
{
	assert_int_equal(add(UINT32_MAX), 0);
	assert_true(ublk_control_encoded(control));
	assert_sent(0, 0x80207513, 0);
	assert_sent(1, 0xc0207504, UINT32_MAX);
	assert_int_equal(driver.sent[1].cmd.len, 64);
	assert_int_equal(ublk_set_params(control, 3, &(struct ublk_params){0}), 0);
	assert_sent(2, 0xc0207508, 3);
	assert_int_equal(driver.sent[2].cmd.len, sizeof(struct ublk_params));
	assert_int_equal(ublk_start(control, 3), 0);
	assert_sent(3, 0xc0207506, 3);
	assert_int_equal(driver.sent[3].cmd.data[0], getpid());
	assert_int_equal(ublk_stop(control, 3), 0);
	assert_sent(4, 0xc0207507, 3);
	driver.leaves = true;
	assert_int_equal(ublk_delete(control, 3), 0);
	assert_sent(5, 0x80207514, 3);
	assert_sent(6, 0x80207502, 3);
	assert_int_equal(driver.nsent, 7);
}

static void a_kernel_of_numbers(void **state)
{
	driver.encoded = driver.features = false;
	assert_int_equal(add(5), 0);
	assert_false(ublk_control_encoded(control));
	assert_sent(0, 0x80207513, 0);
	assert_sent(1, 0xc0207504, 5);
	assert_sent(2, 0x04, 5);
	assert_int_equal(ublk_start(control, 3), 0);
	assert_sent(3, 0x06, 3);
	assert_int_equal(ublk_delete(control, 3), 0);
	assert_sent(4, 0x05, 3);
	assert_int_equal(driver.nsent, 5);
}

/* 6.4: encoded opcodes, but the question whether is not known. */
static void a_kernel_in_between(void **state)
{
	driver.features = false;
	assert_int_equal(add(UINT32_MAX), 0);
	assert_true(ublk_control_encoded(control));
	driver.results[UBLK_CTRL_DEL_DEV_ASYNC] = -EOPNOTSUPP;
	assert_int_equal(ublk_delete(control, 3), 0);
	assert_sent(2, 0x80207514, 3);
	assert_sent(3, 0xc0207505, 3);
}

static void too_many_devices(void **state)
{
	driver.results[UBLK_CTRL_ADD_DEV] = -EACCES;
	assert_int_equal(add(UINT32_MAX), -EACCES);
	assert_non_null(
		strstr(cap.text, "as many ublk devices as the module's parameter ublks_max"));
	assert_non_null(strstr(cap.text, "raise it or remove one"));
}

static void too_many_devices_on_old_kernels(void **state)
{
	driver.results[UBLK_CTRL_ADD_DEV] = -EACCES;
	driver.features = driver.plain = false;
	assert_int_equal(add(UINT32_MAX), -EACCES);
	assert_non_null(strstr(cap.text, "ublks_max"));
	driver.plain = true;
	driver.encoded = false;
	assert_int_equal(add(UINT32_MAX), -EACCES);
	assert_non_null(strstr(cap.text, "ublks_max"));
}

static void a_number_that_is_taken(void **state)
{
	driver.results[UBLK_CTRL_ADD_DEV] = -EEXIST;
	assert_int_equal(add(7), -EEXIST);
	assert_non_null(strstr(cap.text, "device number 7 is taken"));
}

static void other_errors_are_named(void **state)
{
	driver.results[UBLK_CTRL_ADD_DEV] = -ENOMEM;
	assert_int_equal(add(UINT32_MAX), -ENOMEM);
	assert_non_null(strstr(cap.text, "ADD_DEV"));
	assert_non_null(strstr(cap.text, strerror(ENOMEM)));
	driver.results[UBLK_CTRL_START_DEV] = -EINTR;
	stderr_capture_begin(&cap);
	assert_int_equal(ublk_start(control, 12), -EINTR);
	stderr_capture_end(&cap);
	assert_non_null(strstr(cap.text, "START_DEV for device 12 failed"));
}

static void no_such_device(void **state)
{
	struct ublk_dev_info info = {.queue_depth = 1};

	assert_int_equal(ublk_info(control, 3, &info), 0);
	assert_int_equal(info.queue_depth, 99);
	stderr_capture_begin(&cap);
	driver.results[UBLK_CTRL_GET_DEV_INFO] = -ENODEV;
	assert_int_equal(ublk_info(control, 3, &info), -ENODEV);
	driver.results[UBLK_CTRL_GET_DEV_INFO] = -EINVAL;
	assert_int_equal(ublk_info(control, 3, &info), -ENODEV);
	stderr_capture_end(&cap);
	assert_string_equal(cap.text, "");
}

static void busy_is_for_the_caller(void **state)
{
	assert_int_equal(add(UINT32_MAX), 0);
	stderr_capture_begin(&cap);
	driver.results[UBLK_CTRL_START_USER_RECOVERY] = -EBUSY;
	assert_int_equal(ublk_start_recovery(control, 3), -EBUSY);
	/* Deleted, but somebody has it open. */
	driver.step_ns = 100000000;
	assert_int_equal(ublk_delete(control, 3), -EBUSY);
	stderr_capture_end(&cap);
	assert_string_equal(cap.text, "");
}

static void cpus_of_a_queue(void **state)
{
	cpu_set_t cpus;

	assert_int_equal(ublk_queue_cpus(control, 3, 4, &cpus), 0);
	assert_int_equal(CPU_COUNT(&cpus), 1);
	assert_true(CPU_ISSET(5, &cpus));
	driver.results[UBLK_CTRL_GET_QUEUE_AFFINITY] = -EINVAL;
	assert_int_equal(ublk_queue_cpus(control, 3, 4, &cpus), -EINVAL);
}

static void no_answer(void **state)
{
	struct ublk_dev_info info;
	unsigned sent;

	driver.silent[UBLK_CTRL_STOP_DEV] = true;
	assert_int_equal(add(UINT32_MAX), 0);
	driver.step_ns = 20000000000ull;
	stderr_capture_begin(&cap);
	assert_int_equal(ublk_stop(control, 3), -ETIMEDOUT);
	stderr_capture_end(&cap);
	assert_non_null(
		strstr(cap.text, "STOP_DEV for device 3 is given up: it was not answered in time"));
	/* What needs the memory that the kernel may still write to is not sent any more. */
	sent = driver.nsent;
	assert_int_equal(ublk_info(control, 3, &info), -ETIMEDOUT);
	assert_int_equal(driver.nsent, sent);
	/* The former answer is not taken for this one's. */
	driver.step_ns = 1000;
	driver.results[UBLK_CTRL_START_DEV] = -EEXIST;
	post(driver.sent[sent - 1].ring, driver.sent[sent - 1].sequence, 0);
	stderr_capture_begin(&cap);
	assert_int_equal(ublk_start(control, 3), -EEXIST);
	stderr_capture_end(&cap);
}

/* The driver makes the device when nobody counts on it any more. */
static void a_late_device_is_removed(void **state)
{
	const struct timespec pause = {.tv_nsec = 10000000};
	unsigned sent;

	driver.silent[UBLK_CTRL_ADD_DEV] = true;
	driver.leaves = true;
	driver.step_ns = 20000000000ull;
	assert_int_equal(add(UINT32_MAX), -ETIMEDOUT);
	assert_non_null(strstr(cap.text, "ADD_DEV for device -1 is given up"));
	driver.step_ns = 1000;
	sent = driver.nsent;
	((struct ublk_dev_info *)(uintptr_t)driver.sent[sent - 1].cmd.addr)->dev_id = 8;
	post(driver.sent[sent - 1].ring, driver.sent[sent - 1].sequence, 0);
	stderr_capture_begin(&cap);
	ublk_control_close(control);
	control = NULL;
	for (int i = 0; i < 1000 && atomic_load(&driver.nsent) < sent + 2; i++)
		nanosleep(&pause, NULL);
	stderr_capture_end(&cap);
	assert_non_null(strstr(cap.text, "has made device 8 after all"));
	assert_sent(sent, 0x80207514, 8);
	assert_sent(sent + 1, 0x80207502, 8);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(a_kernel_of_today),
		T(a_kernel_of_numbers),
		T(a_kernel_in_between),
		T(too_many_devices),
		T(no_such_device),
		T(too_many_devices_on_old_kernels),
		T(a_number_that_is_taken),
		T(other_errors_are_named),
		T(busy_is_for_the_caller),
		T(cpus_of_a_queue),
		T(no_answer),
		T(a_late_device_is_removed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

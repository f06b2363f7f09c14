// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The pace is plain arithmetic.  Drives that can be polled are few, so what is tested of the rest
 * is that those that can't are found out and said so, and that a wait for a read that does not come
 * neither lasts longer than asked for, nor misses what else comes, nor takes a whole CPU.
 */
#include "common/util.h"
#include "daemon/store/ring.h"
#include "tests/lib/scratch.h"
#include "tests/lib/stderr.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>

#include <cmocka.h>

#define US 1000u
#define MS 1000000u

static struct scratch scratch;

static int setup(void **state)
{
	scratch_init(&scratch);
	return 0;
}

static int teardown(void **state)
{
	scratch_deinit(&scratch);
	return 0;
}

/* --- pace --- */

/* Reads of @ns each, found @late after that, in an endless look; returns the time at the end. */
static uint64_t looked_for(struct polled_pace *p, uint64_t now, uint64_t ns, unsigned times)
{
	for (unsigned i = 0; i < times; i++, now += ns) {
		polled_pace_sent(p, now, true, false);
		assert_int_equal(polled_pace_sleep(p, now + 1), 0);
		polled_pace_missed(p);
		polled_pace_found(p, now + ns);
	}
	return now;
}

static void no_sleep_without_a_nap(void **state)
{
	struct polled_pace p = {0};

	looked_for(&p, 5 * MS, 100 * US, 50);
	assert_int_equal(p.mean_ns, 100 * US);
}

static void a_nap_lasts_half_of_the_mean(void **state)
{
	struct polled_pace p = {0};
	uint64_t now = 5 * MS;

	/* Nothing is known yet. */
	polled_pace_sent(&p, now, true, true);
	assert_int_equal(polled_pace_sleep(&p, now), 0);
	now = looked_for(&p, now, 100 * US, 10);
	polled_pace_sent(&p, now, true, true);
	assert_int_equal(polled_pace_sleep(&p, now), 50 * US);
	/* The time since it was sent counts, also when something has ended the nap early. */
	assert_int_equal(polled_pace_sleep(&p, now + 20 * US), 30 * US);
	/* What is left is not worth a sleep. */
	assert_int_equal(polled_pace_sleep(&p, now + 50 * US - POLLED_NAP_MIN_NS + 1), 0);
	assert_int_equal(polled_pace_sleep(&p, now + 50 * US), 0);
	assert_int_equal(polled_pace_sleep(&p, now + 99 * US), 0);
}

static void the_mean_follows(void **state)
{
	struct polled_pace p = {0};
	uint64_t now = looked_for(&p, 5 * MS, 100 * US, 10);

	now = looked_for(&p, now, 300 * US, 1);
	assert_in_range(p.mean_ns, 101 * US, 150 * US);
	now = looked_for(&p, now, 300 * US, 60);
	assert_in_range(p.mean_ns, 295 * US, 300 * US);
	looked_for(&p, now, 80 * US, 60);
	assert_in_range(p.mean_ns, 80 * US, 85 * US);
}

/*
 * The system wakes the thread 150 us late, so that a read of 100 us is always there at the first
 * look, and would have been there earlier.
 */
static void late_wakings_end_the_naps(void **state)
{
	struct polled_pace p = {0};
	uint64_t now = looked_for(&p, 5 * MS, 100 * US, 10), naps = 0;

	for (unsigned i = 0; i < 1000; i++, now += MS) {
		uint64_t nap;

		polled_pace_sent(&p, now, true, true);
		nap = polled_pace_sleep(&p, now);
		if (nap == 0) {
			polled_pace_missed(&p);
			polled_pace_found(&p, now + 100 * US);
			continue;
		}
		naps++;
		polled_pace_slept(&p, nap, nap + 150 * US);
		polled_pace_found(&p, now + nap + 150 * US);
	}
	/* One is tried now and then. */
	assert_in_range(naps, 10, 80);
	assert_int_equal(p.mean_ns, 100 * US);
}

/* With 20 us it is worth it; a sleep that a request has ended says nothing about that. */
static void lateness_shortens_the_nap(void **state)
{
	struct polled_pace p = {0};
	uint64_t now = looked_for(&p, 5 * MS, 100 * US, 10);

	polled_pace_sent(&p, now, true, true);
	polled_pace_slept(&p, 50 * US, 10 * US);
	assert_int_equal(polled_pace_sleep(&p, now + 10 * US), 40 * US);
	for (unsigned i = 0; i < 50; i++, now += 100 * US) {
		polled_pace_sent(&p, now, true, true);
		polled_pace_slept(&p, 40 * US, 60 * US);
		polled_pace_missed(&p);
		polled_pace_found(&p, now + 100 * US);
	}
	assert_int_equal(p.mean_ns, 100 * US);
	polled_pace_sent(&p, now, true, true);
	assert_in_range(polled_pace_sleep(&p, now), 30 * US, 33 * US);
	/* One that is out of all proportion does not weigh more than the rest together. */
	polled_pace_slept(&p, 30 * US, 10 * MS);
	polled_pace_found(&p, now + 10 * MS);
	polled_pace_sent(&p, now, true, true);
	assert_in_range(polled_pace_sleep(&p, now), 20 * US, 30 * US);
}

/* Always found at the first look, so nothing but an upper bound is known of each read. */
static void a_faster_drive_is_noticed(void **state)
{
	struct polled_pace p = {0};
	uint64_t now = looked_for(&p, 5 * MS, 400 * US, 10);

	for (unsigned i = 0; i < 100; i++, now += MS) {
		uint64_t nap;

		polled_pace_sent(&p, now, true, true);
		nap = polled_pace_sleep(&p, now);
		if (nap)
			polled_pace_slept(&p, nap, nap + 1 * US);
		if (nap < 50 * US)
			polled_pace_missed(&p);
		polled_pace_found(&p, now + max_u64(nap + 1 * US, 50 * US));
	}
	assert_in_range(p.mean_ns, 45 * US, 110 * US);
}

/* Of several in flight nobody knows which one took how long. */
static void only_reads_alone_count(void **state)
{
	struct polled_pace p = {0};
	uint64_t now = looked_for(&p, 5 * MS, 100 * US, 10);

	polled_pace_sent(&p, now, true, true);
	polled_pace_sent(&p, now + 10 * US, false, true);
	polled_pace_found(&p, now + 900 * US);
	polled_pace_found(&p, now + 950 * US);
	assert_int_equal(p.mean_ns, 100 * US);
}

static void patience_ends(void **state)
{
	struct polled_pace p = {0};
	uint64_t now = looked_for(&p, 5 * MS, 100 * US, 10);

	for (int nap = 0; nap < 2; nap++) {
		polled_pace_sent(&p, now, true, nap);
		polled_pace_missed(&p);
		assert_int_equal(polled_pace_sleep(&p, now + POLLED_PATIENCE_NS - 1), 0);
		assert_int_equal(polled_pace_sleep(&p, now + POLLED_PATIENCE_NS), POLLED_REST_NS);
		assert_int_equal(polled_pace_sleep(&p, now + 1000 * POLLED_PATIENCE_NS),
				 POLLED_REST_NS);
		/* Such a one says nothing about the others. */
		polled_pace_found(&p, now + POLLED_PATIENCE_NS);
		assert_int_equal(p.mean_ns, 100 * US);
	}
}

/* --- waiting --- */

static uint64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* A ring whose polled read never comes. */
static void open_waiting(struct ring *r)
{
	int fd = open(scratch_file(&scratch, "store", MIB(1)), O_RDWR | O_DIRECT | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(ring_init(r, 8, fd, 0), 0);
	assert_int_equal(ring_open_polled(r, fd, NULL, 0), 0);
	close(fd); /* the rings have it */
	assert_false(ring_is_polling(r));
	r->polled.inflight = 1;
	polled_pace_sent(&r->polled.pace, now_ns(), true, true);
	assert_true(ring_is_polling(r));
}

static void close_waiting(struct ring *r)
{
	r->polled.inflight = 0;
	ring_close_polled(r);
	ring_deinit(r);
}

static void a_wait_has_its_bound(void **state)
{
	uint64_t start, cpu;
	struct ring r;

	open_waiting(&r);
	for (unsigned timeout = 0; timeout <= MS; timeout += MS / 2) {
		start = now_ns();
		assert_int_equal(ring_wait(&r, timeout), 0);
		assert_true(now_ns() - start >= timeout);
	}
	assert_true(now_ns() - start < 1000 * MS);
	cpu = cpu_ns();
	start = now_ns();
	assert_int_equal(ring_wait(&r, 300 * MS), 0);
	assert_in_range(now_ns() - start, 300 * MS, 2000 * MS);
	assert_true(cpu_ns() - cpu < (now_ns() - start) / 2);
	close_waiting(&r);
}

struct event {
	struct ring_op op;
	int fd;
	unsigned delay_ms;
	bool came;
};

static void event_came(struct ring_op *op, int32_t res, uint32_t flags)
{
	container_of(op, struct event, op)->came = true;
}

static void *send_event(void *arg)
{
	struct event *e = arg;
	struct timespec delay = {.tv_nsec = (long)e->delay_ms * MS};

	nanosleep(&delay, NULL);
	eventfd_write(e->fd, 1);
	return NULL;
}

/* A request, that is: at once while the thread looks, and when it rests between looks. */
static void another_arrival_ends_the_wait(void **state)
{
	static const unsigned delays[] = {0, 1, 50};
	pthread_t thread;
	struct ring r;

	open_waiting(&r);
	for (unsigned i = 0; i < ARRAY_SIZE(delays); i++) {
		struct event e = {.op.done = event_came,
				  .fd = eventfd(0, EFD_CLOEXEC),
				  .delay_ms = delays[i]};
		uint64_t start = now_ns();

		assert_true(e.fd >= 0);
		polled_pace_sent(&r.polled.pace, start, true, false);
		ring_poll_in(&r, &e.op, e.fd);
		assert_int_equal(pthread_create(&thread, NULL, send_event, &e), 0);
		assert_int_equal(ring_wait(&r, 20000ull * MS), 1);
		assert_true(e.came);
		assert_in_range(now_ns() - start, delays[i] * MS, 10000ull * MS);
		pthread_join(thread, NULL);
		close(e.fd);
	}
	assert_int_equal(r.inflight, 0);
	close_waiting(&r);
}

/* --- what can be polled --- */

/* io_poll of the device that @fd is or lies on: 1, 0, or -1 if there is no such device. */
static int queue_says(int fd)
{
	char path[96];
	struct stat st;
	int digit = -1;
	FILE *f;

	assert_int_equal(fstat(fd, &st), 0);
	for (int i = 0; i < 2 && digit < 0; i++) {
		dev_t dev = S_ISBLK(st.st_mode) ? st.st_rdev : st.st_dev;

		snprintf(path, sizeof(path), "/sys/dev/block/%u:%u%s/queue/io_poll", major(dev),
			 minor(dev), i ? "/.." : "");
		f = fopen(path, "re");
		if (!f)
			continue;
		digit = fgetc(f) - '0';
		fclose(f);
	}
	return digit;
}

static void assert_unpollable(int fd, const char *path, const char *reason)
{
	struct stderr_capture cap;
	int r;

	stderr_capture_begin(&cap);
	r = polled_probe(fd, path, true);
	stderr_capture_end(&cap);
	assert_int_equal(r, -EOPNOTSUPP);
	/* The option, the thing, the reason, the way out. */
	assert_non_null(strstr(cap.text, "<4>zswapd: [store] poll: "));
	assert_non_null(strstr(cap.text, path));
	assert_non_null(strstr(cap.text, reason));
	assert_non_null(strstr(cap.text, "nvme.poll_queues"));
	assert_non_null(strstr(cap.text, "poll = off"));
	stderr_capture_begin(&cap);
	r = polled_probe(fd, path, false);
	stderr_capture_end(&cap);
	assert_int_equal(r, -EOPNOTSUPP);
	assert_string_equal(cap.text, "");
}

static void a_file_polls_if_its_drive_does(void **state)
{
	const char *path = scratch_file(&scratch, "store", MIB(1));
	int fd = open(path, O_RDWR | O_DIRECT | O_CLOEXEC);
	uint64_t start = now_ns();

	assert_true(fd >= 0);
	switch (queue_says(fd)) {
	case 1:
		assert_int_equal(polled_probe(fd, path, true), 0);
		break;
	case 0:
		assert_unpollable(fd, path, "queue/io_poll is 0");
		break;
	default:
		print_message("skipped: no device is under %s\n", path);
		skip();
	}
	assert_true(now_ns() - start < 5000ull * MS);
	close(fd);
}

static void a_loop_device_can_not_be_polled(void **state)
{
	const char *why = scratch_no_loops(), *dev;
	int fd;

	if (why) {
		print_message("skipped: %s\n", why);
		skip();
	}
	dev = scratch_loop(&scratch, "disk", MIB(16));
	fd = open(dev, O_RDWR | O_DIRECT | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_unpollable(fd, dev, "queue/io_poll is 0");
	close(fd);
}

/* No device is under it, so there is no queue to ask: the read itself has to tell. */
static void memory_can_not_be_polled(void **state)
{
	char page[4096] = {0};
	int fd = memfd_create("store", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(queue_says(fd), -1);
	assert_int_equal(pwrite(fd, page, sizeof(page), 0), sizeof(page));
	assert_unpollable(fd, "memfd", "not supported");
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_sleep_without_a_nap),
		cmocka_unit_test(a_nap_lasts_half_of_the_mean),
		cmocka_unit_test(the_mean_follows),
		cmocka_unit_test(late_wakings_end_the_naps),
		cmocka_unit_test(lateness_shortens_the_nap),
		cmocka_unit_test(a_faster_drive_is_noticed),
		cmocka_unit_test(only_reads_alone_count),
		cmocka_unit_test(patience_ends),
		cmocka_unit_test_setup_teardown(a_wait_has_its_bound, setup, teardown),
		cmocka_unit_test_setup_teardown(another_arrival_ends_the_wait, setup, teardown),
		cmocka_unit_test_setup_teardown(a_file_polls_if_its_drive_does, setup, teardown),
		cmocka_unit_test_setup_teardown(a_loop_device_can_not_be_polled, setup, teardown),
		cmocka_unit_test(memory_can_not_be_polled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

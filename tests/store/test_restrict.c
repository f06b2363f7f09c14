// SPDX-License-Identifier: GPL-2.0-or-later
/* A ring does what it is for, and nothing else that io_uring can. */
#include "common/util.h"
#include "daemon/store/restrict.h"
#include "daemon/store/ring.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cmocka.h>

static int result(struct io_uring *u)
{
	struct io_uring_cqe *cqe;
	int r;

	assert_int_equal(io_uring_submit_and_wait(u, 1), 1);
	assert_int_equal(io_uring_peek_cqe(u, &cqe), 0);
	r = cqe->res;
	io_uring_cqe_seen(u, cqe);
	return r;
}

static struct io_uring_sqe *entry(struct io_uring *u)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(u);

	assert_non_null(sqe);
	return sqe;
}

static void only_what_it_is_for(void **state)
{
	cleanup_free char *page = aligned_alloc(4096, 4096);
	cleanup_fd int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	struct ring_answer answer;
	struct iovec iov = {page, 4096};
	struct statx sx;
	struct ring r;
	int fds[1] = {fd};

	assert_true(fd >= 0 && page);
	assert_int_equal(ring_init(&r, 8, fd, 2), 0);

	io_uring_prep_openat(entry(&r.u), AT_FDCWD, "/etc/passwd", O_RDONLY, 0);
	assert_int_equal(result(&r.u), -EACCES);
	io_uring_prep_socket(entry(&r.u), AF_INET, SOCK_STREAM, 0, 0);
	assert_int_equal(result(&r.u), -EACCES);
	io_uring_prep_statx(entry(&r.u), AT_FDCWD, "/", 0, STATX_TYPE, &sx);
	assert_int_equal(result(&r.u), -EACCES);
	io_uring_prep_unlinkat(entry(&r.u), AT_FDCWD, "/nowhere", 0);
	assert_int_equal(result(&r.u), -EACCES);
	io_uring_prep_readv(entry(&r.u), fd, &iov, 1, 0);
	assert_int_equal(result(&r.u), -EACCES);
	assert_int_equal(io_uring_register_files(&r.u, fds, 1), -EACCES);
	assert_int_equal(io_uring_register_eventfd(&r.u, fd), -EACCES);

	/* What it is for goes on, buffers that come later too. */
	memset(page, 1, 4096);
	ring_answer_init(&answer);
	ring_store_read(&r, &answer.op, page, 4096, 0, -1);
	assert_true(ring_await(&r, &answer, 1000000000));
	assert_int_equal(answer.res, 4096);
	assert_int_equal(page[4095], 0);
	assert_int_equal(ring_set_buffer(&r, 1, page, 4096), 0);
	memset(page, 1, 4096);
	ring_answer_init(&answer);
	ring_store_read(&r, &answer.op, page, 4096, 0, 1);
	assert_true(ring_await(&r, &answer, 1000000000));
	assert_int_equal(answer.res, 4096);
	assert_int_equal(page[0], 0);
	ring_deinit(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_what_it_is_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

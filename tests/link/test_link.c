// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/util.h"
#include "daemon/link/link.h"
#include "tests/lib/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cmocka.h>

static void messages(void **state)
{
	struct link_message m;
	struct stat a, b;
	int fds[2], fd;

	assert_int_equal(link_pair(fds), 0);
	assert_int_equal(link_receive(fds[1], &m), -EAGAIN);
	fd = memfd_create("x", MFD_CLOEXEC);
	assert_int_equal(link_send(fds[0], LINK_KEEP, "name", fd), 0);
	assert_int_equal(link_send(fds[0], LINK_GO, NULL, -1), 0);

	assert_int_equal(link_receive(fds[1], &m), 1);
	assert_int_equal(m.type, LINK_KEEP);
	assert_string_equal(m.text, "name");
	assert_int_equal(fstat(fd, &a), 0);
	assert_int_equal(fstat(m.fd, &b), 0);
	assert_int_equal(a.st_ino, b.st_ino);
	assert_true(fcntl(m.fd, F_GETFD) & FD_CLOEXEC);
	close(m.fd);
	close(fd);

	assert_int_equal(link_receive(fds[1], &m), 1);
	assert_int_equal(m.type, LINK_GO);
	assert_string_equal(m.text, "");
	assert_int_equal(m.fd, -1);
	close(fds[0]);
	close(fds[1]);
}

/* What was said before is heard first. */
static void the_end(void **state)
{
	struct link_message m;
	int fds[2];

	assert_int_equal(link_pair(fds), 0);
	link_send(fds[0], LINK_NOTIFY, "last", -1);
	close(fds[0]);
	assert_int_equal(link_receive(fds[1], &m), 1);
	assert_int_equal(link_receive(fds[1], &m), 0);
	assert_int_equal(link_send(fds[1], LINK_GO, NULL, -1), -EPIPE);
	close(fds[1]);
}

static void lengths(void **state)
{
	char text[LINK_TEXT_MAX + 1];
	struct link_message m;
	int fds[2];

	assert_int_equal(link_pair(fds), 0);
	memset(text, 't', sizeof(text));
	text[LINK_TEXT_MAX] = '\0';
	assert_int_equal(link_send(fds[0], LINK_NOTIFY, text, -1), -EMSGSIZE);
	text[LINK_TEXT_MAX - 1] = '\0';
	assert_int_equal(link_send(fds[0], LINK_NOTIFY, text, -1), 0);
	assert_int_equal(link_receive(fds[1], &m), 1);
	assert_string_equal(m.text, text);
	/* Not ours: too short, and longer than any of ours. */
	send(fds[0], "x", 1, 0);
	assert_int_equal(link_receive(fds[1], &m), -EBADMSG);
	send(fds[0], text, sizeof(text), 0);
	send(fds[0], text, sizeof(text), 0);
	close(fds[0]);
	while (link_receive(fds[1], &m) != 0)
		;
	close(fds[1]);
}

/* A peer that does not listen holds nobody up. */
static void a_full_queue(void **state)
{
	int fds[2], r, n = 0;

	assert_int_equal(link_pair(fds), 0);
	while ((r = link_send(fds[0], LINK_NOTIFY, "READY=1", -1)) == 0)
		n++;
	assert_int_equal(r, -EAGAIN);
	assert_true(n >= 32);
	close(fds[0]);
	close(fds[1]);
}

static void calls(void **state)
{
	struct scratch scratch;
	struct link_message m;
	struct stat st;
	int listener, caller, answer;
	const char *path;

	scratch_init(&scratch);
	path = scratch_path(&scratch, "sock");
	assert_int_equal(link_connect(path), -ENOENT);
	listener = link_listen(path);
	assert_true(listener >= 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(link_accept(listener), -EAGAIN);
	caller = link_connect(path);
	assert_true(caller >= 0);
	answer = link_accept(listener);
	if (getuid() != 0) {
		assert_int_equal(answer, -EPERM);
	} else {
		assert_true(answer >= 0);
		assert_int_equal(link_send(answer, LINK_HELLO, "1 2", -1), 0);
		assert_int_equal(link_receive(caller, &m), 1);
		assert_int_equal(m.type, LINK_HELLO);
		close(answer);
	}
	close(caller);
	close(listener);
	assert_int_equal(link_connect(path), -ECONNREFUSED);
	/* One that is left lying about is in nobody's way. */
	listener = link_listen(path);
	assert_true(listener >= 0);
	close(listener);
	scratch_deinit(&scratch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages), cmocka_unit_test(the_end),
		cmocka_unit_test(lengths),  cmocka_unit_test(a_full_queue),
		cmocka_unit_test(calls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

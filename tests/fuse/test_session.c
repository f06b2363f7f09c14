// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Requests and answers, with a socket of packets in the place of /dev/fuse: what the test sends is
 * what a kernel would, what it receives is what a kernel would get.
 */
#include "fuse/internal.h"
#include "tests/lib/stderr.h"

#include <errno.h>
#include <linux/falloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define AGAIN	     (UINT64_C(1) << 63) /* in the name of a request that was sent once before */
#define DEVICE_BYTES MIB(4)

static struct fuse_transport t;
static struct fuse_thread thread;
static struct fuse_io io;
static uint8_t *buffer;
static int kernel; /* its end */

static void open_one(void)
{
	int ends[2];

	assert_int_equal(
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
	kernel = ends[0];
	t.fd = ends[1];
	assert_int_equal(session_open(&t), 0);
}

static int setup(void **state)
{
	memset(&t, 0, sizeof(t));
	memset(&io, 0, sizeof(io));
	memset(&thread, 0, sizeof(thread));
	t.o.device_bytes = DEVICE_BYTES;
	snprintf(t.device, sizeof(t.device), "/dev/loop77");
	thread.t = &t;
	buffer = aligned_alloc(SLOT_BYTES, SLOT_BYTES + FUSE_IO_MAX);
	io.thread = &thread;
	io.payload = buffer + SLOT_BYTES;
	open_one();
	return 0;
}

static int teardown(void **state)
{
	session_close(&t);
	close(kernel);
	free(buffer);
	return 0;
}

struct answer {
	struct fuse_out_header h;
	uint8_t body[FUSE_IO_MAX];
};

static void assert_answer(struct answer *a, uint64_t unique, int error, size_t body)
{
	assert_int_equal(recv(kernel, a, sizeof(*a), 0), sizeof(a->h) + body);
	assert_int_equal(a->h.len, sizeof(a->h) + body);
	assert_true(a->h.unique == unique);
	assert_int_equal(a->h.error, error);
}

static void assert_silence(void)
{
	char byte;

	assert_int_equal(recv(kernel, &byte, 1, 0), -1);
	assert_int_equal(errno, EAGAIN);
}

static const struct fuse_init_in init = {
	.major = FUSE_KERNEL_VERSION,
	.minor = FUSE_KERNEL_MINOR_VERSION,
	.max_readahead = 131072,
	.flags =
		FUSE_ASYNC_READ | FUSE_ASYNC_DIO | FUSE_BIG_WRITES | FUSE_MAX_PAGES | FUSE_INIT_EXT,
	.flags2 = 1u << 7,
};

static bool send_request(uint32_t opcode, uint64_t node, uint64_t unique, const void *body,
			 size_t len)
{
	uint8_t *at = io.payload - FUSE_WRITE_HEADER;
	const struct fuse_in_header h = {.len = (uint32_t)(sizeof(h) + len),
					 .opcode = opcode,
					 .unique = unique,
					 .nodeid = node};

	memcpy(at, &h, sizeof(h));
	memcpy(at + sizeof(h), body, len);
	return fuse_request_decode(&io, sizeof(h) + len);
}

static void begin_session(void)
{
	static struct answer a;

	assert_false(send_request(FUSE_INIT, 0, 2, &init, sizeof(init)));
	assert_answer(&a, 2, 0, sizeof(struct fuse_init_out));
}

static void names_come_back_as_they_were(void **state)
{
	static const uint64_t names[] = {6, 6 | AGAIN, ~UINT64_C(1)};
	const struct fuse_read_in read_in = {.offset = 3 * SLOT_BYTES, .size = 2 * SLOT_BYTES};
	const struct fuse_fallocate_in punch = {.offset = SLOT_BYTES,
						.length = 5 * SLOT_BYTES,
						.mode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE};
	static struct {
		struct fuse_write_in in;
		uint8_t page[SLOT_BYTES];
	} w = {.in = {.offset = 9 * SLOT_BYTES, .size = SLOT_BYTES}};
	static struct answer a;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		assert_true(send_request(FUSE_READ, FUSE_FILE_NODE, names[i], &read_in,
					 sizeof(read_in)));
		assert_int_equal(io.req.op, ENGINE_READ);
		assert_int_equal(io.req.slot, 3);
		assert_int_equal(io.req.count, 2);
		memset(io.payload, 0x5a, 2 * SLOT_BYTES);
		io.req.done = 2;
		io.req.error = 0;
		fuse_request_answer(&io.req);
		assert_answer(&a, names[i], 0, 2 * SLOT_BYTES);
		assert_int_equal(a.body[2 * SLOT_BYTES - 1], 0x5a);

		assert_true(send_request(FUSE_WRITE, FUSE_FILE_NODE, names[i], &w, sizeof(w)));
		assert_int_equal(io.req.op, ENGINE_WRITE);
		assert_int_equal(io.req.slot, 9);
		io.req.done = 1;
		fuse_request_answer(&io.req);
		assert_answer(&a, names[i], 0, sizeof(struct fuse_write_out));

		assert_true(send_request(FUSE_FALLOCATE, FUSE_FILE_NODE, names[i], &punch,
					 sizeof(punch)));
		assert_int_equal(io.req.op, ENGINE_DISCARD);
		assert_int_equal(io.req.count, 5);
		fuse_request_answer(&io.req);
		assert_answer(&a, names[i], 0, 0);

		io.req.error = -EIO;
		io.req.done = 0;
		assert_true(send_request(FUSE_READ, FUSE_FILE_NODE, names[i], &read_in,
					 sizeof(read_in)));
		fuse_request_answer(&io.req);
		assert_answer(&a, names[i], -EIO, 0);
		assert_false(send_request(FUSE_WRITE, FUSE_FILE_NODE, names[i], &w, sizeof(w) - 1));
		assert_answer(&a, names[i], -EINVAL, 0);
	}
}

static void init_is_noted_once(void **state)
{
	struct fuse_init_in other = init;

	assert_false(t.noted);
	begin_session();
	assert_true(t.noted);
	assert_int_equal(t.note.init_len, sizeof(struct fuse_in_header) + sizeof(init));
	assert_memory_equal(t.note.init + sizeof(struct fuse_in_header), &init, sizeof(init));
	assert_true(note_resends(t.note.init, t.note.init_len));
	other.max_readahead = 1;
	send_request(FUSE_INIT, 0, 4, &other, sizeof(other));
	assert_memory_equal(t.note.init + sizeof(struct fuse_in_header), &init, sizeof(init));
}

/* As a successor does: nothing goes to the kernel, and then all goes on, for requests old and new.
 */
static void a_session_goes_on(void **state)
{
	static const uint64_t names[] = {8, 8 | AGAIN};
	static struct answer a;

	begin_session();
	session_close(&t);
	close(kernel);
	open_one();
	assert_int_equal(session_replay(&t), 0);
	assert_silence();
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const struct fuse_entry_out *e = (const struct fuse_entry_out *)a.body;
		const struct fuse_getattr_in getattr = {0};

		assert_false(send_request(FUSE_LOOKUP, FUSE_ROOT_ID, names[i], FUSE_FILE_NAME,
					  sizeof(FUSE_FILE_NAME)));
		assert_answer(&a, names[i], 0, sizeof(*e));
		assert_int_equal(e->nodeid, FUSE_FILE_NODE);
		assert_false(send_request(FUSE_GETATTR, FUSE_FILE_NODE, names[i], &getattr,
					  sizeof(getattr)));
		assert_answer(&a, names[i], 0, sizeof(struct fuse_attr_out));
		assert_int_equal(((const struct fuse_attr_out *)a.body)->attr.size, DEVICE_BYTES);
	}
	assert_silence();
}

/* One whose INIT this libfuse can't do with. */
static void a_session_that_cannot_go_on(void **state)
{
	struct stderr_capture cap;
	struct fuse_init_in *in =
		(struct fuse_init_in *)(t.note.init + sizeof(struct fuse_in_header));
	int r;

	begin_session();
	session_close(&t);
	close(kernel);
	open_one();
	in->major = 3;
	stderr_capture_begin(&cap);
	r = session_replay(&t);
	stderr_capture_end(&cap);
	assert_int_equal(r, -EPROTO);
	assert_non_null(strstr(cap.text, "/dev/loop77"));
	assert_silence();
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(names_come_back_as_they_were),
		T(init_is_noted_once),
		T(a_session_goes_on),
		T(a_session_that_cannot_go_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/util.h"
#include "fuse/note.h"
#include "tests/lib/stderr.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

static struct fuse_note some_note(void)
{
	struct fuse_note n = {.io_max = 131072, .device_bytes = MIB(7), .init_len = 104};

	memset(n.init, 0xa5, n.init_len);
	return n;
}

/* What was saved, with @edit's bytes at @offset instead. */
static int edited(size_t offset, const void *edit, size_t edit_len, size_t len, int seals)
{
	struct fuse_note n = some_note();
	uint8_t bytes[sizeof(n) + 8] = {0};
	cleanup_fd int saved = -1;
	int fd;

	assert_int_equal(note_save(&n, &saved), 0);
	assert_int_equal(pread(saved, bytes, sizeof(n), 0), sizeof(n));
	memcpy(bytes + offset, edit, edit_len);
	fd = memfd_create("note", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_int_equal(pwrite(fd, bytes, len, 0), len);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static void assert_refused(int fd, const char *said)
{
	struct stderr_capture cap;
	struct fuse_note n = {.device_bytes = 5};
	int r;

	stderr_capture_begin(&cap);
	r = note_load(&n, fd);
	stderr_capture_end(&cap);
	assert_int_equal(r, -EBADMSG);
	assert_int_equal(n.device_bytes, 5); /* untouched */
	if (!strstr(cap.text, said))
		fail_msg("'%s' is not in: %s", said, cap.text);
	close(fd);
}

static void comes_back_as_it_was(void **state)
{
	struct fuse_note n = some_note(), back;
	int fd;

	assert_int_equal(note_save(&n, &fd), 0);
	assert_int_equal(note_load(&back, fd), 0);
	assert_int_equal(back.io_max, n.io_max);
	assert_int_equal(back.device_bytes, n.device_bytes);
	assert_int_equal(back.init_len, n.init_len);
	assert_memory_equal(back.init, n.init, sizeof(n.init));
	close(fd);
}

static void cannot_be_changed(void **state)
{
	struct fuse_note n = some_note();
	int fd;

	assert_int_equal(note_save(&n, &fd), 0);
	assert_int_equal(pwrite(fd, "x", 1, 0), -1);
	assert_int_equal(ftruncate(fd, 0), -1);
	assert_int_equal(ftruncate(fd, 4096), -1);
	assert_true(mmap(NULL, 1, PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED);
	close(fd);
}

static void what_is_no_note(void **state)
{
	const size_t all = sizeof(struct fuse_note);
	const uint32_t version = 99, short_init = 39, long_init = FUSE_NOTE_INIT_MAX + 1;
	struct fuse_note n;
	int fd = edited(0, "", 0, all, SEALS);

	assert_int_equal(note_load(&n, fd), 0); /* the edit alone is no reason */
	close(fd);
	assert_refused(edited(0, "x", 1, all, SEALS), "it is none");
	assert_refused(edited(offsetof(struct fuse_note, version), &version, 4, all, SEALS),
		       "another version wrote it");
	assert_refused(edited(offsetof(struct fuse_note, init_len), &short_init, 4, all, SEALS),
		       "it is damaged");
	assert_refused(edited(offsetof(struct fuse_note, init_len), &long_init, 4, all, SEALS),
		       "it is damaged");
	assert_refused(edited(0, "", 0, all - 1, SEALS), "it has another size");
	assert_refused(edited(0, "", 0, all + 1, SEALS), "it has another size");
	assert_refused(edited(0, "", 0, 0, SEALS), "it has another size");
	assert_refused(edited(0, "", 0, all, SEALS & ~F_SEAL_WRITE), "it is not sealed");
	assert_refused(open("/dev/null", O_RDWR | O_CLOEXEC), "it is not sealed");
}

static void which_kernels_send_again(void **state)
{
	struct {
		struct fuse_in_header h;
		struct fuse_init_in in;
	} init = {.in = {.flags = FUSE_INIT_EXT, .flags2 = 1u << 7}};

	assert_true(note_resends(&init, sizeof(init)));
	assert_false(note_resends(&init, sizeof(init) - 1));
	init.in.flags = 0; /* then the other word means nothing */
	assert_false(note_resends(&init, sizeof(init)));
	init.in.flags = ~0u;
	init.in.flags2 = ~(1u << 7);
	assert_false(note_resends(&init, sizeof(init)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(comes_back_as_it_was),
		cmocka_unit_test(cannot_be_changed),
		cmocka_unit_test(what_is_no_note),
		cmocka_unit_test(which_kernels_send_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/front/front.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define NFRAMES 6u

static uint64_t present_bytes(const struct front *f)
{
	struct stat st;

	assert_int_equal(fstat(f->fd, &st), 0);
	return (uint64_t)st.st_blocks * 512;
}

static void grow_to_the_limit(struct front *f)
{
	bool seen[NFRAMES] = {false};
	uint32_t frame;

	for (uint32_t i = 0; i < NFRAMES; i++) {
		assert_int_equal(front_present(f), i);
		assert_int_equal(present_bytes(f), (uint64_t)i * FRAME_SIZE);
		assert_int_equal(front_grow(f, &frame), 0);
		assert_true(frame < NFRAMES && !seen[frame]);
		seen[frame] = true;
	}
	assert_int_equal(front_grow(f, &frame), -ENOSPC);
}

static void memory_comes_and_goes(void **state)
{
	struct front *f = NULL;

	assert_int_equal(front_new(&f, NFRAMES, -1), 0);
	assert_int_equal(front_get(f, 0), FRAME_NONE);
	grow_to_the_limit(f);
	for (uint32_t i = NFRAMES; i-- > 2;) {
		assert_int_not_equal(front_shrink(f, 2), FRAME_NONE);
		assert_int_equal(present_bytes(f), (uint64_t)i * FRAME_SIZE);
	}
	assert_int_equal(front_shrink(f, 2), FRAME_NONE);
	assert_int_equal(front_present(f), 2);
	assert_int_equal(front_shrink(f, 0) != FRAME_NONE, 1);
	assert_int_equal(front_shrink(f, 0) != FRAME_NONE, 1);
	grow_to_the_limit(f);
	front_free(f);
	front_free(NULL);
}

static void frames_are_apart(void **state)
{
	uint32_t got[NFRAMES];
	struct front *f = NULL;

	assert_int_equal(front_new(&f, NFRAMES, -1), 0);
	grow_to_the_limit(f);
	for (uint32_t i = 0; i < NFRAMES; i++) {
		got[i] = front_get(f, NFRAMES - 1 - i);
		assert_int_not_equal(got[i], FRAME_NONE);
		memset(front_frame(f, got[i]), (int)i + 1, FRAME_SIZE);
	}
	assert_int_equal(front_get(f, 0), FRAME_NONE);
	for (uint32_t i = 0; i < NFRAMES; i++) {
		assert_int_equal(front_frame(f, got[i])[0], i + 1);
		assert_int_equal(front_frame(f, got[i])[FRAME_SIZE - 1], i + 1);
		front_put(f, got[i]);
	}
	front_free(f);
}

/* A frame in use is neither handed out nor given back; the rest of the memory is. */
static void takeover(void **state)
{
	struct front *f = NULL;
	uint32_t used[2], frame;
	int fd;

	assert_int_equal(front_new(&f, NFRAMES, -1), 0);
	grow_to_the_limit(f);
	used[0] = front_get(f, 0);
	front_get(f, 0);
	used[1] = front_get(f, 0);
	memset(front_frame(f, used[0]), 0xaa, FRAME_SIZE);
	memset(front_frame(f, used[1]), 0xbb, FRAME_SIZE);
	fd = dup(f->fd);
	front_free(f);

	assert_int_equal(front_new(&f, NFRAMES + 1, fd), -EBADMSG);
	assert_int_equal(front_new(&f, NFRAMES, fd), 0);
	assert_true(front_claim(f, used[0]));
	assert_true(front_claim(f, used[1]));
	assert_false(front_claim(f, used[0]));
	front_settle(f);
	assert_int_equal(front_present(f), 2);
	assert_int_equal(present_bytes(f), 2 * FRAME_SIZE);
	assert_int_equal(front_get(f, 0), FRAME_NONE);
	for (uint32_t i = 2; i < NFRAMES; i++) {
		assert_int_equal(front_grow(f, &frame), 0);
		assert_int_not_equal(frame, used[0]);
		assert_int_not_equal(frame, used[1]);
		assert_int_equal(front_frame(f, frame)[5], 0);
	}
	assert_int_equal(front_grow(f, &frame), -ENOSPC);
	assert_int_equal(front_frame(f, used[0])[FRAME_SIZE - 1], 0xaa);
	assert_int_equal(front_frame(f, used[1])[0], 0xbb);
	front_free(f);
}

/* Under mlockall(MCL_FUTURE) the limit must not be taken up front. */
static void locked_memory_comes_frame_by_frame(void **state)
{
	struct front *f = NULL;
	uint32_t frame;

	if (mlockall(MCL_FUTURE) < 0)
		skip();
	assert_int_equal(front_new(&f, NFRAMES, -1), 0);
	assert_int_equal(present_bytes(f), 0);
	assert_int_equal(front_grow(f, &frame), 0);
	assert_int_equal(present_bytes(f), FRAME_SIZE);
	assert_int_not_equal(front_shrink(f, 0), FRAME_NONE);
	assert_int_equal(present_bytes(f), 0);
	front_free(f);
	munlockall();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_comes_and_goes),
		cmocka_unit_test(frames_are_apart),
		cmocka_unit_test(takeover),
		cmocka_unit_test(locked_memory_comes_frame_by_frame),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

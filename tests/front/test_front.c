// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/front/front.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define NFRAMES 6u

/* Of one front tier after the other; shared as by processes when a test has two. */
static union {
	struct generations g;
	_Atomic uint32_t words[NFRAMES + 1];
} generations;

static struct front *fresh(void)
{
	struct front *f = NULL;

	memset(&generations, 0, sizeof(generations));
	assert_int_equal(front_new(&f, NFRAMES, -1, &generations.g), 0);
	return f;
}

static uint32_t generation(uint32_t frame)
{
	return generation_load(&generations.g, frame);
}

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
	struct front *f = fresh();

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
	struct front *f = fresh();

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

/* Two frames in use, of which the bytes are known, and the rest free. */
static int left_behind(uint32_t used[2])
{
	struct front *f = fresh();
	int fd;

	grow_to_the_limit(f);
	used[0] = front_get(f, 0);
	front_get(f, 0);
	used[1] = front_get(f, 0);
	memset(front_frame(f, used[0]), 0xaa, FRAME_SIZE);
	memset(front_frame(f, used[1]), 0xbb, FRAME_SIZE);
	fd = dup(f->fd);
	front_free(f);
	return fd;
}

static struct front *taken_over(int fd, const uint32_t used[2], uint32_t limit)
{
	struct front *f = NULL;

	assert_int_equal(front_new(&f, NFRAMES + 1, fd, &generations.g), -EBADMSG);
	assert_int_equal(front_new(&f, NFRAMES, fd, &generations.g), 0);
	assert_true(front_claim(f, used[0]));
	assert_true(front_claim(f, used[1]));
	assert_false(front_claim(f, used[0]));
	front_settle(f, limit);
	return f;
}

/* Each frame is in use, free or absent, and what is counted is there. */
static void assert_settled(struct front *f, const uint32_t used[2], uint32_t free)
{
	bool seen[NFRAMES] = {[0] = false};
	uint32_t frame, present = 2 + free;

	assert_int_equal(front_present(f), present);
	assert_int_equal(present_bytes(f), present * FRAME_SIZE);
	seen[used[0]] = seen[used[1]] = true;
	for (uint32_t i = 0; i < free; i++) {
		frame = front_get(f, 0);
		assert_true(frame < NFRAMES && !seen[frame] && generation(frame));
		seen[frame] = true;
	}
	assert_int_equal(front_get(f, 0), FRAME_NONE);
	for (uint32_t i = present; i < NFRAMES; i++) {
		assert_int_equal(front_grow(f, &frame), 0);
		assert_false(seen[frame]);
		seen[frame] = true;
		assert_int_equal(front_frame(f, frame)[5], 0);
	}
	assert_int_equal(front_grow(f, &frame), -ENOSPC);
	assert_int_equal(front_frame(f, used[0])[FRAME_SIZE - 1], 0xaa);
	assert_int_equal(front_frame(f, used[1])[0], 0xbb);
}

/* What a writer may need next is there already, up to the limit. */
static void takeover_keeps_free_frames(void **state)
{
	for (uint32_t limit = 0; limit <= NFRAMES + 1; limit++) {
		uint32_t free = limit < 2 ? 0 : limit > NFRAMES ? NFRAMES - 2 : limit - 2, used[2];
		struct front *f;
		int fd = left_behind(used);

		f = taken_over(fd, used, limit);
		assert_settled(f, used, free);
		front_free(f);
	}
}

/* Killed while a frame came or went: it is there in part, and has no generation. */
static void takeover_finds_what_nobody_counts(void **state)
{
	uint32_t used[2], torn;
	struct front *f;
	int fd = left_behind(used);

	for (torn = 0; torn == used[0] || torn == used[1]; torn++)
		;
	generation_end(&generations.g, torn);
	f = taken_over(fd, used, NFRAMES);
	assert_settled(f, used, NFRAMES - 3);
	front_free(f);
}

/* A number without a frame: nothing is handed out that a writer would have to wait for. */
static void takeover_believes_no_damaged_generation(void **state)
{
	uint32_t used[2], hole;
	struct front *f;
	int fd = left_behind(used);

	for (hole = 0; hole == used[0] || hole == used[1]; hole++)
		;
	assert_int_equal(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				   (off_t)hole * FRAME_SIZE, FRAME_SIZE),
			 0);
	generation_end(&generations.g, used[0]);
	f = taken_over(fd, used, NFRAMES);
	assert_settled(f, used, 0);
	assert_int_not_equal(generation(used[0]), GENERATION_ABSENT);
	front_free(f);
}

/* Pages of the frame that are in this process's page tables. */
static unsigned mapped_pages(const struct front *f, uint32_t frame)
{
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	uint64_t entries[FRAME_SIZE / 4096];
	unsigned n = 0;

	assert_true(fd >= 0);
	assert_int_equal(pread(fd, entries, sizeof(entries),
			       (off_t)((uintptr_t)front_frame(f, frame) / 4096 * 8)),
			 sizeof(entries));
	for (unsigned i = 0; i < FRAME_SIZE / 4096; i++)
		n += entries[i] >> 63;
	close(fd);
	return n;
}

static void assert_held(struct front *f, const bool held[NFRAMES])
{
	for (uint32_t i = 0; i < NFRAMES; i++)
		assert_int_equal(mapped_pages(f, i), held[i] ? FRAME_SIZE / 4096 : 0);
}

static void who_stands_by_holds_what_is_present(void **state)
{
	struct front *worker = fresh(), *f = NULL;
	bool held[NFRAMES] = {false};
	uint32_t frame;

	assert_int_equal(front_grow(worker, &frame), 0);
	held[frame] = true;
	assert_int_equal(front_grow(worker, &frame), 0);
	held[frame] = true;
	assert_int_equal(front_new(&f, NFRAMES, dup(worker->fd), &generations.g), 0);
	assert_int_equal(present_bytes(worker), 2 * FRAME_SIZE);
	/* Bounded, and then all of it, and nothing but that. */
	assert_true(front_hold(f, 1));
	assert_false(front_hold(f, 1));
	assert_held(f, held);
	assert_false(front_hold(f, 0));
	assert_int_equal(present_bytes(worker), 2 * FRAME_SIZE);
	/* What goes is unmapped by that; what comes back is held again. */
	frame = front_shrink(worker, 0);
	held[frame] = false;
	assert_held(f, held);
	assert_false(front_hold(f, 8));
	assert_held(f, held);
	assert_int_equal(present_bytes(worker), FRAME_SIZE);
	assert_int_equal(front_grow(worker, &frame), 0);
	held[frame] = true;
	assert_false(front_hold(f, 8));
	assert_held(f, held);
	/* Gone and back between two looks. */
	frame = front_shrink(worker, 0);
	assert_int_equal(front_grow(worker, &frame), 0);
	assert_int_equal(mapped_pages(f, frame), 0);
	assert_false(front_hold(f, 8));
	assert_held(f, held);
	assert_int_equal(present_bytes(worker), 2 * FRAME_SIZE);
	front_free(f);
	front_free(worker);
}

/* What smaps says of the mapping at @base, in KiB. */
static unsigned long smaps_kib(const void *base, const char *key)
{
	FILE *f = fopen("/proc/self/smaps", "re");
	unsigned long kib = 0, start, v;
	bool here = false;
	char line[512], end;

	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx%c", &start, &v, &end) == 3)
			here = start == (uintptr_t)base;
		else if (here && strncmp(line, key, strlen(key)) == 0)
			sscanf(line + strlen(key), "%lu", &kib);
	}
	fclose(f);
	return kib;
}

/* AddressSanitizer makes mlockall() a call without effect. */
static bool lock_future(void)
{
	void *p;
	bool locked;

	if (mlockall(MCL_FUTURE) < 0)
		return false;
	p = mmap(NULL, FRAME_SIZE, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	locked = smaps_kib(p, "Locked:") > 0;
	munmap(p, FRAME_SIZE);
	return locked;
}

static void what_is_held_is_locked(void **state)
{
	struct front *worker, *f = NULL;
	uint32_t frame;

	if (!lock_future())
		skip();
	munlockall();
	worker = fresh();
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(front_grow(worker, &frame), 0);
	assert_int_equal(mlockall(MCL_FUTURE), 0);
	assert_int_equal(front_new(&f, NFRAMES, dup(worker->fd), &generations.g), 0);
	assert_int_equal(smaps_kib(f->base, "Rss:"), 0);
	assert_false(front_hold(f, NFRAMES));
	assert_int_equal(smaps_kib(f->base, "Rss:"), 3 * 1024);
	/* The worker, which has not locked them, maps the same pages: half of them are ours. */
	assert_int_equal(smaps_kib(f->base, "Locked:"), 3 * 512);
	assert_int_equal(smaps_kib(worker->base, "Locked:"), 0);
	assert_int_equal(present_bytes(f), 3 * FRAME_SIZE);
	munlockall();
	front_free(f);
	front_free(worker);
}

/* Under mlockall(MCL_FUTURE) the limit must not be taken up front. */
static void locked_memory_comes_frame_by_frame(void **state)
{
	struct front *f;
	uint32_t frame;

	if (mlockall(MCL_FUTURE) < 0)
		skip();
	f = fresh();
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
		cmocka_unit_test(takeover_keeps_free_frames),
		cmocka_unit_test(takeover_finds_what_nobody_counts),
		cmocka_unit_test(takeover_believes_no_damaged_generation),
		cmocka_unit_test(who_stands_by_holds_what_is_present),
		cmocka_unit_test(what_is_held_is_locked),
		cmocka_unit_test(locked_memory_comes_frame_by_frame),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

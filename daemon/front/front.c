// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The front tier's memory, and how a process that stands by keeps it.
 *
 * The memory is locked by who works on it.  When that dies, its pages are anybody's to swap out: to
 * the very device that nobody serves then.  So the next process holds them before: its mapping is
 * locked, too.  But locking counts for pages that are in a page table, and since the memfd is full
 * of holes, which reading would fill, only frames known to be present may be read in: those that
 * have a generation (generation.h).  A frame that the worker punches is unmapped here by that.
 *
 * One race is left.  A frame can be punched between the look at its generation and the reading,
 * which makes it present again, as 1 MiB of zeroes that nobody counts until the frame is grown the
 * next time or a takeover finds it (front_settle()).  It cannot be given back here: by the time
 * that is noticed, it may have been grown and hold pages.
 */
#include "daemon/front/front.h"
#include "common/crashpoint.h"
#include "common/log.h"
#include "common/util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

static int front_memfd(uint64_t size)
{
	int fd = memfd_create("zswapd-front", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)size) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) < 0) {
		int r = -errno;

		close(fd);
		return r;
	}
	return fd;
}

/*
 * Under mlockall(MCL_FUTURE) a new mapping is filled at once, which would take the whole limit up
 * front.  A mapping without access is left alone, and gaining access does not fill a shared mapping
 * either: frames then come one by one, locked as they come.
 */
static void *map_unfilled(int fd, uint64_t size)
{
	void *base = mmap(NULL, size, PROT_NONE, MAP_SHARED | MAP_NORESERVE, fd, 0);

	if (base == MAP_FAILED)
		return NULL;
	if (mprotect(base, size, PROT_READ | PROT_WRITE) < 0) {
		munmap(base, size);
		return NULL;
	}
	madvise(base, size, MADV_DONTDUMP); /* other people's memory does not belong in our core */
	return base;
}

static int init_tables(struct front *f, bool holds)
{
	f->absent = calloc(f->nframes, sizeof(*f->absent));
	if (!f->absent)
		return -ENOMEM;
	for (uint32_t i = 0; i < f->nframes; i++)
		f->absent[f->nabsent++] = f->nframes - 1 - i;
	if (holds) {
		f->held = calloc(f->nframes, sizeof(*f->held));
		if (!f->held)
			return -ENOMEM;
	}
	return idstack_init(&f->free, f->nframes);
}

static void free_tables(struct front *f)
{
	idstack_deinit(&f->free);
	free(f->absent);
	free(f->held);
}

int front_new(struct front **ret, uint32_t nframes, int fd, struct generations *generations)
{
	uint64_t size = (uint64_t)nframes * FRAME_SIZE;
	struct front *f;
	struct stat st;
	int r;

	if (fd >= 0 && (fstat(fd, &st) < 0 || (uint64_t)st.st_size != size)) {
		log_err("front tier: descriptor %d does not hold %u segments; the state belongs to "
			"another front tier",
			fd, nframes);
		return -EBADMSG;
	}
	f = calloc(1, sizeof(*f));
	if (!f)
		return -ENOMEM;
	f->nframes = nframes;
	f->generations = generations;
	r = init_tables(f, fd >= 0);
	if (r < 0)
		goto fail;
	f->fd = fd >= 0 ? fd : front_memfd(size);
	if (f->fd < 0) {
		r = f->fd;
		goto fail;
	}
	f->base = map_unfilled(f->fd, size);
	if (!f->base) {
		r = -errno;
		log_err("front tier: room for %u MiB can't be mapped: %s; locked memory is counted by "
			"address: raise RLIMIT_MEMLOCK (LimitMEMLOCK=) or grant CAP_IPC_LOCK",
			nframes, strerror(-r));
		if (fd < 0)
			close(f->fd);
		goto fail;
	}
	*ret = f;
	return 0;
fail:
	free_tables(f);
	free(f);
	return r;
}

void front_free(struct front *f)
{
	if (!f)
		return;
	munmap(f->base, (uint64_t)f->nframes * FRAME_SIZE);
	close_fd(f->fd);
	free_tables(f);
	free(f);
}

static void add_present(struct front *f, int n)
{
	/* One writer; read for display and for policy.  release: see front_present(). */
	atomic_store_explicit(&f->present, front_present(f) + (uint32_t)n, memory_order_release);
}

bool front_hold(struct front *f, unsigned max)
{
	if (f->next == 0) {
		f->last = generation_last(f->generations);
		if (f->last == f->held_last)
			return false;
		f->missed = false;
	}
	for (; f->next < f->nframes; f->next++) {
		uint32_t n = generation_load(f->generations, f->next);

		if (n == GENERATION_ABSENT || n == f->held[f->next])
			continue;
		if (max-- == 0)
			return true;
		if (madvise(front_frame(f, f->next), FRAME_SIZE, MADV_POPULATE_READ) == 0)
			f->held[f->next] = n;
		else
			f->missed = true; /* the next walk tries again */
	}
	f->next = 0;
	if (!f->missed)
		f->held_last = f->last;
	return false;
}

/* Where the stack, being as front_new() made it but for what was claimed, has the frame. */
static uint32_t *absent_entry(struct front *f, uint32_t frame)
{
	return &f->absent[f->nframes - 1 - frame];
}

static void take_present(struct front *f, uint32_t frame)
{
	*absent_entry(f, frame) = FRAME_NONE;
	f->top = (uint32_t)max_u64(f->top, frame + 1);
	add_present(f, 1);
}

bool front_claim(struct front *f, uint32_t frame)
{
	if (*absent_entry(f, frame) != frame)
		return false;
	take_present(f, frame);
	if (generation_load(f->generations, frame) == GENERATION_ABSENT)
		generation_begin(f->generations, frame);
	return true;
}

/* Backwards, so that low numbers are taken first. */
static void settle_frames(struct front *f, uint32_t limit)
{
	uint32_t kept = 0;

	for (uint32_t frame = f->nframes; frame-- > 0;) {
		uint32_t n = generation_load(f->generations, frame);
		uint32_t entry = *absent_entry(f, frame);

		if (n != GENERATION_ABSENT)
			generation_raise(f->generations, n);
		if (entry == FRAME_NONE)
			continue;
		if (n != GENERATION_ABSENT && front_present(f) < limit) {
			take_present(f, frame);
			front_put(f, frame);
			CRASH_POINT(takeover_frame_settled);
			continue;
		}
		if (n != GENERATION_ABSENT)
			generation_end(f->generations, frame);
		f->absent[kept++] = frame;
	}
	f->nabsent = kept;
}

/* Whether the memory that is there is that of the present frames. */
static bool all_counted(struct front *f)
{
	struct stat st;

	return fstat(f->fd, &st) == 0 &&
	       (uint64_t)st.st_blocks * 512 == (uint64_t)front_present(f) * FRAME_SIZE;
}

/* Frames from @first to before @end become a hole.  errno is set on failure. */
static bool punch(struct front *f, uint32_t first, uint32_t end)
{
	return fallocate(f->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			 (off_t)first * FRAME_SIZE, (off_t)(end - first) * FRAME_SIZE) == 0;
}

/* One call for neighbours: there may be a hundred thousand frames. */
static void punch_absent(struct front *f)
{
	for (uint32_t i = 0, first = 0; i < f->nabsent; i++) {
		if (i + 1 < f->nabsent && f->absent[i + 1] == f->absent[i] - 1)
			continue;
		if (!punch(f, f->absent[i], f->absent[first] + 1))
			log_warn("front tier: %u MiB of a former process cannot be given back: %s",
				 f->absent[first] + 1 - f->absent[i], strerror(errno));
		first = i + 1;
	}
}

/*
 * Most often all is as the generations say, and one look tells.  Else the former process died while
 * a frame came or went, or front_hold() had lost its race.
 */
void front_settle(struct front *f, uint32_t limit)
{
	settle_frames(f, limit);
	CRASH_POINT(takeover_front_settled);
	if (all_counted(f))
		return;
	punch_absent(f);
	if (all_counted(f))
		return;
	/* The generations are damaged: a free frame may be a hole. */
	while (front_shrink(f, 0) != FRAME_NONE)
		;
}

int front_grow(struct front *f, uint32_t *ret_frame)
{
	uint32_t frame;

	if (f->nabsent == 0)
		return -ENOSPC;
	frame = f->absent[f->nabsent - 1];
	/* Fills the page tables too, so that the first store to the frame does not fault. */
	if (madvise(front_frame(f, frame), FRAME_SIZE, MADV_POPULATE_WRITE) < 0)
		return errno == EAGAIN ? -ENOMEM : -errno;
	CRASH_POINT(grow_populated);
	generation_begin(f->generations, frame);
	CRASH_POINT(grow_generation_set);
	f->nabsent--;
	f->top = (uint32_t)max_u64(f->top, frame + 1);
	add_present(f, 1);
	front_put(f, frame);
	CRASH_POINT(grown);
	*ret_frame = frame;
	return 0;
}

bool front_discard(struct front *f, uint32_t frame)
{
	generation_end(f->generations, frame);
	CRASH_POINT(shrink_generation_cleared);
	if (!punch(f, frame, frame + 1)) {
		generation_begin(f->generations, frame);
		return false;
	}
	CRASH_POINT(shrink_punched);
	f->absent[f->nabsent++] = frame;
	add_present(f, -1);
	CRASH_POINT(shrunk);
	return true;
}

uint32_t front_shrink(struct front *f, uint32_t keep)
{
	uint32_t frame = front_get(f, keep);

	if (frame == FRAME_NONE || front_discard(f, frame))
		return frame;
	front_put(f, frame);
	return FRAME_NONE;
}

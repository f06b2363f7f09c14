// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/front/front.h"
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

int front_new(struct front **ret, uint32_t nframes, int fd)
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
	f->absent = calloc(nframes, sizeof(*f->absent));
	r = f->absent ? idstack_init(&f->free, nframes) : -ENOMEM;
	if (r < 0)
		goto fail;
	for (uint32_t i = 0; i < nframes; i++)
		f->absent[f->nabsent++] = nframes - 1 - i;
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
	idstack_deinit(&f->free);
	free(f->absent);
	free(f);
	return r;
}

void front_free(struct front *f)
{
	if (!f)
		return;
	munmap(f->base, (uint64_t)f->nframes * FRAME_SIZE);
	close_fd(f->fd);
	idstack_deinit(&f->free);
	free(f->absent);
	free(f);
}

static void add_present(struct front *f, int n)
{
	/* One writer; read for display and for policy.  release: see front_present(). */
	atomic_store_explicit(&f->present, front_present(f) + (uint32_t)n, memory_order_release);
}

bool front_claim(struct front *f, uint32_t frame)
{
	/* The stack is still as front_new() made it, but for what was claimed. */
	uint32_t *entry = &f->absent[f->nframes - 1 - frame];

	if (*entry != frame)
		return false;
	*entry = FRAME_NONE;
	f->top = (uint32_t)max_u64(f->top, frame + 1);
	add_present(f, 1);
	return true;
}

/* One call for neighbours: there may be a hundred thousand frames. */
static void punch(struct front *f, uint32_t first, uint32_t end)
{
	if (first < end &&
	    fallocate(f->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)first * FRAME_SIZE,
		      (off_t)(end - first) * FRAME_SIZE) < 0)
		log_warn("front tier: %u MiB of a former process cannot be given back: %s",
			 end - first, strerror(errno));
}

void front_settle(struct front *f)
{
	uint32_t end = f->nframes, kept = 0;

	for (uint32_t i = 0; i < f->nframes; i++) {
		uint32_t frame = f->nframes - 1 - i;

		if (f->absent[i] != FRAME_NONE) {
			f->absent[kept++] = frame;
			continue;
		}
		punch(f, frame + 1, end);
		end = frame;
	}
	punch(f, 0, end);
	f->nabsent = kept;
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
	f->nabsent--;
	f->top = (uint32_t)max_u64(f->top, frame + 1);
	add_present(f, 1);
	front_put(f, frame);
	*ret_frame = frame;
	return 0;
}

uint32_t front_shrink(struct front *f, uint32_t keep)
{
	uint32_t frame = front_get(f, keep);

	if (frame == FRAME_NONE)
		return FRAME_NONE;
	if (fallocate(f->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)frame * FRAME_SIZE,
		      FRAME_SIZE) < 0) {
		front_put(f, frame);
		return FRAME_NONE;
	}
	f->absent[f->nabsent++] = frame;
	add_present(f, -1);
	return frame;
}

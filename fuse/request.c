// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * READ, WRITE and FALLOCATE, from the kernel's message to the engine and back.
 *
 * libfuse decodes everything else.  These three do not go through it, because it allocates a
 * struct and takes a lock for each request, and a data thread may do neither: the memory it would
 * wait for can be the memory that this very request is to free.  The messages are those of
 * <linux/fuse.h>, protocol 7.
 */
#include "fuse/internal.h"

#include <errno.h>
#include <linux/falloc.h>
#include <sys/uio.h>

/* An answer that finds its request gone (aborted by the kernel) is of no interest to anybody. */
static void answer(struct fuse_io *io, int error, const void *data, size_t len)
{
	struct fuse_out_header out = {
		.len = (uint32_t)(sizeof(out) + (error ? 0 : len)),
		.error = error,
		.unique = io->unique,
	};
	struct iovec iov[] = {{&out, sizeof(out)}, {(void *)(uintptr_t)data, len}};

	while (writev(io->thread->t->fd, iov, error || len == 0 ? 1 : 2) < 0 && errno == EINTR)
		;
}

/*
 * A read that is right up to a bad slot is answered short: loop passes on what is right and asks
 * for the rest again, which then fails on its own.  A write is not, since the kernel turns a short
 * direct write into EIO, and who finds no room is to hear ENOSPC.
 */
void fuse_request_answer(struct engine_request *r)
{
	struct fuse_io *io = container_of(r, struct fuse_io, req);
	struct fuse_write_out written = {.size = (uint32_t)(r->done * SLOT_BYTES)};

	switch (r->op) {
	case ENGINE_READ:
		answer(io, r->done == 0 ? r->error : 0, io->payload, r->done * SLOT_BYTES);
		break;
	case ENGINE_WRITE:
		answer(io, r->error, &written, sizeof(written));
		break;
	case ENGINE_DISCARD:
		answer(io, r->error, NULL, 0);
		break;
	}
	io->next = io->thread->free_io;
	io->thread->free_io = io;
}

static bool aligned(uint64_t offset, uint64_t size)
{
	return offset % SLOT_BYTES == 0 && size % SLOT_BYTES == 0;
}

static bool decode_read(struct fuse_io *io, const struct fuse_read_in *in)
{
	uint64_t end = io->thread->t->o.device_bytes;
	uint64_t size = in->offset < end ? min_u64(in->size, end - in->offset) : 0;

	if (!aligned(in->offset, size) || size > FUSE_IO_MAX) {
		answer(io, -EINVAL, NULL, 0);
		return false;
	}
	if (size == 0) {
		answer(io, 0, NULL, 0);
		return false;
	}
	io->req.op = ENGINE_READ;
	io->req.slot = in->offset / SLOT_BYTES;
	io->req.count = size / SLOT_BYTES;
	return true;
}

static bool decode_write(struct fuse_io *io, const struct fuse_write_in *in, size_t payload)
{
	if (!aligned(in->offset, in->size) || in->size == 0 || in->size != payload) {
		answer(io, -EINVAL, NULL, 0);
		return false;
	}
	io->req.op = ENGINE_WRITE;
	io->req.slot = in->offset / SLOT_BYTES;
	io->req.count = in->size / SLOT_BYTES;
	return true;
}

/* Discard is a hole punched, write-zeroes a range zeroed; both leave slots that read as zeroes. */
static bool decode_fallocate(struct fuse_io *io, const struct fuse_fallocate_in *in)
{
	uint32_t mode = in->mode & ~(uint32_t)FALLOC_FL_KEEP_SIZE;

	if (mode != FALLOC_FL_PUNCH_HOLE && mode != FALLOC_FL_ZERO_RANGE) {
		answer(io, -EOPNOTSUPP, NULL, 0);
		return false;
	}
	if (!aligned(in->offset, in->length) || in->length == 0) {
		answer(io, -EINVAL, NULL, 0);
		return false;
	}
	io->req.op = ENGINE_DISCARD;
	io->req.slot = in->offset / SLOT_BYTES;
	io->req.count = in->length / SLOT_BYTES;
	return true;
}

bool fuse_request_decode(struct fuse_io *io, size_t len)
{
	const struct fuse_in_header *h =
		(const struct fuse_in_header *)(io->payload - FUSE_WRITE_HEADER);
	const void *body = h + 1;
	size_t body_len = len - sizeof(*h);

	io->unique = h->unique;
	if (h->nodeid == FUSE_FILE_NODE) {
		switch (h->opcode) {
		case FUSE_READ:
			if (body_len >= sizeof(struct fuse_read_in))
				return decode_read(io, body);
			break;
		case FUSE_WRITE:
			if (body_len >= sizeof(struct fuse_write_in))
				return decode_write(io, body,
						    body_len - sizeof(struct fuse_write_in));
			break;
		case FUSE_FALLOCATE:
			if (body_len >= sizeof(struct fuse_fallocate_in))
				return decode_fallocate(io, body);
			break;
		}
	}
	session_handle(io->thread->t, io->payload - FUSE_WRITE_HEADER, len);
	return false;
}

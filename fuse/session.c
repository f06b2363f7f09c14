// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The file system around the file, by libfuse's low-level API: a directory with one regular file,
 * of the device's size.  Opened with direct I/O, so that the kernel keeps no page of it, and with
 * parallel direct writes, so that it does not send them one after the other.
 *
 * libfuse neither mounts nor loops here: data threads read the descriptor, and pass on what is not
 * theirs.  Any of them may; libfuse locks for itself.
 */
#include "common/log.h"
#include "fuse/internal.h"

#include <errno.h>
#include <fuse_lowlevel.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>

#define FOREVER 86400.0 /* seconds; nothing here ever changes */

static void fill_attr(const struct fuse_transport *t, fuse_ino_t ino, struct stat *st)
{
	memset(st, 0, sizeof(*st));
	st->st_ino = ino;
	st->st_blksize = SLOT_BYTES;
	if (ino == FUSE_ROOT_ID) {
		st->st_mode = S_IFDIR | 0700;
		st->st_nlink = 2;
	} else {
		st->st_mode = S_IFREG | 0600;
		st->st_nlink = 1;
		st->st_size = (off_t)t->o.device_bytes;
		st->st_blocks = (blkcnt_t)(t->o.device_bytes / 512);
	}
}

static void op_init(void *userdata, struct fuse_conn_info *conn)
{
	(void)userdata;
	conn->max_write = FUSE_IO_MAX;
	conn->max_read = FUSE_IO_MAX; /* libfuse wants it here, as its option and in mount(2) */
	conn->max_background = FUSE_REQUESTS;
	conn->congestion_threshold = FUSE_REQUESTS;
	conn->want &=
		~(unsigned)(FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE);
	conn->want |= conn->capable & FUSE_CAP_ASYNC_DIO;
}

static void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	const struct fuse_transport *t = fuse_req_userdata(req);
	struct fuse_entry_param e = {
		.ino = FUSE_FILE_NODE, .attr_timeout = FOREVER, .entry_timeout = FOREVER};

	if (parent != FUSE_ROOT_ID || strcmp(name, FUSE_FILE_NAME) != 0) {
		fuse_reply_err(req, ENOENT);
		return;
	}
	fill_attr(t, FUSE_FILE_NODE, &e.attr);
	fuse_reply_entry(req, &e);
}

static void op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct stat st;

	(void)fi;
	fill_attr(fuse_req_userdata(req), ino, &st);
	fuse_reply_attr(req, &st, FOREVER);
}

static void op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	/* Written out, since this libfuse has no name for parallel direct writes. */
	struct fuse_open_out out = {.open_flags = FOPEN_DIRECT_IO | FOPEN_PARALLEL_DIRECT_WRITES |
						  FOPEN_NOFLUSH};

	(void)fi;
	if (ino != FUSE_FILE_NODE)
		fuse_reply_err(req, EISDIR);
	else
		fuse_reply_buf(req, (const char *)&out, sizeof(out));
}

static void op_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)ino;
	(void)fi;
	fuse_reply_err(req, 0);
}

/* loop takes the unit of discards from here. */
static void op_statfs(fuse_req_t req, fuse_ino_t ino)
{
	const struct fuse_transport *t = fuse_req_userdata(req);
	struct statvfs st = {
		.f_bsize = SLOT_BYTES,
		.f_frsize = SLOT_BYTES,
		.f_blocks = t->o.device_bytes / SLOT_BYTES,
		.f_namemax = 255,
	};

	(void)ino;
	fuse_reply_statfs(req, &st);
}

/* fsync and flush have no handler: the kernel learns that from ENOSYS, and asks no more. */
static const struct fuse_lowlevel_ops ops = {
	.init = op_init,
	.lookup = op_lookup,
	.getattr = op_getattr,
	.open = op_open,
	.release = op_release,
	.statfs = op_statfs,
};

/* What the kernel would have been told: taken note of, and that is all. */
static ssize_t swallow(struct fuse_transport *t, const struct iovec *iov, int count)
{
	const struct fuse_out_header *out = iov[0].iov_base;
	ssize_t len = 0;

	for (int i = 0; i < count; i++)
		len += (ssize_t)iov[i].iov_len;
	t->replayed = out->error == 0;
	return len;
}

static ssize_t session_writev(int fd, struct iovec *iov, int count, void *userdata)
{
	struct fuse_transport *t = userdata;

	return t->replaying ? swallow(t, iov, count) : writev(fd, iov, count);
}

static ssize_t session_read(int fd, void *buf, size_t len, void *userdata)
{
	(void)userdata;
	return read(fd, buf, len);
}

int session_open(struct fuse_transport *t)
{
	static const struct fuse_custom_io io = {.writev = session_writev, .read = session_read};
	char name[] = "zswapd", max_read[32];
	char *argv[] = {name, max_read, NULL};
	struct fuse_args args = FUSE_ARGS_INIT(2, argv);
	int r;

	snprintf(max_read, sizeof(max_read), "-omax_read=%u", FUSE_IO_MAX);
	t->session = fuse_session_new(&args, &ops, sizeof(ops), t);
	fuse_opt_free_args(&args);
	if (!t->session) {
		log_err("fuse: libfuse makes no session");
		return -EIO;
	}
	r = fuse_session_custom_io(t->session, &io, t->fd);
	if (r < 0) {
		log_err("fuse: libfuse does not take the descriptor: %s", strerror(-r));
		session_close(t);
	}
	return r;
}

void session_close(struct fuse_transport *t)
{
	if (!t->session)
		return;
	fuse_session_destroy(t->session);
	t->session = NULL;
	t->fd = -1;
}

static void note_init(struct fuse_transport *t, const void *msg, size_t len)
{
	if (len > sizeof(t->note.init) || atomic_load(&t->noted))
		return;
	memcpy(t->note.init, msg, len);
	t->note.init_len = (uint32_t)len;
	/* release: after the message, for whoever finds it noted. */
	atomic_store_explicit(&t->noted, true, memory_order_release);
}

void session_handle(struct fuse_transport *t, void *msg, size_t len)
{
	const struct fuse_in_header *h = msg;
	struct fuse_buf buf = {.mem = msg, .size = len};

	if (h->opcode == FUSE_INIT)
		note_init(t, msg, len);
	fuse_session_process_buf(t->session, &buf);
}

int session_replay(struct fuse_transport *t)
{
	struct fuse_note copy = t->note;
	struct fuse_buf buf = {.mem = copy.init, .size = copy.init_len};

	t->replaying = true;
	fuse_session_process_buf(t->session, &buf);
	t->replaying = false;
	if (t->replayed)
		return 0;
	log_err("fuse: libfuse does not go on with %s as its kernel began it; start the version that "
		"made it",
		t->device);
	return -EPROTO;
}

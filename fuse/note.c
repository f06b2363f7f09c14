// SPDX-License-Identifier: GPL-2.0-or-later
#include "fuse/note.h"
#include "common/log.h"
#include "common/util.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define NOTE_MAGIC   UINT64_C(0x65746f6e45535546)
#define NOTE_VERSION 1u
#define NOTE_SEALS   (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)
/* Bit 39 of INIT's flags, HAS_RESEND, which older headers have no name for. */
#define HAS_RESEND (UINT32_C(1) << (39 - 32))

int note_save(const struct fuse_note *note, int *ret_fd)
{
	struct fuse_note copy = *note;
	cleanup_fd int fd = memfd_create("zswapd-fuse-init", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int r;

	copy.magic = NOTE_MAGIC;
	copy.version = NOTE_VERSION;
	if (fd < 0 || ftruncate(fd, sizeof(copy)) < 0 ||
	    pwrite(fd, &copy, sizeof(copy), 0) != sizeof(copy) ||
	    fcntl(fd, F_ADD_SEALS, NOTE_SEALS) < 0) {
		r = -errno;
		log_warn("fuse: cannot write down what a successor needs: %s", strerror(-r));
		return r;
	}
	*ret_fd = fd;
	fd = -1;
	return 0;
}

static const char *wrong(const struct fuse_note *n)
{
	if (n->magic != NOTE_MAGIC)
		return "it is none";
	if (n->version != NOTE_VERSION)
		return "another version wrote it";
	if (n->init_len < sizeof(struct fuse_in_header) || n->init_len > FUSE_NOTE_INIT_MAX)
		return "it is damaged";
	return NULL;
}

int note_load(struct fuse_note *ret, int fd)
{
	int seals = fcntl(fd, F_GET_SEALS);
	const char *why = NULL;
	struct fuse_note n;
	struct stat st;

	if (seals < 0 || (seals & NOTE_SEALS) != NOTE_SEALS)
		why = "it is not sealed";
	else if (fstat(fd, &st) < 0 || st.st_size != sizeof(n) ||
		 pread(fd, &n, sizeof(n), 0) != sizeof(n))
		why = "it has another size";
	else
		why = wrong(&n);
	if (why) {
		log_err("fuse: the note that a former daemon left about its connection can't be used: %s",
			why);
		return -EBADMSG;
	}
	*ret = n;
	return 0;
}

bool note_resends(const void *init, uint32_t len)
{
	const struct fuse_in_header *h = init;
	const struct fuse_init_in *in = (const struct fuse_init_in *)(h + 1);

	return len >= sizeof(*h) + sizeof(*in) && (in->flags & FUSE_INIT_EXT) &&
	       (in->flags2 & HAS_RESEND);
}

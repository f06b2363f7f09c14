// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/state/state.h"
#include "common/log.h"
#include "common/util.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <xxhash.h>

#define PAGE 4096u

static uint64_t header_checksum(const struct state_header *h)
{
	return XXH3_64bits(h, offsetof(struct state_header, checksum));
}

static bool geometry_ok(uint64_t nslots, uint32_t nframes, uint32_t nplaces)
{
	return nslots > 0 && nslots <= SLOTS_MAX && nframes > 0 && nframes < SEGMENT_NONE / 2 &&
	       nplaces < SEGMENT_NONE / 2;
}

/* Every used record has a frame or a place, so this many is enough. */
static void layout(struct state_header *h, uint64_t nslots, uint32_t nframes, uint32_t nplaces)
{
	memset(h, 0, sizeof(*h));
	h->magic = STATE_MAGIC;
	h->version = STATE_VERSION;
	h->header_size = sizeof(*h);
	h->nslots = nslots;
	h->nframes = nframes;
	h->nplaces = nplaces;
	h->nsegments = nframes + nplaces;
	h->index_offset = PAGE;
	h->segments_offset = h->index_offset + align_up(nslots * sizeof(index_word), PAGE);
	h->generations_offset = h->segments_offset +
				align_up((uint64_t)h->nsegments * sizeof(struct segment), PAGE);
	h->total_size =
		h->generations_offset +
		align_up(sizeof(struct generations) +
				 (uint64_t)nframes * sizeof(((struct generations *)0)->frame[0]),
			 PAGE);
	h->checksum = header_checksum(h);
}

/* The state of which @h is the header, in @fd, which becomes its own. */
static int map_state(struct state **ret, int fd, const struct state_header *h)
{
	struct state *s = calloc(1, sizeof(*s));
	char *base;

	if (!s)
		return -ENOMEM;
	/* MAP_POPULATE: no data thread may fault here later. */
	base = mmap(NULL, h->total_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
	if (base == MAP_FAILED) {
		free(s);
		return -errno;
	}
	s->fd = fd;
	s->fixed = *h;
	s->header = (struct state_header *)base;
	s->index = (index_word *)(base + h->index_offset);
	s->segments = (struct segment *)(base + h->segments_offset);
	s->generations = (struct generations *)(base + h->generations_offset);
	s->geo.nslots = h->nslots;
	s->geo.nframes = h->nframes;
	s->geo.nplaces = h->nplaces;
	s->nsegments = h->nsegments;
	*ret = s;
	return 0;
}

int state_new(struct state **ret, const struct state_geometry *geo)
{
	cleanup_fd int fd = -1;
	struct state_header h;
	struct state *s;
	int r;

	if (!geometry_ok(geo->nslots, geo->nframes, geo->nplaces))
		return -EINVAL;
	layout(&h, geo->nslots, geo->nframes, geo->nplaces);
	fd = memfd_create("zswapd-state", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	/* fallocate, not ftruncate alone: want of memory is found here and not by a SIGBUS later.
	 */
	if (fallocate(fd, 0, 0, (off_t)h.total_size) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) < 0) {
		r = -errno;
		log_err("state: no memory for the index of %" PRIu64 " slots (%" PRIu64
			" bytes): %s; make the device smaller",
			geo->nslots, h.total_size, strerror(-r));
		return r;
	}
	r = map_state(&s, fd, &h);
	if (r < 0)
		return r;
	fd = -1;
	memcpy(s->header, &h, sizeof(h));
	for (uint32_t i = 0; i < s->nsegments; i++)
		segment_where_set(&s->segments[i], SEGMENT_NONE, SEGMENT_NONE);
	atomic_store(&s->header->next_seq, 1);
	*ret = s;
	return 0;
}

/* What the header must be is computed again from its geometry; nothing else in it is believed. */
static const char *header_fault(const struct state_header *h, uint64_t file_size)
{
	struct state_header want;

	if (h->magic != STATE_MAGIC)
		return "no zswapd state (wrong magic)";
	if (h->version != STATE_VERSION)
		return "written by another version";
	if (h->checksum != header_checksum(h))
		return "damaged header (checksum)";
	if (!geometry_ok(h->nslots, h->nframes, h->nplaces))
		return "impossible geometry";
	layout(&want, h->nslots, h->nframes, h->nplaces);
	if (memcmp(h, &want, offsetof(struct state_header, next_seq)) != 0)
		return "another layout";
	if (h->total_size != file_size)
		return "wrong size";
	return NULL;
}

/* The header of the state in @fd, checked. */
static int read_header(int fd, struct state_header *h)
{
	const char *fault;
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (pread(fd, h, sizeof(*h), 0) != (ssize_t)sizeof(*h))
		fault = "too short";
	else
		fault = header_fault(h, (uint64_t)st.st_size);
	if (!fault)
		return 0;
	log_err("state: cannot take over descriptor %d: %s (version %u is understood); "
		"swap off with the daemon that wrote it, then start this one afresh",
		fd, fault, STATE_VERSION);
	return -EBADMSG;
}

int state_read_owner(int fd, struct state_owner *ret)
{
	struct state_header h;
	int r = read_header(fd, &h);

	if (r < 0)
		return r;
	*ret = h.owner;
	ret->device[STATE_DEVICE_MAX - 1] = '\0';
	return 0;
}

void state_set_owner(struct state *s, const struct state_owner *o)
{
	s->header->owner = *o;
}

int state_attach(struct state **ret, int fd)
{
	struct state_header h;
	int r = read_header(fd, &h);

	return r < 0 ? r : map_state(ret, fd, &h);
}

void state_take_over(struct state *s)
{
	size_t fixed = offsetof(struct state_header, next_seq);

	if (memcmp(s->header, &s->fixed, fixed) != 0) {
		log_err("state: the header was damaged while in use and is restored; the former "
			"process wrote where it must not");
		memcpy(s->header, &s->fixed, fixed);
	}
	for (uint32_t i = 0; i < s->nsegments; i++) {
		atomic_store(&s->segments[i].pins, 0);
		atomic_store(&s->segments[i].store_reads, 0);
		atomic_store(&s->segments[i].dead, 0);
	}
}

void state_free(struct state *s)
{
	if (!s)
		return;
	munmap(s->header, s->fixed.total_size);
	close_fd(s->fd);
	free(s);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Writes a block device slot by slot with pages made from a seed, and tells later which slots read
 * right, which wrong and which with an error.
 *
 * What was written is kept in a map, one byte a slot: the round in which the device last took it,
 * 0 for never.  A write of several slots that failed leaves each of them either old or new (DOUBT),
 * as on any disk.  So a device that refuses writes can be checked for what it did take.
 *
 * All I/O is direct and in the slot's own request, so that an error belongs to one slot.  Every
 * call can wait for the device; the caller bounds it.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/util.h"
#include "tests/model/pages.h"

#define CHUNK_MAX 64u
#define DOUBT	  0x80u

enum {
	EXIT_RIGHT = 0,
	EXIT_WRONG = 1, /* wrong bytes, or errors other than those counted */
	EXIT_USAGE = 2,
};

static const char usage[] =
	"usage: slots COMMAND DEVICE MAP FIRST COUNT [OPTION]\n"
	"  write ROUND KIND CHUNK   writes slots, CHUNK (1 to 64) at a time; ROUND is 1 to 127, KIND mix\n"
	"                           (as real memory) or random (does not compress)\n"
	"                           prints: written N nospace N failed N (slots)\n"
	"  verify KIND [list]       reads them one by one\n"
	"                           prints: right N wrong N ioerror N\n"
	"                           list: a line for each that is not right\n"
	"Exit status: 0, 1 wrong or failed, 2 usage or set-up.\n";

struct job {
	int fd;
	uint8_t *map;
	uint64_t first, count;
	bool random;
	uint8_t *buf;
};

static uint64_t seed_of(const struct job *j, uint64_t slot, unsigned round)
{
	uint64_t seed = mix64(slot << 8 | round);

	return j->random ? (seed & ~UINT64_C(15)) | 2 : seed | 1u << 4;
}

static int do_write(struct job *j, unsigned round, uint64_t chunk)
{
	uint64_t written = 0, nospace = 0, failed = 0;

	for (uint64_t i = 0; i < j->count; i += chunk) {
		uint64_t n = min_u64(chunk, j->count - i), slot = j->first + i;
		ssize_t r;

		for (uint64_t k = 0; k < n; k++)
			page_make(seed_of(j, slot + k, round), j->buf + k * PAGE_BYTES);
		r = pwrite(j->fd, j->buf, n * PAGE_BYTES, (off_t)(slot * PAGE_BYTES));
		if (r == (ssize_t)(n * PAGE_BYTES)) {
			memset(j->map + slot, (int)round, n);
			written += n;
			continue;
		}
		for (uint64_t k = 0; k < n; k++)
			j->map[slot + k] |= DOUBT;
		if (r < 0 && errno == ENOSPC) {
			nospace += n;
		} else {
			if (failed == 0)
				fprintf(stderr, "slots: write at slot %" PRIu64 ": %s\n", slot,
					r < 0 ? strerror(errno) : "short");
			failed += n;
		}
	}
	printf("written %" PRIu64 " nospace %" PRIu64 " failed %" PRIu64 "\n", written, nospace,
	       failed);
	return failed ? EXIT_WRONG : EXIT_RIGHT;
}

/* In doubt is any round up to the last one tried, or nothing. */
static bool slot_is_right(const struct job *j, uint64_t slot, const void *page)
{
	unsigned round = j->map[slot];

	if (!(round & DOUBT))
		return page_is(round ? seed_of(j, slot, round) : 0, page);
	for (unsigned r = round & ~DOUBT; r < DOUBT; r++) {
		if (page_is(r ? seed_of(j, slot, r) : 0, page))
			return true;
	}
	return false;
}

static int do_verify(struct job *j, bool list)
{
	uint64_t right = 0, wrong = 0, ioerror = 0, other = 0;

	for (uint64_t slot = j->first; slot < j->first + j->count; slot++) {
		ssize_t r = pread(j->fd, j->buf, PAGE_BYTES, (off_t)(slot * PAGE_BYTES));
		const char *what = NULL;

		if (r < 0 && errno == EIO) {
			ioerror++;
			what = "ioerror";
		} else if (r != (ssize_t)PAGE_BYTES) {
			other++;
			what = r < 0 ? strerror(errno) : "short";
		} else if (slot_is_right(j, slot, j->buf)) {
			right++;
		} else {
			wrong++;
			what = "wrong";
		}
		if (list && what)
			printf("slot %" PRIu64 " %s\n", slot, what);
	}
	printf("right %" PRIu64 " wrong %" PRIu64 " ioerror %" PRIu64 "\n", right, wrong, ioerror);
	return wrong || other ? EXIT_WRONG : EXIT_RIGHT;
}

static bool number(const char *text, uint64_t min, uint64_t max, uint64_t *ret)
{
	char *end;

	errno = 0;
	*ret = strtoull(text, &end, 10);
	return !errno && end != text && !*end && *ret >= min && *ret <= max;
}

static bool kind(const char *text, bool *ret_random)
{
	*ret_random = strcmp(text, "random") == 0;
	return *ret_random || strcmp(text, "mix") == 0;
}

/* The map, made longer where it does not reach. */
static uint8_t *open_map(const char *path, uint64_t slots)
{
	cleanup_fd int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	struct stat st;
	void *map;

	if (fd < 0 || fstat(fd, &st) < 0)
		return NULL;
	if ((uint64_t)st.st_size < slots && ftruncate(fd, (off_t)slots) < 0)
		return NULL;
	map = mmap(NULL, slots, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return map == MAP_FAILED ? NULL : map;
}

static int run(struct job *j, int argc, char **argv)
{
	uint64_t round, chunk;

	if (argc == 9 && !strcmp(argv[1], "write") && number(argv[6], 1, DOUBT - 1, &round) &&
	    kind(argv[7], &j->random) && number(argv[8], 1, CHUNK_MAX, &chunk))
		return do_write(j, (unsigned)round, chunk);
	if ((argc == 7 || (argc == 8 && !strcmp(argv[7], "list"))) && !strcmp(argv[1], "verify") &&
	    kind(argv[6], &j->random))
		return do_verify(j, argc == 8);
	fputs(usage, stderr);
	return EXIT_USAGE;
}

int main(int argc, char **argv)
{
	struct job j = {0};

	if (argc < 7 || !number(argv[4], 0, UINT32_MAX, &j.first) ||
	    !number(argv[5], 1, UINT32_MAX, &j.count)) {
		fputs(usage, stderr);
		return EXIT_USAGE;
	}
	j.fd = open(argv[2], O_RDWR | O_DIRECT | O_CLOEXEC);
	j.map = j.fd < 0 ? NULL : open_map(argv[3], j.first + j.count);
	j.buf = aligned_alloc(PAGE_BYTES, CHUNK_MAX * PAGE_BYTES);
	if (j.fd < 0 || !j.map || !j.buf) {
		fprintf(stderr, "slots: cannot open %s or %s: %s\n", argv[2], argv[3],
			strerror(errno));
		return EXIT_USAGE;
	}
	return run(&j, argc, argv);
}

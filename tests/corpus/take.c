// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Takes the pages that swap would see from a stopped program: present, anonymous, in a mapping
 * without a file (heap, stack, anonymous mmap), and not the kernel's shared zero page.
 *
 * Two passes over /proc/PID/pagemap: the first counts, the second writes.  When there are more
 * pages than wanted, whole runs of neighbours are left out, evenly, because readahead and
 * dictionaries live from what neighbours have in common.
 */
#include "tests/corpus/take.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"

#define PAGE 4096u

/* Neighbours that are taken or left out together. */
#define RUN_PAGES   64u

#define MAX_VMAS    65536u

#define PM_PRESENT  (1ull << 63)
#define PM_FILE	    (1ull << 61)
#define PM_PFN_MASK ((1ull << 55) - 1)
#define KPF_ZERO    (1ull << 24)

struct vma {
	uint64_t start;
	uint64_t end;
};

/* Mappings that swap would take pages from; the kernel's own ([vvar], [vdso]) are not. */
static bool is_swappable(const char *perms, unsigned long inode, const char *name)
{
	if (perms[3] != 'p' || inode)
		return false;
	return !*name || !strcmp(name, "[heap]") || !strncmp(name, "[stack", 6) ||
	       !strncmp(name, "[anon", 5);
}

static int read_maps(pid_t pid, struct vma *vmas, unsigned *ret_nr)
{
	char path[64], line[PATH_MAX + 128];
	unsigned nr = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	f = fopen(path, "re");
	if (!f)
		return -errno;
	while (nr < MAX_VMAS && fgets(line, sizeof(line), f)) {
		char perms[5], name[64] = "";
		uint64_t start, end;
		unsigned long inode;

		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %*x %*x:%*x %lu %63[^\n]", &start,
			   &end, perms, &inode, name) >= 4 &&
		    is_swappable(perms, inode, name))
			vmas[nr++] = (struct vma){start, end};
	}
	fclose(f);
	*ret_nr = nr;
	return 0;
}

struct taker {
	int pagemap;
	int mem;
	int kpageflags; /* -1 without the right to read it */
	FILE *out;
	uint64_t seen; /* pages that could be taken, runs included that were left out */
	uint64_t total;
	uint64_t want;
	uint64_t taken;
};

static bool is_zero_page(const struct taker *t, uint64_t entry)
{
	uint64_t flags;

	if (t->kpageflags < 0 || !(entry & PM_PFN_MASK))
		return false;
	return pread(t->kpageflags, &flags, 8, (off_t)((entry & PM_PFN_MASK) * 8)) == 8 &&
	       (flags & KPF_ZERO);
}

/* Whether the page number @n of the program is among the wanted ones: runs, evenly spread. */
static bool is_wanted(const struct taker *t, uint64_t n)
{
	uint64_t runs = (t->total + RUN_PAGES - 1) / RUN_PAGES;
	uint64_t want = (t->want + RUN_PAGES - 1) / RUN_PAGES, run = n / RUN_PAGES;

	return t->total <= t->want || run * want % runs < want;
}

/* First pass (out is NULL) counts, second pass writes. */
static int take_vma(struct taker *t, const struct vma *v)
{
	uint64_t entries[512];
	char page[PAGE];

	for (uint64_t at = v->start; at < v->end; at += sizeof(entries) / 8 * PAGE) {
		uint64_t nr = min_u64(ARRAY_SIZE(entries), (v->end - at) / PAGE);
		ssize_t n = pread(t->pagemap, entries, nr * 8, (off_t)(at / PAGE * 8));

		if (n < 0)
			return -errno;
		for (uint64_t i = 0; i < (uint64_t)n / 8; i++) {
			if (!(entries[i] & PM_PRESENT) || (entries[i] & PM_FILE) ||
			    is_zero_page(t, entries[i]))
				continue;
			t->seen++;
			if (!t->out || !is_wanted(t, t->seen - 1) || t->taken == t->want)
				continue;
			/* A mapping that ptrace may not read, such as a device's, is left out. */
			if (pread(t->mem, page, PAGE, (off_t)(at + i * PAGE)) != PAGE)
				continue;
			if (fwrite(page, PAGE, 1, t->out) != 1)
				return -EIO;
			t->taken++;
		}
	}
	return 0;
}

static int take_pages(struct taker *t, const struct vma *vmas, unsigned nr)
{
	int r;

	t->seen = 0;
	for (unsigned i = 0; i < nr; i++) {
		r = take_vma(t, &vmas[i]);
		if (r < 0)
			return r;
	}
	return 0;
}

int take_program(pid_t pid, const char *out, const char *label, uint64_t max_pages)
{
	cleanup_free struct vma *vmas = calloc(MAX_VMAS, sizeof(*vmas));
	char path[64];
	unsigned nr;
	int r;

	if (!vmas)
		return -ENOMEM;
	r = read_maps(pid, vmas, &nr);
	if (r < 0)
		return r;
	snprintf(path, sizeof(path), "/proc/%d/pagemap", pid);
	cleanup_fd int pagemap = open(path, O_RDONLY | O_CLOEXEC);
	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	cleanup_fd int mem = open(path, O_RDONLY | O_CLOEXEC);
	cleanup_fd int flags = open("/proc/kpageflags", O_RDONLY | O_CLOEXEC);
	if (pagemap < 0 || mem < 0)
		return -errno;

	struct taker t = {.pagemap = pagemap, .mem = mem, .kpageflags = flags, .want = max_pages};
	r = take_pages(&t, vmas, nr);
	if (r < 0)
		return r;
	t.total = t.seen;
	t.out = fopen(out, "ae");
	if (!t.out)
		return -errno;
	r = take_pages(&t, vmas, nr);
	if (fclose(t.out) && r == 0)
		r = -errno;
	if (r == 0)
		printf("%-12s %8" PRIu64 " of %" PRIu64 " pages\n", label, t.taken, t.total);
	return r == 0 && t.taken == 0 ? -ENODATA : r;
}

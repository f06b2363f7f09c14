// SPDX-License-Identifier: GPL-2.0-or-later
/* Checks of the kernel: what it offers, and how it is set to swap. */
#include "common/util.h"
#include "ctl/doctor_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* 2^5 pages are 128 KiB, the largest request that loop and FUSE take in one piece by default. */
#define PAGE_CLUSTER_HIGH 5

void doctor_check_kernel(const struct doctor_machine *m, struct doctor_report *r)
{
	unsigned major, minor;
	char release[128];

	if (doctor_line(m, release, sizeof(release), "/proc/sys/kernel/osrelease") < 0 ||
	    sscanf(release, "%u.%u", &major, &minor) != 2)
		doctor_unseen(r, "kernel", "its version cannot be read from /proc");
	else if (major < 6 || (major == 6 && minor < 1))
		doctor_finding(r, "kernel", "Run Linux 6.1 or later.",
			       "Linux %s is older than what zswapd is tested with", release);
	else
		doctor_good(r, "kernel", "Linux %s", release);
}

static bool has_filesystem(const char *list, const char *name)
{
	size_t n = strlen(name);

	for (const char *p = list; (p = strstr(p, name)); p += n)
		if ((p == list || p[-1] == '\t' || p[-1] == '\n') && p[n] == '\n')
			return true;
	return false;
}

/* FUSE may be a module that the first open of its device node loads. */
static bool has_fuse(const struct doctor_machine *m)
{
	cleanup_free char *list = doctor_text(m, "/proc/filesystems");

	return doctor_exists(m, "/dev/fuse") || (list && has_filesystem(list, "fuse"));
}

static bool module_installed(const struct doctor_machine *m, const char *file)
{
	cleanup_free char *deps = NULL;
	char release[128];

	if (doctor_line(m, release, sizeof(release), "/proc/sys/kernel/osrelease") < 0)
		return false;
	deps = doctor_text(m, "/lib/modules/%s/modules.dep", release);
	return deps && strstr(deps, file);
}

void doctor_check_transports(const struct doctor_machine *m, struct doctor_report *r)
{
	bool ublk = doctor_exists(m, "/dev/ublk-control");
	bool fuse = has_fuse(m) && doctor_exists(m, "/dev/loop-control");

	if (ublk)
		doctor_good(r, "transport", "ublk is there");
	else if (module_installed(m, "/ublk_drv.ko"))
		doctor_note(r, "transport",
			    "ublk is not loaded; it is faster than FUSE with a loop device, and "
			    "'modprobe ublk_drv' loads it");
	else if (fuse)
		doctor_note(r, "transport",
			    "this kernel has no ublk; FUSE with a loop device is used, which is "
			    "slower");
	if (!ublk && !fuse)
		doctor_finding(r, "transport",
			       "Load the modules: 'modprobe ublk_drv', or 'modprobe fuse' and "
			       "'modprobe loop'. A container needs the device nodes as well.",
			       "neither ublk nor FUSE with loop devices is there, so no device can "
			       "be made");
}

void doctor_check_uring(const struct doctor_machine *m, struct doctor_report *r)
{
	long long v;
	int err = doctor_number(m, &v, "/proc/sys/kernel/io_uring_disabled");

	if (err == -ENOENT)
		doctor_good(r, "io_uring", "this kernel has no switch to turn it off");
	else if (err < 0)
		doctor_unseen(r, "io_uring", "kernel.io_uring_disabled cannot be read: %s",
			      strerror(-err));
	else if (v == 2)
		doctor_finding(
			r, "io_uring",
			"Run 'sysctl kernel.io_uring_disabled=1', which still keeps it from "
			"programs without privilege, and look for what sets it in "
			"/etc/sysctl.d.",
			"it is off for everybody (kernel.io_uring_disabled=2): zswapd cannot "
			"start");
	else
		doctor_good(r, "io_uring", "open to %s", v ? "privileged programs" : "all");
}

void doctor_check_zswap(const struct doctor_machine *m, struct doctor_report *r)
{
	char v[16];
	int err = doctor_line(m, v, sizeof(v), "/sys/module/zswap/parameters/enabled");

	if (err == -ENOENT)
		doctor_good(r, "kernel zswap", "not in this kernel");
	else if (err < 0)
		doctor_unseen(r, "kernel zswap", "its switch cannot be read: %s", strerror(-err));
	else if (v[0] == 'Y' || v[0] == '1')
		doctor_finding(r, "kernel zswap",
			       "Run 'echo N > /sys/module/zswap/parameters/enabled', and put "
			       "zswap.enabled=0 on the kernel's command line.",
			       "it is on and stands in front of this device too: pages are "
			       "compressed twice, and reach it decompressed and one by one");
	else
		doctor_good(r, "kernel zswap", "off");
}

void doctor_check_swappiness(const struct doctor_machine *m, struct doctor_report *r)
{
	long long v;
	int err = doctor_number(m, &v, "/proc/sys/vm/swappiness");

	if (err < 0)
		doctor_unseen(r, "swappiness", "vm.swappiness cannot be read: %s", strerror(-err));
	else if (v == 0)
		doctor_finding(r, "swappiness",
			       "Run 'sysctl vm.swappiness=60', or up to 200: compressed swap is "
			       "cheaper to read than files are.",
			       "vm.swappiness is 0: the kernel swaps only when it has nothing else "
			       "left to free");
	else
		doctor_good(r, "swappiness", "vm.swappiness is %lld", v);
}

void doctor_check_readahead(const struct doctor_machine *m, struct doctor_report *r)
{
	char vma[16];
	long long v;
	int err = doctor_number(m, &v, "/proc/sys/vm/page-cluster");

	if (err < 0)
		doctor_unseen(r, "readahead", "vm.page-cluster cannot be read: %s", strerror(-err));
	else if (v > PAGE_CLUSTER_HIGH)
		doctor_finding(r, "readahead", "Run 'sysctl vm.page-cluster=3'.",
			       "vm.page-cluster is %lld: up to 2^%lld pages are read and "
			       "decompressed for one fault",
			       v, v);
	else if (v <= 0)
		doctor_note(r, "readahead",
			    "vm.page-cluster is 0: the kernel reads nothing ahead, so that "
			    "reading the store and decompressing can't overlap");
	else
		doctor_good(r, "readahead", "vm.page-cluster is %lld", v);
	if (doctor_line(m, vma, sizeof(vma), "/sys/kernel/mm/swap/vma_ra_enabled") == 0 &&
	    !strcmp(vma, "false"))
		doctor_finding(r, "readahead",
			       "Run 'echo true > /sys/kernel/mm/swap/vma_ra_enabled'.",
			       "the kernel reads neighbours on the device ahead, not neighbours in "
			       "the program's memory");
}

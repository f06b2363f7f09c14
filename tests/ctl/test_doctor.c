// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Every check against a small machine of files: one on which nothing is to be found, and then that
 * machine with one thing changed.
 */
#include "common/counters.h"
#include "common/portfile.h"
#include "common/util.h"
#include "ctl/doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define PROC "/proc/4711"

/* state S, then the flags of an I/O flusher, then one without */
#define STAT_MARKED   "4711 (zswapd (x)) S 1 2 3 0 -1 1573120 0 0\n"
#define STAT_UNMARKED "4712 (zswapd) S 1 2 3 0 -1 4194624 0 0\n"
#define STAT_IO	      "4713 (iou-wrk-4711) S 1 2 3 0 -1 16 0 0\n"

static const char *const good_files[][2] = {
	{"/proc/sys/kernel/osrelease", "6.12.9-amd64\n"},
	{"/proc/sys/kernel/io_uring_disabled", "0\n"},
	{"/proc/sys/vm/swappiness", "100\n"},
	{"/proc/sys/vm/page-cluster", "3\n"},
	{"/proc/filesystems", "nodev\tproc\n\text4\nnodev\tfusectl\nnodev\tfuse\n"},
	{"/proc/cmdline", "root=/dev/vda1 quiet resume=/dev/vda2\n"},
	{"/proc/meminfo", "MemTotal:        8388608 kB\nMemFree: 1 kB\n"},
	{"/proc/swaps", "Filename\tType\tSize\tUsed\tPriority\n"
			"/dev/ublkb0  partition  4194304  1048576  100\n"
			"/dev/vda2    partition  8388608  0  -2\n"},
	{"/sys/module/zswap/parameters/enabled", "N\n"},
	{"/sys/kernel/mm/swap/vma_ra_enabled", "true\n"},
	{"/sys/power/state", "freeze mem disk\n"},
	{"/sys/power/disk", "[platform] shutdown reboot\n"},
	{"/sys/power/resume", "254:2\n"},
	{"/sys/class/block/ublkb0/dev", "259:0\n"},
	{"/sys/class/block/ublkb0/queue/rotational", "0\n"},
	{"/sys/class/block/ublkb0/queue/discard_max_bytes", "4294967296\n"},
	{"/sys/fs/cgroup/system.slice/memory.max", "max\n"},
	{"/sys/fs/cgroup/system.slice/zswapd.service/memory.max", "max\n"},
	{"/sys/fs/cgroup/system.slice/zswapd.service/memory.high", "max\n"},
	{"/dev/ublkb0", ""},
	{"/dev/vda2", ""},
	{"/dev/ublk-control", ""},
	{"/dev/fuse", ""},
	{"/dev/loop-control", ""},
	{PROC "/comm", "zswapd\n"},
	{PROC "/oom_score_adj", "-1000\n"},
	{PROC "/cgroup", "0::/system.slice/zswapd.service\n"},
	{PROC "/status",
	 "Name:\tzswapd\nVmLck:\t  204800 kB\nVmRSS:\t 204000 kB\nVmSwap:\t 0 kB\n"},
	{PROC "/task/4711/stat", STAT_MARKED},
	{PROC "/task/4713/stat", STAT_IO},
};

static const char *const good_links[][2] = {
	{"/dev/zswap/zswap0", "/dev/ublkb0"},
	{"/dev/disk/by-uuid/abcd-ef", "../../ublkb0"},
};

static char root[] = "/tmp/zswapd-doctor-XXXXXX";
static struct ctl_status status;
static struct ctl_stats stats;
static struct doctor_machine machine;
static struct doctor_report report;

static void make_parents(char *path)
{
	for (char *p = path + 1; (p = strchr(p, '/')); *p++ = '/') {
		*p = '\0';
		if (mkdir(path, 0755) < 0)
			assert_int_equal(errno, EEXIST);
	}
}

/* @text NULL: without it. */
static void put(const char *path, const char *text)
{
	char full[PATH_MAX];
	FILE *f;

	snprintf(full, sizeof(full), "%s%s", root, path);
	if (!text) {
		assert_int_equal(unlink(full), 0);
		return;
	}
	make_parents(full);
	f = fopen(full, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void link_to(const char *path, const char *to)
{
	char full[PATH_MAX];

	snprintf(full, sizeof(full), "%s%s", root, path);
	make_parents(full);
	unlink(full);
	assert_int_equal(symlink(to, full), 0);
}

static void set(const char *name, uint64_t v)
{
	for (size_t i = 0; i < stats.n; i++)
		if (!strcmp(stats.c[i].name, name)) {
			stats.c[i].value = (struct ctl_num){true, v};
			return;
		}
	fail_msg("no counter %s", name);
}

static void good_answers(void)
{
	memset(&status, 0, sizeof(status));
	memset(&stats, 0, sizeof(stats));
	status.daemon_version.known = true;
	strcpy(status.daemon_version.s, ZSWAPD_VERSION);
	status.pid = (struct ctl_num){true, 4711};
	status.state = (struct ctl_num){true, NLPROTO_STATE_RUNNING};
	status.health = (struct ctl_num){true, 0};
	status.supervisor = (struct ctl_num){true, 4700};
	status.standby = (struct ctl_num){true, 4720};
	status.deaths = (struct ctl_num){true, 0};
	for (size_t i = 0; i < COUNTER_COUNT; i++) {
		strcpy(stats.c[stats.n].name, counter_table[i].name);
		stats.c[stats.n++].value = (struct ctl_num){true, 0};
	}
	set("device_bytes", GIB(4));
	set("memory_limit_bytes", GIB(1));
	set("memory_metadata_bytes", MIB(8));
	set("store_size_bytes", GIB(4));
	set("stored_compressed_bytes", GIB(1));
	set("slots_used", 300000);
	set("pages_discarded_total", 1234);
	machine = (struct doctor_machine){
		.root = root,
		.run_dir = root,
		.device = "zswap0",
		.status = &status,
		.stats = &stats,
	};
}

static int good_machine(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(good_files); i++)
		put(good_files[i][0], good_files[i][1]);
	for (size_t i = 0; i < ARRAY_SIZE(good_links); i++)
		link_to(good_links[i][0], good_links[i][1]);
	good_answers();
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return ftw->level ? remove(path) : 0;
}

static int no_machine(void **state)
{
	return nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* Exactly these many findings and unseen things. */
static void assert_counts(size_t findings, size_t unseen)
{
	doctor_run(&machine, &report);
	if (report.count[DOCTOR_FINDING] == findings && report.count[DOCTOR_UNSEEN] == unseen)
		return;
	doctor_print(stderr, &machine, &report, false);
	fail_msg("%zu found, %zu unseen", report.count[DOCTOR_FINDING],
		 report.count[DOCTOR_UNSEEN]);
}

static void assert_line(enum doctor_grade grade, const char *topic, const char *word)
{
	for (size_t i = 0; i < report.n; i++) {
		const struct doctor_line *l = &report.line[i];

		if (l->grade != grade || strcmp(l->topic, topic) || !strstr(l->what, word))
			continue;
		/* A finding says what to do, and nothing else does. */
		assert_int_equal(grade == DOCTOR_FINDING, l->todo[0] != '\0');
		return;
	}
	doctor_print(stderr, &machine, &report, false);
	fail_msg("no line of grade %d about %s with '%s'", (int)grade, topic, word);
}

static void a_good_machine_has_no_findings(void **state)
{
	assert_counts(0, 0);
	assert_string_equal(machine.node, "ublkb0");
}

static const struct {
	const char *path, *text; /* NULL: the file is taken away */
	enum doctor_grade grade;
	const char *topic, *word;
} changes[] = {
	{"/proc/sys/kernel/osrelease", "5.15.0\n", DOCTOR_FINDING, "kernel", "5.15.0"},
	{"/proc/sys/kernel/osrelease", "6.0.19\n", DOCTOR_FINDING, "kernel", "6.0.19"},
	{"/proc/sys/kernel/osrelease", NULL, DOCTOR_UNSEEN, "kernel", "version"},
	{"/proc/sys/kernel/io_uring_disabled", "2\n", DOCTOR_FINDING, "io_uring", "off"},
	{"/proc/sys/kernel/io_uring_disabled", "1\n", DOCTOR_GOOD, "io_uring", "privileged"},
	{"/proc/sys/kernel/io_uring_disabled", "x\n", DOCTOR_UNSEEN, "io_uring", "cannot"},
	{"/proc/sys/kernel/io_uring_disabled", NULL, DOCTOR_GOOD, "io_uring", "no switch"},
	{"/proc/sys/vm/swappiness", "0\n", DOCTOR_FINDING, "swappiness", "is 0"},
	{"/proc/sys/vm/swappiness", NULL, DOCTOR_UNSEEN, "swappiness", "cannot"},
	{"/proc/sys/vm/page-cluster", "6\n", DOCTOR_FINDING, "readahead", "is 6"},
	{"/proc/sys/vm/page-cluster", "0\n", DOCTOR_NOTE, "readahead", "nothing ahead"},
	{"/proc/sys/vm/page-cluster", NULL, DOCTOR_UNSEEN, "readahead", "cannot"},
	{"/sys/kernel/mm/swap/vma_ra_enabled", "false\n", DOCTOR_FINDING, "readahead",
	 "neighbours"},
	{"/sys/module/zswap/parameters/enabled", "Y\n", DOCTOR_FINDING, "kernel zswap", "is on"},
	{"/sys/module/zswap/parameters/enabled", NULL, DOCTOR_GOOD, "kernel zswap", "not in"},
	{"/dev/ublk-control", NULL, DOCTOR_NOTE, "transport", "FUSE"},
	{"/proc/cmdline", "resume=/dev/vda2 resume=UUID=abcd-ef quiet\n", DOCTOR_FINDING,
	 "hibernation", "UUID=abcd-ef"},
	{"/proc/cmdline", "resume=/dev/zswap/zswap0\n", DOCTOR_FINDING, "hibernation", "resume="},
	{"/proc/cmdline", "resume=LABEL=zswap0\n", DOCTOR_FINDING, "hibernation", "LABEL="},
	{"/proc/cmdline", "resume=259:0\n", DOCTOR_FINDING, "hibernation", "259:0"},
	{"/proc/cmdline", "quiet\n", DOCTOR_GOOD, "hibernation", "does not name"},
	{"/proc/cmdline", "nohibernate\n", DOCTOR_GOOD, "hibernation", "does not hibernate"},
	{"/proc/cmdline", NULL, DOCTOR_UNSEEN, "hibernation", "cmdline"},
	{"/sys/power/resume", "259:0\n", DOCTOR_FINDING, "hibernation", "/sys/power/resume"},
	{"/sys/power/disk", "[disabled]\n", DOCTOR_GOOD, "hibernation", "does not hibernate"},
	{"/sys/class/block/ublkb0/queue/rotational", "1\n", DOCTOR_FINDING, "device", "rotating"},
	{"/sys/class/block/ublkb0/queue/rotational", NULL, DOCTOR_UNSEEN, "device", "ublkb0"},
	{"/sys/class/block/ublkb0/queue/discard_max_bytes", "0\n", DOCTOR_FINDING, "discard",
	 "no discards"},
	{"/proc/swaps", NULL, DOCTOR_UNSEEN, "swap", "/proc/swaps"},
	{"/proc/swaps", "Filename Type Size Used Priority\n", DOCTOR_FINDING, "swap", "not in use"},
	{"/proc/swaps",
	 "Filename Type Size Used Priority\n/dev/sda partition 1 0 101\n/dev/ublkb0 partition 9 0 "
	 "100\n/dev/sdb partition 1 0 5\n",
	 DOCTOR_FINDING, "swap", "/dev/sda has priority 101"},
	{"/proc/swaps",
	 "Filename Type Size Used Priority\n/dev/ublkb0 partition 9 0 -2\n/swap\\040file file 1 0 "
	 "-2\n",
	 DOCTOR_FINDING, "swap", "/swap file has the same priority -2"},
	{"/proc/swaps", "Filename Type Size Used Priority\n/dev/ublkb0 partition 9 0 -2\n",
	 DOCTOR_GOOD, "swap", "only one"},
	{"/proc/swaps", "Filename Type Size Used Priority\n/ublkb0 partition 9 0 -2\n", DOCTOR_GOOD,
	 "swap", "only one"},
	{PROC "/oom_score_adj", "0\n", DOCTOR_FINDING, "OOM score", "is 0"},
	{PROC "/oom_score_adj", NULL, DOCTOR_UNSEEN, "OOM score", "cannot"},
	{PROC "/status", "VmLck: 4 kB\nVmSwap: 8 kB\n", DOCTOR_FINDING, "memory", "8.0 KiB"},
	{PROC "/status", "VmLck: 0 kB\nVmSwap: 0 kB\n", DOCTOR_FINDING, "memory", "none"},
	{PROC "/status", "Name: zswapd\n", DOCTOR_UNSEEN, "memory", "cannot"},
	{PROC "/task/4712/stat", STAT_UNMARKED, DOCTOR_FINDING, "I/O flusher", "1 of 2"},
	{PROC "/task/4713/stat", NULL, DOCTOR_GOOD, "I/O flusher", "all 1"},
	{"/sys/fs/cgroup/system.slice/memory.max", "1073741824\n", DOCTOR_FINDING, "cgroup",
	 "/system.slice with a limit of 1.0 GiB"},
	{"/sys/fs/cgroup/system.slice/zswapd.service/memory.high", "1048576\n", DOCTOR_FINDING,
	 "cgroup", "zswapd.service"},
	{PROC "/cgroup", NULL, DOCTOR_UNSEEN, "cgroup", "cannot"},
	{"/proc/meminfo", "MemTotal: 1048576 kB\n", DOCTOR_FINDING, "sizes", "locked"},
	{"/proc/meminfo", NULL, DOCTOR_UNSEEN, "sizes", "not all"},
};

static void each_change_is_seen(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
		no_machine(NULL);
		good_machine(NULL);
		put(changes[i].path, changes[i].text);
		/* /proc/swaps is looked at by two checks; the others by one. */
		assert_counts(changes[i].grade == DOCTOR_FINDING,
			      changes[i].grade == DOCTOR_UNSEEN);
		assert_line(changes[i].grade, changes[i].topic, changes[i].word);
	}
}

static void changes_of_several_files(void **state)
{
	put("/proc/cmdline", "quiet\n");
	put("/sys/power/resume", "0:0\n");
	assert_counts(1, 0);
	assert_line(DOCTOR_FINDING, "hibernation", "highest priority");
	put("/proc/swaps", "Filename Type Size Used Priority\n/dev/ublkb0 partition 9 0 1\n"
			   "/dev/vda2 partition 9 0 2\n");
	assert_counts(1, 0);
	assert_line(DOCTOR_GOOD, "hibernation", "does not name");

	good_machine(NULL);
	put("/dev/ublk-control", NULL);
	put("/dev/loop-control", NULL);
	assert_counts(1, 0);
	assert_line(DOCTOR_FINDING, "transport", "neither");
	put("/lib/modules/6.12.9-amd64/modules.dep", "kernel/drivers/block/ublk_drv.ko:\n");
	put("/dev/loop-control", "");
	assert_counts(0, 0);
	assert_line(DOCTOR_NOTE, "transport", "modprobe");

	/* A v1 controller. */
	good_machine(NULL);
	put(PROC "/cgroup", "5:cpu:/\n4:memory:/box\n");
	put("/sys/fs/cgroup/memory/box/memory.limit_in_bytes", "9223372036854771712\n");
	assert_counts(0, 0);
	put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "536870912\n");
	assert_counts(1, 0);
	assert_line(DOCTOR_FINDING, "cgroup", "group / with a limit of 512.0 MiB");
}

static void health(enum nlproto_health bit)
{
	good_answers();
	status.health.v = bit;
}

static void what_the_daemon_says_counts(void **state)
{
	health(NLPROTO_HEALTH_MEMORY_UNLOCKED);
	assert_counts(1, 0);
	assert_line(DOCTOR_FINDING, "memory", "not locked");
	health(NLPROTO_HEALTH_NO_IO_FLUSHER);
	assert_counts(1, 0);
	assert_line(DOCTOR_FINDING, "I/O flusher", "refused");
	health(NLPROTO_HEALTH_STORE_FAILED);
	assert_counts(1, 0);
	assert_line(DOCTOR_FINDING, "store", "failed");
	health(NLPROTO_HEALTH_STORE_MISSING);
	assert_counts(1, 0);
	assert_line(DOCTOR_FINDING, "store", "not there at the start");
	health(NLPROTO_HEALTH_STORE_STALLED);
	assert_counts(1, 0);
	assert_line(DOCTOR_FINDING, "store", "does not answer");
	health(NLPROTO_HEALTH_STORE_LOST);
	assert_counts(1, 0);
	assert_line(DOCTOR_FINDING, "store", "lost");
	good_answers();
	set("store_retired_bytes", MIB(7));
	assert_counts(1, 0);
	assert_line(DOCTOR_FINDING, "store", "7.0 MiB of it are not used any more");
	set("store_retired_bytes", 0);
	health(NLPROTO_HEALTH_STORE_FULL);
	assert_counts(1, 0);
	assert_line(DOCTOR_FINDING, "store", "full");
	good_answers();
	set("store_used_bytes", GIB(4) - MIB(2));
	assert_counts(0, 0);
	assert_line(DOCTOR_NOTE, "store", "only 25 % of 4.0 GiB");
	set("store_used_bytes", GIB(1));
	health(NLPROTO_HEALTH_NO_DISCARD);
	assert_counts(1, 0);
	assert_line(DOCTOR_FINDING, "discard", "without discard");
	good_answers();
	status.state.v = NLPROTO_STATE_FAILED;
	assert_counts(1, 0);
	assert_line(DOCTOR_FINDING, "daemon", "failed");
	good_answers();
	strcpy(status.daemon_version.s, "0.0.9");
	assert_counts(1, 0);
	assert_line(DOCTOR_FINDING, "version", "zswapd is 0.0.9, zswapctl is " ZSWAPD_VERSION);
	good_answers();
	link_to(PROC "/exe", "/usr/sbin/zswapd (deleted)");
	assert_counts(1, 0);
	assert_line(DOCTOR_FINDING, "version", "replaced");
}

static void who_stands_by_counts(void **state)
{
	assert_counts(0, 0);
	assert_line(DOCTOR_GOOD, "takeover", "standby 4720 of supervisor 4700");
	assert_line(DOCTOR_GOOD, "crashes", "no worker has died");
	status.standby.v = 0;
	assert_counts(0, 0);
	assert_line(DOCTOR_NOTE, "takeover", "prepares a standby");
	status.health.v = NLPROTO_HEALTH_NO_STANDBY;
	assert_counts(1, 0);
	assert_line(DOCTOR_FINDING, "takeover", "for more than a minute");
	status.health.v = NLPROTO_HEALTH_NO_SUPERVISOR;
	status.supervisor.v = 0;
	assert_counts(1, 0);
	assert_line(DOCTOR_FINDING, "takeover", "there is no supervisor");
	good_answers();
	status.deaths.v = 1;
	strcpy(status.report, "worker 4690 was ended by SIGSEGV");
	assert_counts(1, 0);
	assert_line(DOCTOR_FINDING, "crashes",
		    "1 worker has died and was replaced; the last: worker 4690 was ended by SIG");
	status.deaths.v = 2;
	memset(status.report, 'r', sizeof(status.report) - 1);
	assert_counts(1, 0);
	assert_line(DOCTOR_FINDING, "crashes", "2 workers have died and were replaced");
	assert_line(DOCTOR_FINDING, "crashes", "rrr...");
	/* An older daemon. */
	status.supervisor.known = status.standby.known = status.deaths.known = false;
	assert_counts(0, 2);
}

static void what_the_figures_say_counts(void **state)
{
	static const struct {
		const char *name, *topic, *word;
		uint64_t v;
	} figures[] = {
		{"store_read_errors_total", "store", "2 reads and 0 writes", 2},
		{"store_write_errors_total", "store", "0 reads and 3 writes", 3},
		{"stored_compressed_bytes", "store", "full: 98 %", 4200000000},
		{"checksum_failures_total", "pages", "5 pages failed", 5},
		{"slots_lost", "pages", "7 pages are lost", 7},
		{"writes_rejected_total", "pages", "9 pages were refused", 9},
		{"device_bytes", "sizes", "promises 64.0 GiB", GIB(64)},
		{"memory_limit_bytes", "sizes", "locked", GIB(5)},
		{"pages_discarded_total", "discard", "13 % of what is kept", 0},
	};

	for (size_t i = 0; i < ARRAY_SIZE(figures); i++) {
		good_answers();
		set(figures[i].name, figures[i].v);
		assert_counts(1, 0);
		assert_line(DOCTOR_FINDING, figures[i].topic, figures[i].word);
	}
	good_answers();
	set("store_size_bytes", 0);
	set("device_bytes", GIB(2));
	assert_counts(0, 0);
	assert_line(DOCTOR_NOTE, "store", "there is none");
	/* One that was not sent costs its own line only. */
	good_answers();
	stats.c[CTR_slots_lost].value.known = false;
	assert_counts(0, 1);
	assert_line(DOCTOR_UNSEEN, "pages", "not all known");
}

static void options_count(void **state)
{
	machine.swap_discard = (struct ctl_text){true, "off"};
	assert_counts(1, 0);
	assert_line(DOCTOR_FINDING, "discard", "swap.discard is off");
	good_answers();
	put("/proc/swaps", "Filename Type Size Used Priority\n");
	machine.swap_enable = (struct ctl_text){true, "no"};
	assert_counts(0, 0);
	assert_line(DOCTOR_NOTE, "swap", "swap.enable");
}

static void without_a_daemon(void **state)
{
	machine.status = NULL;
	machine.stats = NULL;
	strcpy(machine.silence, "nobody answers");
	/* takeover, memory, flusher, OOM score, cgroup, sizes, store, pages, discard */
	assert_counts(1, 9);
	assert_line(DOCTOR_FINDING, "daemon", "nobody answers");
	assert_line(DOCTOR_GOOD, "swap", "priority 100");
	assert_int_equal(portfile_write(root, "zswap0", 1234), 0);
	assert_counts(1, 9);
	assert_line(DOCTOR_FINDING, "daemon", "zswap0.port is left");
}

static void a_process_of_that_number_that_is_not_the_daemon(void **state)
{
	put(PROC "/comm", "bash\n");
	put(PROC "/oom_score_adj", "0\n");
	assert_counts(0, 4);
	assert_line(DOCTOR_UNSEEN, "OOM score", "does not show");
}

static void without_the_device_and_without_anything(void **state)
{
	link_to("/dev/zswap/zswap0", "/dev/ublkb7");
	assert_counts(1, 2);
	assert_line(DOCTOR_FINDING, "device", "not there");
	no_machine(NULL);
	machine.status = NULL;
	machine.stats = NULL;
	doctor_run(&machine, &report);
	assert_line(DOCTOR_FINDING, "transport", "neither");
	/* Links in a circle. */
	link_to("/dev/zswap/zswap0", "zswap0");
	doctor_run(&machine, &report);
	assert_string_equal(machine.node, "zswap0");
}

static char *printed(bool quiet)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	doctor_print(out, &machine, &report, quiet);
	fclose(out);
	return text;
}

static void the_text_fits_80_columns(void **state)
{
	char *text;

	machine.status = NULL;
	machine.stats = NULL;
	strcpy(machine.silence, "no\x1b[2J answer");
	doctor_run(&machine, &report);
	text = printed(false);
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
		if (strlen(line) > 80)
			fail_msg("%zu columns: %s", strlen(line), line);
	free(text);
	text = printed(true);
	assert_non_null(strstr(text, "[FIND] daemon       no?[2J answer\n"));
	assert_non_null(strstr(text, "\n                 -> Start it"));
	assert_non_null(strstr(text, "so do: memory, I/O flusher"));
	assert_null(strstr(text, "[ ok ]"));
	free(text);
	good_answers();
	doctor_run(&machine, &report);
	assert_string_equal(text = printed(true), "");
	free(text);
}

static int set_up(void **state)
{
	return mkdtemp(root) ? 0 : -1;
}

static int tear_down(void **state)
{
	return rmdir(root);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, good_machine, no_machine)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_good_machine_has_no_findings),
		TEST(each_change_is_seen),
		TEST(changes_of_several_files),
		TEST(what_the_daemon_says_counts),
		TEST(who_stands_by_counts),
		TEST(what_the_figures_say_counts),
		TEST(options_count),
		TEST(without_a_daemon),
		TEST(a_process_of_that_number_that_is_not_the_daemon),
		TEST(without_the_device_and_without_anything),
		TEST(the_text_fits_80_columns),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Which transport is chosen, by the devices that are there: in a mount namespace whose /dev is the
 * test's, with a modprobe that does as it is told.
 */
#include "daemon/worker/carrier.h"
#include "tests/lib/stderr.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

static struct stderr_capture cap;

static void write_file(const char *path, const char *text, mode_t mode)
{
	cleanup_fd int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static bool has_file(const char *path)
{
	return access(path, F_OK) == 0;
}

/* modprobe makes what stands in /dev/loads/MODULE. */
static void loads(const char *module, const char *path)
{
	char name[64];

	snprintf(name, sizeof(name), "/dev/loads/%s", module);
	write_file(name, path, 0644);
}

static int setup(void **state)
{
	assert_int_equal(mount("dev", "/dev", "tmpfs", 0, NULL), 0);
	assert_int_equal(mount("sbin", "/usr/sbin", "tmpfs", 0, NULL), 0);
	write_file("/dev/null", "", 0666);
	assert_int_equal(mkdir("/dev/loads", 0755), 0);
	write_file("/usr/sbin/modprobe",
		   "#!/bin/sh\n"
		   "echo \"$*\" >>/dev/asked\n"
		   "[ -e /dev/loads/$2 ] && : >$(cat /dev/loads/$2)\n",
		   0755);
	return 0;
}

static int teardown(void **state)
{
	umount2("/usr/sbin", MNT_DETACH);
	umount2("/dev", MNT_DETACH);
	return 0;
}

static struct config config_for(enum config_transport transport)
{
	struct config c;

	config_init_defaults(&c, GIB(16));
	c.device_transport = transport;
	return c;
}

/* The transport's name, or NULL with *ret_error. */
static const char *choose(struct carrier *c, const struct config *config, const char *takeover,
			  int *ret_error)
{
	stderr_capture_begin(&cap);
	*ret_error = takeover ? carrier_choose_for(c, config, takeover, NULL)
			      : carrier_choose(c, config);
	stderr_capture_end(&cap);
	return *ret_error ? NULL : c->ops->name;
}

static void assert_chosen(enum config_transport transport, const char *name)
{
	struct config config = config_for(transport);
	struct carrier c;
	int error;

	assert_non_null(choose(&c, &config, NULL, &error));
	assert_string_equal(c.ops->name, name);
	assert_in_range(c.nqueues, 1, 64);
}

static void assert_refused(enum config_transport transport, const char *takeover, int with,
			   const char *said)
{
	struct config config = config_for(transport);
	struct carrier c;
	int error;

	assert_null(choose(&c, &config, takeover, &error));
	assert_int_equal(error, with);
	if (!strstr(cap.text, said))
		fail_msg("'%s' is not in: %s", said, cap.text);
}

static void assert_none(enum config_transport transport, const char *said)
{
	assert_refused(transport, NULL, -EOPNOTSUPP, said);
}

static void the_best_that_is_there(void **state)
{
	write_file("/dev/fuse", "", 0600);
	write_file("/dev/loop-control", "", 0600);
	write_file("/dev/ublk-control", "", 0600);
	assert_chosen(CONFIG_TRANSPORT_AUTO, "ublk");
	assert_chosen(CONFIG_TRANSPORT_UBLK, "ublk");
	assert_chosen(CONFIG_TRANSPORT_FUSE, "fuse");
	assert_false(has_file("/dev/asked")); /* no module was needed */
}

static void the_other_one(void **state)
{
	write_file("/dev/fuse", "", 0600);
	write_file("/dev/loop-control", "", 0600);
	assert_chosen(CONFIG_TRANSPORT_AUTO, "fuse");
	assert_non_null(strstr(cap.text,
			       "<5>zswapd: [device] transport: ublk can't be used: "
			       "/dev/ublk-control can't be opened (is the module ublk_drv "
			       "loaded?)"));
	assert_none(CONFIG_TRANSPORT_UBLK, "<3>zswapd: [device] transport: ublk can't be used");
	assert_none(CONFIG_TRANSPORT_UBLK, "there is none that works here");
}

static void none(void **state)
{
	assert_none(CONFIG_TRANSPORT_AUTO, "ublk can't be used");
	assert_none(CONFIG_TRANSPORT_AUTO, "fuse can't be used: /dev/fuse");
	write_file("/dev/fuse", "", 0600);
	assert_none(CONFIG_TRANSPORT_FUSE, "fuse can't be used: /dev/loop-control");
}

static void modules_are_loaded(void **state)
{
	loads("ublk_drv", "/dev/ublk-control");
	loads("fuse", "/dev/fuse");
	loads("loop", "/dev/loop-control");
	assert_chosen(CONFIG_TRANSPORT_FUSE, "fuse");
	assert_false(has_file("/dev/ublk-control")); /* nobody asked for it */
	assert_chosen(CONFIG_TRANSPORT_AUTO, "ublk");
}

/* By the transport that made it, whatever else works here. */
static void a_takeover_goes_by_the_device(void **state)
{
	struct config config = config_for(CONFIG_TRANSPORT_AUTO);
	struct carrier c;
	int error;

	write_file("/dev/fuse", "", 0600);
	write_file("/dev/loop-control", "", 0600);
	write_file("/dev/ublk-control", "", 0600);
	assert_null(choose(&c, &config, "/dev/ublkb3", &error));
	assert_non_null(strstr(cap.text, "can't be taken over by the transport ublk: "));
	assert_non_null(strstr(cap.text, "start with the former configuration, or swap off first"));
	assert_refused(CONFIG_TRANSPORT_FUSE, "/dev/ublkb3", -ENODEV,
		       "/dev/ublkb3 can't be taken over by the transport fuse: ");
	assert_refused(CONFIG_TRANSPORT_UBLK, "/dev/loop3", -ENODEV,
		       "/dev/loop3 can't be taken over by the transport ublk: ");
	assert_refused(CONFIG_TRANSPORT_AUTO, "/dev/sda", -ENODEV, "/dev/sda can't be taken over");
	/* What would be needed was not kept. */
	assert_refused(CONFIG_TRANSPORT_AUTO, "/dev/loop3", -ESTALE,
		       "/dev/loop3 can't be served again: zswapd-fuse was not kept");
	assert_false(has_file("/dev/asked"));
}

/* Queues hold memory, so a small front tier has few. */
static void queues_that_memory_allows(void **state)
{
	struct config config = config_for(CONFIG_TRANSPORT_UBLK);
	struct carrier c;
	int error;

	write_file("/dev/ublk-control", "", 0600);
	config.device_queues = 5;
	assert_non_null(choose(&c, &config, NULL, &error));
	assert_int_equal(c.nqueues, 5);
	config.device_queues = 0;
	config.memory_limit = CONFIG_MEMORY_LIMIT_MIN;
	assert_non_null(choose(&c, &config, NULL, &error));
	assert_true(engine_memory_min(c.nqueues) <= config.memory_limit / 2 || c.nqueues == 1);
}

/* A driver that can't be talked to: the next one is tried, and the reason is said. */
static void what_fails_gives_way(void **state)
{
	struct config config = config_for(CONFIG_TRANSPORT_AUTO);
	struct transport_options o = {
		.name = "test", .run_dir = "/dev", .device_bytes = MIB(1), .store_fd = -1};
	struct transport *t = NULL;
	struct carrier c;
	int error, r;

	write_file("/dev/ublk-control", "", 0600);
	assert_non_null(choose(&c, &config, NULL, &error));
	stderr_capture_begin(&cap);
	r = carrier_open(&c, &t, &o);
	stderr_capture_end(&cap);
	assert_true(r < 0 && !t);
	assert_string_equal(c.ops->name, "ublk");
	assert_non_null(strstr(cap.text, "fuse can't be used"));

	write_file("/dev/fuse", "", 0600);
	write_file("/dev/loop-control", "", 0600);
	/* Not in a takeover. */
	o.takeover = "/dev/ublkb3";
	stderr_capture_begin(&cap);
	r = carrier_prepare(&c, &t, &o);
	stderr_capture_end(&cap);
	assert_true(r < 0 && !t);
	assert_string_equal(c.ops->name, "ublk");
	assert_null(strstr(cap.text, "fuse"));
	o.takeover = NULL;
	stderr_capture_begin(&cap);
	r = carrier_open(&c, &t, &o);
	stderr_capture_end(&cap);
	assert_true(r < 0 && !t);
	assert_non_null(strstr(cap.text, "ublk does not work here ("));
	assert_non_null(strstr(cap.text, "going on with fuse"));
	assert_string_equal(c.ops->name, "fuse");
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(the_best_that_is_there),
		T(the_other_one),
		T(none),
		T(modules_are_loaded),
		T(a_takeover_goes_by_the_device),
		T(queues_that_memory_allows),
		T(what_fails_gives_way),
	};

	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) {
		printf("skipped: no mount namespace of its own: %s\n", strerror(errno));
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}

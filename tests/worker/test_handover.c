// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What a worker finds of its predecessor, and what its supervisor is told.
 */
#include "common/util.h"
#include "daemon/link/link.h"
#include "daemon/state/state.h"
#include "daemon/worker/device.h"
#include "daemon/worker/handover.h"

#include <errno.h>
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cmocka.h>

static struct kept kept;
static struct supervised supervised;
static int supervisor; /* the link's other end */

static int setup(void **state)
{
	int fds[2];

	assert_int_equal(link_pair(fds), 0);
	supervisor = fds[0];
	supervised = (struct supervised){.link = fds[1], .kept = &kept};
	kept = (struct kept){0};
	return 0;
}

static int teardown(void **state)
{
	kept_deinit(&kept);
	close(supervised.link);
	close(supervisor);
	return 0;
}

static void assert_told(enum link_type type, const char *text)
{
	struct link_message m;

	assert_int_equal(link_receive(supervisor, &m), 1);
	assert_int_equal(m.type, type);
	assert_string_equal(m.text, text);
	assert_int_equal(m.fd >= 0, type == LINK_KEEP);
	close_fd(m.fd);
}

static void assert_told_nothing(void)
{
	struct link_message m;

	assert_int_equal(link_receive(supervisor, &m), -EAGAIN);
}

/*
 * Any disk that there is; the tests only look.  The last one: loop0 is what others attach and
 * detach meanwhile, which gives it another number.
 */
static struct device_disk disk;

static void find_disk(void)
{
	glob_t g;

	if (glob("/sys/block/*/diskseq", 0, NULL, &g) == 0) {
		const char *name = g.gl_pathv[g.gl_pathc - 1] + strlen("/sys/block/");
		char path[DEVICE_PATH_MAX];

		snprintf(path, sizeof(path), "/dev/%.*s", (int)strcspn(name, "/"), name);
		device_disk(path, &disk);
		globfree(&g);
	}
}

static int memory(const char *name)
{
	return memfd_create(name, MFD_CLOEXEC);
}

/* Keeps a state that belongs to @d; NULL: to none yet. */
static void keep_state(const struct device_disk *d)
{
	const struct state_geometry geo = {.nslots = 100, .nframes = 16};
	struct state_owner owner = {.store = {7}};
	struct state *s;

	assert_int_equal(state_new(&s, &geo), 0);
	if (d) {
		snprintf(owner.device, sizeof(owner.device), "%s", d->path);
		owner.diskseq = d->diskseq;
		state_set_owner(s, &owner);
	}
	assert_int_equal(kept_put(&kept, KEPT_STATE, dup(s->fd)), 0);
	state_free(s);
}

static void keep_memory(const char *name)
{
	assert_int_equal(kept_put(&kept, name, memory(name)), 0);
}

static ino_t inode(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return st.st_ino;
}

static void assert_nothing_received(const struct handover *h)
{
	assert_int_equal(h->state_fd, -1);
	assert_int_equal(h->front_fd, -1);
	assert_int_equal(h->kept.n, 0);
	assert_string_equal(h->owner.device, "");
}

static void nothing_is_there(void **state)
{
	struct handover h;

	keep_memory(KEPT_LOCK);
	assert_int_equal(handover_receive(&h, &supervised), 0);
	assert_nothing_received(&h);
	assert_int_equal(kept.n, 1);
	assert_told_nothing();
}

static void all_of_it(void **state)
{
	struct handover h;

	if (!disk.diskseq)
		skip();
	keep_memory(KEPT_LOCK);
	keep_memory("zswapd-loop");
	keep_memory(KEPT_STORE);
	keep_memory(KEPT_FRONT);
	keep_state(&disk);
	assert_int_equal(handover_receive(&h, &supervised), 0);
	assert_string_equal(h.owner.device, disk.path);
	assert_true(handover_device_there(&h));
	/* Copies: what is kept stays kept. */
	assert_int_not_equal(h.state_fd, kept_get(&kept, KEPT_STATE));
	assert_int_equal(inode(h.state_fd), inode(kept_get(&kept, KEPT_STATE)));
	assert_int_equal(inode(h.front_fd), inode(kept_get(&kept, KEPT_FRONT)));
	/* The transport gets what is neither the engine's nor the store's nor private. */
	assert_int_equal(h.kept.n, 1);
	assert_string_equal(h.kept.fds[0].name, "zswapd-loop");
	assert_int_equal(inode(h.kept.fds[0].fd), inode(kept_get(&kept, "zswapd-loop")));
	assert_told_nothing();
	handover_deinit(&h);
}

/* All but what is the family's own goes, here and at the supervisor. */
static void assert_given_up(const struct handover *h, unsigned dropped)
{
	struct link_message m;

	assert_nothing_received(h);
	assert_int_equal(kept.n, 1);
	assert_string_equal(kept.entries[0].name, KEPT_LOCK);
	while (dropped-- > 0) {
		assert_int_equal(link_receive(supervisor, &m), 1);
		assert_int_equal(m.type, LINK_DROP);
		assert_int_equal(strncmp(m.text, "zswapd-", 7), 0);
	}
	assert_told_nothing();
}

static void a_device_that_is_gone(void **state)
{
	struct device_disk gone = disk;
	struct handover h;

	gone.diskseq += 1000000;
	keep_memory(KEPT_LOCK);
	keep_memory("zswapd-fuse");
	keep_memory(KEPT_FRONT);
	keep_state(&gone);
	assert_int_equal(handover_receive(&h, &supervised), 0);
	assert_given_up(&h, 3);
}

static void a_state_of_no_device(void **state)
{
	struct handover h;

	keep_memory(KEPT_LOCK);
	keep_memory(KEPT_FRONT);
	keep_state(NULL);
	assert_int_equal(handover_receive(&h, &supervised), 0);
	assert_given_up(&h, 2);
}

static void one_without_the_other(void **state)
{
	struct handover h;

	keep_memory(KEPT_LOCK);
	keep_state(&disk);
	assert_int_equal(handover_receive(&h, &supervised), 0);
	assert_given_up(&h, 1);

	keep_memory(KEPT_FRONT);
	assert_int_equal(handover_receive(&h, &supervised), 0);
	assert_given_up(&h, 1);

	keep_memory("zswapd-fuse");
	assert_int_equal(handover_receive(&h, &supervised), 0);
	assert_given_up(&h, 1);
}

/* Another version may know what to do with it. */
static void no_state_at_all(void **state)
{
	struct handover h;

	keep_memory(KEPT_FRONT);
	keep_memory(KEPT_STATE);
	assert_int_equal(handover_receive(&h, &supervised), -EBADMSG);
	assert_int_equal(kept.n, 2);
	assert_told_nothing();
	handover_deinit(&h);
}

static void withdrawing(void **state)
{
	keep_memory(KEPT_LOCK);
	keep_memory(KEPT_STATE);
	handover_withdraw(&supervised);
	assert_told(LINK_DROP, KEPT_STATE);
	assert_told_nothing();
	assert_int_equal(kept.n, 1);
}

/* Without a supervisor it is kept all the same, for the next one. */
static void keeping_alone(void **state)
{
	int fd = memory("x");

	supervised.link = close_fd(supervised.link);
	assert_int_equal(supervised_keep(&supervised, "zswapd-loop", fd), 0);
	assert_int_equal(inode(kept_get(&kept, "zswapd-loop")), inode(fd));
	close(fd);
}

static void keeping(void **state)
{
	int fd = memory("x");

	assert_int_equal(supervised_keep(&supervised, "zswapd-loop", fd), 0);
	assert_told(LINK_KEEP, "zswapd-loop");
	assert_int_equal(inode(kept_get(&kept, "zswapd-loop")), inode(fd));
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(nothing_is_there, setup, teardown),
		cmocka_unit_test_setup_teardown(all_of_it, setup, teardown),
		cmocka_unit_test_setup_teardown(a_device_that_is_gone, setup, teardown),
		cmocka_unit_test_setup_teardown(a_state_of_no_device, setup, teardown),
		cmocka_unit_test_setup_teardown(one_without_the_other, setup, teardown),
		cmocka_unit_test_setup_teardown(no_state_at_all, setup, teardown),
		cmocka_unit_test_setup_teardown(withdrawing, setup, teardown),
		cmocka_unit_test_setup_teardown(keeping, setup, teardown),
		cmocka_unit_test_setup_teardown(keeping_alone, setup, teardown),
	};

	find_disk();
	return cmocka_run_group_tests(tests, NULL, NULL);
}

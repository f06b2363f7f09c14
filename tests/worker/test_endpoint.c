// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/worker/endpoint.h"
#include "tests/engine/rig.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

static int apply(void *ctx, enum config_option_id id, const struct config *c,
		 char reason[static CONFIG_REASON_MAX])
{
	return 0;
}

static void changed(void *ctx, const char *key, const char *text)
{
}

static void notify(void *ctx, const char *state)
{
}

static const struct control_ops control_ops = {apply, changed, notify};

/* What the endpoint is given; left to a thread that does not end. */
static struct config config;
static const struct system_grants grants;
static struct rig left_rig;
static struct control *left_control;
static struct endpoint *endpoint;

/* A page at which whoever reads it waits, until let_go().  -errno. */
static int trap(void **ret_page)
{
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register reg = {.range.len = 4096, .mode = UFFDIO_REGISTER_MODE_MISSING};
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return -errno;
	*ret_page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(*ret_page, MAP_FAILED);
	reg.range.start = (uintptr_t)*ret_page;
	assert_int_equal(ioctl(fd, UFFDIO_API, &api), 0);
	assert_int_equal(ioctl(fd, UFFDIO_REGISTER, &reg), 0);
	return fd;
}

static void let_go(int fd, void *page)
{
	struct uffdio_zeropage zero = {.range = {(uintptr_t)page, 4096}};

	assert_int_equal(ioctl(fd, UFFDIO_ZEROPAGE, &zero), 0);
}

/* Who stops it is told, and nothing that the thread uses is freed. */
static void a_thread_that_does_not_end(void **state)
{
	struct config_source source = {.file = "/nonexistent"};
	struct endpoint_source src = {.config = &config, .transport = "fuse", .grants = &grants};
	struct pollfd trapped = {.events = POLLIN};
	void *page = NULL;
	int fd = trap(&page);

	if (fd < 0)
		skip();
	rig_init(&left_rig, 1024, 9, 0);
	config_init_defaults(&config, GIB(8));
	snprintf(config.device_name, sizeof(config.device_name), "endpoint-%d", (int)getpid());
	assert_int_equal(control_new(&left_control, &config, &source, &control_ops, NULL), 0);
	src.control = left_control;
	src.engine = left_rig.e;
	src.state = page;
	endpoint_start(&endpoint, &src);
	assert_non_null(endpoint);
	trapped.fd = fd;
	assert_int_equal(poll(&trapped, 1, 20000), 1);
	assert_int_equal(endpoint_stop(endpoint), -ETIMEDOUT);
	/* It goes on with what it has, which the daemon leaves alone as well. */
	let_go(fd, page);
	usleep(200000);
	close(fd);
}

static void one_that_ends(void **state)
{
	static const _Atomic enum nlproto_state running = NLPROTO_STATE_RUNNING;
	struct config_source source = {.file = "/nonexistent"};
	struct endpoint_source src = {
		.config = &config, .transport = "fuse", .grants = &grants, .state = &running};
	struct endpoint *ep;
	struct rig rig;

	rig_init(&rig, 1024, 9, 0);
	config_init_defaults(&config, GIB(8));
	snprintf(config.device_name, sizeof(config.device_name), "endpoint-%d", (int)getpid());
	assert_int_equal(control_new(&src.control, &config, &source, &control_ops, NULL), 0);
	src.engine = rig.e;
	endpoint_start(&ep, &src);
	assert_non_null(ep);
	assert_int_equal(endpoint_stop(ep), 0);
	assert_int_equal(endpoint_stop(NULL), 0);
	rig_deinit(&rig);
	control_free(src.control);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_that_ends),
		cmocka_unit_test(a_thread_that_does_not_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

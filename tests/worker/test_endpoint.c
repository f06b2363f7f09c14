// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/util.h"
#include "ctl/client.h"
#include "daemon/worker/endpoint.h"
#include "tests/engine/rig.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
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

/* --- the supervision, seen by a client --- */

static struct supervision supervision;
static struct endpoint *asked;
static struct ctl_client *client;
static struct ctl_reply reply;
static atomic_bool owner_ends;
static int upgrade_result;

static int upgrade(void *ctx, char *text, size_t size)
{
	assert_ptr_equal(ctx, &upgrade_result);
	snprintf(text, size, "said %d", upgrade_result);
	return upgrade_result;
}

static void *owner_main(void *arg)
{
	while (!owner_ends) {
		struct pollfd pfd = {.fd = endpoint_fd(asked), .events = POLLIN};

		if (poll(&pfd, 1, 20) > 0)
			endpoint_work(asked);
	}
	return NULL;
}

static void ask(enum nlproto_cmd cmd, int want)
{
	assert_int_equal(ctl_client_ask(client, cmd, config.device_name, &reply), want);
}

static void check_what_is_shown(void)
{
	ask(NLPROTO_CMD_STATUS, 0);
	assert_int_equal(reply.status.supervisor.v, 4700);
	assert_true(reply.status.standby.known && reply.status.standby.v == 0);
	assert_int_equal(reply.status.deaths.v, 1);
	assert_non_null(strstr(reply.status.report, "worker 790 was ended by SIGKILL"));
	assert_string_equal(reply.status.takeover.s, supervision.text);
	assert_int_equal(reply.status.takeover_ns.v, supervision.took_ns);
	/* Not yet a reason to worry, unlike a supervisor that is gone. */
	assert_int_equal(reply.status.health.v &
				 (NLPROTO_HEALTH_NO_SUPERVISOR | NLPROTO_HEALTH_NO_STANDBY),
			 0);
	ask(NLPROTO_CMD_STATS, 0);
	assert_int_equal(ctl_stats_get(&reply.stats, "worker_deaths_total").v, 1);
	assert_int_equal(ctl_stats_get(&reply.stats, "supervisor_present").v, 1);
	supervision_changed(&supervision, 0);
	ask(NLPROTO_CMD_STATUS, 0);
	assert_int_equal(reply.status.health.v & NLPROTO_HEALTH_NO_SUPERVISOR,
			 NLPROTO_HEALTH_NO_SUPERVISOR);
}

static void check_upgrades(void)
{
	if (geteuid())
		return; /* changing takes root */
	upgrade_result = 0;
	ask(NLPROTO_CMD_UPGRADE, 0);
	assert_int_equal(reply.lines.n, 1);
	assert_string_equal(reply.lines.line[0], "said 0");
	upgrade_result = -ESRCH;
	ask(NLPROTO_CMD_UPGRADE, 1);
	assert_int_equal(reply.error, -ESRCH);
	assert_non_null(strstr(reply.error_text, "said -3"));
}

static void supervision_is_shown_and_upgrades_are_handed_on(void **state)
{
	static const _Atomic enum nlproto_state running = NLPROTO_STATE_RUNNING;
	struct config_source source = {.file = "/nonexistent"};
	struct endpoint_source src = {.config = &config,
				      .transport = "fuse",
				      .grants = &grants,
				      .state = &running,
				      .supervision = &supervision,
				      .upgrade = upgrade,
				      .ctx = &upgrade_result};
	pthread_t owner;
	struct watch *watch;
	struct rig rig;
	int fd;

	assert_int_equal(watch_new(&watch, &fd), 0);
	close(fd);
	watch->worker = 790;
	watch_make_report(watch, 790, SIGKILL, NULL);
	supervision_init(&supervision, watch, 4700);
	supervision_begin(&supervision);
	supervision_took_over(&supervision);
	rig_init(&rig, 1024, 9, 0);
	config_init_defaults(&config, GIB(8));
	snprintf(config.device_name, sizeof(config.device_name), "endpoint-%d", (int)getpid());
	assert_int_equal(control_new(&src.control, &config, &source, &control_ops, NULL), 0);
	src.engine = rig.e;
	endpoint_start(&asked, &src);
	assert_non_null(asked);
	assert_int_equal(pthread_create(&owner, NULL, owner_main, NULL), 0);
	assert_int_equal(ctl_client_new(&client, nlproto_port(config.device_name), geteuid()), 0);
	check_what_is_shown();
	check_upgrades();
	ctl_client_free(client);
	owner_ends = true;
	pthread_join(owner, NULL);
	assert_int_equal(endpoint_stop(asked), 0);
	rig_deinit(&rig);
	control_free(src.control);
	watch_free(watch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_that_ends),
		cmocka_unit_test(supervision_is_shown_and_upgrades_are_handed_on),
		cmocka_unit_test(a_thread_that_does_not_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The client library against a server of this process, over sockets: as root, as an unprivileged
 * user, and as one who is root of a user namespace of his own.
 */
#include "common/util.h"
#include "ctl/client.h"
#include "ctl/events.h"
#include "daemon/stats/server.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/netlink.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <netlink/socket.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <cmocka.h>

#define NAME   "client-test"
#define KEY    "memory.limit"
#define NOBODY 65534

static char run_dir[] = "/tmp/zswapd-test-XXXXXX";
static struct stats_server *server;
static struct ctl_reply reply;

/* --- a daemon with one option and an owner who changes it --- */

static struct {
	pthread_mutex_t lock;
	char value[NLPROTO_TEXT_MAX];
	_Atomic uint64_t checksum_failures;
	_Atomic unsigned changes;
	_Atomic bool stop;
	pthread_t owner;
} daemon_side = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void give_counters(void *ctx, uint64_t values[COUNTER_COUNT])
{
	values[CTR_checksum_failures_total] = daemon_side.checksum_failures;
}

static void give_status(void *ctx, struct stats_status *ret)
{
	ret->state = NLPROTO_STATE_RUNNING;
}

static bool give_option(void *ctx, unsigned index, struct stats_option *ret)
{
	if (index)
		return false;
	strcpy(ret->key, KEY);
	pthread_mutex_lock(&daemon_side.lock);
	strcpy(ret->value, daemon_side.value);
	pthread_mutex_unlock(&daemon_side.lock);
	return true;
}

static const struct stats_server_ops ops = {
	.counters = give_counters, .status = give_status, .option = give_option, .changes = true};

static void make_change(const struct stats_change *c)
{
	char text[NLPROTO_LINE_MAX];

	daemon_side.changes++;
	if (c->kind == STATS_CHANGE_RELOAD) {
		stats_server_finish_change(server, 0, "a.b: 1 -> 2\nc.d: needs a restart");
		return;
	}
	if (strcmp(c->key, KEY)) {
		stats_server_finish_change(server, -ENOENT, "no such option");
		return;
	}
	pthread_mutex_lock(&daemon_side.lock);
	snprintf(text, sizeof(text), KEY ": %.100s -> %.100s", daemon_side.value, c->value);
	strcpy(daemon_side.value, c->value);
	pthread_mutex_unlock(&daemon_side.lock);
	stats_server_post(server, NLPROTO_EVENT_CONFIG_CHANGED, KEY, text);
	stats_server_finish_change(server, 0, text);
}

static void *owner_main(void *arg)
{
	struct pollfd pfd = {.fd = stats_server_change_fd(server), .events = POLLIN};
	struct stats_change c;

	while (!daemon_side.stop)
		if (poll(&pfd, 1, 20) == 1 && stats_server_take_change(server, &c))
			make_change(&c);
	return NULL;
}

static int start_daemon(void **state)
{
	strcpy(daemon_side.value, "old");
	daemon_side.checksum_failures = 0;
	daemon_side.changes = 0;
	daemon_side.stop = false;
	if (stats_server_new(&server, NAME, &ops, NULL) < 0 ||
	    stats_server_set_run_dir(server, run_dir) < 0 || stats_server_start(server) < 0)
		return -1;
	return pthread_create(&daemon_side.owner, NULL, owner_main, NULL);
}

static int stop_daemon(void **state)
{
	daemon_side.stop = true;
	pthread_join(daemon_side.owner, NULL);
	stats_server_free(server);
	server = NULL;
	return 0;
}

static uint32_t port(void)
{
	return stats_server_port(server);
}

static int request(const struct ctl_request *rq)
{
	struct ctl_client *c;
	int r;

	assert_int_equal(ctl_client_new(&c, port(), getuid()), 0);
	r = ctl_client_request(c, rq, &reply);
	ctl_client_free(c);
	return r;
}

static const struct ctl_request set_request = {
	.cmd = NLPROTO_CMD_SET, .device = NAME, .key = KEY, .value = "new"};

/* --- requests --- */

static void an_option_is_set_and_read(void **state)
{
	struct ctl_request get = {.cmd = NLPROTO_CMD_GET, .key = KEY};

	if (getuid())
		skip();
	assert_int_equal(request(&set_request), 0);
	assert_int_equal(daemon_side.changes, 1);
	assert_int_equal(reply.options.n, 1);
	assert_string_equal(ctl_options_get(&reply.options, KEY)->value.s, "new");
	assert_int_equal(reply.lines.n, 1);
	assert_string_equal(reply.lines.line[0], KEY ": old -> new");
	assert_int_equal(request(&get), 0);
	assert_string_equal(ctl_options_get(&reply.options, KEY)->value.s, "new");
	get.key = NULL;
	assert_int_equal(request(&get), 0);
	assert_int_equal(reply.options.n, 1);
	get.key = "no.such";
	assert_int_equal(request(&get), 1);
	assert_int_equal(reply.error, -ENOENT);
}

static void a_reload_is_told_in_lines(void **state)
{
	struct ctl_request rq = {.cmd = NLPROTO_CMD_RELOAD};

	if (getuid())
		skip();
	assert_int_equal(request(&rq), 0);
	assert_int_equal(reply.lines.n, 2);
	assert_string_equal(reply.lines.line[1], "c.d: needs a restart");
}

static void texts_that_do_not_fit(void **state)
{
	struct ctl_request rq = set_request;
	char text[NLPROTO_TEXT_MAX + 1];

	memset(text, 'x', sizeof(text));
	text[NLPROTO_TEXT_MAX] = '\0';
	rq.value = text;
	assert_int_equal(request(&rq), -EINVAL);
	rq = set_request;
	rq.key = text;
	assert_int_equal(request(&rq), -EINVAL);
	rq = set_request;
	rq.device = text;
	assert_int_equal(request(&rq), -EINVAL);
	assert_int_equal(daemon_side.changes, 0);
}

/* --- who may --- */

static void become_nobody(void)
{
	if (setgroups(0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 ||
	    setresuid(NOBODY, NOBODY, NOBODY) < 0)
		_exit(90);
}

static void write_line(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		_exit(77);
	close(fd);
}

/* Root of a namespace that any user can make. */
static void become_root_of_own(void)
{
	become_nobody();
	/* A process that has changed its uid does not own its files in /proc without this. */
	if (prctl(PR_SET_DUMPABLE, 1) < 0 || unshare(CLONE_NEWUSER) < 0)
		_exit(77);
	write_line("/proc/self/setgroups", "deny");
	write_line("/proc/self/uid_map", "0 65534 1");
	if (setresuid(0, 0, 0) < 0 || getuid() != 0)
		_exit(91);
}

/* Runs @act in a child that @become is called in first; its exit status. */
static int in_child(void (*become)(void), int (*act)(void))
{
	int status;
	pid_t pid;

	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		alarm(20);
		become();
		_exit(act());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* Believes any uid as the daemon's: it is the daemon's side that is tried. */
static int set_is_refused(uid_t daemon_uid)
{
	struct ctl_client *c;
	int r;

	if (ctl_client_new(&c, port(), daemon_uid) < 0)
		return 1;
	r = ctl_client_request(c, &set_request, &reply);
	if (r != 1 || reply.error != -EPERM)
		return 2;
	/* It may read. */
	return ctl_client_ask(c, NLPROTO_CMD_STATUS, NAME, &reply) == 0 ? 0 : 3;
}

static int act_as_nobody(void)
{
	return set_is_refused(0);
}

/* The daemon's uid 0 is not mapped here, and shows as 65534. */
static int act_as_root_of_own(void)
{
	struct ctl_client *c;

	if (ctl_client_new(&c, port(), 0) < 0 ||
	    ctl_client_ask(c, NLPROTO_CMD_STATUS, NAME, &reply) != -EPERM)
		return 4;
	ctl_client_free(c);
	return set_is_refused(NOBODY);
}

static void others_may_not_change(void **state)
{
	int r;

	if (getuid())
		skip();
	assert_int_equal(in_child(become_nobody, act_as_nobody), 0);
	r = in_child(become_root_of_own, act_as_root_of_own);
	if (r != 77) /* no user namespaces here */
		assert_int_equal(r, 0);
	assert_int_equal(daemon_side.changes, 0);
	assert_string_equal(daemon_side.value, "old");
	if (r == 77)
		skip();
}

/* --- events --- */

static struct ctl_events *follow(void)
{
	char text[NLPROTO_LINE_MAX];
	struct ctl_events *e;

	assert_int_equal(ctl_events_new(&e, port(), 0, NAME, text), 0);
	return e;
}

static int next(struct ctl_events *e, struct ctl_event *ev)
{
	uint64_t lost;
	int r = ctl_events_next(e, 3000, ev, &lost);

	return r == 1 && lost ? -1000 : r;
}

static void root_follows_by_the_group(void **state)
{
	struct ctl_events *e;
	struct ctl_event ev;

	if (getuid())
		skip();
	e = follow();
	assert_int_equal(request(&set_request), 0);
	assert_int_equal(next(e, &ev), 1);
	assert_int_equal(ev.kind.v, NLPROTO_EVENT_CONFIG_CHANGED);
	assert_string_equal(ev.key.s, KEY);
	assert_string_equal(ev.text.s, KEY ": old -> new");
	daemon_side.checksum_failures = 3;
	assert_int_equal(next(e, &ev), 1);
	assert_int_equal(ev.kind.v, NLPROTO_EVENT_CHECKSUM_FAILURE);
	assert_int_equal(ev.count.v, 3);
	ctl_events_free(e);
}

static int act_as_follower(void)
{
	char text[NLPROTO_LINE_MAX];
	struct ctl_events *e;
	struct ctl_event ev;
	int r;

	r = ctl_events_new(&e, port(), 0, NAME, text);
	if (r)
		return 1;
	/* The parent's counter has risen: see below. */
	r = next(e, &ev);
	if (r != 1 || ev.kind.v != NLPROTO_EVENT_CHECKSUM_FAILURE)
		return 2;
	ctl_events_free(e);
	return 0;
}

static void *fail_now_and_then(void *arg)
{
	while (!atomic_load((_Atomic bool *)arg)) {
		daemon_side.checksum_failures++;
		usleep(100000);
	}
	return NULL;
}

static void nobody_follows_by_subscription(void **state)
{
	_Atomic bool stop = false;
	pthread_t thread;
	int r;

	if (getuid())
		skip();
	pthread_create(&thread, NULL, fail_now_and_then, &stop);
	r = in_child(become_nobody, act_as_follower);
	stop = true;
	pthread_join(thread, NULL);
	assert_int_equal(r, 0);
}

/* An event of the daemon's form, from a stranger to the group. */
static int act_as_impostor(void)
{
	struct sockaddr_nl to = {.nl_family = AF_NETLINK, .nl_groups = 1u << (NLPROTO_GROUP - 1)};
	struct nl_msg *msg = nlmsg_alloc_size(4096);
	struct nlproto_hdr hdr = {.cmd = NLPROTO_CMD_EVENT, .version = NLPROTO_VERSION};
	struct nl_sock *sk = nl_socket_alloc();
	struct nlmsghdr *nlh;

	if (nl_connect(sk, NETLINK_USERSOCK) < 0)
		return 1;
	nlh = nlmsg_put(msg, port(), 0, NLPROTO_MSG_TYPE, sizeof(hdr), 0);
	nlh->nlmsg_seq = 0;
	memcpy(nlmsg_data(nlh), &hdr, sizeof(hdr));
	nla_put_string(msg, NLPROTO_A_DEVICE, NAME);
	nla_put_u8(msg, NLPROTO_A_EVENT, NLPROTO_EVENT_STORE_ERROR);
	nla_put_u64(msg, NLPROTO_A_EVENT_SEQ, 1);
	nla_put_string(msg, NLPROTO_A_TEXT, "believe me");
	/* It also goes to port 0, where nobody is. */
	if (sendto(nl_socket_get_fd(sk), nlh, nlh->nlmsg_len, 0, (struct sockaddr *)&to,
		   sizeof(to)) < 0 &&
	    errno != ECONNREFUSED)
		return 2;
	return 0;
}

static void an_impostors_event_is_passed_over(void **state)
{
	struct ctl_events *e;
	struct ctl_event ev;

	if (getuid())
		skip();
	e = follow();
	assert_int_equal(in_child(become_nobody, act_as_impostor), 0);
	assert_int_equal(request(&set_request), 0);
	assert_int_equal(next(e, &ev), 1);
	assert_int_equal(ev.kind.v, NLPROTO_EVENT_CONFIG_CHANGED);
	ctl_events_free(e);
}

/* More than the socket holds: the rest is gone, and it shows. */
static void lost_events_are_counted(void **state)
{
	unsigned got = 0;
	struct ctl_events *e;
	struct ctl_event ev;
	uint64_t lost, sum = 0;
	int r;

	if (getuid())
		skip();
	e = follow();
	for (unsigned i = 0; i < 200; i++) {
		stats_server_post(server, NLPROTO_EVENT_CONFIG_CHANGED, NULL, "x");
		if (i % 10 == 9)
			usleep(1000);
	}
	while ((r = ctl_events_next(e, 500, &ev, &lost)) == 1) {
		got++;
		sum += lost;
	}
	assert_int_equal(r, 0);
	assert_true(got >= 16 && got < 100); /* held back by the server */
	usleep(300000);			     /* room for one more */
	stats_server_post(server, NLPROTO_EVENT_CONFIG_CHANGED, NULL, "last");
	assert_int_equal(ctl_events_next(e, 2000, &ev, &lost), 1);
	assert_int_equal(got + sum + lost, 200);
	ctl_events_free(e);
}

static void a_daemon_that_ends_is_noticed(void **state)
{
	struct ctl_events *e;
	struct ctl_event ev;
	uint64_t lost;
	int r;

	if (getuid())
		skip();
	e = follow();
	stop_daemon(state);
	do
		r = ctl_events_next(e, 15000, &ev, &lost);
	while (r == 1);
	assert_int_equal(r, -ECONNREFUSED);
	ctl_events_free(e);
	assert_int_equal(start_daemon(state), 0);
}

static int make_run_dir(void **state)
{
	return mkdtemp(run_dir) ? 0 : -1;
}

static int remove_run_dir(void **state)
{
	return rmdir(run_dir);
}

#define T(name) cmocka_unit_test_setup_teardown(name, start_daemon, stop_daemon)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(an_option_is_set_and_read),
		T(a_reload_is_told_in_lines),
		T(texts_that_do_not_fit),
		T(others_may_not_change),
		T(root_follows_by_the_group),
		T(nobody_follows_by_subscription),
		T(an_impostors_event_is_passed_over),
		T(lost_events_are_counted),
		T(a_daemon_that_ends_is_noticed),
	};

	return cmocka_run_group_tests(tests, make_run_dir, remove_run_dir);
}

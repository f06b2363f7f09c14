// SPDX-License-Identifier: GPL-2.0-or-later
/* The server behind real sockets, asked by this user and by an unprivileged one. */
#include "common/portfile.h"
#include "common/util.h"
#include "daemon/stats/server.h"
#include "tests/stats/packet.h"

#include <dirent.h>
#include <errno.h>
#include <grp.h>
#include <linux/netlink.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <netlink/socket.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#define NOBODY 65534

static void give_counters(void *ctx, uint64_t values[COUNTER_COUNT])
{
	for (unsigned i = 0; i < COUNTER_COUNT; i++)
		values[i] = i;
}

static void give_status(void *ctx, struct stats_status *ret)
{
	ret->state = NLPROTO_STATE_RUNNING;
}

static const struct stats_server_ops ops = {.counters = give_counters, .status = give_status};

static void names_are_checked(void **state)
{
	static const char *const bad[] = {"", ".hidden", "-d", "a/b", "a b", "../x", "a\n"};
	struct stats_server *s = (void *)1;
	char longest[NLPROTO_NAME_MAX + 1];

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(stats_server_new(&s, bad[i], &ops, NULL), -EINVAL);
	memset(longest, 'a', sizeof(longest));
	longest[NLPROTO_NAME_MAX] = '\0';
	assert_int_equal(stats_server_new(&s, longest, &ops, NULL), -EINVAL);
	assert_ptr_equal(s, (void *)1);
	longest[NLPROTO_NAME_MAX - 1] = '\0';
	assert_int_equal(stats_server_new(&s, longest, &ops, NULL), 0);
	stats_server_free(s);
}

static char run_dir[] = "/tmp/zswapd-test-XXXXXX";

static struct nl_sock *client_open(uint32_t port)
{
	struct nl_sock *sk = nl_socket_alloc();

	if (port)
		nl_socket_set_local_port(sk, port);
	assert_int_equal(nl_connect(sk, NETLINK_USERSOCK), 0);
	assert_int_equal(nl_socket_set_passcred(sk, 1), 0);
	return sk;
}

static ssize_t client_send(struct nl_sock *sk, uint32_t port, const void *msg, size_t len,
			   int flags)
{
	struct sockaddr_nl to = {.nl_family = AF_NETLINK, .nl_pid = port};

	return sendto(nl_socket_get_fd(sk), msg, len, flags, (struct sockaddr *)&to, sizeof(to));
}

/* Length of the next datagram, 0 after @ms without one. */
static size_t client_recv(struct nl_sock *sk, void *buf, size_t size, int ms,
			  struct sockaddr_nl *from)
{
	struct pollfd pfd = {.fd = nl_socket_get_fd(sk), .events = POLLIN};
	socklen_t from_len = sizeof(*from);
	ssize_t n;

	if (poll(&pfd, 1, ms) <= 0)
		return 0;
	n = recvfrom(pfd.fd, buf, size, MSG_DONTWAIT, (struct sockaddr *)from, &from_len);
	return n < 0 ? 0 : (size_t)n;
}

/* Asks for the counters; the number of messages up to and with NLMSG_DONE, 0 if it did not come. */
static unsigned ask_stats(struct nl_sock *sk, uint32_t port)
{
	union {
		struct nlmsghdr nlh;
		char bytes[NLPROTO_PART_MAX];
	} buf;
	struct sockaddr_nl from;
	struct timeval tv = {.tv_sec = 2};
	struct packet p;
	unsigned n = 0;

	packet_init(&p, NLPROTO_CMD_STATS);
	/* A full queue of the server makes this wait, as zswapctl does. */
	if (setsockopt(nl_socket_get_fd(sk), SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv)) < 0 ||
	    client_send(sk, port, p.bytes, p.len, 0) < 0)
		return 0;
	while (client_recv(sk, &buf, sizeof(buf), 2000, &from)) {
		if (from.nl_pid != port)
			continue;
		n++;
		if (buf.nlh.nlmsg_type == NLMSG_DONE)
			return n;
	}
	return 0;
}

static void start(struct stats_server **ret, const char *name)
{
	assert_int_equal(stats_server_new(ret, name, &ops, NULL), 0);
	assert_int_equal(stats_server_set_run_dir(*ret, run_dir), 0);
	assert_int_equal(stats_server_port(*ret), 0);
	assert_int_equal(stats_server_start(*ret), 0);
}

static void serves_and_stops(void **state)
{
	struct nl_sock *sk = client_open(0);
	struct stats_server *s;
	uint32_t port, noted = 0;

	start(&s, "serves");
	port = stats_server_port(s);
	assert_int_equal(port, nlproto_port("serves"));
	assert_int_equal(portfile_read(run_dir, "serves", &noted), 0);
	assert_int_equal(noted, port);
	assert_true(ask_stats(sk, port) >= 2);
	assert_int_equal(stats_server_stop(s), 0);
	assert_int_equal(stats_server_stop(s), 0);
	assert_int_equal(stats_server_port(s), 0);
	assert_int_equal(portfile_read(run_dir, "serves", &noted), -ENOENT);
	assert_int_equal(ask_stats(sk, port), 0);
	/* And again, as after a takeover. */
	assert_int_equal(stats_server_start(s), 0);
	assert_true(ask_stats(sk, port) >= 2);
	stats_server_free(s);
	nl_socket_free(sk);
}

static void a_taken_port_is_evaded(void **state)
{
	struct nl_sock *squatter = client_open(nlproto_port("evade")), *sk = client_open(0);
	struct stats_server *s, *later;
	uint32_t noted = 0;

	start(&s, "evade");
	assert_int_not_equal(stats_server_port(s), nlproto_port("evade"));
	assert_int_equal(portfile_read(run_dir, "evade", &noted), 0);
	assert_int_equal(noted, stats_server_port(s));
	assert_true(ask_stats(sk, noted) >= 2);
	/* A successor's file outlives its predecessor. */
	nl_socket_free(squatter);
	start(&later, "evade");
	stats_server_free(s);
	assert_int_equal(portfile_read(run_dir, "evade", &noted), 0);
	assert_int_equal(noted, nlproto_port("evade"));
	stats_server_free(later);
	nl_socket_free(sk);
}

static void broken_datagrams_over_the_socket(void **state)
{
	union {
		struct nlmsghdr nlh;
		char bytes[NLPROTO_PART_MAX];
	} buf;
	struct nl_sock *sk = client_open(0);
	struct sockaddr_nl from;
	static struct packet p;
	struct stats_server *s;

	start(&s, "broken");
	packet_init(&p, NLPROTO_CMD_STATS);
	p.nlh.nlmsg_len = sizeof(p.bytes);
	assert_true(client_send(sk, stats_server_port(s), p.bytes, sizeof(p.bytes), 0) > 0);
	assert_true(client_recv(sk, &buf, sizeof(buf), 2000, &from) > 0);
	assert_int_equal(from.nl_pid, stats_server_port(s));
	assert_int_equal(buf.nlh.nlmsg_type, NLMSG_ERROR);
	assert_int_equal(((struct nlmsgerr *)nlmsg_data(&buf.nlh))->error, -EMSGSIZE);
	srand(1);
	for (unsigned i = 0; i < 2000; i++) {
		size_t len = (size_t)rand() % 256;

		for (size_t at = 0; at < len; at++)
			p.bytes[at] = (char)rand();
		client_send(sk, stats_server_port(s), p.bytes, len, MSG_DONTWAIT);
	}
	while (client_recv(sk, &buf, sizeof(buf), 100, &from))
		;
	assert_true(ask_stats(sk, stats_server_port(s)) >= 2);
	stats_server_free(s);
	nl_socket_free(sk);
}

/* Somebody who asks and never reads must not keep others from their answers. */
static void a_slow_reader_holds_up_nobody(void **state)
{
	struct nl_sock *slow = client_open(0), *sk = client_open(0);
	struct stats_server *s;
	unsigned sent = 0;
	struct packet p;

	start(&s, "slow");
	packet_init(&p, NLPROTO_CMD_STATS);
	for (unsigned i = 0; i < 5000; i++)
		sent += client_send(slow, stats_server_port(s), p.bytes, p.len, MSG_DONTWAIT) > 0;
	assert_true(sent > 20); /* far more than the slow one's buffer holds answers for */
	assert_true(ask_stats(sk, stats_server_port(s)) >= 2);
	stats_server_free(s);
	nl_socket_free(slow);
	nl_socket_free(sk);
}

/* The thread of the one server that runs, found by its name; 0 if it can't be. */
static uint64_t server_cpu_ns(void)
{
	unsigned long long ns = 0;
	char path[300], comm[32];
	struct dirent *d;
	DIR *dir = opendir("/proc/self/task");
	FILE *f;

	while (dir && (d = readdir(dir))) {
		snprintf(path, sizeof(path), "/proc/self/task/%.200s/comm", d->d_name);
		f = fopen(path, "r");
		if (!f || !fgets(comm, sizeof(comm), f) || strcmp(comm, "stats\n"))
			comm[0] = '\0';
		if (f)
			fclose(f);
		if (!comm[0])
			continue;
		snprintf(path, sizeof(path), "/proc/self/task/%.200s/schedstat", d->d_name);
		f = fopen(path, "r");
		if (f && fscanf(f, "%llu", &ns) != 1)
			ns = 0;
		if (f)
			fclose(f);
	}
	closedir(dir);
	return ns;
}

static struct {
	_Atomic bool stop;
	uint32_t port;
} flood;

static void *flood_main(void *arg)
{
	struct nl_sock *sk = client_open(0);
	struct packet p;

	packet_init(&p, NLPROTO_CMD_STATUS);
	while (!flood.stop)
		client_send(sk, flood.port, p.bytes, p.len, MSG_DONTWAIT);
	nl_socket_free(sk);
	return NULL;
}

/* As many requests as there can be: the thread keeps to its share, and others are served. */
static void a_flood_takes_a_fifth_of_a_cpu(void **state)
{
	struct nl_sock *sk = client_open(0);
	pthread_t threads[2];
	struct stats_server *s;
	uint64_t cpu, began;
	unsigned answered = 0;

	start(&s, "flood");
	flood.port = stats_server_port(s);
	flood.stop = false;
	for (unsigned i = 0; i < ARRAY_SIZE(threads); i++)
		pthread_create(&threads[i], NULL, flood_main, NULL);
	usleep(100000);
	began = now_ns();
	cpu = server_cpu_ns();
	while (now_ns() - began < 1000000000ull)
		answered += ask_stats(sk, flood.port) != 0;
	cpu = server_cpu_ns() - cpu;
	began = now_ns() - began;
	flood.stop = true;
	for (unsigned i = 0; i < ARRAY_SIZE(threads); i++)
		pthread_join(threads[i], NULL);
	assert_true(answered >= 1);
	assert_true(cpu > 0); /* so it was measured */
	assert_true(cpu < began / 100 * 26);
	stats_server_free(s);
	nl_socket_free(sk);
}

static void hang(void *ctx, uint64_t values[COUNTER_COUNT])
{
	sem_t *sem = ctx;

	sem_post(&sem[0]);
	while (sem_wait(&sem[1]) < 0)
		;
}

static void a_hung_callback_bounds_the_stop(void **state)
{
	static const struct stats_server_ops hanging = {.counters = hang, .status = give_status};
	static sem_t sem[2]; /* entered, may leave; outlives the thread that is left behind */
	static struct stats_server *s; /* kept in sight of leak checkers: meant to be leaked */
	struct nl_sock *sk = client_open(0);
	struct packet p;
	uint64_t before;

	sem_init(&sem[0], 0, 0);
	sem_init(&sem[1], 0, 0);
	assert_int_equal(stats_server_new(&s, "hung", &hanging, sem), 0);
	assert_int_equal(stats_server_set_run_dir(s, run_dir), 0);
	assert_int_equal(stats_server_start(s), 0);
	packet_init(&p, NLPROTO_CMD_STATS);
	assert_true(client_send(sk, stats_server_port(s), p.bytes, p.len, 0) > 0);
	assert_int_equal(sem_wait(&sem[0]), 0);
	before = now_ns();
	assert_int_equal(stats_server_stop(s), -ETIMEDOUT);
	assert_true(now_ns() - before < 4000000000ull);
	assert_int_equal(stats_server_stop(s), 0);
	stats_server_free(s);
	sem_post(&sem[1]);
	nl_socket_free(sk);
}

static void become_nobody(void)
{
	if (setgroups(0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 ||
	    setresuid(NOBODY, NOBODY, NOBODY) < 0)
		_exit(2);
}

static void unprivileged_users_may_read(void **state)
{
	struct stats_server *s;
	int status;
	pid_t pid;

	if (geteuid())
		skip();
	start(&s, "open-to-all");
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		become_nobody();

		struct nl_sock *sk = nl_socket_alloc();
		uint32_t port;
		int ok;

		ok = nl_connect(sk, NETLINK_USERSOCK) == 0 &&
		     portfile_read(run_dir, "open-to-all", &port) == 0 && ask_stats(sk, port) >= 2;
		nl_socket_free(sk);
		_exit(ok ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	stats_server_free(s);
}

/*
 * What the design relies on: the kernel stamps credentials on USERSOCK datagrams, refuses invented
 * ones, and gives a port to one socket only.
 */
static void the_kernel_vouches_for_senders(void **state)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(struct ucred))];
	} control = {0};
	struct nl_sock *sk = client_open(0), *second;
	struct sockaddr_nl to = {.nl_family = AF_NETLINK, .nl_pid = nl_socket_get_local_port(sk)};
	struct ucred claimed = {.pid = 1}, *stamped;
	char byte = 1;
	struct iovec iov = {&byte, 1};
	struct msghdr mh = {.msg_name = &to,
			    .msg_namelen = sizeof(to),
			    .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = control.bytes,
			    .msg_controllen = sizeof(control.bytes)};
	int status;
	pid_t pid;

	if (geteuid())
		skip();
	second = nl_socket_alloc();
	nl_socket_set_local_port(second, nl_socket_get_local_port(sk));
	assert_int_not_equal(nl_connect(second, NETLINK_USERSOCK), 0);
	nl_socket_free(second);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct nl_sock *c;
		int invented;

		become_nobody();
		c = nl_socket_alloc();
		if (nl_connect(c, NETLINK_USERSOCK) < 0)
			_exit(3);
		*CMSG_FIRSTHDR(&mh) = (struct cmsghdr){.cmsg_level = SOL_SOCKET,
						       .cmsg_type = SCM_CREDENTIALS,
						       .cmsg_len = CMSG_LEN(sizeof(claimed))};
		memcpy(CMSG_DATA(CMSG_FIRSTHDR(&mh)), &claimed, sizeof(claimed));
		invented = sendmsg(nl_socket_get_fd(c), &mh, MSG_DONTWAIT) < 0 && errno == EPERM;
		mh.msg_control = NULL;
		mh.msg_controllen = 0;
		if (sendmsg(nl_socket_get_fd(c), &mh, MSG_DONTWAIT) != 1)
			_exit(4);
		nl_socket_free(c);
		_exit(invented ? 0 : 5);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(recvmsg(nl_socket_get_fd(sk), &mh, MSG_DONTWAIT), 1);
	assert_non_null(CMSG_FIRSTHDR(&mh));
	assert_int_equal(CMSG_FIRSTHDR(&mh)->cmsg_type, SCM_CREDENTIALS);
	stamped = (struct ucred *)CMSG_DATA(CMSG_FIRSTHDR(&mh));
	assert_int_equal(stamped->uid, NOBODY);
	nl_socket_free(sk);
}

static int set_up(void **state)
{
	/* Unprivileged askers read the port file in it. */
	return mkdtemp(run_dir) ? chmod(run_dir, 0755) : -1;
}

static int tear_down(void **state)
{
	return rmdir(run_dir); /* fails if a port file was left */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_checked),
		cmocka_unit_test(serves_and_stops),
		cmocka_unit_test(a_taken_port_is_evaded),
		cmocka_unit_test(broken_datagrams_over_the_socket),
		cmocka_unit_test(a_slow_reader_holds_up_nobody),
		cmocka_unit_test(a_flood_takes_a_fifth_of_a_cpu),
		cmocka_unit_test(unprivileged_users_may_read),
		cmocka_unit_test(a_hung_callback_bounds_the_stop),
		cmocka_unit_test(the_kernel_vouches_for_senders),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}

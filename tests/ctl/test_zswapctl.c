// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The program itself, argv[1], as root and as an unprivileged user, against a server of this
 * process, against strangers on its port, and against nobody.  Compared are exit code, stdout and
 * stderr.
 */
#include "common/portfile.h"
#include "common/util.h"
#include "daemon/stats/server.h"
#include "tests/ctl/program.h"

#include <errno.h>
#include <linux/netlink.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <netlink/socket.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

static char run_dir[] = "/tmp/zswapd-test-XXXXXX";

static void give_counters(void *ctx, uint64_t values[COUNTER_COUNT])
{
	for (unsigned i = 0; i < COUNTER_COUNT; i++)
		values[i] = 1000 + i;
}

static void give_status(void *ctx, struct stats_status *ret)
{
	strcpy(ret->path, "/dev/zswap/ctl-test");
	strcpy(ret->transport, "fuse");
	ret->pid = 4711;
	ret->state = NLPROTO_STATE_RUNNING;
}

static const struct stats_server_ops ops = {.counters = give_counters, .status = give_status};

static struct stats_server *start(const char *name)
{
	struct stats_server *s;

	assert_int_equal(stats_server_new(&s, name, &ops, NULL), 0);
	assert_int_equal(stats_server_set_run_dir(s, run_dir), 0);
	assert_int_equal(stats_server_start(s), 0);
	return s;
}

static void check_reading(bool unprivileged)
{
	char line[128];

	assert_int_equal(program_run(unprivileged, "status"), 0);
	assert_string_equal(program_err, "");
	assert_has(program_out, "device       ctl-test  /dev/zswap/ctl-test\n");
	assert_has(program_out, "daemon       running, pid 4711, version " ZSWAPD_VERSION "\n");
	assert_int_equal(program_run(unprivileged, "stats --json"), 0);
	for (unsigned i = 0; i < COUNTER_COUNT; i++) {
		snprintf(line, sizeof(line), "\"%s\": %u", counter_table[i].name, 1000 + i);
		assert_has(program_out, line);
	}
	assert_int_equal(program_run(unprivileged, "stats --prometheus --device ctl-test"), 0);
	for (unsigned i = 0; i < COUNTER_COUNT; i++) {
		snprintf(line, sizeof(line), "\nzswapd_%s{device=\"ctl-test\"} %u\n",
			 counter_table[i].name, 1000 + i);
		assert_has(program_out, line);
	}
	assert_int_equal(program_run(unprivileged, "--device ctl-test stats"), 0);
	assert_has(program_out, "slots_used                                       1002 pages\n");
	assert_int_equal(program_run(unprivileged, "version"), 0);
	assert_has(program_out, "zswapd " ZSWAPD_VERSION ", protocol 1\n");
}

static void reads_as_root_and_as_nobody(void **state)
{
	struct stats_server *s;

	if (geteuid())
		skip();
	s = start("ctl-test");
	check_reading(false);
	check_reading(true);
	stats_server_free(s);
}

static void finds_the_port_without_a_file(void **state)
{
	struct stats_server *s;

	if (geteuid())
		skip();
	s = start("ctl-test");
	portfile_remove(run_dir, "ctl-test", stats_server_port(s));
	assert_int_equal(program_run(true, "-d ctl-test status"), 0);
	stats_server_free(s);
}

static void several_devices_need_a_name(void **state)
{
	struct stats_server *a, *b;

	if (geteuid())
		skip();
	a = start("ctl-a");
	b = start("ctl-b");
	assert_int_equal(program_run(true, "status"), 1);
	assert_has(program_err, "--device: ctl-a ctl-b\n");
	assert_int_equal(program_run(true, "--device ctl-b status"), 0);
	assert_has(program_out, "device       ctl-b ");
	stats_server_free(a);
	stats_server_free(b);
}

static void nobody_there(void **state)
{
	uint64_t before = now_ns();

	assert_int_equal(program_run(false, "--device ctl-none status"), 2);
	assert_string_equal(program_out, "");
	assert_has(program_err, "no zswapd for device 'ctl-none' is running");
	assert_true(now_ns() - before < 1500000000ull);
	/* What a killed daemon leaves. */
	assert_int_equal(portfile_write(run_dir, "ctl-none", 0x7fffff01), 0);
	assert_int_equal(program_run(false, "stats --json"), 2);
	assert_string_equal(program_out, "");
	assert_has(program_err, "device 'ctl-none'");
	portfile_remove(run_dir, "ctl-none", 0x7fffff01);
}

static void a_silent_port_times_out(void **state)
{
	struct nl_sock *sk = nl_socket_alloc();
	uint64_t before = now_ns(), took;

	nl_socket_set_local_port(sk, nlproto_port("ctl-mute"));
	assert_int_equal(nl_connect(sk, NETLINK_USERSOCK), 0);
	assert_int_equal(program_run(false, "--device ctl-mute status"), 2);
	took = now_ns() - before;
	assert_has(program_err, "did not answer");
	assert_true(took > 1900000000ull && took < 4000000000ull);
	nl_socket_free(sk);
}

/* A server of this very program, but run by an unprivileged user on the daemon's port. */
static void an_impostor_is_not_believed(void **state)
{
	int ready[2], status;
	char byte = 0;
	pid_t pid;

	if (geteuid())
		skip();
	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct stats_server *s;

		if (become_nobody() || stats_server_new(&s, "ctl-fake", &ops, NULL) < 0 ||
		    stats_server_set_run_dir(s, "/nonexistent") < 0 || stats_server_start(s) < 0 ||
		    write(ready[1], "x", 1) != 1)
			_exit(1);
		sleep(30);
		_exit(1);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	status = program_run(false, "--device ctl-fake stats --json");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(ready[0]);
	close(ready[1]);
	assert_int_equal(status, 3);
	assert_string_equal(program_out, "");
	assert_has(program_err, "uid 65534, not by zswapd");
}

/* Answers VERSION and nothing else, as a daemon of protocol 2 does to us. */
static void answer_as_newer(struct nl_sock *sk)
{
	union {
		struct nlmsghdr nlh;
		char bytes[4096];
	} rq = {.bytes = {0}};
	struct sockaddr_nl from = {0};
	socklen_t len = sizeof(from);
	struct nlproto_hdr *hdr = nlmsg_data(&rq.nlh);
	struct nlmsgerr err = {.error = -EPROTONOSUPPORT};
	struct nl_msg *msg = nlmsg_alloc();

	if (recvfrom(nl_socket_get_fd(sk), &rq, sizeof(rq), 0, (struct sockaddr *)&from, &len) < 0)
		_exit(1);
	if (hdr->cmd == NLPROTO_CMD_VERSION) {
		nlmsg_put(msg, 0, rq.nlh.nlmsg_seq, NLPROTO_MSG_TYPE, sizeof(*hdr), 0);
		*(struct nlproto_hdr *)nlmsg_data(nlmsg_hdr(msg)) =
			(struct nlproto_hdr){.cmd = hdr->cmd, .version = 2};
		nla_put_string(msg, NLPROTO_A_DEVICE, "ctl-new");
		nla_put_string(msg, NLPROTO_A_DAEMON_VERSION, "9.0.0");
		nla_put_u8(msg, NLPROTO_A_PROTOCOL, 2);
	} else {
		err.msg = rq.nlh;
		nlmsg_put(msg, 0, rq.nlh.nlmsg_seq, NLMSG_ERROR, sizeof(err),
			  NLM_F_CAPPED | NLM_F_ACK_TLVS);
		memcpy(nlmsg_data(nlmsg_hdr(msg)), &err, sizeof(err));
		nla_put_string(msg, NLMSGERR_ATTR_MSG, "version 1 is not spoken here");
	}
	sendto(nl_socket_get_fd(sk), nlmsg_hdr(msg), nlmsg_hdr(msg)->nlmsg_len, 0,
	       (struct sockaddr *)&from, sizeof(from));
	nlmsg_free(msg);
}

static void a_daemon_of_another_protocol_is_named(void **state)
{
	struct nl_sock *sk;
	pid_t pid;

	if (geteuid())
		skip();
	sk = nl_socket_alloc();
	nl_socket_set_local_port(sk, nlproto_port("ctl-new"));
	assert_int_equal(nl_connect(sk, NETLINK_USERSOCK), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		alarm(30);
		while (true)
			answer_as_newer(sk);
	}
	assert_int_equal(program_run(true, "--device ctl-new status"), 5);
	assert_has(program_err, "version 1 is not spoken here");
	assert_int_equal(program_run(true, "--device ctl-new version"), 0);
	assert_has(program_out, "zswapd 9.0.0, protocol 2\n");
	assert_int_equal(program_run(true, "--device ctl-new doctor"), 7);
	assert_has(program_out,
		   "[FIND] version      zswapd 9.0.0 speaks version 2 of the protocol,");
	assert_has_not(program_out, "] daemon  ");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	nl_socket_free(sk);
}

static void another_device_on_the_port(void **state)
{
	struct stats_server *s;

	if (geteuid())
		skip();
	s = start("ctl-test");
	assert_int_equal(portfile_write(run_dir, "ctl-moved", stats_server_port(s)), 0);
	assert_int_equal(program_run(false, "--device ctl-moved status"), 5);
	assert_has(program_err, "this port serves device 'ctl-test'");
	portfile_remove(run_dir, "ctl-moved", stats_server_port(s));
	stats_server_free(s);
}

static void wrong_usage(void **state)
{
	static const struct {
		const char *args, *says;
	} wrong[] = {
		{"", "no command"},
		{"frobnicate", "unknown command 'frobnicate'"},
		{"--bogus status", "'--bogus'"},
		{"status --bogus", "'--bogus'"},
		{"stats -xh", "'-x'"},
		{"status more", "'more'"},
		{"stats --json --prometheus", "exclude"},
		{"--device", "needs a value"},
		{"stats --device", "needs a value"},
		{"--device ../x status", "'../x'"},
		{"stats --json=3", "takes no value"},
		{"set", "needs [--no-wait] KEY VALUE"},
		{"set memory.level", "the value for memory.level is missing"},
		{"help nonsense", "'nonsense'"},
		{"help get set", "'set'"},
		{"set memory.level 1 2", "'2'"},
		{"get a b", "'b'"},
		{"get --json --verbose", "exclude"},
		{"writeback 1.5G", "'1.5G' is no size"},
		{"writeback 50%", "'50%' is no size"},
		{"writeback 0", "'0' is no size"},
		{"compact 64M", "'64M'"},
		{"job --wait --cancel", "exclude"},
		{"events --count", "needs a value"},
		{"events --count 0", "'0' is no number"},
		{"events --count -1", "'-1' is no number"},
		{"events --seconds 1s", "'1s' is no number"},
		{"top --interval 0", "'0' is no interval"},
		{"top --interval nan", "'nan' is no interval"},
		{"top", "needs a terminal"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		assert_int_equal(program_run(false, wrong[i].args), 1);
		assert_string_equal(program_out, "");
		assert_has(program_err, wrong[i].says);
		assert_has(program_err, "--help\n");
	}
}

static void help_and_version(void **state)
{
	static const char *const commands[] = {
		"status",    "stats",	"top",	 "events", "get",    "set",	"reload",
		"writeback", "compact", "check", "job",	   "doctor", "version", "upgrade",
	};
	char args[32], word[64];

	assert_int_equal(program_run(false, "--help"), 0);
	assert_string_equal(program_err, "");
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		snprintf(word, sizeof(word), "\n  %s ", commands[i]);
		assert_has(program_out, word);
	}
	assert_has(program_out, "Exit codes:");
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		snprintf(args, sizeof(args), "%s --help", commands[i]);
		assert_int_equal(program_run(false, args), 0);
		snprintf(word, sizeof(word), "Usage: zswapctl [--device NAME] %s", commands[i]);
		assert_has(program_out, word);
		assert_has(program_out, "Exit codes:");
		for (char *line = strtok(program_out, "\n"); line; line = strtok(NULL, "\n"))
			if (strlen(line) > 90)
				fail_msg("%zu columns: %s", strlen(line), line);
	}
	assert_int_equal(program_run(false, "help"), 0);
	assert_has(program_out, "\n  status ");
	assert_int_equal(program_run(false, "help stats"), 0);
	assert_has(program_out, "Usage: zswapctl [--device NAME] stats");
	assert_int_equal(program_run(false, "--version"), 0);
	assert_string_equal(program_out, "zswapctl " ZSWAPD_VERSION "\n");
}

static int set_up(void **state)
{
	return mkdtemp(run_dir) ? chmod(run_dir, 0755) : -1;
}

static int tear_down(void **state)
{
	return rmdir(run_dir); /* fails if a port file was left */
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_as_root_and_as_nobody),
		cmocka_unit_test(finds_the_port_without_a_file),
		cmocka_unit_test(several_devices_need_a_name),
		cmocka_unit_test(nobody_there),
		cmocka_unit_test(a_silent_port_times_out),
		cmocka_unit_test(an_impostor_is_not_believed),
		cmocka_unit_test(a_daemon_of_another_protocol_is_named),
		cmocka_unit_test(another_device_on_the_port),
		cmocka_unit_test(wrong_usage),
		cmocka_unit_test(help_and_version),
	};

	if (argc != 2) {
		fprintf(stderr, "usage: %s ZSWAPCTL\n", argv[0]);
		return 2;
	}
	program_init(argv[1], run_dir);
	return cmocka_run_group_tests(tests, set_up, tear_down);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/* Events found by comparing, posted, followed, numbered and held back. */
#include "common/util.h"
#include "tests/stats/rig.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

static uint64_t num(struct nlattr *a)
{
	assert_non_null(a);
	return nla_len(a) == 1 ? nla_get_u8(a) : nla_len(a) == 4 ? nla_get_u32(a) : nla_get_u64(a);
}

/* Message @i is event @kind with number @seq, for @port. */
static struct nlattr **check_event(unsigned i, enum nlproto_event kind, uint64_t seq, uint32_t port)
{
	struct nlattr **a;

	assert_true(i < rig.n);
	assert_int_equal(rig.msg[i]->nlmsg_pid, port);
	assert_int_equal(rig.msg[i]->nlmsg_seq, 0);
	assert_int_equal(rig.msg[i]->nlmsg_flags, 0);
	a = rig_parse(rig.msg[i], NLPROTO_CMD_EVENT);
	assert_int_equal(num(a[NLPROTO_A_EVENT]), kind);
	assert_int_equal(num(a[NLPROTO_A_EVENT_SEQ]), seq);
	assert_true(num(a[NLPROTO_A_TIME]) / RIG_SECOND <= (uint64_t)time(NULL));
	assert_true(num(a[NLPROTO_A_TIME]) / RIG_SECOND + 5 >= (uint64_t)time(NULL));
	assert_non_null(a[NLPROTO_A_TEXT]);
	return a;
}

static void counters_that_rise_are_told(void **state)
{
	static const struct {
		enum counter_id id;
		enum nlproto_event kind;
	} rises[] = {
		{CTR_store_read_errors_total, NLPROTO_EVENT_STORE_ERROR},
		{CTR_store_write_errors_total, NLPROTO_EVENT_STORE_ERROR},
		{CTR_checksum_failures_total, NLPROTO_EVENT_CHECKSUM_FAILURE},
		{CTR_writes_rejected_total, NLPROTO_EVENT_WRITES_REJECTED},
		{CTR_takeovers_total, NLPROTO_EVENT_TAKEOVER},
	};
	struct nlattr **a;

	for (unsigned i = 0; i < ARRAY_SIZE(rises); i++) {
		rig.counters[rises[i].id] += 3 + i;
		rig_work(2 * RIG_SECOND);
		assert_int_equal(rig.n, 1);
		a = check_event(0, rises[i].kind, i + 1, 0);
		assert_int_equal(num(a[NLPROTO_A_COUNT]), 3 + i);
		rig_work(2 * RIG_SECOND);
		assert_int_equal(rig.n, 0);
	}
}

/* A worker that has taken over counts from its own start, but for the takeovers. */
static void what_was_before_the_first_look_is_told(void **state)
{
	struct nlattr **a;

	for (unsigned takeovers = 1; takeovers < 5; takeovers += 2) {
		rig_tear_down(state);
		rig_set_up(state);
		memset(rig.counters, 0, sizeof(rig.counters));
		rig.counters[CTR_takeovers_total] = takeovers;
		rig.counters[CTR_writes_rejected_total] = 5;
		rig_work(0);
		assert_int_equal(rig.n, 2);
		check_event(0, NLPROTO_EVENT_WRITES_REJECTED, 1, 0);
		a = check_event(1, NLPROTO_EVENT_TAKEOVER, 2, 0);
		assert_int_equal(num(a[NLPROTO_A_COUNT]), 1);
	}
}

/* In its own words, where it has some. */
static void a_takeover_says_who_and_why(void **state)
{
	struct nlattr **a;

	strcpy(rig.status.takeover, "worker 812 took over from worker 790 in 45 ms");
	rig.counters[CTR_takeovers_total]++;
	rig_work(2 * RIG_SECOND);
	assert_int_equal(rig.n, 1);
	a = check_event(0, NLPROTO_EVENT_TAKEOVER, 1, 0);
	assert_string_equal(nla_get_string(a[NLPROTO_A_TEXT]), rig.status.takeover);
}

static void a_fast_counter_is_told_once_a_second(void **state)
{
	unsigned told = 0;
	uint64_t sum = 0;

	for (unsigned i = 0; i < 100; i++) {
		rig.counters[CTR_checksum_failures_total] += 1000;
		rig_work(RIG_SECOND / 10);
		for (unsigned m = 0; m < rig.n; m++)
			sum += num(check_event(m, NLPROTO_EVENT_CHECKSUM_FAILURE, ++told,
					       0)[NLPROTO_A_COUNT]);
	}
	assert_true(told >= 9 && told <= 11);
	rig_work(2 * RIG_SECOND);
	sum += rig.n ? num(check_event(0, NLPROTO_EVENT_CHECKSUM_FAILURE, told + 1,
				       0)[NLPROTO_A_COUNT])
		     : 0;
	assert_int_equal(sum, 100000); /* none is left out */
}

static void the_last_error_stays_in_sight(void **state)
{
	struct packet p;
	const char *text;

	packet_init(&p, NLPROTO_CMD_STATUS);
	assert_int_equal(rig_ask(&p), 0);
	assert_null(rig_parse(rig.msg[0], NLPROTO_CMD_STATUS)[NLPROTO_A_LAST_ERROR]);
	rig.counters[CTR_writes_rejected_total] = 5;
	rig_work(RIG_SECOND);
	rig.counters[CTR_takeovers_total] = 1; /* is no error */
	rig_work(RIG_SECOND);
	assert_int_equal(rig_ask(&p), 0);
	text = nla_get_string(rig_parse(rig.msg[0], NLPROTO_CMD_STATUS)[NLPROTO_A_LAST_ERROR]);
	assert_non_null(strstr(text, "Z: 5 pages were refused"));
}

static uint32_t health_at(uint64_t ns)
{
	struct packet p;

	rig_work(ns);
	/* The snapshot is of rig.now, which is ahead of the clock that the request looks at. */
	packet_init(&p, NLPROTO_CMD_STATUS);
	assert_int_equal(rig_ask(&p), 0);
	return nla_get_u32(rig_parse(rig.msg[0], NLPROTO_CMD_STATUS)[NLPROTO_A_HEALTH]) &
	       ~(uint32_t)(NLPROTO_HEALTH_OOM_EXPOSED | NLPROTO_HEALTH_NO_DISCARD);
}

static void counters_show_in_the_health(void **state)
{
	static const struct {
		enum counter_id id;
		enum nlproto_health bit;
	} bits[] = {
		{CTR_checksum_failures_total, NLPROTO_HEALTH_CHECKSUM},
		{CTR_slots_lost, NLPROTO_HEALTH_PAGES_LOST},
		{CTR_writes_rejected_total, NLPROTO_HEALTH_WRITES_REJECTED},
		{CTR_store_write_errors_total, NLPROTO_HEALTH_STORE_FAILED},
	};
	uint32_t want = 0;

	assert_int_equal(health_at(RIG_SECOND), 0);
	for (unsigned i = 0; i < ARRAY_SIZE(bits); i++) {
		rig.counters[bits[i].id] = 1;
		want |= bits[i].bit;
		assert_int_equal(health_at(RIG_SECOND), want);
	}
	rig.counters[CTR_store_size_bytes] = MIB(100);
	rig.counters[CTR_store_used_bytes] = MIB(97);
	assert_int_equal(health_at(RIG_SECOND), want);
	/* All of it in use, but much of that dead, is how a log looks. */
	rig.counters[CTR_store_used_bytes] = MIB(98);
	rig.counters[CTR_stored_compressed_bytes] = MIB(60);
	assert_int_equal(health_at(RIG_SECOND), want);
	rig.counters[CTR_stored_compressed_bytes] = MIB(94);
	assert_int_equal(health_at(RIG_SECOND), want | NLPROTO_HEALTH_STORE_FULL);
	want &= ~(uint32_t)NLPROTO_HEALTH_STORE_FAILED;
	assert_int_equal(health_at(60 * RIG_SECOND), want | NLPROTO_HEALTH_STORE_FULL);
}

static uint64_t store_state_shown(void)
{
	struct packet p;

	packet_init(&p, NLPROTO_CMD_STATUS);
	assert_int_equal(rig_ask(&p), 0);
	return num(rig_parse(rig.msg[0], NLPROTO_CMD_STATUS)[NLPROTO_A_STORE_STATE]);
}

static void the_store_s_state_is_told(void **state)
{
	static const struct {
		enum nlproto_store_state state;
		uint32_t health;
		const char *text;
	} steps[] = {
		{NLPROTO_STORE_DEGRADED, 0, "fail"},
		{NLPROTO_STORE_STALLED, NLPROTO_HEALTH_STORE_STALLED, "nothing is dropped"},
		{NLPROTO_STORE_OK, 0, "in order again"},
		{NLPROTO_STORE_LOST, NLPROTO_HEALTH_STORE_LOST, "the store is lost"},
		{NLPROTO_STORE_NONE, 0, "there is no store"},
		{(enum nlproto_store_state)7, 0, "another state"},
	};
	struct nlattr **a;
	uint64_t seq;

	rig.counters[CTR_store_state] = NLPROTO_STORE_OK;
	rig_work(RIG_SECOND);
	seq = rig.n;
	for (unsigned i = 0; i < ARRAY_SIZE(steps); i++) {
		rig.counters[CTR_store_state] = steps[i].state;
		rig_work(RIG_SECOND);
		assert_int_equal(rig.n, 1);
		a = check_event(0, NLPROTO_EVENT_STORE_STATE, ++seq, 0);
		assert_int_equal(num(a[NLPROTO_A_STORE_STATE]), steps[i].state);
		assert_non_null(strstr(nla_get_string(a[NLPROTO_A_TEXT]), steps[i].text));
		rig_work(RIG_SECOND);
		assert_int_equal(rig.n, 0);
		assert_int_equal(health_at(0), steps[i].health);
		assert_int_equal(store_state_shown(), steps[i].state);
	}
}

/* What is retired can't be used: without it, the rest may be full. */
static void a_retired_place_is_no_room(void **state)
{
	rig.counters[CTR_store_size_bytes] = MIB(100);
	rig.counters[CTR_store_used_bytes] = MIB(78);
	rig.counters[CTR_stored_compressed_bytes] = MIB(76);
	assert_int_equal(health_at(RIG_SECOND), 0);
	rig.counters[CTR_store_retired_bytes] = MIB(20);
	assert_int_equal(health_at(RIG_SECOND), NLPROTO_HEALTH_STORE_FULL);
}

static void the_limit_is_told_when_it_is_reached(void **state)
{
	rig.counters[CTR_memory_used_bytes] = MIB(63);
	rig_work(RIG_SECOND);
	assert_int_equal(rig.n, 0);
	rig.counters[CTR_memory_used_bytes] = MIB(64);
	rig_work(RIG_SECOND);
	assert_int_equal(rig.n, 1);
	check_event(0, NLPROTO_EVENT_LIMIT_REACHED, 1, 0);
	/* It moves about there all the time. */
	for (unsigned i = 0; i < 100; i++) {
		rig.counters[CTR_memory_used_bytes] = MIB(64 - i % 2 * 4);
		rig_work(RIG_SECOND);
		assert_int_equal(rig.n, 0);
	}
	rig.counters[CTR_memory_used_bytes] = MIB(32);
	rig_work(RIG_SECOND);
	/* A new limit, above which memory is. */
	rig.counters[CTR_memory_limit_bytes] = MIB(16);
	rig_work(RIG_SECOND);
	check_event(0, NLPROTO_EVENT_LIMIT_REACHED, 2, 0);
	/* Not more often than every ten seconds. */
	for (unsigned i = 0; i < 20; i++) {
		rig.counters[CTR_memory_used_bytes] = MIB(i % 2 ? 16 : 4);
		rig_work(RIG_SECOND);
		assert_true(rig.n == 0 || i >= 9);
	}
}

static void states_are_told(void **state)
{
	struct nlattr **a;

	rig.state = NLPROTO_STATE_RUNNING;
	rig_work(RIG_SECOND);
	assert_int_equal(rig.n, 1);
	a = check_event(0, NLPROTO_EVENT_STATE_CHANGED, 1, 0);
	assert_int_equal(num(a[NLPROTO_A_STATE]), NLPROTO_STATE_RUNNING);
	assert_string_equal(nla_get_string(a[NLPROTO_A_TEXT]), "the daemon is running");
	rig_work(RIG_SECOND);
	assert_int_equal(rig.n, 0);
}

static void the_end_of_a_job_is_told(void **state)
{
	struct nlattr *j[NLPROTO_J_MAX + 1], **a;

	rig.job = (struct stats_job){
		.id = 1, .kind = NLPROTO_JOB_WRITEBACK, .state = NLPROTO_JOB_STATE_RUNNING};
	rig_work(RIG_SECOND);
	assert_int_equal(rig.n, 0);
	rig.job.state = NLPROTO_JOB_STATE_FAILED;
	rig.job.error = ENOSPC;
	rig_work(RIG_SECOND);
	assert_int_equal(rig.n, 1);
	a = check_event(0, NLPROTO_EVENT_JOB_FINISHED, 1, 0);
	assert_int_equal(nla_parse_nested(j, NLPROTO_J_MAX, a[NLPROTO_A_JOB], NULL), 0);
	assert_int_equal(num(j[NLPROTO_J_ERROR]), ENOSPC);
	rig_work(RIG_SECOND);
	assert_int_equal(rig.n, 0);
	/* One that began and ended between two looks. */
	rig.job = (struct stats_job){
		.id = 2, .kind = NLPROTO_JOB_CHECK, .state = NLPROTO_JOB_STATE_DONE};
	rig_work(RIG_SECOND);
	check_event(0, NLPROTO_EVENT_JOB_FINISHED, 2, 0);
}

/* A job and a shrink beside it: each is told of once, whichever is shown first. */
static void the_ends_of_two_are_told(void **state)
{
	const struct stats_job check = {
		.id = 1, .kind = NLPROTO_JOB_CHECK, .state = NLPROTO_JOB_STATE_DONE};
	struct stats_job shrink = {
		.id = 2, .kind = NLPROTO_JOB_SHRINK, .state = NLPROTO_JOB_STATE_RUNNING};

	rig.job = shrink;
	rig.other_job = check;
	rig_work(RIG_SECOND);
	assert_int_equal(rig.n, 1);
	check_event(0, NLPROTO_EVENT_JOB_FINISHED, 1, 0);
	shrink.state = NLPROTO_JOB_STATE_DONE;
	rig.job = shrink;
	rig_work(RIG_SECOND);
	assert_int_equal(rig.n, 1);
	check_event(0, NLPROTO_EVENT_JOB_FINISHED, 2, 0);
	rig.job = check;
	rig.other_job = shrink;
	rig_work(RIG_SECOND);
	assert_int_equal(rig.n, 0);
}

/* Two that end between two looks: the second is started by a request, which tells of the first. */
static void no_end_of_a_job_is_missed(void **state)
{
	struct packet p;

	rig.job = (struct stats_job){
		.id = 1, .kind = NLPROTO_JOB_CHECK, .state = NLPROTO_JOB_STATE_DONE};
	packet_init(&p, NLPROTO_CMD_COMPACT);
	assert_int_equal(rig_ask_as_root(&p), 0);
	assert_int_equal(rig.n, 2);
	check_event(0, NLPROTO_EVENT_JOB_FINISHED, 1, 0);
	rig_parse(rig.msg[1], NLPROTO_CMD_COMPACT);
	rig.job.id = 2;
	packet_init(&p, NLPROTO_CMD_RELOAD);
	assert_int_equal(rig_ask_as_root(&p), 0);
	assert_int_equal(rig.n, 1);
	check_event(0, NLPROTO_EVENT_JOB_FINISHED, 2, 0);
	rig_work(RIG_SECOND / 2);
	assert_int_equal(rig.n, 0);
}

static void posted_events_are_sent_at_once(void **state)
{
	struct nlattr **a;

	stats_server_post(rig.server, NLPROTO_EVENT_CONFIG_CHANGED, "memory.limit",
			  "memory.limit: 1 -> 2");
	stats_server_post(rig.server, NLPROTO_EVENT_CONFIG_CHANGED, NULL, "all");
	rig_work(1);
	assert_int_equal(rig.n, 2);
	a = check_event(0, NLPROTO_EVENT_CONFIG_CHANGED, 1, 0);
	assert_string_equal(nla_get_string(a[NLPROTO_A_KEY]), "memory.limit");
	assert_string_equal(nla_get_string(a[NLPROTO_A_TEXT]), "memory.limit: 1 -> 2");
	a = check_event(1, NLPROTO_EVENT_CONFIG_CHANGED, 2, 0);
	assert_null(a[NLPROTO_A_KEY]);
}

/* What is held back takes its number, so that a reader sees the gap. */
static void too_many_events_leave_a_gap(void **state)
{
	unsigned sent = 0;
	uint64_t seq = 0;

	for (unsigned i = 0; i < 100; i++) {
		stats_server_post(rig.server, NLPROTO_EVENT_CONFIG_CHANGED, NULL, "x");
		rig_work(0);
		if (rig.n)
			seq = num(rig_parse(rig.msg[0], NLPROTO_CMD_EVENT)[NLPROTO_A_EVENT_SEQ]);
		sent += rig.n;
	}
	assert_int_equal(sent, 32);
	assert_int_equal(seq, 32);
	rig_work(10 * RIG_SECOND);
	/* More at once than there are places for. */
	for (unsigned i = 0; i < 50; i++)
		stats_server_post(rig.server, NLPROTO_EVENT_CONFIG_CHANGED, NULL, "x");
	rig_work(0);
	assert_int_equal(rig.n, 16);
	check_event(0, NLPROTO_EVENT_CONFIG_CHANGED, 101, 0);
	stats_server_post(rig.server, NLPROTO_EVENT_CONFIG_CHANGED, NULL, "x");
	rig_work(0);
	check_event(0, NLPROTO_EVENT_CONFIG_CHANGED, 151, 0);
}

/* --- followers --- */

static int subscribe(uint32_t port, uint32_t uid, int seconds)
{
	uint32_t s = (uint32_t)seconds;
	struct packet p;
	int r;

	packet_init(&p, NLPROTO_CMD_SUBSCRIBE);
	if (seconds >= 0)
		packet_attr(&p, NLPROTO_A_SECONDS, &s, sizeof(s));
	rig.peer = (struct stats_peer){port, uid, true};
	r = rig_ask(&p);
	rig.peer = (struct stats_peer){RIG_PORT, RIG_UID, true};
	return r;
}

static void check_subscribed(unsigned seconds, uint64_t seq)
{
	struct nlattr **a = rig_parse(rig.msg[rig.n - 1], NLPROTO_CMD_SUBSCRIBE);

	assert_int_equal(num(a[NLPROTO_A_SECONDS]), seconds);
	assert_int_equal(num(a[NLPROTO_A_EVENT_SEQ]), seq);
}

static void happen(void)
{
	stats_server_post(rig.server, NLPROTO_EVENT_CONFIG_CHANGED, NULL, "x");
	rig_work(RIG_SECOND);
}

static void followers_get_events_for_a_time(void **state)
{
	assert_int_equal(subscribe(10, RIG_UID, -1), 0);
	check_subscribed(NLPROTO_SUBSCRIBE_SECONDS, 0);
	assert_int_equal(subscribe(11, RIG_UID, 10000), 0);
	check_subscribed(NLPROTO_SUBSCRIBE_SECONDS_MAX, 0);
	happen();
	assert_int_equal(rig.n, 3);
	check_event(0, NLPROTO_EVENT_CONFIG_CHANGED, 1, 0);
	check_event(1, NLPROTO_EVENT_CONFIG_CHANGED, 1, 10);
	check_event(2, NLPROTO_EVENT_CONFIG_CHANGED, 1, 11);
	rig_work(NLPROTO_SUBSCRIBE_SECONDS * RIG_SECOND);
	happen();
	assert_int_equal(rig.n, 2);
	check_event(1, NLPROTO_EVENT_CONFIG_CHANGED, 2, 11);
	rig_work(NLPROTO_SUBSCRIBE_SECONDS_MAX * RIG_SECOND);
	happen();
	assert_int_equal(rig.n, 1);
}

static void a_subscription_is_renewed_and_ended(void **state)
{
	assert_int_equal(subscribe(10, RIG_UID, 5), 0);
	assert_int_equal(subscribe(10, RIG_UID, 100), 0);
	rig_work(50 * RIG_SECOND);
	happen();
	assert_int_equal(rig.n, 2); /* once, not twice */
	assert_int_equal(subscribe(10, RIG_UID, 0), 0);
	check_subscribed(0, 1);
	happen();
	assert_int_equal(rig.n, 1);
	/* Who does not subscribe can learn the number all the same. */
	assert_int_equal(subscribe(12, RIG_UID, 0), 0);
	check_subscribed(0, 2);
}

static void who_is_gone_is_forgotten(void **state)
{
	assert_int_equal(subscribe(10, RIG_UID, 100), 0);
	rig.gone = 10;
	happen();
	assert_int_equal(rig.n, 1);
	rig.gone = 0;
	happen();
	assert_int_equal(rig.n, 1);
}

static void no_user_takes_all_places(void **state)
{
	uint32_t port = 100;

	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(subscribe(port++, 1000, 100), 0);
	assert_int_equal(subscribe(port, 1000, 100), -EUSERS);
	assert_int_equal(subscribe(103, 1000, 100), 0); /* renewing is no new place */
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(subscribe(port++, 1001, 100), 0);
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(subscribe(port++, 0, 100), 0);
	assert_int_equal(subscribe(port, 0, 100), -EUSERS);
	assert_int_equal(subscribe(port, 1002, 100), -EUSERS);
	/* A place whose owner is gone is found when it is needed. */
	rig.gone = 101;
	assert_int_equal(subscribe(port, 1000, 100), 0);
	assert_int_equal(subscribe(port + 1, 1000, 100), -EUSERS);
}

static void root_finds_a_place(void **state)
{
	uint32_t port = 100;

	for (unsigned user = 1000; user < 1003; user++)
		for (unsigned i = 0; i < 4; i++)
			assert_int_equal(subscribe(port++, user, 100), 0);
	assert_int_equal(subscribe(port, 1003, 100), -EUSERS);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(subscribe(port++, 0, 100), 0);
	assert_int_equal(subscribe(port, 0, 100), -EUSERS);
	/* A place that root gives up is still no other's. */
	assert_int_equal(subscribe(port - 1, 0, 0), 0);
	assert_int_equal(subscribe(port, 1003, 100), -EUSERS);
	assert_int_equal(subscribe(port, 0, 100), 0);
}

/* Somebody who does not read costs others nothing. */
static void a_full_follower_stays(void **state)
{
	assert_int_equal(subscribe(10, RIG_UID, 100), 0);
	rig.accept = 1;
	happen();
	assert_int_equal(rig.n, 1);
	rig.accept = RIG_REPLIES;
	happen();
	assert_int_equal(rig.n, 2);
	check_event(1, NLPROTO_EVENT_CONFIG_CHANGED, 2, 10);
}

#define T(name) cmocka_unit_test_setup_teardown(name, rig_set_up_quiet, rig_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(counters_that_rise_are_told),
		T(a_takeover_says_who_and_why),
		T(what_was_before_the_first_look_is_told),
		T(a_fast_counter_is_told_once_a_second),
		T(the_last_error_stays_in_sight),
		T(counters_show_in_the_health),
		T(the_store_s_state_is_told),
		T(a_retired_place_is_no_room),
		T(the_limit_is_told_when_it_is_reached),
		T(states_are_told),
		T(the_end_of_a_job_is_told),
		T(the_ends_of_two_are_told),
		T(no_end_of_a_job_is_missed),
		T(posted_events_are_sent_at_once),
		T(too_many_events_leave_a_gap),
		T(followers_get_events_for_a_time),
		T(a_subscription_is_renewed_and_ended),
		T(who_is_gone_is_forgotten),
		T(no_user_takes_all_places),
		T(root_finds_a_place),
		T(a_full_follower_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

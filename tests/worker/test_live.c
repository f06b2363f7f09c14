// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/util.h"
#include "daemon/worker/live.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const struct engine_options without_a_store = {
	.device_bytes = MIB(4),
	.memory_limit = MIB(32),
	.memory_max = MIB(64),
	.level = 1,
	.nqueues = 1,
	.store = {.fd = -1},
	.state_fd = -1,
	.front_fd = -1,
};

/* The table promises what live.c keeps, and no more. */
static void as_the_table_says(void **state)
{
	for (int id = 0; id < CONFIG_OPTION_COUNT; id++)
		if (config_options[id].live != live_has(id))
			fail_msg("%s.%s: live %d in the table, %d in live.c",
				 config_options[id].section, config_options[id].key,
				 config_options[id].live, live_has(id));
}

static void nothing_else_is_applied(void **state)
{
	char reason[CONFIG_REASON_MAX] = "";
	struct config c;

	config_init_defaults(&c, GIB(8));
	assert_int_equal(live_apply(NULL, CONFIG_OPTION_device_size, &c, reason), -EOPNOTSUPP);
	assert_string_equal(reason, "nothing applies it; restart zswapd");
}

static void the_limit_moves(void **state)
{
	struct engine_options o = without_a_store;
	char reason[CONFIG_REASON_MAX];
	uint64_t v[COUNTER_COUNT];
	struct engine *e;
	struct config c;

	assert_int_equal(engine_new(&e, &o), 0);
	config_init_defaults(&c, GIB(8));
	assert_int_equal(config_set(&c, CONFIG_OPTION_memory_limit, "64M", "test", reason), 0);
	assert_int_equal(live_apply(e, CONFIG_OPTION_memory_limit, &c, reason), 0);
	engine_counters(e, v);
	assert_int_equal(v[CTR_memory_limit_bytes], MIB(64));
	assert_int_equal(config_set(&c, CONFIG_OPTION_memory_limit, "65M", "test", reason), 0);
	assert_int_equal(live_apply(e, CONFIG_OPTION_memory_limit, &c, reason), -ERANGE);
	assert_string_equal(reason, "it can be set from 9.0 MiB to 64.0 MiB while zswapd runs");
	assert_int_equal(config_set(&c, CONFIG_OPTION_memory_reserve, "9M", "test", reason), 0);
	assert_int_equal(live_apply(e, CONFIG_OPTION_memory_reserve, &c, reason), 0);
	assert_int_equal(engine_memory_reserve(e), MIB(9));
	engine_free(e);
}

/* On an engine that is there, with values at the ends of their range. */
static void values_are_taken(void **state)
{
	static const struct {
		enum config_option_id id;
		const char *value;
	} t[] = {
		{CONFIG_OPTION_memory_level, "-7"},  {CONFIG_OPTION_memory_level, "19"},
		{CONFIG_OPTION_store_poll, "off"},   {CONFIG_OPTION_read_overlap, "no"},
		{CONFIG_OPTION_read_overlap, "yes"},
	};
	struct engine_options o = without_a_store;
	char reason[CONFIG_REASON_MAX];
	struct engine *e;
	struct config c;

	assert_int_equal(engine_new(&e, &o), 0);
	config_init_defaults(&c, GIB(8));
	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		assert_int_equal(config_set(&c, t[i].id, t[i].value, "test", reason), 0);
		assert_int_equal(live_apply(e, t[i].id, &c, reason), 0);
	}
	engine_free(e);
}

/* An engine without a store can't poll one. */
static void a_refusal_says_why(void **state)
{
	struct engine_options o = without_a_store;
	char reason[CONFIG_REASON_MAX];
	struct engine *e;
	struct config c;

	assert_int_equal(engine_new(&e, &o), 0);
	config_init_defaults(&c, GIB(8));
	assert_int_equal(config_set(&c, CONFIG_OPTION_store_poll, "hybrid", "test", reason), 0);
	assert_int_equal(live_apply(e, CONFIG_OPTION_store_poll, &c, reason), -EOPNOTSUPP);
	assert_string_equal(reason, "there is no store to poll; set [store] path");
	assert_int_equal(config_set(&c, CONFIG_OPTION_store_path, "/x", "test", reason), 0);
	assert_int_equal(live_apply(e, CONFIG_OPTION_store_poll, &c, reason), -EOPNOTSUPP);
	assert_non_null(strstr(reason, "nvme.poll_queues"));
	engine_free(e);
}

/* A limit that was set at run time outlives the daemon, and says whose it is. */
static void a_takeover_keeps_the_limit(void **state)
{
	struct engine_options o = without_a_store;
	char reason[CONFIG_REASON_MAX];
	struct engine *e;
	struct config c;

	config_init_defaults(&c, GIB(8));
	assert_int_equal(config_set(&c, CONFIG_OPTION_memory_limit, "32M", "file:1", reason), 0);
	assert_int_equal(engine_new(&e, &o), 0);
	/* As the file has it: the file's. */
	live_kept(e, &c);
	assert_int_equal(c.memory_limit, MIB(32));
	assert_string_equal(c.origin[CONFIG_OPTION_memory_limit], "file:1");
	assert_int_equal(engine_set_memory_limit(e, MIB(16)), 0);
	engine_set_memory_reserve(e, MIB(5));
	o.state_fd = dup(engine_state_fd(e));
	o.front_fd = dup(engine_front_fd(e));
	engine_free(e);
	assert_int_equal(engine_new(&e, &o), 0);
	live_kept(e, &c);
	assert_int_equal(c.memory_limit, MIB(16));
	assert_int_equal(c.memory_reserve, MIB(5));
	assert_string_equal(c.origin[CONFIG_OPTION_memory_limit], "kept from the former daemon");
	assert_string_equal(c.origin[CONFIG_OPTION_memory_reserve], "kept from the former daemon");
	engine_free(e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_the_table_says),  cmocka_unit_test(nothing_else_is_applied),
		cmocka_unit_test(the_limit_moves),    cmocka_unit_test(values_are_taken),
		cmocka_unit_test(a_refusal_says_why), cmocka_unit_test(a_takeover_keeps_the_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

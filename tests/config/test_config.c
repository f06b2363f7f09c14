// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/config/config.h"
#include "tests/config/capture.h"

#include <errno.h>
#include <stdlib.h>

static int validate(const struct config *c, struct stderr_capture *cap)
{
	int r;

	stderr_capture_begin(cap);
	r = config_validate(c, NULL);
	stderr_capture_end(cap);
	return r;
}

static void validate_refused(const struct config *c, const char *said)
{
	struct stderr_capture cap;

	assert_int_equal(validate(c, &cap), -EINVAL);
	assert_string_equal(cap.text, said);
}

static void defaults(void **state)
{
	struct stderr_capture cap;
	struct config c;

	config_init_defaults(&c, RAM);
	assert_string_equal(c.device_name, "zswap0");
	assert_int_equal(c.device_transport, CONFIG_TRANSPORT_AUTO);
	assert_int_equal(c.device_size, GIB(4));
	assert_int_equal(c.device_queues, 0);
	assert_true(c.swap_enable);
	assert_int_equal(c.swap_priority, 100);
	assert_int_equal(c.swap_discard, CONFIG_DISCARD_PAGES);
	assert_int_equal(c.memory_limit, RAM / 5);
	assert_int_equal(c.memory_reserve, 0);
	assert_int_equal(c.memory_level, 1);
	assert_string_equal(c.store_path, "");
	assert_int_equal(c.store_size, 0);
	assert_int_equal(c.store_poll, CONFIG_POLL_OFF);
	assert_false(c.store_required);
	assert_true(c.read_overlap);
	assert_string_equal(c.origin[CONFIG_OPTION_memory_limit], "default");
	assert_int_equal(validate(&c, &cap), 0);
	assert_string_equal(cap.text, "");
}

static void defaults_stay_in_range(void **state)
{
	struct stderr_capture cap;
	struct config c;

	config_init_defaults(&c, MIB(64) + 4095);
	assert_int_equal(c.device_size, MIB(32));
	assert_int_equal(c.memory_limit, CONFIG_MEMORY_LIMIT_MIN);
	assert_int_equal(validate(&c, &cap), 0);

	config_init_defaults(&c, MIB(1));
	assert_int_equal(c.device_size, CONFIG_DEVICE_SIZE_MIN);

	config_init_defaults(&c, GIB(1) << 16);
	assert_int_equal(c.device_size, CONFIG_DEVICE_SIZE_MAX);
	assert_int_equal(validate(&c, &cap), 0);
}

static void ram_of_this_machine(void **state)
{
	uint64_t bytes = 0;

	assert_int_equal(config_ram_bytes(&bytes), 0);
	assert_true(bytes >= MIB(16));
	assert_true(bytes >= (uint64_t)sysconf(_SC_PHYS_PAGES) * 4096 / 2);
}

static void contradictions(void **state)
{
	struct stderr_capture cap;
	struct config c;

	parse_says(&c, "[memory]\nlimit = 91%\n", "");
	validate_refused(&c,
			 "<3>zswapd: z.conf:2: [memory] limit: 7.3 GiB of the machine's 8.0 GiB "
			 "of RAM is too much; write at most 90%\n");
	parse_says(&c, "[memory]\nlimit = 90%\n", "");
	assert_int_equal(validate(&c, &cap), 0);

	parse_says(&c, "[memory]\nlimit = 64M\nreserve = 33M\n", "");
	validate_refused(&c, "<3>zswapd: z.conf:3: [memory] reserve: 33.0 MiB kept free is more "
			     "than half of the limit of 64.0 MiB; write less, or 0\n");
	/* 8 bytes a page: 4 GiB for 2 TiB. */
	parse_says(&c, "[memory]\nlimit = 50%\n[device]\nsize = 2T\n", "");
	validate_refused(&c, "<3>zswapd: z.conf:4: [device] size: the index of a 2.0 TiB device "
			     "takes 4.0 GiB of RAM, which do not fit beside the memory limit; "
			     "shrink it\n");
	parse_says(&c, "[memory]\nlimit = 45%\n[device]\nsize = 2T\n[store]\npath = /x\n", "");
	assert_int_equal(validate(&c, &cap), 0);

	parse_says(&c, "[store]\npath = /dev/x\nsize = 15M\n", "");
	validate_refused(&c, "<3>zswapd: z.conf:3: [store] size: 15.0 MiB is too small; write at "
			     "least 16.0 MiB, or 0 for a whole block device\n");
	parse_says(&c, "[store]\npath = /dev/x\nsize = 16M\n", "");
	assert_int_equal(validate(&c, &cap), 0);
	parse_says(&c, "[store]\npath = /dev/x\n", "");
	assert_int_equal(validate(&c, &cap), 0);

	/* These are strange, but they run. */
	parse_says(&c, "[store]\nsize = 15M\n", "");
	assert_int_equal(validate(&c, &cap), 0);
	assert_string_equal(cap.text, "<4>zswapd: z.conf:2: [store] size: has no effect, since "
				      "there is no store; set [store] path or remove size\n");
	parse_says(&c, "[device]\nsize = 1G\n[memory]\nlimit = 64M\n", "");
	assert_int_equal(validate(&c, &cap), 0);
	assert_string_equal(cap.text,
			    "<4>zswapd: z.conf:4: [memory] limit: without a store, 64.0 MiB can't "
			    "hold all of a 1.0 GiB device; raise limit, shrink the device or set "
			    "[store] path\n");
	parse_says(&c, "[device]\nsize = 1G\n[memory]\nlimit = 64M\n[store]\npath=/dev/x", "");
	assert_int_equal(validate(&c, &cap), 0);
	assert_string_equal(cap.text, "");
}

static void values_from_elsewhere(void **state)
{
	struct config good, c;

	config_init_defaults(&good, RAM);
	c = good;
	c.memory_limit = 0;
	validate_refused(&c,
			 "<3>zswapd: [memory] limit (default): '0' (0 B) is too small; write at "
			 "least 16.0 MiB\n");
	c = good;
	c.device_size = CONFIG_DEVICE_SIZE_MAX + 4096;
	validate_refused(&c,
			 "<3>zswapd: [device] size (default): '17592186048512' is too large; at "
			 "most 16.0 TiB is possible\n");
	c = good;
	c.device_size = MIB(1) + 512;
	validate_refused(&c, "<3>zswapd: [device] size (default): 1049088 bytes is not a whole "
			     "number of 4 KiB pages; use 1048576\n");
	c = good;
	c.device_transport = CONFIG_TRANSPORT_FUSE + 1;
	validate_refused(&c, "<3>zswapd: [device] transport (default): no value; write one, or "
			     "remove the line for the default auto\n");
	c = good;
	c.swap_priority = -2;
	validate_refused(&c, "<3>zswapd: [swap] priority (default): -2 is out of range; write a "
			     "number from -1 to 32767\n");
	c = good;
	strcpy(c.store_path, "relative");
	validate_refused(&c, "<3>zswapd: [store] path (default): 'relative' is no absolute path; "
			     "write none or a path that starts with /\n");
}

static char *print(const struct config *c)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	assert_non_null(f);
	assert_int_equal(config_print(f, c), 0);
	fclose(f);
	return text;
}

static void assert_same_values(const struct config *a, const struct config *b)
{
	char x[CONFIG_TEXT_MAX], y[CONFIG_TEXT_MAX];

	for (int id = 0; id < CONFIG_OPTION_COUNT; id++)
		assert_string_equal(config_value(a, id, x), config_value(b, id, y));
}

static void printed_reads_back(void **state)
{
	static const char *const texts[] = {
		"\n",
		"[device]\nname=x\ntransport=ublk\nsize=33%\nqueues=3\n[swap]\nenable=no\n"
		"priority=0\ndiscard=off\n[memory]\nlimit=123456789\nreserve=1M\nlevel=-7\n"
		"[store]\npath=/a b;c#d\nsize=17M\npoll=hybrid\n[read]\noverlap=no\n",
	};
	struct config c, again;
	char *text;

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		parse_says(&c, texts[i], "");
		text = print(&c);
		/* On a machine with other RAM, so that no value may depend on a share. */
		config_init_defaults(&again, MIB(777));
		again.ram_bytes = RAM;
		{
			struct stderr_capture cap;

			assert_int_equal(parse_bytes(&again, text, strlen(text), &cap), 0);
			assert_string_equal(cap.text, "");
		}
		assert_same_values(&c, &again);
		for (int id = 0; id < CONFIG_OPTION_COUNT; id++)
			assert_string_not_equal(again.origin[id], "default");
		free(text);
	}
}

static void printed_text(void **state)
{
	struct config c;
	char *text;

	parse_says(&c, "[memory]\nlimit = 256M\n", "");
	text = print(&c);
	assert_non_null(strstr(text, "# zswapd's configuration as resolved on a machine with "
				     "8.0 GiB of RAM.\n\n[device]\n"));
	assert_non_null(strstr(text,
			       "# Range: bytes, K, M, G, T or % of RAM; at least 1.0 MiB, at most "
			       "16.0 TiB; default 50%; changes with the next start.\n"
			       "# Bytes: 4.0 GiB, 50.0 % of RAM, 1048576 pages.\n"
			       "# Set by default.\n"
			       "size = 4294967296\n"));
	assert_non_null(strstr(text, "# Bytes: 256.0 MiB, 3.1 % of RAM.\n"
				     "# Set by z.conf:2.\n"
				     "limit = 268435456\n"));
	assert_non_null(strstr(
		text,
		"\n# Range: one of auto|ublk|fuse; default auto; changes with the next start.\n"
		"# Set by default.\ntransport = auto\n"));
	assert_non_null(strstr(text, "\n# Range: -7 to 19; default 1; can change at run time.\n"));
	assert_non_null(strstr(text, "\npath = none\n"));
	for (int id = 0; id < CONFIG_OPTION_COUNT; id++)
		assert_non_null(strstr(text, config_options[id].text));
	free(text);
}

static void print_to_full_disk(void **state)
{
	FILE *f = fopen("/dev/full", "w");
	struct config c;

	assert_non_null(f);
	config_init_defaults(&c, RAM);
	assert_int_equal(config_print(f, &c), -EIO);
	fclose(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults),
		cmocka_unit_test(defaults_stay_in_range),
		cmocka_unit_test(ram_of_this_machine),
		cmocka_unit_test(contradictions),
		cmocka_unit_test(values_from_elsewhere),
		cmocka_unit_test(printed_reads_back),
		cmocka_unit_test(printed_text),
		cmocka_unit_test(print_to_full_disk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

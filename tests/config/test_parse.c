// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/config/config.h"
#include "tests/config/capture.h"

#include <errno.h>
#include <stdlib.h>

/* Parses @text over the defaults; it has to fail, say exactly @said and change nothing. */
static void parse_refused(const char *text, const char *said)
{
	struct config c, before;
	struct stderr_capture cap;

	config_init_defaults(&c, RAM);
	before = c;
	assert_int_equal(parse_bytes(&c, text, strlen(text), &cap), -EINVAL);
	assert_string_equal(cap.text, said);
	assert_memory_equal(&c, &before, sizeof(c));
}

static void every_key(void **state)
{
	struct config c;

	parse_says(&c,
		   "# a comment\n"
		   "; another\n"
		   "[device]\nname = a-b_9\ntransport=fuse\nsize: 3G\nqueues = 64\n"
		   "\n[swap]\nenable = off\npriority = -1\ndiscard = off\n"
		   "[memory]\nlimit = 256M\nreserve = 8M\nlevel = -7\n"
		   "[store]\npath = /dev/disk/by-id/x=y\nsize = 20G\npoll = spin\nrequired = on\n"
		   "[read]\noverlap = 0",
		   "");
	assert_string_equal(c.device_name, "a-b_9");
	assert_int_equal(c.device_transport, CONFIG_TRANSPORT_FUSE);
	assert_int_equal(c.device_size, GIB(3));
	assert_int_equal(c.device_queues, 64);
	assert_false(c.swap_enable);
	assert_int_equal(c.swap_priority, -1);
	assert_int_equal(c.swap_discard, CONFIG_DISCARD_OFF);
	assert_int_equal(c.memory_limit, MIB(256));
	assert_int_equal(c.memory_reserve, MIB(8));
	assert_int_equal(c.memory_level, -7);
	assert_int_equal(c.store_poll, CONFIG_POLL_SPIN);
	assert_true(c.store_required);
	assert_string_equal(c.store_path, "/dev/disk/by-id/x=y");
	assert_int_equal(c.store_size, GIB(20));
	assert_false(c.read_overlap);
	assert_string_equal(c.origin[CONFIG_OPTION_device_name], "z.conf:4");
	assert_string_equal(c.origin[CONFIG_OPTION_read_overlap], "z.conf:23");
}

static void booleans(void **state)
{
	static const char *const yes[] = {"yes", "on", "true", "1", "YES", "On", "True"};
	static const char *const no[] = {"no", "off", "false", "0", "NO", "Off", "False"};
	struct config c;
	char text[64];

	for (size_t i = 0; i < ARRAY_SIZE(yes); i++) {
		snprintf(text, sizeof(text), "[swap]\nenable=no\n[swap]\n[read]\noverlap=%s\n",
			 yes[i]);
		parse_says(&c, text, "");
		assert_true(c.read_overlap);
		assert_false(c.swap_enable);
		snprintf(text, sizeof(text), "[read]\noverlap=%s\n", no[i]);
		parse_says(&c, text, "");
		assert_false(c.read_overlap);
	}
}

static void shares_of_ram(void **state)
{
	struct config c;

	parse_says(&c, "[device]\nsize = 150%\n[memory]\nlimit = 7%\n[store]\nsize = 100%\n", "");
	assert_int_equal(c.device_size, GIB(12));
	assert_int_equal(c.memory_limit, RAM * 7 / 100);
	assert_int_equal(c.store_size, RAM);
	/* No round number, and no word about it. */
	parse_says(&c, "[device]\nsize = 33%\n", "");
	assert_int_equal(c.device_size, RAM * 33 / 100 / 4096 * 4096);
}

static void rounding_is_told(void **state)
{
	struct config c;

	parse_says(&c, "[device]\nsize = 1052671\n",
		   "<5>zswapd: z.conf:2: [device] size: 1052671 is rounded down to whole "
		   "4 KiB pages, 1048576 bytes\n");
	assert_int_equal(c.device_size, MIB(1));
	parse_says(&c, "[device]\nsize = 2050K\n",
		   "<5>zswapd: z.conf:2: [device] size: 2050K is rounded down to whole "
		   "4 KiB pages, 2097152 bytes\n");
	assert_int_equal(c.device_size, MIB(2));
}

static void layout_of_lines(void **state)
{
	struct config c;

	/* Indented keys, CRLF, spaces at the end, a byte order mark, no last newline. */
	parse_says(&c,
		   "\xef\xbb\xbf  # comment ; more # more\r\n[memory]  \r\n\t level = 5 \r\n"
		   "  limit = 1G\t\r\n   \n[store]\n  path = /a b;c#d",
		   "");
	assert_int_equal(c.memory_level, 5);
	assert_int_equal(c.memory_limit, GIB(1));
	assert_string_equal(c.store_path, "/a b;c#d");
	/* An empty file is a file that changes nothing. */
	parse_says(&c, "\n", "");
	assert_int_equal(c.memory_level, 1);
}

static void wrong_values(void **state)
{
	static const struct {
		const char *text, *said;
	} t[] = {
#define NO_NAME "is no device name; use 1 to 31 of a-z, 0-9, _ and -\n"
		{"[device]\nname = Zswap\n", "z.conf:2: [device] name: 'Zswap' " NO_NAME},
		{"[device]\nname = a/b\n", "z.conf:2: [device] name: 'a/b' " NO_NAME},
		{"[device]\nname = a23456789012345678901234567890123\n",
		 "z.conf:2: [device] name: 'a23456789012345678901234567890123' " NO_NAME},
		{"[device]\n\n\ntransport = nbd\n",
		 "z.conf:4: [device] transport: 'nbd' is no choice; write one of auto|ublk|fuse\n"},
		{"[device]\ntransport = auto|ublk\n",
		 "z.conf:2: [device] transport: 'auto|ublk' is no choice; write one of "
		 "auto|ublk|fuse\n"},
		{"[swap]\ndiscard = once\n",
		 "z.conf:2: [swap] discard: 'once' is no choice; write one of off|pages\n"},
#define NO_SIZE                                                                 \
	"is no size; write bytes, or as in 64K, 16M, 2G, 1T (K is 1024), or a " \
	"share of RAM as in 20%\n"
		{"[device]\nsize = 64MB\n", "z.conf:2: [device] size: '64MB' " NO_SIZE},
		{"[device]\nsize = 1.5G\n", "z.conf:2: [device] size: '1.5G' " NO_SIZE},
		{"[device]\nsize = -1\n", "z.conf:2: [device] size: '-1' " NO_SIZE},
		{"[device]\nsize = 99999999999T\n", "z.conf:2: [device] size: '99999999999T' is "
						    "too large; at most 16.0 TiB is possible\n"},
		{"[device]\nsize = 17T\n", "z.conf:2: [device] size: '17T' is too large; at most "
					   "16.0 TiB is possible\n"},
		{"[device]\nsize = 1023K\n", "z.conf:2: [device] size: '1023K' (1023.0 KiB) is too "
					     "small; write at least 1.0 MiB\n"},
		{"[memory]\nlimit = 0\n", "z.conf:2: [memory] limit: '0' (0 B) is too small; write "
					  "at least 16.0 MiB\n"},
		{"[memory]\nlimit = 0%\n", "z.conf:2: [memory] limit: '0%' (0 B) is too small; "
					   "write at least 16.0 MiB\n"},
		{"[store]\nsize = 9E\n", "z.conf:2: [store] size: '9E' " NO_SIZE},
		{"[store]\nsize = 9223372036854775808\n",
		 "z.conf:2: [store] size: '9223372036854775808' is too large; at most 8.0 EiB is "
		 "possible\n"},
		{"[device]\nqueues = 65\n", "z.conf:2: [device] queues: 65 is out of range; write "
					    "a number from 0 to 64\n"},
		{"[device]\nqueues = -1\n", "z.conf:2: [device] queues: -1 is out of range; write "
					    "a number from 0 to 64\n"},
		{"[device]\nqueues = auto\n", "z.conf:2: [device] queues: 'auto' is no whole "
					      "number; write one from 0 to 64\n"},
		{"[swap]\npriority = -2\n", "z.conf:2: [swap] priority: -2 is out of range; write "
					    "a number from -1 to 32767\n"},
		{"[swap]\npriority = 99999999999999999999\n",
		 "z.conf:2: [swap] priority: 99999999999999999999 is out of range; write a number "
		 "from -1 to 32767\n"},
		{"[swap]\npriority = -\n", "z.conf:2: [swap] priority: '-' is no whole number; "
					   "write one from -1 to 32767\n"},
		{"[swap]\npriority = +1\n", "z.conf:2: [swap] priority: '+1' is no whole number; "
					    "write one from -1 to 32767\n"},
		{"[memory]\nlevel = 20\n", "z.conf:2: [memory] level: 20 is out of range; write a "
					   "number from -7 to 19\n"},
		{"[memory]\nlevel = 1.0\n", "z.conf:2: [memory] level: '1.0' is no whole number; "
					    "write one from -7 to 19\n"},
		{"[swap]\nenable = maybe\n",
		 "z.conf:2: [swap] enable: 'maybe' is neither yes nor no; write yes, no, on, off, "
		 "true, false, 1 or 0\n"},
		{"[store]\npath = swap.img\n",
		 "z.conf:2: [store] path: 'swap.img' is no absolute path; write none or a path "
		 "that starts with /\n"},
		{"[store]\npath = /a\x01\x7f\n", "z.conf:2: [store] path: '/a?\?' holds control "
						 "characters; write the path without them\n"},
		{"[read]\noverlap =\n", "z.conf:2: [read] overlap: no value; write one, or remove "
					"the line for the default on\n"},
	};
	char said[300];

	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		snprintf(said, sizeof(said), "<3>zswapd: %s", t[i].said);
		parse_refused(t[i].text, said);
	}
}

static void swallowed_comments(void **state)
{
	parse_refused("[memory]\nlimit = 64M ; foo\n",
		      "<3>zswapd: z.conf:2: [memory] limit: '; foo' follows the value; put "
		      "comments on their own lines\n");
	parse_refused("[memory]\nlimit = 64M\t# foo\r\n",
		      "<3>zswapd: z.conf:2: [memory] limit: '# foo' follows the value; put "
		      "comments on their own lines\n");
	parse_refused("[store]\npath = ; none yet\n",
		      "<3>zswapd: z.conf:2: [store] path: '; none yet' follows the value; put "
		      "comments on their own lines\n");
	parse_refused("[memory] ; foo\nlimit = 64M\n",
		      "<3>zswapd: z.conf:1: '; foo' follows the section's name; put it on a line "
		      "of its own\n");
	parse_refused("[memory] limit = 64M\n",
		      "<3>zswapd: z.conf:1: 'limit = 64M' follows the section's name; put it on a "
		      "line of its own\n");
	parse_refused("[memory]\n\nlimit = 64M;foo\n",
		      "<3>zswapd: z.conf:3: [memory] limit: ';foo' follows the value; put "
		      "comments on their own lines\n");
	parse_refused("[memory]\nlevel = 3#foo\n",
		      "<3>zswapd: z.conf:2: [memory] level: '#foo' follows the value; put "
		      "comments on their own lines\n");
}

static void wrong_lines(void **state)
{
#define NEITHER "the line is neither [section] nor key = value; correct or remove it\n"
	parse_refused("[memory]\nlevel\n", "<3>zswapd: z.conf:2: " NEITHER);
	parse_refused("[memory\nlevel = 3\n",
		      "<3>zswapd: z.conf:1: the section's name lacks its ]; write [name]\n");
	parse_refused("[memory]\nlevel = 3\n   5\n", "<3>zswapd: z.conf:3: " NEITHER);
	parse_refused("[memory]\n = 3\n", "<3>zswapd: z.conf:2: no key stands before the value; "
					  "write key = value\n");
	/* Of two wrong lines the first is named. */
	parse_refused("[memory]\nlevel\nlimit = x\n", "<3>zswapd: z.conf:2: " NEITHER);
	parse_refused("[memory]\nlevel = x\nlimit\n",
		      "<3>zswapd: z.conf:2: [memory] level: 'x' is no whole number; write one "
		      "from -7 to 19\n");
}

static void binary_file(void **state)
{
	static const char text[] = "[memory]\nlevel\0 = 3\n";
	struct stderr_capture cap;
	struct config c;

	config_init_defaults(&c, RAM);
	assert_int_equal(parse_bytes(&c, text, sizeof(text) - 1, &cap), -EINVAL);
	assert_string_equal(cap.text, "<3>zswapd: z.conf:2: holds a NUL byte; name a text file\n");
}

/* "[store]\npath = /aaa…" with a second line of @len bytes, then @tail. */
static const char *long_line(size_t len, const char *tail)
{
	static char text[1024];
	int n = snprintf(text, sizeof(text), "[store]\npath = /");

	memset(text + n, 'a', len - strlen("path = /"));
	strcpy(text + strlen("[store]\n") + len, tail);
	return text;
}

static void long_lines(void **state)
{
	static const char *const tails[] = {"", "\n", "\r\n", "\nsize = 1G\n", "\n\nsize = 1G"};
	size_t accepted = 0;
	struct stderr_capture cap;
	struct config c;

	/* Whatever the library's buffer is: a line is either taken whole or refused. */
	for (size_t len = 10; len < 300; len++)
		for (size_t i = 0; i < ARRAY_SIZE(tails); i++) {
			const char *text = long_line(len, tails[i]);

			config_init_defaults(&c, RAM);
			if (parse_bytes(&c, text, strlen(text), &cap) == 0) {
				assert_int_equal(strlen(c.store_path), len - strlen("path = "));
				assert_int_equal(c.store_size, strstr(text, "1G") ? GIB(1) : 0);
				assert_string_equal(cap.text, "");
				accepted = len;
			} else {
				assert_non_null(strstr(cap.text, "z.conf:2: "));
				assert_string_equal(c.store_path, "");
			}
		}
	assert_in_range(accepted, 150, CONFIG_PATH_MAX + strlen("path = "));

	config_init_defaults(&c, RAM);
	long_line(900, "\n");
	assert_int_equal(parse_bytes(&c, long_line(900, "\n"), 909, &cap), -EINVAL);
	assert_non_null(strstr(cap.text, "<3>zswapd: z.conf:2: the line is longer than "));
	assert_non_null(strstr(cap.text, " bytes; shorten it\n"));
}

static void long_comment(void **state)
{
	char text[1024] = "; ";
	struct config c;

	memset(text + 2, 'x', 700);
	strcpy(text + 702, "\n[memory]\nlevel = 9\n");
	parse_says(&c, text, "");
	assert_int_equal(c.memory_level, 9);
	assert_string_equal(c.origin[CONFIG_OPTION_memory_level], "z.conf:3");
}

static void unknown_names(void **state)
{
	struct config c;

	parse_says(&c, "[memory]\nlimits = 64M ; foo\nlevel = 3\n",
		   "<4>zswapd: z.conf:2: [memory] limits: unknown key, ignored; there are: limit "
		   "reserve level\n");
	assert_int_equal(c.memory_level, 3);
	parse_says(&c, "[zstd]\nlevel = 3\n",
		   "<4>zswapd: z.conf:2: [zstd] level: unknown section, ignored; there are: device "
		   "swap memory store read security\n");
	assert_int_equal(c.memory_level, 1);
	parse_says(&c, "level = 3\n[Memory]\nlevel = 4\n",
		   "<4>zswapd: z.conf:1: level: stands before the first [section], ignored; there "
		   "are: device swap memory store read security\n"
		   "<4>zswapd: z.conf:3: [Memory] level: unknown section, ignored; there are: "
		   "device swap memory store read security\n");
	assert_int_equal(c.memory_level, 1);
}

static void last_of_two_counts(void **state)
{
	struct config c;

	parse_says(&c, "[memory]\nlevel = 3\n[read]\n[memory]\n\nlevel = 5\n",
		   "<4>zswapd: z.conf:6: [memory] level: was set in line 2 already; this line "
		   "counts, remove one\n");
	assert_int_equal(c.memory_level, 5);
	assert_string_equal(c.origin[CONFIG_OPTION_memory_level], "z.conf:6");
}

static void files(void **state)
{
	char path[] = "/tmp/test_config.XXXXXX", text[200], *end;
	struct config c, before;
	struct stderr_capture cap;
	FILE *f;
	int r;

	f = fdopen(mkstemp(path), "w");
	assert_non_null(f);
	fputs("[memory]\nlevel = 12\n", f);
	assert_int_equal(fclose(f), 0);
	config_init_defaults(&c, RAM);
	assert_int_equal(config_load(&c, path, NULL), 0);
	assert_int_equal(c.memory_level, 12);
	snprintf(text, sizeof(text), "%s:2", path);
	assert_string_equal(c.origin[CONFIG_OPTION_memory_level], text);
	unlink(path);

	before = c;
	stderr_capture_begin(&cap);
	r = config_load(&c, path, NULL);
	stderr_capture_end(&cap);
	assert_int_equal(r, -ENOENT);
	snprintf(text, sizeof(text),
		 "<3>zswapd: %s: cannot be opened: No such file or directory; name a file that "
		 "exists and can be read\n",
		 path);
	assert_string_equal(cap.text, text);

	stderr_capture_begin(&cap);
	r = config_load(&c, "/tmp", NULL);
	stderr_capture_end(&cap);
	assert_int_equal(r, -EISDIR);
	assert_string_equal(cap.text, "<3>zswapd: /tmp: cannot be read: Is a directory; name a "
				      "readable file\n");
	assert_memory_equal(&c, &before, sizeof(c));

	/* A name that could break the message, or push the reason out of it. */
	f = fmemopen((void *)(uintptr_t) "[memory]\nlevel = x\n", 19, "r");
	assert_non_null(f);
	memset(text, 'd', 150);
	strcpy(text + 150, "/\n/end.conf");
	stderr_capture_begin(&cap);
	r = config_parse(&c, f, text, NULL);
	stderr_capture_end(&cap);
	fclose(f);
	assert_int_equal(r, -EINVAL);
	end = strstr(cap.text, "/?/end.conf:2: [memory] level: 'x' is no whole number; write one "
			       "from -7 to 19\n");
	assert_non_null(end);
	assert_true(end - cap.text < 100);
	assert_memory_equal(cap.text, "<3>zswapd: ...ddd", 17);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_key),	      cmocka_unit_test(booleans),
		cmocka_unit_test(shares_of_ram),      cmocka_unit_test(rounding_is_told),
		cmocka_unit_test(layout_of_lines),    cmocka_unit_test(wrong_values),
		cmocka_unit_test(swallowed_comments), cmocka_unit_test(wrong_lines),
		cmocka_unit_test(binary_file),	      cmocka_unit_test(long_lines),
		cmocka_unit_test(long_comment),	      cmocka_unit_test(unknown_names),
		cmocka_unit_test(last_of_two_counts), cmocka_unit_test(files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

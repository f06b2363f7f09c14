// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/config/capture.h"
#include "tests/lib/scratch.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

static struct scratch scratch;

static int setup(void **state)
{
	scratch_init(&scratch);
	return 0;
}

static int teardown(void **state)
{
	scratch_deinit(&scratch);
	return 0;
}

/* DIR/@path, in directories that are made. */
static const char *place(const char *path)
{
	assert_int_equal(scratch_run("mkdir -p \"$(dirname '%s/%s')\"", scratch.dir, path), 0);
	return scratch_path(&scratch, path);
}

static void put(const char *path, const char *text)
{
	FILE *f = fopen(place(path), "w");

	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

static void put_link(const char *path, const char *target)
{
	assert_int_equal(symlink(target, place(path)), 0);
}

static int read_root(struct config *c, struct stderr_capture *cap, char *error)
{
	struct config_source source = {.root = scratch.dir};
	int r;

	stderr_capture_begin(cap);
	r = config_read(c, RAM, &source, error);
	stderr_capture_end(cap);
	return r;
}

static void assert_set_by(const struct config *c, enum config_option_id id, const char *origin)
{
	size_t len = strlen(c->origin[id]), n = strlen(origin);

	assert_true(len > n);
	assert_string_equal(c->origin[id] + len - n, origin);
}

static void no_files(void **state)
{
	struct stderr_capture cap;
	struct config c;

	assert_int_equal(read_root(&c, &cap, NULL), 0);
	assert_string_equal(cap.text,
			    "<5>zswapd: no configuration file: going on with the defaults "
			    "(see --print-config)\n");
	for (int id = 0; id < CONFIG_OPTION_COUNT; id++)
		assert_string_equal(c.origin[id], "default");
	/* Directories without files are no more than no directories. */
	assert_int_equal(scratch_run("mkdir -p %s/etc/zswapd/zswapd.conf.d", scratch.dir), 0);
	assert_int_equal(read_root(&c, &cap, NULL), 0);
	assert_int_equal(c.memory_level, 1);
}

static void first_main_file_alone(void **state)
{
	static const struct {
		const char *path;
		int level;
	} t[] = {{"usr/lib/zswapd/zswapd.conf", 2},
		 {"usr/local/lib/zswapd/zswapd.conf", 3},
		 {"etc/zswapd/zswapd.conf", 4},
		 {"run/zswapd/zswapd.conf", 5}};
	struct stderr_capture cap;
	struct config c;
	char text[64];

	put(t[0].path, "[memory]\nlevel = 2\n[read]\noverlap = off\n");
	assert_int_equal(read_root(&c, &cap, NULL), 0);
	assert_int_equal(c.memory_level, 2);
	assert_false(c.read_overlap);
	for (size_t i = 1; i < ARRAY_SIZE(t); i++) {
		snprintf(text, sizeof(text), "[memory]\nlevel = %d\n", t[i].level);
		put(t[i].path, text);
		assert_int_equal(read_root(&c, &cap, NULL), 0);
		assert_int_equal(c.memory_level, t[i].level);
		/* Those further down are not read at all. */
		assert_true(c.read_overlap);
		assert_non_null(strstr(cap.text, t[i].path));
		assert_null(strstr(cap.text, t[i - 1].path));
	}
}

static void drop_ins_in_order_of_names(void **state)
{
	struct stderr_capture cap;
	struct config c;
	const char *p;

	put("run/zswapd/zswapd.conf", "[memory]\nlevel = 2\nlimit = 1G\n[swap]\npriority = 1\n");
	put("run/zswapd/zswapd.conf.d/10-a.conf", "[memory]\nlevel = 10\n");
	put("usr/lib/zswapd/zswapd.conf.d/20-b.conf", "[memory]\nlevel = 11\nlimit = 2G\n");
	put("etc/zswapd/zswapd.conf.d/9.conf", "[device]\n\nqueues = 3\n");
	put("usr/local/lib/zswapd/zswapd.conf.d/15.conf", "[swap]\npriority = 15\n");
	assert_int_equal(read_root(&c, &cap, NULL), 0);
	/* By name, not by directory or number: 10-a, 15, 20-b, 9. */
	assert_int_equal(c.memory_level, 11);
	assert_int_equal(c.memory_limit, GIB(2));
	assert_int_equal(c.swap_priority, 15);
	assert_int_equal(c.device_queues, 3);
	assert_set_by(&c, CONFIG_OPTION_memory_level, "/usr/lib/zswapd/zswapd.conf.d/20-b.conf:2");
	assert_set_by(&c, CONFIG_OPTION_device_queues, "/etc/zswapd/zswapd.conf.d/9.conf:3");
	p = strstr(cap.text, "run/zswapd/zswapd.conf\n");
	assert_non_null(p);
	p = strstr(p, "run/zswapd/zswapd.conf.d/10-a.conf\n");
	assert_non_null(p);
	p = strstr(p, "usr/local/lib/zswapd/zswapd.conf.d/15.conf\n");
	assert_non_null(p);
	p = strstr(p, "usr/lib/zswapd/zswapd.conf.d/20-b.conf\n");
	assert_non_null(p);
	assert_non_null(strstr(p, "etc/zswapd/zswapd.conf.d/9.conf\n"));
	/* What one drop-in sets after another is no mistake. */
	assert_null(strstr(cap.text, "<4>"));
}

static void same_name_masks(void **state)
{
	static const char *const dirs[] = {"usr/lib", "usr/local/lib", "etc", "run"};
	struct stderr_capture cap;
	struct config c;
	char path[64], text[64];

	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++) {
		snprintf(path, sizeof(path), "%s/zswapd/zswapd.conf.d/50.conf", dirs[i]);
		snprintf(text, sizeof(text), "[memory]\nlevel = %zu\n%s", 10 + i,
			 i == 0 ? "[read]\noverlap = off\n" : "");
		put(path, text);
		assert_int_equal(read_root(&c, &cap, NULL), 0);
		assert_int_equal(c.memory_level, 10 + i);
		assert_int_equal(c.read_overlap, i != 0);
	}
	/* An empty file masks as well. */
	put("run/zswapd/zswapd.conf.d/50.conf", "");
	assert_int_equal(read_root(&c, &cap, NULL), 0);
	assert_int_equal(c.memory_level, 1);
}

static void dev_null_masks(void **state)
{
	struct stderr_capture cap;
	struct config c;

	put("usr/lib/zswapd/zswapd.conf", "[memory]\nlevel = 3\n");
	put("usr/lib/zswapd/zswapd.conf.d/50.conf", "[memory]\nlevel = 5\n");
	put("usr/lib/zswapd/zswapd.conf.d/60.conf", "[swap]\npriority = 6\n");
	put_link("etc/zswapd/zswapd.conf.d/50.conf", "/dev/null");
	assert_int_equal(read_root(&c, &cap, NULL), 0);
	assert_int_equal(c.memory_level, 3);
	assert_int_equal(c.swap_priority, 6);
	assert_null(strstr(cap.text, "50.conf"));
	put_link("etc/zswapd/zswapd.conf", "/dev/null");
	assert_int_equal(read_root(&c, &cap, NULL), 0);
	assert_int_equal(c.memory_level, 1);
	assert_int_equal(c.swap_priority, 6);
	/* Nothing but masks is like nothing. */
	put_link("run/zswapd/zswapd.conf.d/60.conf", "/dev/null");
	assert_int_equal(read_root(&c, &cap, NULL), 0);
	assert_non_null(strstr(cap.text, "no configuration file"));
	/* A mask stands at its place too: what is before it in priority is read. */
	put("run/zswapd/zswapd.conf.d/50.conf", "[memory]\nlevel = 9\n");
	assert_int_equal(read_root(&c, &cap, NULL), 0);
	assert_int_equal(c.memory_level, 9);
}

static void other_names_are_passed_over(void **state)
{
	static const char *const names[] = {".conf",   ".10.conf", "10.conf~", "10.conf.bak",
					    "10.CONF", "conf",	   "README"};
	struct stderr_capture cap;
	struct config c;
	char path[64];

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(path, sizeof(path), "etc/zswapd/zswapd.conf.d/%s", names[i]);
		put(path, "[memory]\nlevel = wrong\n");
	}
	put("etc/zswapd/zswapd.conf.d/a b.conf", "[memory]\nlevel = 7\n");
	assert_int_equal(read_root(&c, &cap, NULL), 0);
	assert_int_equal(c.memory_level, 7);
}

/* Refused, with @said in the log and in the text; @c stays as it was. */
static void refused(int error, const char *said)
{
	char text[CONFIG_ERROR_MAX] = "", line[CONFIG_ERROR_MAX + 16];
	struct config c, before;
	struct stderr_capture cap;

	config_init_defaults(&c, GIB(3));
	before = c;
	assert_int_equal(read_root(&c, &cap, text), error);
	assert_memory_equal(&c, &before, sizeof(c));
	if (!strstr(text, said))
		fail_msg("'%s' is not in '%s'", said, text);
	snprintf(line, sizeof(line), "<3>zswapd: %s\n", text);
	assert_non_null(strstr(cap.text, line));
}

static void wrong_files(void **state)
{
	put("etc/zswapd/zswapd.conf", "[memory]\nlevel = 3\n");
	put("usr/lib/zswapd/zswapd.conf.d/10.conf", "[memory]\n\nlevel = 3 # three\n");
	refused(-EINVAL,
		"/usr/lib/zswapd/zswapd.conf.d/10.conf:3: [memory] level: '# three' follows "
		"the value; put comments on their own lines");
	put_link("run/zswapd/zswapd.conf.d/10.conf", "nowhere");
	refused(-ENOENT, "/run/zswapd/zswapd.conf.d/10.conf: cannot be read: No such file or "
			 "directory; correct or remove it");
	put_link("etc/zswapd/zswapd.conf.d/20.conf", "20.conf");
	put("run/zswapd/zswapd.conf.d/20.conf", "");
	assert_int_equal(unlink(scratch_path(&scratch, "run/zswapd/zswapd.conf.d/10.conf")), 0);
	assert_int_equal(mkdir(place("run/zswapd/zswapd.conf.d/10.conf"), 0755), 0);
	refused(-EINVAL, "/run/zswapd/zswapd.conf.d/10.conf: is no regular file; remove it");
	/* Opening it would wait for a writer. */
	assert_int_equal(mkfifo(place("run/zswapd/zswapd.conf.d/05.conf"), 0644), 0);
	refused(-EINVAL, "/run/zswapd/zswapd.conf.d/05.conf: is no regular file; remove it");
	put_link("run/zswapd/zswapd.conf", "zswapd.conf");
	refused(-ELOOP, "/run/zswapd/zswapd.conf: cannot be read: ");
}

/* Who can write to a file can have any file overwritten, as a store. */
static void files_that_others_can_write(void **state)
{
	const char *path = "etc/zswapd/zswapd.conf.d/10.conf";
	struct stderr_capture cap;
	struct config c;

	put(path, "[memory]\nlevel = 3\n");
	assert_int_equal(chmod(place(path), 0646), 0);
	refused(-EPERM,
		"/etc/zswapd/zswapd.conf.d/10.conf: others can write to it (mode 0646), who "
		"must not say what this program does; chmod go-w it");
	assert_int_equal(chmod(place(path), 0664), 0); /* a group of our own */
	assert_int_equal(read_root(&c, &cap, NULL), 0);
	if (geteuid() != 0)
		return;
	assert_int_equal(chown(place(path), 0, 65534), 0);
	refused(-EPERM, "others can write to it (mode 0664)");
	assert_int_equal(chmod(place(path), 0644), 0);
	assert_int_equal(read_root(&c, &cap, NULL), 0);
	assert_int_equal(chown(place(path), 65534, 0), 0);
	refused(-EPERM,
		"/etc/zswapd/zswapd.conf.d/10.conf: belongs to user 65534, who must not say "
		"what this program does; chown root it");
	/* Nor through a link of root's, nor as the one file that is named. */
	put_link("run/zswapd/zswapd.conf", "../../etc/zswapd/zswapd.conf.d/10.conf");
	refused(-EPERM, "/run/zswapd/zswapd.conf: belongs to user 65534");
	stderr_capture_begin(&cap);
	assert_int_equal(config_load(&c, place(path), NULL), -EPERM);
	stderr_capture_end(&cap);
	assert_non_null(strstr(cap.text, "belongs to user 65534"));
}

/* Each file is right; together they are not. */
static void wrong_together(void **state)
{
	struct stderr_capture cap;
	struct config c;

	put("etc/zswapd/zswapd.conf", "[store]\nsize = 1M\n");
	assert_int_equal(read_root(&c, &cap, NULL), 0);
	put("etc/zswapd/zswapd.conf.d/50.conf", "[store]\npath = /x\n");
	refused(-EINVAL, "/etc/zswapd/zswapd.conf:2: [store] size: 1.0 MiB is too small; write at "
			 "least 16.0 MiB, or 0 for a whole block device");
}

static void one_file_alone(void **state)
{
	struct config_source source = {.root = scratch.dir};
	struct stderr_capture cap;
	struct config c;
	int r;

	put("etc/zswapd/zswapd.conf", "[memory]\nlevel = 3\n");
	put("etc/zswapd/zswapd.conf.d/10.conf", "[read]\noverlap = off\n");
	put("mine", "[swap]\npriority = 7\n");
	source.file = scratch_path(&scratch, "mine");
	stderr_capture_begin(&cap);
	r = config_read(&c, RAM, &source, NULL);
	stderr_capture_end(&cap);
	assert_int_equal(r, 0);
	assert_int_equal(c.memory_level, 1);
	assert_true(c.read_overlap);
	assert_int_equal(c.swap_priority, 7);
}

static void logged_values(void **state)
{
	struct stderr_capture cap;
	struct config c;

	parse_says(&c, "[device]\nsize = 2000000\n[memory]\nlimit = 64M\nlevel = 1\n",
		   "<5>zswapd: z.conf:2: [device] size: 2000000 is rounded down to whole 4 KiB "
		   "pages, 1998848 bytes\n");
	stderr_capture_begin(&cap);
	config_log(&c);
	stderr_capture_end(&cap);
	assert_string_equal(
		cap.text,
		"<6>zswapd: z.conf:2: [device] size = 1998848 (1.9 MiB, 0.0 % of RAM, "
		"488 pages)\n"
		"<6>zswapd: z.conf:4: [memory] limit = 67108864 (64.0 MiB, 0.8 % of RAM)\n"
		"<6>zswapd: z.conf:5: [memory] level = 1\n");
}

static void root_from_environment(void **state)
{
	const char *root = "unset";
	struct stderr_capture cap;
	int r;

	assert_int_equal(unsetenv(CONFIG_ROOT_VARIABLE), 0);
	assert_int_equal(config_root(&root), 0);
	assert_string_equal(root, "");
	assert_int_equal(setenv(CONFIG_ROOT_VARIABLE, "", 1), 0);
	assert_int_equal(config_root(&root), 0);
	assert_string_equal(root, "");
	assert_int_equal(setenv(CONFIG_ROOT_VARIABLE, "/a/b", 1), 0);
	assert_int_equal(config_root(&root), 0);
	assert_string_equal(root, "/a/b");
	assert_int_equal(setenv(CONFIG_ROOT_VARIABLE, "a/b", 1), 0);
	root = "untouched";
	stderr_capture_begin(&cap);
	r = config_root(&root);
	stderr_capture_end(&cap);
	assert_int_equal(r, -EINVAL);
	assert_string_equal(root, "untouched");
	assert_string_equal(cap.text,
			    "<3>zswapd: ZSWAPD_ROOT: 'a/b' is no absolute path; write one "
			    "that starts with /\n");
	assert_int_equal(unsetenv(CONFIG_ROOT_VARIABLE), 0);
}

#define with_root(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_root(no_files),
		with_root(first_main_file_alone),
		with_root(drop_ins_in_order_of_names),
		with_root(same_name_masks),
		with_root(dev_null_masks),
		with_root(other_names_are_passed_over),
		with_root(wrong_files),
		with_root(files_that_others_can_write),
		with_root(wrong_together),
		with_root(one_file_alone),
		cmocka_unit_test(logged_values),
		cmocka_unit_test(root_from_environment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

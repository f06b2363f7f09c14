// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/util.h"
#include "daemon/worker/control.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define RAM GIB(8)

/* What the callbacks were told, a line each. */
struct fixture {
	struct control *control;
	struct config applied; /* what "runs" */
	char path[32];
	char told[4096];
	int fail;    /* what apply() returns */
	int fail_id; /* for this option; 0: for all */
};

static void tell(struct fixture *f, const char *what, const char *text)
{
	size_t n = strlen(f->told);

	snprintf(f->told + n, sizeof(f->told) - n, "%s %s\n", what, text);
}

static int apply(void *ctx, enum config_option_id id, const struct config *c,
		 char reason[static CONFIG_REASON_MAX])
{
	struct fixture *f = ctx;

	tell(f, "apply", config_options[id].key);
	if (f->fail && (!f->fail_id || f->fail_id == (int)id)) {
		strcpy(reason, "the moon is full; wait");
		return f->fail;
	}
	f->applied = *c;
	return 0;
}

static void changed(void *ctx, const char *key, const char *text)
{
	assert_memory_equal(key, text, strlen(key));
	tell(ctx, "changed", text);
}

static void notify(void *ctx, const char *state)
{
	static const char reloading[] = "RELOADING=1\nMONOTONIC_USEC=";
	uint64_t usec;

	if (!strncmp(state, reloading, strlen(reloading))) {
		usec = strtoull(state + strlen(reloading), NULL, 10);
		assert_in_range(now_ns() / 1000 - usec, 0, 60000000);
		state = "RELOADING";
	}
	tell(ctx, "notify", state);
}

static const struct control_ops ops = {apply, changed, notify};

static void write_file(const struct fixture *f, const char *text)
{
	FILE *file = fopen(f->path, "w");

	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

static void begin(struct fixture *f, const char *text)
{
	struct config_source source = {.file = f->path};

	*f = (struct fixture){.path = "/tmp/test_control.XXXXXX"};
	assert_int_equal(close(mkstemp(f->path)), 0);
	write_file(f, text);
	assert_int_equal(config_read(&f->applied, RAM, &source, NULL), 0);
	assert_int_equal(control_new(&f->control, &f->applied, &source, &ops, f), 0);
}

static void end(struct fixture *f)
{
	control_free(f->control);
	unlink(f->path);
}

/* Compares what was told since the last call. */
static void assert_told(struct fixture *f, const char *told)
{
	assert_string_equal(f->told, told);
	f->told[0] = '\0';
}

static void get_value(struct fixture *f, const char *key, struct control_value *ret)
{
	const struct config_option *o = config_find(key);

	assert_non_null(o);
	control_get_id(f->control, (enum config_option_id)(o - config_options), ret);
}

static void value_is(struct fixture *f, const char *key, const char *value, const char *origin)
{
	struct control_value v;

	get_value(f, key, &v);
	assert_string_equal(v.key, key);
	assert_string_equal(v.value, value);
	assert_string_equal(v.origin, origin);
}

static void get(void **state)
{
	struct control_value v;
	char origin[64];
	struct fixture f;

	begin(&f, "[memory]\nlimit = 64M\n[store]\npath = /x\n");
	snprintf(origin, sizeof(origin), "%s:2", f.path);
	value_is(&f, "memory.limit", "67108864", origin);
	value_is(&f, "memory.level", "1", "default");
	value_is(&f, "read.overlap", "yes", "default");
	get_value(&f, "device.size", &v);
	assert_string_equal(v.value, "4294967296");
	assert_string_equal(v.def, "50%");
	assert_string_equal(v.range,
			    "bytes, K, M, G, T or % of RAM; at least 1.0 MiB, at most 16.0 TiB");
	assert_false(v.live);
	assert_non_null(strstr(v.text, "Size of the device"));
	get_value(&f, "memory.level", &v);
	assert_true(v.live);
	for (int id = 0; id < CONFIG_OPTION_COUNT; id++) {
		char key[CONTROL_KEY_MAX];

		control_get_id(f.control, id, &v);
		strcpy(key, v.key);
		get_value(&f, key, &v);
		assert_string_equal(v.key, key);
		assert_true(strlen(key) < sizeof(key) - 1); /* not cut */
		assert_ptr_equal(config_find(key), &config_options[id]);
	}
	end(&f);
}

static void no_such_option(void **state)
{
	static const char *const keys[] = {"",
					   "level",
					   "memory.",
					   ".level",
					   "memory",
					   "memory.levels",
					   "memory/level",
					   "memory.level ",
					   "Memory.level",
					   "memorylevel"};
	char text[CONTROL_TEXT_MAX], said[80];
	struct fixture f;

	begin(&f, "");
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		snprintf(said, sizeof(said), "there is no option '%s'; there are: device.name ",
			 keys[i]);
		assert_int_equal(control_set(f.control, keys[i], "1", text), -ENOENT);
		assert_memory_equal(text, said, strlen(said));
		assert_non_null(strstr(text, " read.overlap"));
	}
	assert_told(&f, "");
	end(&f);
}

static void set(void **state)
{
	char text[CONTROL_TEXT_MAX];
	struct fixture f;

	begin(&f, "");
	assert_int_equal(control_set(f.control, "memory.level", "7", text), 0);
	assert_string_equal(text, "memory.level: 1 -> 7 (set at run time)");
	assert_told(&f, "apply level\nchanged memory.level: 1 -> 7 (set at run time)\n");
	assert_int_equal(f.applied.memory_level, 7);
	value_is(&f, "memory.level", "7", "set at run time");
	assert_int_equal(control_set(f.control, "read.overlap", "off", text), 0);
	assert_string_equal(text, "read.overlap: yes -> no (set at run time)");
	assert_false(f.applied.read_overlap);
	assert_int_equal(f.applied.memory_level, 7);
	f.told[0] = '\0';
	/* The same again is no change, but may be what somebody wants to be sure of. */
	assert_int_equal(control_set(f.control, "read.overlap", "no", text), 0);
	assert_string_equal(text, "read.overlap: no -> no (set at run time)");
	assert_told(&f, "apply overlap\n");
	end(&f);
}

static void set_refused(void **state)
{
	static const struct {
		const char *key, *value, *text;
		int error;
	} t[] = {
		{"memory.level", "20",
		 "memory.level: 20 is out of range; write a number from -7 to 19", -ERANGE},
		{"memory.level", "",
		 "memory.level: no value; write one, or remove the line for the default 1",
		 -EINVAL},
		{"memory.level", "3 # dense",
		 "memory.level: '3 # dense' is no whole number; write one from -7 to 19", -EINVAL},
		{"read.overlap", "maybe",
		 "read.overlap: 'maybe' is neither yes nor no; write yes, no, on, off, true, false, 1 or 0",
		 -EINVAL},
		{"device.size", "2G",
		 "device.size can't change while zswapd runs; write it to a configuration file and "
		 "restart zswapd",
		 -EOPNOTSUPP},
	};
	char text[CONTROL_TEXT_MAX];
	struct fixture f;

	begin(&f, "");
	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		assert_int_equal(control_set(f.control, t[i].key, t[i].value, text), t[i].error);
		assert_string_equal(text, t[i].text);
	}
	/* Two that contradict each other: who set it is no file. */
	assert_int_equal(control_set(f.control, "memory.limit", "7900M", text), -EINVAL);
	assert_memory_equal(text, "[memory] limit (set at run time): 7.7 GiB of the machine's", 57);
	assert_told(&f, "");
	value_is(&f, "memory.level", "1", "default");
	f.fail = -EAGAIN;
	assert_int_equal(control_set(f.control, "memory.level", "5", text), -EAGAIN);
	assert_string_equal(text, "memory.level: stays 1: the moon is full; wait");
	assert_told(&f, "apply level\n");
	value_is(&f, "memory.level", "1", "default");
	end(&f);
}

static void reload(void **state)
{
	char report[CONTROL_REPORT_MAX], said[512], origin[64];
	struct fixture f;

	begin(&f, "[memory]\nlevel = 2\n");
	assert_int_equal(control_reload(f.control, report), 0);
	assert_string_equal(report, "nothing has changed");
	assert_told(&f, "notify RELOADING\nnotify READY=1\nSTATUS=Serving swap\n");

	/* One that can, one that can't, one that is only written elsewhere. */
	write_file(&f, "[device]\nsize = 2G\n[read]\noverlap = off\n[memory]\nlevel = 2\n");
	assert_int_equal(control_reload(f.control, report), 0);
	snprintf(said, sizeof(said),
		 "device.size: needs a restart to become 2147483648 (2.0 GiB, 25.0 %% of RAM, "
		 "524288 pages) (%s:2); stays 4294967296 (4.0 GiB, 50.0 %% of RAM, 1048576 "
		 "pages)\n"
		 "read.overlap: yes -> no (%s:4)",
		 f.path, f.path);
	assert_string_equal(report, said);
	assert_false(f.applied.read_overlap);
	assert_int_equal(f.applied.device_size, GIB(4));
	value_is(&f, "device.size", "4294967296", "default");
	snprintf(origin, sizeof(origin), "%s:6", f.path);
	value_is(&f, "memory.level", "2", origin);
	snprintf(said, sizeof(said),
		 "notify RELOADING\napply overlap\nchanged read.overlap: yes -> no (%s:4)\n"
		 "notify READY=1\nSTATUS=Serving swap\n",
		 f.path);
	assert_told(&f, said);
	end(&f);
}

static void reload_ends_what_was_set(void **state)
{
	char report[CONTROL_REPORT_MAX], text[CONTROL_TEXT_MAX];
	struct fixture f;

	begin(&f, "");
	assert_int_equal(control_set(f.control, "memory.level", "9", text), 0);
	assert_int_equal(control_reload(f.control, report), 0);
	assert_string_equal(report, "memory.level: 9 -> 1 (default)");
	assert_int_equal(f.applied.memory_level, 1);
	value_is(&f, "memory.level", "1", "default");
	end(&f);
}

static void reload_refused(void **state)
{
	char report[CONTROL_REPORT_MAX], said[256];
	struct fixture f;

	begin(&f, "[memory]\nlevel = 2\n");
	write_file(&f, "[read]\noverlap = off\n[memory]\nlevel = 2 # fast\n");
	assert_int_equal(control_reload(f.control, report), -EINVAL);
	snprintf(
		said, sizeof(said),
		"%s:4: [memory] level: '# fast' follows the value; put comments on their own lines",
		f.path);
	assert_string_equal(report, said);
	assert_told(&f, "notify RELOADING\nnotify READY=1\nSTATUS=Serving swap; the last reload "
			"failed\n");
	value_is(&f, "read.overlap", "yes", "default");

	unlink(f.path);
	assert_int_equal(control_reload(f.control, report), -ENOENT);
	f.told[0] = '\0';

	/* What can be applied is, also when something else can't. */
	write_file(&f, "[read]\noverlap = off\n[memory]\nlevel = 3\n");
	f.fail = -EAGAIN;
	assert_int_equal(control_reload(f.control, report), CONTROL_PARTLY);
	assert_string_equal(report, "memory.level: stays 2: the moon is full; wait\n"
				    "read.overlap: stays yes: the moon is full; wait");
	f.fail = 0;
	assert_int_equal(control_reload(f.control, report), 0);
	assert_int_equal(f.applied.memory_level, 3);
	assert_false(f.applied.read_overlap);
	end(&f);
}

/* Which of two must go first depends on the direction. */
static void reload_in_the_order_that_works(void **state)
{
	static const char large[] = "[memory]\nlimit = 48M\nreserve = 20M\n";
	static const char small[] = "[memory]\nlimit = 32M\nreserve = 4M\n";
	char report[CONTROL_REPORT_MAX];
	struct fixture f;

	begin(&f, large);
	for (int i = 0; i < 2; i++) {
		write_file(&f, small);
		assert_int_equal(control_reload(f.control, report), 0);
		assert_true(f.applied.memory_limit == MIB(32) &&
			    f.applied.memory_reserve == MIB(4));
		assert_true(strstr(report, "memory.reserve: ") == report);
		assert_non_null(strstr(report, "\nmemory.limit: "));
		write_file(&f, large);
		assert_int_equal(control_reload(f.control, report), 0);
		assert_true(f.applied.memory_limit == MIB(48) &&
			    f.applied.memory_reserve == MIB(20));
		assert_true(strstr(report, "memory.limit: ") == report);
		assert_non_null(strstr(report, "\nmemory.reserve: "));
	}
	/* What one could not become, the other may depend on. */
	write_file(&f, "[memory]\nlimit = 128M\nreserve = 40M\n");
	f.fail_id = CONFIG_OPTION_memory_limit;
	f.fail = -ENOSPC;
	assert_int_equal(control_reload(f.control, report), CONTROL_PARTLY);
	assert_non_null(strstr(report, "memory.limit: stays 50331648 "));
	assert_non_null(strstr(report, "memory.reserve: stays 20971520 "));
	assert_non_null(strstr(report, "40.0 MiB kept free is more than half of the limit of 48.0 "
				       "MiB; write less, or 0"));
	assert_true(f.applied.memory_limit == MIB(48) && f.applied.memory_reserve == MIB(20));
	end(&f);
}

/* What waits for a restart counts as it runs; the rest is applied all the same. */
static void reload_against_what_cant_change(void **state)
{
	char report[CONTROL_REPORT_MAX];
	struct fixture f;

	begin(&f, "[device]\nsize = 1T\n[memory]\nlimit = 1G\n");
	write_file(&f, "[device]\nsize = 1G\n[memory]\nlimit = 85%\nlevel = 3\n");
	assert_int_equal(control_reload(f.control, report), CONTROL_PARTLY);
	assert_non_null(strstr(report, "device.size: needs a restart"));
	assert_non_null(strstr(report, "\nmemory.level: 1 -> 3 ("));
	assert_non_null(strstr(report, "\nmemory.limit: stays 1073741824 ("));
	assert_non_null(strstr(report, "the index of a 1.0 TiB device"));
	assert_true(f.applied.memory_limit == GIB(1) && f.applied.memory_level == 3);
	end(&f);
}

/* The values of one moment, whoever asks. */
static void *set_often(void *arg)
{
	struct fixture *f = arg;
	char text[CONTROL_TEXT_MAX], value[12];

	for (int i = 0; i < 2000; i++) {
		snprintf(value, sizeof(value), "%d", i % 19 + 1);
		if (control_set(f->control, "memory.level", value, text) < 0)
			return f;
		f->told[0] = '\0';
	}
	return NULL;
}

static void many_threads(void **state)
{
	struct control_value v;
	struct fixture f;
	pthread_t thread;
	void *failed;

	begin(&f, "");
	assert_int_equal(pthread_create(&thread, NULL, set_often, &f), 0);
	for (int i = 0; i < 2000; i++) {
		get_value(&f, "memory.level", &v);
		assert_in_range(atoi(v.value), 1, 19);
		if (strcmp(v.origin, "default"))
			assert_string_equal(v.origin, "set at run time");
	}
	assert_int_equal(pthread_join(thread, &failed), 0);
	assert_null(failed);
	end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(get),
		cmocka_unit_test(no_such_option),
		cmocka_unit_test(set),
		cmocka_unit_test(set_refused),
		cmocka_unit_test(reload),
		cmocka_unit_test(reload_ends_what_was_set),
		cmocka_unit_test(reload_refused),
		cmocka_unit_test(reload_in_the_order_that_works),
		cmocka_unit_test(reload_against_what_cant_change),
		cmocka_unit_test(many_threads),
	};

	control_free(NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The table, the defaults made from it, and the checks that need more than one value.
 *
 * A value is checked when it is read, since only then its line is at hand; config_validate() checks
 * it again through the same code, for values that did not come from a file.  Each option remembers
 * who set it, so that a contradiction between two options can still name the line.
 */
#include "daemon/config/config.h"
#include "common/log.h"
#include "common/size.h"
#include "daemon/config/value.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/sysinfo.h>

/* More than this, locked into memory, leaves the machine nothing to run with. */
#define MEMORY_LIMIT_MAX_PERCENT 90
/* With the index. */
#define LOCKED_MAX_PERCENT 95

/* The index has a word of 8 bytes for each page, locked as well. */
#define INDEX_SHARE (4096 / 8)

/* What zstd makes of the memory of ordinary programs at its best. */
#define RATIO_HOPED_FOR 4

/* clang-format off */
const struct config_option config_options[CONFIG_OPTION_COUNT] = {
#define X(section, key, field, type, min, max, choices, def, when, text)                                  \
	[CONFIG_OPTION_##section##_##key] = {#section, #key, CONFIG_TYPE_##type,                          \
					     offsetof(struct config, field), min, max, choices, def,      \
					     CONFIG_WHEN_##when == CONFIG_WHEN_LIVE, text},
	CONFIG_OPTIONS(X)
#undef X
};
/* clang-format on */

/* The type column and the struct agree. */
#define CTYPE_NAME   char[CONFIG_NAME_MAX + 1]
#define CTYPE_CHOICE int
#define CTYPE_BOOL   bool
#define CTYPE_INT    int
#define CTYPE_SIZE   uint64_t
#define CTYPE_PAGED  uint64_t
#define CTYPE_PATH   char[CONFIG_PATH_MAX + 1]
#define X(section, key, field, type, ...) \
	_Static_assert(sizeof(((struct config *)0)->field) == sizeof(CTYPE_##type), #field);
CONFIG_OPTIONS(X)
#undef X

int config_ram_bytes(uint64_t *ret_bytes)
{
	struct sysinfo si;

	if (sysinfo(&si) < 0) {
		int r = -errno;

		log_err("the size of RAM is unknown: sysinfo: %s; zswapd needs sysinfo(2) allowed",
			strerror(-r));
		return r;
	}
	*ret_bytes = (uint64_t)si.totalram * si.mem_unit;
	return 0;
}

void config_init_defaults(struct config *c, uint64_t ram_bytes)
{
	z_assert(ram_bytes > 0);
	*c = (struct config){.ram_bytes = ram_bytes};
	for (int id = 0; id < CONFIG_OPTION_COUNT; id++) {
		config_value_set_default(c, &config_options[id]);
		strcpy(c->origin[id], CONFIG_ORIGIN_DEFAULT);
	}
}

void config_error(char *ret_error, const char *fmt, ...)
{
	char text[CONFIG_ERROR_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	log_err("%s", text);
	if (ret_error)
		strcpy(ret_error, text);
}

const struct config_option *config_find_key(const char *section, const char *key)
{
	for (size_t i = 0; i < CONFIG_OPTION_COUNT; i++)
		if (!strcmp(config_options[i].section, section) &&
		    !strcmp(config_options[i].key, key))
			return &config_options[i];
	return NULL;
}

const struct config_option *config_find(const char *name)
{
	const char *dot = strchr(name, '.');
	char section[CONFIG_TEXT_MAX];

	if (!dot || (size_t)(dot - name) >= sizeof(section))
		return NULL;
	memcpy(section, name, (size_t)(dot - name));
	section[dot - name] = '\0';
	return config_find_key(section, dot + 1);
}

int config_set(struct config *c, enum config_option_id id, const char *text, const char *origin,
	       char reason[static CONFIG_REASON_MAX])
{
	int r = config_value_set(c, &config_options[id], text, reason);

	if (r == 0)
		snprintf(c->origin[id], CONFIG_ORIGIN_MAX, "%s", origin);
	return r;
}

/* Like what is said of a line, but who set it without a line must not look like a file. */
static void complain(const struct config *c, enum config_option_id id, const char *reason,
		     char error[static CONFIG_ERROR_MAX])
{
	const struct config_option *o = &config_options[id];
	const char *origin = c->origin[id];

	if (!strcmp(origin, CONFIG_ORIGIN_DEFAULT) || !strcmp(origin, CONFIG_ORIGIN_RUN_TIME))
		snprintf(error, CONFIG_ERROR_MAX, "[%s] %s (%s): %s", o->section, o->key, origin,
			 reason);
	else
		snprintf(error, CONFIG_ERROR_MAX, "%s: [%s] %s: %s", origin, o->section, o->key,
			 reason);
}

static int refuse(const struct config *c, enum config_option_id id, const char *reason, char *error)
{
	complain(c, id, reason, error);
	return -EINVAL;
}

static void doubt(const struct config *c, enum config_option_id id, const char *reason)
{
	char text[CONFIG_ERROR_MAX];

	complain(c, id, reason, text);
	log_warn("%s", text);
}

static int check_each(const struct config *c, char *error)
{
	char text[CONFIG_TEXT_MAX], again[CONFIG_TEXT_MAX], reason[CONFIG_REASON_MAX];
	struct config scratch = *c;

	for (int id = 0; id < CONFIG_OPTION_COUNT; id++) {
		config_value(c, id, text);
		if (config_value_set(&scratch, &config_options[id], text, reason) < 0)
			return refuse(c, id, reason, error);
		if (strcmp(config_value(&scratch, id, again), text)) {
			snprintf(reason, sizeof(reason),
				 "%.32s bytes is not a whole number of 4 KiB pages; use %.32s",
				 text, again);
			return refuse(c, id, reason, error);
		}
	}
	return 0;
}

/* Rounded as a share in the file is. */
static uint64_t share_of_ram(const struct config *c, unsigned percent)
{
	return c->ram_bytes / 100 * percent + c->ram_bytes % 100 * percent / 100;
}

static int check_memory(const struct config *c, char *error)
{
	uint64_t index = c->device_size / INDEX_SHARE;
	char reason[CONFIG_REASON_MAX], a[SIZE_TEXT_MAX], b[SIZE_TEXT_MAX];

	if (c->memory_limit > share_of_ram(c, MEMORY_LIMIT_MAX_PERCENT)) {
		snprintf(reason, sizeof(reason),
			 "%s of the machine's %s of RAM is too much; write at most %d%%",
			 size_format(a, c->memory_limit), size_format(b, c->ram_bytes),
			 MEMORY_LIMIT_MAX_PERCENT);
		return refuse(c, CONFIG_OPTION_memory_limit, reason, error);
	}
	if (c->memory_reserve > c->memory_limit / 2) {
		snprintf(reason, sizeof(reason),
			 "%s kept free is more than half of the limit of %s; write less, or 0",
			 size_format(a, c->memory_reserve), size_format(b, c->memory_limit));
		return refuse(c, CONFIG_OPTION_memory_reserve, reason, error);
	}
	if (index > share_of_ram(c, LOCKED_MAX_PERCENT) - c->memory_limit) {
		snprintf(reason, sizeof(reason),
			 "the index of a %s device takes %s of RAM, which do not fit beside the "
			 "memory limit; shrink it",
			 size_format(a, c->device_size), size_format(b, index));
		return refuse(c, CONFIG_OPTION_device_size, reason, error);
	}
	return 0;
}

static int check_store(const struct config *c, char *error)
{
	char reason[CONFIG_REASON_MAX], a[SIZE_TEXT_MAX], b[SIZE_TEXT_MAX];

	if (*c->store_path && c->store_size && c->store_size < CONFIG_STORE_SIZE_MIN) {
		snprintf(reason, sizeof(reason),
			 "%s is too small; write at least %s, or 0 for a whole block device",
			 size_format(a, c->store_size), size_format(b, CONFIG_STORE_SIZE_MIN));
		return refuse(c, CONFIG_OPTION_store_size, reason, error);
	}
	return 0;
}

/* What is strange, but runs. */
static void doubts(const struct config *c)
{
	char reason[CONFIG_REASON_MAX], a[SIZE_TEXT_MAX], b[SIZE_TEXT_MAX];

	if (!*c->store_path && c->device_size / RATIO_HOPED_FOR > c->memory_limit) {
		snprintf(reason, sizeof(reason),
			 "without a store, %s can't hold all of a %s device; raise limit, "
			 "shrink the device or set [store] path",
			 size_format(a, c->memory_limit), size_format(b, c->device_size));
		doubt(c, CONFIG_OPTION_memory_limit, reason);
	}
	if (c->store_size && !*c->store_path)
		doubt(c, CONFIG_OPTION_store_size,
		      "has no effect, since there is no store; set [store] path or remove size");
}

int config_check(const struct config *c, char error[static CONFIG_ERROR_MAX])
{
	int r;

	r = check_each(c, error);
	if (r < 0)
		return r;
	r = check_memory(c, error);
	if (r < 0)
		return r;
	return check_store(c, error);
}

int config_validate(const struct config *c, char *ret_error)
{
	char error[CONFIG_ERROR_MAX];
	int r = config_check(c, error);

	if (r < 0)
		config_error(ret_error, "%s", error);
	else
		doubts(c);
	return r;
}

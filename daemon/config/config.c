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
#include <string.h>
#include <sys/sysinfo.h>

/* More than this, locked into memory, leaves the machine nothing to run with. */
#define MEMORY_LIMIT_MAX_PERCENT 90

/* What zstd makes of the memory of ordinary programs at its best. */
#define RATIO_HOPED_FOR 4

/* clang-format off */
const struct config_option config_options[CONFIG_OPTION_COUNT] = {
#define X(section, key, field, type, min, max, choices, def, text)                                        \
	[CONFIG_OPTION_##section##_##key] = {#section, #key, CONFIG_TYPE_##type,                          \
					     offsetof(struct config, field), min, max, choices, def, text},
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
		strcpy(c->origin[id], "default");
	}
}

static int refuse(const struct config *c, enum config_option_id id, const char *reason)
{
	const struct config_option *o = &config_options[id];

	log_err("%s: [%s] %s: %s", c->origin[id], o->section, o->key, reason);
	return -EINVAL;
}

static void doubt(const struct config *c, enum config_option_id id, const char *reason)
{
	const struct config_option *o = &config_options[id];

	log_warn("%s: [%s] %s: %s", c->origin[id], o->section, o->key, reason);
}

static int check_each(const struct config *c)
{
	char text[CONFIG_TEXT_MAX], again[CONFIG_TEXT_MAX], reason[CONFIG_REASON_MAX];
	struct config scratch = *c;

	for (int id = 0; id < CONFIG_OPTION_COUNT; id++) {
		config_value(c, id, text);
		if (config_value_set(&scratch, &config_options[id], text, reason) < 0)
			return refuse(c, id, reason);
		if (strcmp(config_value(&scratch, id, again), text)) {
			snprintf(reason, sizeof(reason),
				 "%.32s bytes is not a whole number of 4 KiB pages; use %.32s",
				 text, again);
			return refuse(c, id, reason);
		}
	}
	return 0;
}

static int check_memory(const struct config *c)
{
	/* Rounded as a share in the file is. */
	uint64_t most = c->ram_bytes / 100 * MEMORY_LIMIT_MAX_PERCENT +
			c->ram_bytes % 100 * MEMORY_LIMIT_MAX_PERCENT / 100;
	char reason[CONFIG_REASON_MAX], a[SIZE_TEXT_MAX], b[SIZE_TEXT_MAX];

	if (c->memory_limit > most) {
		snprintf(reason, sizeof(reason),
			 "%s of the machine's %s of RAM is too much; write at most %d%%",
			 size_format(a, c->memory_limit), size_format(b, c->ram_bytes),
			 MEMORY_LIMIT_MAX_PERCENT);
		return refuse(c, CONFIG_OPTION_memory_limit, reason);
	}
	if (!*c->store_path && c->device_size / RATIO_HOPED_FOR > c->memory_limit) {
		snprintf(reason, sizeof(reason),
			 "without a store, %s can't hold all of a %s device; raise limit, "
			 "shrink the device or set [store] path",
			 size_format(a, c->memory_limit), size_format(b, c->device_size));
		doubt(c, CONFIG_OPTION_memory_limit, reason);
	}
	return 0;
}

static int check_store(const struct config *c)
{
	char reason[CONFIG_REASON_MAX], a[SIZE_TEXT_MAX], b[SIZE_TEXT_MAX];

	if (c->store_size && !*c->store_path) {
		doubt(c, CONFIG_OPTION_store_size,
		      "has no effect, since there is no store; set [store] path or remove size");
		return 0;
	}
	if (c->store_size && c->store_size < CONFIG_STORE_SIZE_MIN) {
		snprintf(reason, sizeof(reason),
			 "%s is too small; write at least %s, or 0 for a whole block device",
			 size_format(a, c->store_size), size_format(b, CONFIG_STORE_SIZE_MIN));
		return refuse(c, CONFIG_OPTION_store_size, reason);
	}
	return 0;
}

int config_validate(const struct config *c)
{
	int r;

	r = check_each(c);
	if (r < 0)
		return r;
	r = check_memory(c);
	if (r < 0)
		return r;
	return check_store(c);
}

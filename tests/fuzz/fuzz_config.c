// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Any bytes as a configuration file.  What is refused must leave the configuration as it was; what
 * is accepted must pass every check of single values and must print to a file that reads back to
 * the same values.  The messages are formatted, and go wherever stderr goes.
 */
#include "daemon/config/config.h"

#include <stdlib.h>
#include <string.h>

#define RAM (GIB(8) + 12345)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int parse(struct config *c, const void *data, size_t size)
{
	FILE *f = fmemopen((void *)(uintptr_t)data, size, "r");
	int r;

	z_assert(f);
	r = config_parse(c, f, "fuzz.conf", NULL);
	fclose(f);
	return r;
}

static void check_round_trip(const struct config *c)
{
	char a[CONFIG_TEXT_MAX], b[CONFIG_TEXT_MAX];
	struct config again;
	char *text = NULL;
	size_t len;
	FILE *f;

	f = open_memstream(&text, &len);
	z_assert(f);
	z_assert(config_print(f, c) == 0);
	fclose(f);
	config_init_defaults(&again, GIB(1));
	z_assert(parse(&again, text, len) == 0);
	for (int id = 0; id < CONFIG_OPTION_COUNT; id++)
		z_assert(!strcmp(config_value(c, id, a), config_value(&again, id, b)));
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct config c, before;

	config_init_defaults(&c, RAM);
	before = c;
	if (parse(&c, data, size) < 0) {
		z_assert(!memcmp(&c, &before, sizeof(c)));
		return 0;
	}
	config_validate(&c, NULL);
	check_round_trip(&c);
	/* What is left to refuse is what one value alone can't tell. */
	c.device_size = before.device_size;
	c.memory_limit = before.memory_limit;
	c.store_size = 0;
	z_assert(config_validate(&c, NULL) == 0);
	return 0;
}

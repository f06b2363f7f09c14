// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Any bytes as configuration files.  What is refused must leave the configuration as it was; what
 * is accepted must pass every check of single values and must print to a file that reads back to
 * the same values.  The messages are formatted, and go wherever stderr goes.
 *
 * A byte 0x01 at the start of a line, alone in it, ends a file and begins the next one, a drop-in.
 * Merged over the first, they must come to what one file with all their lines comes to.
 */
#include "daemon/config/config.h"

#include <stdlib.h>
#include <string.h>

#define RAM (GIB(8) + 12345)

/* Ends the section in which the file before it ended. */
#define BORDER	   "\n[]\n"
#define SEPARATOR  "\n\x01\n"
#define FILES_MAX  8
#define JOINED_MAX 65536

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int parse(struct config *c, const void *data, size_t size)
{
	char error[CONFIG_ERROR_MAX] = "";
	FILE *f;
	int r;

	/* fmemopen() refuses to open nothing. */
	f = fmemopen((void *)(uintptr_t)(size ? data : "\n"), size ? size : 1, "r");
	z_assert(f);
	r = config_parse(c, f, "fuzz.conf", error);
	fclose(f);
	z_assert((r < 0) == (*error != '\0'));
	return r;
}

static void assert_same(const struct config *x, const struct config *y)
{
	char a[CONFIG_TEXT_MAX], b[CONFIG_TEXT_MAX];

	for (int id = 0; id < CONFIG_OPTION_COUNT; id++)
		z_assert(!strcmp(config_value(x, id, a), config_value(y, id, b)));
}

static void check_round_trip(const struct config *c)
{
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
	assert_same(c, &again);
	free(text);
}

/* Reads the files in @data one over the other; false if one of them is refused. */
static bool parse_files(struct config *c, const uint8_t *data, size_t size, unsigned *ret_n)
{
	struct config before;

	for (*ret_n = 1;; (*ret_n)++) {
		const uint8_t *end = NULL;

		if (*ret_n < FILES_MAX)
			end = memmem(data, size, SEPARATOR, strlen(SEPARATOR));
		before = *c;
		if (parse(c, data, end ? (size_t)(end - data) : size) < 0) {
			z_assert(!memcmp(c, &before, sizeof(*c)));
			return false;
		}
		if (!end)
			return true;
		size -= (size_t)(end - data) + strlen(SEPARATOR);
		data = end + strlen(SEPARATOR);
	}
}

/* As parse_files(), but as one file. */
static int parse_joined(struct config *c, const uint8_t *data, size_t size)
{
	static char text[JOINED_MAX];
	size_t len = 0;

	for (unsigned n = 1;; n++) {
		const uint8_t *end = NULL;
		size_t part;

		if (n < FILES_MAX)
			end = memmem(data, size, SEPARATOR, strlen(SEPARATOR));
		part = end ? (size_t)(end - data) : size;
		z_assert(len + part + strlen(BORDER) <= sizeof(text));
		memcpy(text + len, data, part);
		len += part;
		if (!end)
			return parse(c, text, len);
		memcpy(text + len, BORDER, strlen(BORDER));
		len += strlen(BORDER);
		size -= part + strlen(SEPARATOR);
		data = end + strlen(SEPARATOR);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct config c, joined, before;
	unsigned nfiles;

	config_init_defaults(&c, RAM);
	joined = before = c;
	if (!parse_files(&c, data, size, &nfiles))
		return 0;
	/* A byte order mark is one at the start of a file only. */
	if (nfiles > 1 && size < JOINED_MAX / 2 && !memmem(data, size, "\xef\xbb\xbf", 3)) {
		z_assert(parse_joined(&joined, data, size) == 0);
		assert_same(&c, &joined);
	}
	config_validate(&c, NULL);
	check_round_trip(&c);
	/* What is left to refuse is what one value alone can't tell. */
	c.device_size = before.device_size;
	c.memory_limit = before.memory_limit;
	c.memory_reserve = 0;
	c.store_size = 0;
	z_assert(config_validate(&c, NULL) == 0);
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The resolved configuration as a file.  Comments stand on lines of their own, since the parser
 * takes them nowhere else; each option's is its text, its range and default, what the value means
 * in a unit that people read, and who set it.
 */
#include "common/log.h"
#include "common/size.h"
#include "daemon/config/value.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

static void size_range(const struct config_option *o, char *buf)
{
	char min[SIZE_TEXT_MAX], max[SIZE_TEXT_MAX];
	int n;

	n = snprintf(buf, CONFIG_RANGE_MAX, "bytes, K, M, G, T or %% of RAM");
	if (o->min)
		n += snprintf(buf + n, CONFIG_RANGE_MAX - (size_t)n, "; at least %s",
			      size_format(min, (uint64_t)o->min));
	if (o->max != INT64_MAX)
		snprintf(buf + n, CONFIG_RANGE_MAX - (size_t)n, "%s at most %s", o->min ? "," : ";",
			 size_format(max, (uint64_t)o->max));
}

const char *config_range(const struct config_option *o, char buf[static CONFIG_RANGE_MAX])
{
	switch (o->type) {
	case CONFIG_TYPE_NAME:
		snprintf(buf, CONFIG_RANGE_MAX, "%" PRId64 " to %" PRId64 " of a-z, 0-9, _ and -",
			 o->min, o->max);
		break;
	case CONFIG_TYPE_CHOICE:
		snprintf(buf, CONFIG_RANGE_MAX, "one of %s", o->choices);
		break;
	case CONFIG_TYPE_BOOL:
		snprintf(buf, CONFIG_RANGE_MAX, "yes or no");
		break;
	case CONFIG_TYPE_INT:
		snprintf(buf, CONFIG_RANGE_MAX, "%" PRId64 " to %" PRId64, o->min, o->max);
		break;
	case CONFIG_TYPE_SIZE:
	case CONFIG_TYPE_PAGED:
		size_range(o, buf);
		break;
	case CONFIG_TYPE_PATH:
		snprintf(buf, CONFIG_RANGE_MAX, "none or an absolute path");
		break;
	}
	return buf;
}

#define MEANING_MAX 96

/* What a size comes to, in units that people read; "" for what is no size, and for 0. */
static const char *meaning(char buf[static MEANING_MAX], const struct config *c,
			   const struct config_option *o)
{
	char text[SIZE_TEXT_MAX], pages[32] = "";
	uint64_t bytes;

	*buf = '\0';
	if (o->type != CONFIG_TYPE_SIZE && o->type != CONFIG_TYPE_PAGED)
		return buf;
	memcpy(&bytes, (const char *)c + o->offset, sizeof(bytes));
	if (!bytes)
		return buf;
	if (o->type == CONFIG_TYPE_PAGED)
		snprintf(pages, sizeof(pages), ", %" PRIu64 " pages", bytes / 4096);
	snprintf(buf, MEANING_MAX, "%s, %.1f %% of RAM%s", size_format(text, bytes),
		 100.0 * (double)bytes / (double)c->ram_bytes, pages);
	return buf;
}

const char *config_describe(const struct config *c, enum config_option_id id,
			    char buf[static CONFIG_DESCRIBE_MAX])
{
	char value[CONFIG_TEXT_MAX], text[MEANING_MAX];

	config_value(c, id, value);
	if (*meaning(text, c, &config_options[id]))
		snprintf(buf, CONFIG_DESCRIBE_MAX, "%s (%s)", value, text);
	else
		snprintf(buf, CONFIG_DESCRIBE_MAX, "%s", value);
	return buf;
}

void config_log(const struct config *c)
{
	char text[CONFIG_DESCRIBE_MAX];

	for (int id = 0; id < CONFIG_OPTION_COUNT; id++) {
		const struct config_option *o = &config_options[id];

		if (strcmp(c->origin[id], "default"))
			log_info("%s: [%s] %s = %s", c->origin[id], o->section, o->key,
				 config_describe(c, id, text));
	}
}

int config_print(FILE *f, const struct config *c)
{
	char ram[SIZE_TEXT_MAX], value[CONFIG_TEXT_MAX], range[CONFIG_RANGE_MAX];
	char text[MEANING_MAX];
	const char *section = "";

	fprintf(f, "# zswapd's configuration as resolved on a machine with %s of RAM.\n",
		size_format(ram, c->ram_bytes));
	for (int id = 0; id < CONFIG_OPTION_COUNT; id++) {
		const struct config_option *o = &config_options[id];

		if (strcmp(section, o->section))
			fprintf(f, "\n[%s]\n", o->section);
		else
			fputc('\n', f);
		section = o->section;
		fprintf(f, "# %s\n# Range: %s; default %s; %s.\n", o->text, config_range(o, range),
			o->def, o->live ? "can change at run time" : "changes with the next start");
		if (*meaning(text, c, o))
			fprintf(f, "# Bytes: %s.\n", text);
		fprintf(f, "# Set by %s.\n", c->origin[id]);
		fprintf(f, "%s = %s\n", o->key, config_value(c, id, value));
	}
	return fflush(f) || ferror(f) ? -EIO : 0;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/* The options of the daemon: a table, everything about each, and JSON. */
#include "common/size.h"
#include "common/util.h"
#include "ctl/json.h"
#include "ctl/render.h"

#include <string.h>

static const char *shown(const struct ctl_text *t)
{
	return t->known ? t->s : "?";
}

/* Padded to @width columns, so that what follows stands in a row as long as it fits. */
static void put_column(FILE *out, const char *s, int width)
{
	put_printable(out, s);
	for (; *s; s++)
		width--;
	do
		fputc(' ', out);
	while (--width > 0);
}

/* The value, and for people what so many bytes are. */
static void put_value(FILE *out, const struct ctl_option *o)
{
	char text[NLPROTO_LINE_MAX + SIZE_TEXT_MAX + 4], size[SIZE_TEXT_MAX];
	uint64_t bytes;

	snprintf(text, sizeof(text), "%s", shown(&o->value));
	if (o->range.known && !strncmp(o->range.s, "bytes", 5) && o->value.known &&
	    size_parse(o->value.s, 0, &bytes) == 0 && bytes >= KIB(1))
		snprintf(text, sizeof(text), "%s (%s)", o->value.s, size_format(size, bytes));
	put_column(out, text, 24);
}

void render_options_text(FILE *out, const struct ctl_options *options)
{
	for (size_t i = 0; i < options->n; i++) {
		const struct ctl_option *o = &options->o[i];

		put_column(out, o->key, 18);
		put_value(out, o);
		put_printable(out, shown(&o->origin));
		fputc('\n', out);
	}
}

static void put_row(FILE *out, const char *label, const struct ctl_text *t)
{
	fprintf(out, "  %-10s ", label);
	put_printable(out, shown(t));
	fputc('\n', out);
}

void render_options_verbose(FILE *out, const struct ctl_options *options)
{
	for (size_t i = 0; i < options->n; i++) {
		const struct ctl_option *o = &options->o[i];

		fprintf(out, "%s%s = ", i ? "\n" : "", o->key);
		put_printable(out, shown(&o->value));
		fputc('\n', out);
		put_row(out, "what", &o->text);
		put_row(out, "may be", &o->range);
		put_row(out, "default", &o->def);
		put_row(out, "set by", &o->origin);
		fprintf(out, "  %-10s %s\n", "changes",
			!o->live.known ? "?"
			: o->live.v    ? "at run time"
				       : "with a restart");
	}
}

/* Keys are [A-Za-z0-9._-] (ctl/reply.h). */
void render_options_json(FILE *out, const struct ctl_options *options)
{
	fputc('{', out);
	for (size_t i = 0; i < options->n; i++) {
		const struct ctl_option *o = &options->o[i];

		fprintf(out, "%s\n  \"%s\": {\"value\": ", i ? "," : "", o->key);
		json_text(out, &o->value);
		fputs(", \"default\": ", out);
		json_text(out, &o->def);
		fputs(", \"origin\": ", out);
		json_text(out, &o->origin);
		fprintf(out, ", \"live\": %s, \"range\": ",
			!o->live.known ? "null"
			: o->live.v    ? "true"
				       : "false");
		json_text(out, &o->range);
		fputs(", \"text\": ", out);
		json_text(out, &o->text);
		fputc('}', out);
	}
	fputs(options->n ? "\n}\n" : "}\n", out);
}

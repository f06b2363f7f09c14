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

#define VALUE_MAX (NLPROTO_LINE_MAX + SIZE_TEXT_MAX + 4)

/* The value @v of @o, and for people what so many bytes are. */
static void value_text(char buf[static VALUE_MAX], const struct ctl_option *o,
		       const struct ctl_text *v)
{
	char size[SIZE_TEXT_MAX];
	uint64_t bytes;

	snprintf(buf, VALUE_MAX, "%s", shown(v));
	if (o->range.known && !strncmp(o->range.s, "bytes", 5) && v->known &&
	    size_parse(v->s, 0, &bytes) == 0 && bytes >= KIB(1))
		snprintf(buf, VALUE_MAX, "%s (%s)", v->s, size_format(size, bytes));
}

static void put_value(FILE *out, const struct ctl_option *o)
{
	char asked[VALUE_MAX], in_force[VALUE_MAX], both[2 * VALUE_MAX + 12];

	value_text(asked, o, &o->value);
	value_text(in_force, o, &o->in_force);
	snprintf(both, sizeof(both), "%s, in force %s", asked, in_force);
	put_column(out, o->in_force.known ? both : asked, 24);
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
		if (o->in_force.known)
			put_row(out, "in force", &o->in_force);
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
		if (o->in_force.known) {
			fputs(", \"in_force\": ", out);
			json_text(out, &o->in_force);
		}
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

// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/ctl/exposition.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define METRICS_MAX   512
#define TEXT_LINE_MAX 512

/* The metric that the lines are about; a TYPE line begins the next. */
struct reader {
	char seen[METRICS_MAX][128];
	size_t n;
	char name[128], type[32], help[128];
	unsigned samples;
	/* of a histogram */
	double le, last_count, inf_count;
	bool has_inf, has_sum, has_count;
	char fault[TEXT_LINE_MAX + 128];
};

static bool fails(struct reader *r, const char *why, const char *line)
{
	snprintf(r->fault, sizeof(r->fault), "%s: %s", why, line);
	return false;
}

static size_t name_length(const char *s)
{
	static const char first[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_:";
	static const char rest[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_:0123456789";

	return strspn(s, first) ? strspn(s, rest) : 0;
}

/* A metric ends where the next begins, or with the text. */
static bool end_metric(struct reader *r, const char *line)
{
	if (!r->name[0])
		return true;
	if (!r->samples)
		return fails(r, "a metric without samples before", line);
	if (!strcmp(r->type, "histogram") &&
	    !(r->has_inf && r->has_sum && r->has_count && r->inf_count == r->last_count))
		return fails(r, "an incomplete histogram before", line);
	return true;
}

static bool take_type(struct reader *r, const char *line)
{
	char name[128], type[32], more;

	if (!end_metric(r, line))
		return false;
	if (sscanf(line, "# TYPE %127s %31s %c", name, type, &more) != 2 ||
	    name_length(name) != strlen(name))
		return fails(r, "a malformed TYPE", line);
	if (strcmp(type, "counter") && strcmp(type, "gauge") && strcmp(type, "untyped") &&
	    strcmp(type, "histogram"))
		return fails(r, "a type that there is not", line);
	for (size_t i = 0; i < r->n; i++)
		if (!strcmp(r->seen[i], name))
			return fails(r, "a metric that was there before", line);
	if (r->help[0] && strcmp(r->help, name))
		return fails(r, "HELP and TYPE of different metrics", line);
	if (r->n == METRICS_MAX)
		return fails(r, "too many metrics", line);
	strcpy(r->seen[r->n++], name);
	strcpy(r->name, name);
	strcpy(r->type, type);
	r->help[0] = '\0';
	r->samples = 0;
	r->le = -INFINITY;
	r->last_count = 0;
	r->has_inf = r->has_sum = r->has_count = false;
	return true;
}

static bool take_help(struct reader *r, const char *line)
{
	size_t n = name_length(line + 7);

	if (r->help[0] || !n || n >= sizeof(r->help) || line[7 + n] != ' ')
		return fails(r, "a malformed HELP", line);
	snprintf(r->help, sizeof(r->help), "%.*s", (int)n, line + 7);
	return true;
}

static bool take_bucket(struct reader *r, const char *le, double v, const char *line)
{
	char *end;
	double limit = strtod(le, &end);

	if (!*le || *end)
		return fails(r, "a bucket without a bound", line);
	if (limit <= r->le || v < r->last_count || r->has_inf)
		return fails(r, "a bucket that does not ascend", line);
	r->le = limit;
	r->last_count = v;
	r->has_inf = isinf(limit);
	return true;
}

/* @labels without braces; takes le="..." out of it. */
static bool take_labels(const char *labels, char *ret_le)
{
	char name[64], value[128];
	int n;

	*ret_le = '\0';
	while (sscanf(labels, "%63[a-z_]=\"%127[^\"\\\n]\"%n", name, value, &n) == 2) {
		if (!strcmp(name, "le"))
			strcpy(ret_le, value);
		labels += n;
		if (!*labels)
			return true;
		if (*labels++ != ',')
			return false;
	}
	return false;
}

static bool take_of_histogram(struct reader *r, const char *suffix, const char *le, double v,
			      const char *line)
{
	bool *once = NULL;

	if (!strcmp(suffix, "_bucket"))
		return take_bucket(r, le, v, line);
	if (!strcmp(suffix, "_sum"))
		once = &r->has_sum;
	if (!strcmp(suffix, "_count"))
		once = &r->has_count;
	if (!once || *once || *le)
		return fails(r, "no line of a histogram", line);
	*once = true;
	if (once == &r->has_count)
		r->inf_count = v;
	return true;
}

static bool take_sample(struct reader *r, const char *line)
{
	char name[128], labels[256], value[64], le[128], *end, more;
	double v;

	if (sscanf(line, "%127[a-zA-Z0-9_:]{%255[^}]} %63s%c", name, labels, value, &more) != 3 ||
	    !name_length(name) || !take_labels(labels, le))
		return fails(r, "a malformed sample", line);
	v = strtod(value, &end);
	if (*end || v < 0)
		return fails(r, "a malformed value", line);
	if (r->help[0] || !r->name[0] || strncmp(name, r->name, strlen(r->name)))
		return fails(r, "a sample without its TYPE", line);
	r->samples++;
	if (!strcmp(r->type, "histogram"))
		return take_of_histogram(r, name + strlen(r->name), le, v, line);
	if (strcmp(name, r->name) || r->samples > 1)
		return fails(r, "a second sample, or one of another name", line);
	return true;
}

static bool take_line(struct reader *r, const char *line)
{
	if (!strncmp(line, "# TYPE ", 7))
		return take_type(r, line);
	if (!strncmp(line, "# HELP ", 7))
		return take_help(r, line);
	return take_sample(r, line);
}

const char *exposition_fault(const char *text)
{
	static struct reader r;

	memset(&r, 0, sizeof(r));
	while (*text) {
		const char *end = strchr(text, '\n');
		char line[TEXT_LINE_MAX];

		if (!end || end - text >= TEXT_LINE_MAX)
			return "a line without an end, or a very long one";
		memcpy(line, text, (size_t)(end - text));
		line[end - text] = '\0';
		if (!take_line(&r, line))
			return r.fault;
		text = end + 1;
	}
	if (r.help[0])
		return "HELP without anything behind it";
	return end_metric(&r, "the end") ? NULL : r.fault;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A type is a pair of functions, text to field and field to text, chosen by the table's type
 * column. What the second writes the first accepts, with the same result: config_print() promises
 * that.
 */
#include "daemon/config/value.h"
#include "common/size.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* A choice is stored through an int pointer. */
_Static_assert(sizeof(enum config_transport) == sizeof(int), "enum size");
_Static_assert(sizeof(enum config_discard) == sizeof(int), "enum size");

static void *field_of(struct config *c, const struct config_option *o)
{
	return (char *)c + o->offset;
}

static const void *const_field_of(const struct config *c, const struct config_option *o)
{
	return (const char *)c + o->offset;
}

const char *config_quote(char *buf, size_t size, const char *text, bool keep_end)
{
	size_t len = strlen(text);

	z_assert(size > 4);
	if (len < size)
		memcpy(buf, text, len + 1);
	else if (keep_end)
		snprintf(buf, size, "...%s", text + len - (size - 4));
	else
		snprintf(buf, size, "%.*s...", (int)(size - 4), text);
	for (char *p = buf; *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			*p = '?';
	return buf;
}

static bool is_name(const char *text, const struct config_option *o)
{
	size_t len = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_-");

	return !text[len] && len >= (size_t)o->min && len <= (size_t)o->max;
}

static int set_name(char *field, const struct config_option *o, const char *text,
		    const char *quoted, char *reason)
{
	if (!is_name(text, o)) {
		snprintf(reason, CONFIG_REASON_MAX,
			 "'%s' is no device name; use %d to %d of a-z, 0-9, _ and -", quoted,
			 (int)o->min, (int)o->max);
		return -EINVAL;
	}
	strcpy(field, text);
	return 0;
}

/* The word's index in "a|b|c", or -1. */
static int choice_index(const char *choices, const char *word)
{
	size_t len = strlen(word);

	for (int i = 0;; i++) {
		size_t n = strcspn(choices, "|");

		if (n == len && !memcmp(choices, word, n))
			return i;
		if (!choices[n])
			return -1;
		choices += n + 1;
	}
}

static int set_choice(int *field, const struct config_option *o, const char *text,
		      const char *quoted, char *reason)
{
	int i = choice_index(o->choices, text);

	if (i < 0) {
		snprintf(reason, CONFIG_REASON_MAX, "'%s' is no choice; write one of %s", quoted,
			 o->choices);
		return -EINVAL;
	}
	*field = i;
	return 0;
}

static int set_bool(bool *field, const char *text, const char *quoted, char *reason)
{
	static const char *const words[][2] = {
		{"no", "yes"}, {"off", "on"}, {"false", "true"}, {"0", "1"}};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		for (int value = 0; value < 2; value++)
			if (!strcasecmp(text, words[i][value])) {
				*field = value;
				return 0;
			}
	snprintf(reason, CONFIG_REASON_MAX,
		 "'%s' is neither yes nor no; write yes, no, on, off, true, false, 1 or 0", quoted);
	return -EINVAL;
}

static int set_int(int *field, const struct config_option *o, const char *text, const char *quoted,
		   char *reason)
{
	const char *digits = text + (*text == '-');
	long long n;

	errno = 0;
	n = strtoll(text, NULL, 10);
	if (!*digits || digits[strspn(digits, "0123456789")]) {
		snprintf(reason, CONFIG_REASON_MAX,
			 "'%s' is no whole number; write one from %" PRId64 " to %" PRId64, quoted,
			 o->min, o->max);
		return -EINVAL;
	}
	if (errno == ERANGE || n < o->min || n > o->max) {
		snprintf(reason, CONFIG_REASON_MAX,
			 "%s is out of range; write a number from %" PRId64 " to %" PRId64, quoted,
			 o->min, o->max);
		return -ERANGE;
	}
	*field = (int)n;
	return 0;
}

static uint64_t round_size(const struct config_option *o, uint64_t bytes)
{
	return o->type == CONFIG_TYPE_PAGED ? align_down(bytes, 4096) : bytes;
}

static int set_size(struct config *c, const struct config_option *o, const char *text,
		    const char *quoted, char *reason)
{
	char is[SIZE_TEXT_MAX], bound[SIZE_TEXT_MAX];
	uint64_t bytes;
	int r;

	r = size_parse(text, c->ram_bytes, &bytes);
	if (r == -EINVAL)
		snprintf(reason, CONFIG_REASON_MAX,
			 "'%s' is no size; write bytes, or as in 64K, 16M, 2G, 1T (K is 1024), "
			 "or a share of RAM as in 20%%",
			 quoted);
	else if (r < 0 || bytes > (uint64_t)o->max)
		snprintf(reason, CONFIG_REASON_MAX, "'%s' is too large; at most %s is possible",
			 quoted, size_format(bound, (uint64_t)o->max));
	else if (bytes < (uint64_t)o->min)
		snprintf(reason, CONFIG_REASON_MAX, "'%s' (%s) is too small; write at least %s",
			 quoted, size_format(is, bytes), size_format(bound, (uint64_t)o->min));
	else {
		*(uint64_t *)field_of(c, o) = round_size(o, bytes);
		return 0;
	}
	return r < 0 ? r : -ERANGE;
}

static bool has_control(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			return true;
	return false;
}

static int set_path(char *field, const struct config_option *o, const char *text,
		    const char *quoted, char *reason)
{
	if (!strcmp(text, "none")) {
		*field = '\0';
		return 0;
	}
	if (*text != '/') {
		snprintf(reason, CONFIG_REASON_MAX,
			 "'%s' is no absolute path; write none or a path that starts with /",
			 quoted);
		return -EINVAL;
	}
	if (has_control(text)) {
		snprintf(reason, CONFIG_REASON_MAX,
			 "'%s' holds control characters; write the path without them", quoted);
		return -EINVAL;
	}
	if (strlen(text) > (size_t)o->max) {
		snprintf(reason, CONFIG_REASON_MAX,
			 "'%s' has more than %d bytes; use a symbolic link", quoted, (int)o->max);
		return -ERANGE;
	}
	strcpy(field, text);
	return 0;
}

int config_value_set(struct config *c, const struct config_option *o, const char *text,
		     char reason[static CONFIG_REASON_MAX])
{
	char quoted[CONFIG_QUOTE_MAX];

	if (!*text) {
		snprintf(reason, CONFIG_REASON_MAX,
			 "no value; write one, or remove the line for the default %s", o->def);
		return -EINVAL;
	}
	config_quote(quoted, sizeof(quoted), text, false);
	switch (o->type) {
	case CONFIG_TYPE_NAME:
		return set_name(field_of(c, o), o, text, quoted, reason);
	case CONFIG_TYPE_CHOICE:
		return set_choice(field_of(c, o), o, text, quoted, reason);
	case CONFIG_TYPE_BOOL:
		return set_bool(field_of(c, o), text, quoted, reason);
	case CONFIG_TYPE_INT:
		return set_int(field_of(c, o), o, text, quoted, reason);
	case CONFIG_TYPE_SIZE:
	case CONFIG_TYPE_PAGED:
		return set_size(c, o, text, quoted, reason);
	case CONFIG_TYPE_PATH:
		return set_path(field_of(c, o), o, text, quoted, reason);
	}
	z_assert(false);
	return -EINVAL;
}

void config_value_set_default(struct config *c, const struct config_option *o)
{
	char reason[CONFIG_REASON_MAX];
	uint64_t bytes;

	if (o->type == CONFIG_TYPE_SIZE || o->type == CONFIG_TYPE_PAGED) {
		z_assert(size_parse(o->def, c->ram_bytes, &bytes) == 0);
		bytes = min_u64(max_u64(bytes, (uint64_t)o->min), (uint64_t)o->max);
		*(uint64_t *)field_of(c, o) = round_size(o, bytes);
		return;
	}
	z_assert(config_value_set(c, o, o->def, reason) == 0);
}

static const char *choice_word(const char *choices, int index, char *buf)
{
	size_t n = strcspn(choices, "|");

	for (; index > 0 && choices[n]; index--) {
		choices += n + 1;
		n = strcspn(choices, "|");
	}
	/* A value that no word stands for must not read back as the last one. */
	snprintf(buf, CONFIG_TEXT_MAX, "%.*s", index == 0 ? (int)n : 0, choices);
	return buf;
}

const char *config_value(const struct config *c, enum config_option_id id,
			 char buf[static CONFIG_TEXT_MAX])
{
	const struct config_option *o = &config_options[id];
	const void *field = const_field_of(c, o);

	switch (o->type) {
	case CONFIG_TYPE_NAME:
		snprintf(buf, CONFIG_TEXT_MAX, "%s", (const char *)field);
		break;
	case CONFIG_TYPE_CHOICE:
		choice_word(o->choices, *(const int *)field, buf);
		break;
	case CONFIG_TYPE_BOOL:
		snprintf(buf, CONFIG_TEXT_MAX, "%s", *(const bool *)field ? "yes" : "no");
		break;
	case CONFIG_TYPE_INT:
		snprintf(buf, CONFIG_TEXT_MAX, "%d", *(const int *)field);
		break;
	case CONFIG_TYPE_SIZE:
	case CONFIG_TYPE_PAGED:
		snprintf(buf, CONFIG_TEXT_MAX, "%" PRIu64, *(const uint64_t *)field);
		break;
	case CONFIG_TYPE_PATH:
		snprintf(buf, CONFIG_TEXT_MAX, "%s",
			 *(const char *)field ? (const char *)field : "none");
		break;
	}
	return buf;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The file.  inih takes lines apart into section, key and value; read_line() hands it one line at a
 * time and sees to what inih leaves open:
 *
 * - the handler is not told line numbers, so they are counted here;
 * - inih cuts a line at its buffer's size; such a line is refused instead;
 * - inih drops what follows " ;" and keeps what follows " #"; both are refused, since the one would
 *   silently lose half a path and the other silently give a size a tail;
 * - inih takes an indented line for the continuation of the value before it, and so "  size = 1G"
 *   for a value; no value here needs two lines, so indentation is removed.
 *
 * The first error ends the reading.  Its message is held until inih returns, because inih reports
 * lines it could not take apart only then, and the earlier line of the two is the one to name.
 */
#include "common/log.h"
#include "common/size.h"
#include "daemon/config/value.h"

#include <ctype.h>
#include <errno.h>
#include <ini.h>
#include <stdarg.h>
#include <string.h>

#if INI_HANDLER_LINENO
#error "inih is built to pass line numbers, which changes the handler's type"
#endif

struct parser {
	FILE *f;
	const char *name; /* of the file, fit for a message */
	struct config c;  /* the caller's gets it only when all went well */

	unsigned line;			    /* the one inih is at, from 1 */
	char comment[CONFIG_QUOTE_MAX];	    /* what follows the value in it; empty: nothing */
	unsigned seen[CONFIG_OPTION_COUNT]; /* line that set the option, or 0 */

	int error; /* the first, or 0 */
	unsigned error_line;
	char message[CONFIG_REASON_MAX + 2 * CONFIG_QUOTE_MAX];
};

__attribute__((format(printf, 3, 4))) static void fail(struct parser *p, int error, const char *fmt,
						       ...)
{
	va_list ap;

	if (p->error)
		return;
	p->error = error;
	p->error_line = p->line;
	va_start(ap, fmt);
	vsnprintf(p->message, sizeof(p->message), fmt, ap);
	va_end(ap);
}

/*
 * Reads up to the end of the line into @str without the newline, keeping at most @max bytes; false
 * at the end of the file and on errors.
 */
static bool read_raw(struct parser *p, char *str, size_t max, bool *ret_cut)
{
	size_t n = 0;
	int ch;

	*ret_cut = false;
	errno = 0;
	ch = getc(p->f);
	if (ch == EOF) {
		if (ferror(p->f))
			fail(p, errno ? -errno : -EIO, "cannot be read: %s; name a readable file",
			     strerror(errno ? errno : EIO));
		return false;
	}
	p->line++;
	for (; ch != EOF && ch != '\n'; ch = getc(p->f)) {
		if (!ch) {
			fail(p, -EINVAL, "holds a NUL byte; name a text file");
			return false;
		}
		if (n < max)
			str[n++] = (char)ch;
		else
			*ret_cut = true;
	}
	str[n] = '\0';
	return true;
}

static char *trim(char *s)
{
	char *end;

	while (isspace((unsigned char)*s))
		s++;
	end = s + strlen(s);
	while (end > s && isspace((unsigned char)end[-1]))
		*--end = '\0';
	return s;
}

static const char *find_comment(const char *s)
{
	for (; *s; s++)
		if (isspace((unsigned char)s[0]) && (s[1] == ';' || s[1] == '#'))
			return s + 1;
	return NULL;
}

/* inih ignores what stands behind the bracket, and reports a missing one too late. */
static void check_section_line(struct parser *p, const char *line)
{
	const char *end = strchr(line, ']');
	char tail[CONFIG_QUOTE_MAX];

	if (!end) {
		fail(p, -EINVAL, "the section's name lacks its ]; write [name]");
		return;
	}
	end++;
	while (isspace((unsigned char)*end))
		end++;
	if (*end)
		fail(p, -EINVAL, "'%s' follows the section's name; put it on a line of its own",
		     config_quote(tail, sizeof(tail), end, false));
}

/* inih's reader: like fgets(), @num is the size of inih's buffer. */
static char *read_line(char *str, int num, void *arg)
{
	struct parser *p = arg;
	char *start = str;
	const char *comment;
	bool cut;

	p->comment[0] = '\0';
	/* With room for "\n" and NUL: a line that fills inih's buffer makes it skip the next. */
	if (p->error || !read_raw(p, str, (size_t)num - 2, &cut))
		return NULL;
	z_assert(strlen(str) + 2 <= (size_t)num); /* no sanitizer watches inih's buffer */
	if (p->line == 1 && !strncmp(start, "\xef\xbb\xbf", 3))
		start += 3;
	start = trim(start);
	memmove(str, start, strlen(start) + 1);
	if (*str == '#' || *str == ';') {
		*str = '\0';
	} else if (cut) {
		fail(p, -EINVAL, "the line is longer than %d bytes; shorten it", num - 2);
		return NULL;
	}
	comment = find_comment(str);
	if (*str == '[')
		check_section_line(p, str);
	else if (comment) /* a copy, since inih is about to cut the line there */
		config_quote(p->comment, sizeof(p->comment), comment, false);
	strcat(str, "\n");
	return p->error ? NULL : str;
}

/* Says which names there are, of the keys in @section or of the sections. */
static void warn_unknown(struct parser *p, const char *section, const char *key)
{
	char s[CONFIG_QUOTE_MAX], k[CONFIG_QUOTE_MAX], keys[96] = "", sections[96] = "";
	const char *last = "";

	for (size_t i = 0; i < CONFIG_OPTION_COUNT; i++) {
		const struct config_option *o = &config_options[i];

		if (!strcmp(o->section, section)) {
			strncat(keys, " ", sizeof(keys) - strlen(keys) - 1);
			strncat(keys, o->key, sizeof(keys) - strlen(keys) - 1);
		}
		if (strcmp(o->section, last)) {
			strncat(sections, " ", sizeof(sections) - strlen(sections) - 1);
			strncat(sections, o->section, sizeof(sections) - strlen(sections) - 1);
		}
		last = o->section;
	}
	config_quote(s, sizeof(s), section, false);
	config_quote(k, sizeof(k), key, false);
	if (*keys)
		log_warn("%s:%u: [%s] %s: unknown key, ignored; there are:%s", p->name, p->line, s,
			 k, keys);
	else if (*section)
		log_warn("%s:%u: [%s] %s: unknown section, ignored; there are:%s", p->name, p->line,
			 s, k, sections);
	else
		log_warn("%s:%u: %s: stands before the first [section], ignored; there are:%s",
			 p->name, p->line, k, sections);
}

static void note_rounding(struct parser *p, const struct config_option *o, const char *value)
{
	char text[CONFIG_TEXT_MAX];
	uint64_t asked, got;

	/* Nobody expects a share of RAM to be a round number. */
	if (o->type != CONFIG_TYPE_PAGED || strchr(value, '%') || size_parse(value, 0, &asked) < 0)
		return;
	memcpy(&got, (char *)&p->c + o->offset, sizeof(got));
	if (got != asked)
		log_notice("%s:%u: [%s] %s: %s is rounded down to whole 4 KiB pages, %s bytes",
			   p->name, p->line, o->section, o->key, value,
			   config_value(&p->c, (enum config_option_id)(o - config_options), text));
}

/* inih's handler: 0 makes inih note the line as wrong. */
static int take_value(void *arg, const char *section, const char *key, const char *value)
{
	struct parser *p = arg;
	const struct config_option *o = config_find_key(section, key);
	char reason[CONFIG_REASON_MAX], quoted[CONFIG_QUOTE_MAX];
	const char *tail;
	size_t id;
	int r;

	if (!*key) {
		fail(p, -EINVAL, "no key stands before the value; write key = value");
		return 0;
	}
	if (!o) {
		warn_unknown(p, section, key);
		return 1;
	}
	if (*p->comment) {
		fail(p, -EINVAL, "[%s] %s: '%s' follows the value; put comments on their own lines",
		     section, key, p->comment);
		return 0;
	}
	/* Only a path may hold these. */
	tail = value && o->type != CONFIG_TYPE_PATH ? strpbrk(value, "#;") : NULL;
	if (tail) {
		fail(p, -EINVAL, "[%s] %s: '%s' follows the value; put comments on their own lines",
		     section, key, config_quote(quoted, sizeof(quoted), tail, false));
		return 0;
	}
	r = config_value_set(&p->c, o, value ? value : "", reason);
	if (r < 0) {
		fail(p, r, "[%s] %s: %s", section, key, reason);
		return 0;
	}
	note_rounding(p, o, value);
	id = (size_t)(o - config_options);
	if (p->seen[id])
		log_warn("%s:%u: [%s] %s: was set in line %u already; this line counts, remove one",
			 p->name, p->line, section, key, p->seen[id]);
	p->seen[id] = p->line;
	snprintf(p->c.origin[id], CONFIG_ORIGIN_MAX, "%s:%u", p->name, p->line);
	return 1;
}

/* What inih returned, together with what was noted meanwhile. */
static int conclude(const struct parser *p, int ini_result, char *error)
{
	if (ini_result < 0) {
		config_error(error, "%s: cannot be read: out of memory; free some", p->name);
		return -ENOMEM;
	}
	if (ini_result > 0 && (!p->error || (unsigned)ini_result < p->error_line)) {
		config_error(
			error,
			"%s:%d: the line is neither [section] nor key = value; correct or remove it",
			p->name, ini_result);
		return -EINVAL;
	}
	if (!p->error)
		return 0;
	if (p->error_line)
		config_error(error, "%s:%u: %s", p->name, p->error_line, p->message);
	else
		config_error(error, "%s: %s", p->name, p->message);
	/* A number out of range is wrong content as well. */
	return p->error == -ERANGE ? -EINVAL : p->error;
}

int config_parse(struct config *c, FILE *f, const char *name, char *ret_error)
{
	char quoted[CONFIG_ORIGIN_MAX - 12]; /* leaves room for ":LINE" */
	struct parser p = {
		.f = f,
		.name = config_quote(quoted, sizeof(quoted), name, true),
		.c = *c,
	};
	int r;

	r = conclude(&p, ini_parse_stream(read_line, &p, take_value, &p), ret_error);
	if (r < 0)
		return r;
	*c = p.c;
	return 0;
}

int config_load(struct config *c, const char *path, char *ret_error)
{
	char quoted[CONFIG_ORIGIN_MAX];
	FILE *f;
	int r;

	f = fopen(path, "re");
	if (!f) {
		r = -errno;
		config_error(ret_error,
			     "%s: cannot be opened: %s; name a file that exists and can be read",
			     config_quote(quoted, sizeof(quoted), path, true), strerror(-r));
		return r;
	}
	r = config_check_writers(fileno(f), path, ret_error);
	if (r == 0)
		r = config_parse(c, f, path, ret_error);
	fclose(f);
	return r;
}

// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/portfile.h"
#include "common/textfile.h"
#include "common/util.h"
#include "ctl/doctor_impl.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINKS_MAX  8
#define WIDTH	   80
#define INDENT	   20
#define TODO_LABEL "-> "

/* In the order in which one would ask: the daemon, its device, the kernel around it. */
static void (*const checks[])(const struct doctor_machine *m, struct doctor_report *r) = {
	doctor_check_daemon,	 doctor_check_version,	   doctor_check_supervision,
	doctor_check_locked,	 doctor_check_flusher,	   doctor_check_oom,
	doctor_check_cgroup,	 doctor_check_limit,	   doctor_check_store,
	doctor_check_pages,	 doctor_check_device,	   doctor_check_swap,
	doctor_check_discard,	 doctor_check_hibernation, doctor_check_kernel,
	doctor_check_transports, doctor_check_uring,	   doctor_check_zswap,
	doctor_check_swappiness, doctor_check_readahead,
};

/* --- what a check says --- */

static void add(struct doctor_report *r, enum doctor_grade grade, const char *topic,
		const char *todo, const char *fmt, va_list ap)
{
	struct doctor_line *l;

	z_assert(r->n < DOCTOR_LINES_MAX);
	l = &r->line[r->n++];
	*l = (struct doctor_line){.grade = grade, .topic = topic};
	vsnprintf(l->what, sizeof(l->what), fmt, ap);
	snprintf(l->todo, sizeof(l->todo), "%s", todo);
	r->count[grade]++;
}

void doctor_good(struct doctor_report *r, const char *topic, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	add(r, DOCTOR_GOOD, topic, "", fmt, ap);
	va_end(ap);
}

void doctor_note(struct doctor_report *r, const char *topic, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	add(r, DOCTOR_NOTE, topic, "", fmt, ap);
	va_end(ap);
}

void doctor_unseen(struct doctor_report *r, const char *topic, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	add(r, DOCTOR_UNSEEN, topic, "", fmt, ap);
	va_end(ap);
}

void doctor_finding(struct doctor_report *r, const char *topic, const char *todo, const char *fmt,
		    ...)
{
	va_list ap;

	va_start(ap, fmt);
	add(r, DOCTOR_FINDING, topic, todo, fmt, ap);
	va_end(ap);
}

/* --- how it reads --- */

/* A path that is too long names nothing: the empty path, which is ENOENT to all who use it. */
static void make_path(const struct doctor_machine *m, char *buf, const char *fmt, va_list ap)
{
	int n = snprintf(buf, PATH_MAX, "%s", m->root);

	if (n >= 0 && n < PATH_MAX)
		n += vsnprintf(buf + n, (size_t)(PATH_MAX - n), fmt, ap);
	if (n < 0 || n >= PATH_MAX)
		buf[0] = '\0';
}

#define MAKE_PATH(m, buf, fmt)                     \
	do {                                       \
		va_list ap_;                       \
		va_start(ap_, fmt);                \
		make_path((m), (buf), (fmt), ap_); \
		va_end(ap_);                       \
	} while (0)

const char *doctor_path(const struct doctor_machine *m, char buf[static PATH_MAX], const char *fmt,
			...)
{
	MAKE_PATH(m, buf, fmt);
	return buf;
}

char *doctor_text(const struct doctor_machine *m, const char *fmt, ...)
{
	char path[PATH_MAX], *text;
	int r;

	MAKE_PATH(m, path, fmt);
	r = textfile_read(path, &text);
	if (r == 0)
		return text;
	errno = -r;
	return NULL;
}

int doctor_line(const struct doctor_machine *m, char *buf, size_t size, const char *fmt, ...)
{
	char path[PATH_MAX];

	MAKE_PATH(m, path, fmt);
	return textfile_read_line(path, buf, size);
}

int doctor_number(const struct doctor_machine *m, long long *ret, const char *fmt, ...)
{
	char path[PATH_MAX], text[32], *end;
	long long v;
	int r;

	MAKE_PATH(m, path, fmt);
	r = textfile_read_line(path, text, sizeof(text));
	if (r < 0)
		return r;
	errno = 0;
	v = strtoll(text, &end, 10);
	if (end == text || *end || errno)
		return -EINVAL;
	*ret = v;
	return 0;
}

bool doctor_exists(const struct doctor_machine *m, const char *fmt, ...)
{
	char path[PATH_MAX];
	struct stat st;

	MAKE_PATH(m, path, fmt);
	return lstat(path, &st) == 0;
}

bool doctor_node(const struct doctor_machine *m, const char *path, char ret[static DOCTOR_NODE_MAX])
{
	char at[PATH_MAX], full[PATH_MAX], link[PATH_MAX], next[PATH_MAX];
	const char *name;

	snprintf(at, sizeof(at), "%s", path);
	for (int i = 0; i < LINKS_MAX; i++) {
		ssize_t n = readlink(doctor_path(m, full, "%s", at), link, sizeof(link) - 1);
		int len;

		if (n < 0)
			break;
		link[n] = '\0';
		len = link[0] == '/' ? 0 : (int)(strrchr(at, '/') - at) + 1;
		if (snprintf(next, sizeof(next), "%.*s%s", len, at, link) >= (int)sizeof(next))
			return false;
		strcpy(at, next);
	}
	if (!doctor_exists(m, "%s", at))
		return false;
	name = strrchr(at, '/') + 1;
	if (strlen(name) >= DOCTOR_NODE_MAX)
		return false;
	strcpy(ret, name);
	return true;
}

/* --- all checks --- */

/* The number alone may by now be another process', or one of another pid namespace. */
static void find_process(struct doctor_machine *m)
{
	char comm[32];

	m->proc[0] = '\0';
	if (!m->status || !m->status->pid.known)
		return;
	snprintf(m->proc, sizeof(m->proc), "/proc/%" PRIu64, m->status->pid.v);
	if (doctor_line(m, comm, sizeof(comm), "%s/comm", m->proc) < 0 ||
	    strncmp(comm, "zswapd", 6))
		m->proc[0] = '\0';
}

void doctor_run(struct doctor_machine *m, struct doctor_report *r)
{
	char path[PATH_MAX];

	*r = (struct doctor_report){0};
	snprintf(path, sizeof(path), "/dev/zswap/%s", m->device);
	if (!doctor_node(m, path, m->node))
		m->node[0] = '\0';
	find_process(m);
	for (size_t i = 0; i < ARRAY_SIZE(checks); i++)
		checks[i](m, r);
}

/* Words of @text from column INDENT on; the first line is begun already. */
static void put_wrapped(FILE *out, const char *text)
{
	size_t column = INDENT;

	while (*text) {
		size_t n = strcspn(text, " ");

		if (column > INDENT && column + 1 + n > WIDTH) {
			fprintf(out, "\n%*s", INDENT, "");
			column = INDENT;
		} else if (column > INDENT) {
			fputc(' ', out);
			column++;
		}
		for (size_t i = 0; i < n; i++)
			fputc((unsigned char)text[i] < 0x20 || text[i] == 0x7f ? '?' : text[i],
			      out);
		column += n;
		text += n;
		text += strspn(text, " ");
	}
	fputc('\n', out);
}

/* Lines from @i on that say the same; their topics go behind the first one's text. */
static size_t same_unseen(const struct doctor_report *r, size_t i, char *text, size_t size)
{
	size_t n = 1, at = (size_t)snprintf(text, size, "%s", r->line[i].what);

	while (r->line[i].grade == DOCTOR_UNSEEN && i + n < r->n &&
	       r->line[i + n].grade == DOCTOR_UNSEEN &&
	       !strcmp(r->line[i].what, r->line[i + n].what) && at < size) {
		at += (size_t)snprintf(text + at, size - at, n == 1 ? "; so do: %s" : ", %s",
				       r->line[i + n].topic);
		n++;
	}
	return n;
}

void doctor_print(FILE *out, const struct doctor_machine *m, const struct doctor_report *r,
		  bool quiet)
{
	static const char *const marks[DOCTOR_GRADES] = {
		[DOCTOR_GOOD] = " ok ",
		[DOCTOR_NOTE] = "note",
		[DOCTOR_FINDING] = "FIND",
		[DOCTOR_UNSEEN] = " ?  ",
	};

	for (size_t i = 0, n; i < r->n; i += n) {
		const struct doctor_line *l = &r->line[i];
		char text[DOCTOR_TEXT_MAX];

		n = same_unseen(r, i, text, sizeof(text));
		if (quiet && (l->grade == DOCTOR_GOOD || l->grade == DOCTOR_NOTE))
			continue;
		fprintf(out, "[%s] %-12s ", marks[l->grade], l->topic);
		put_wrapped(out, text);
		if (!*l->todo)
			continue;
		fprintf(out, "%*s", INDENT, TODO_LABEL);
		put_wrapped(out, l->todo);
	}
	if (quiet && !r->count[DOCTOR_FINDING] && !r->count[DOCTOR_UNSEEN])
		return;
	fprintf(out, "\n%s: %zu good, %zu found, %zu could not be looked at\n", m->device,
		r->count[DOCTOR_GOOD] + r->count[DOCTOR_NOTE], r->count[DOCTOR_FINDING],
		r->count[DOCTOR_UNSEEN]);
}

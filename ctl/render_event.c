// SPDX-License-Identifier: GPL-2.0-or-later
/* One event, one line. */
#include "common/util.h"
#include "ctl/json.h"
#include "ctl/progress.h"
#include "ctl/render.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#define NS_PER_S 1000000000ull

void put_time(FILE *out, struct ctl_num ns, bool utc)
{
	time_t t = (time_t)(ns.v / NS_PER_S);
	struct tm tm;
	char text[48];

	if (!ns.known || !(utc ? gmtime_r(&t, &tm) : localtime_r(&t, &tm))) {
		fputc('?', out);
		return;
	}
	strftime(text, sizeof(text), utc ? "%Y-%m-%dT%H:%M:%S" : "%Y-%m-%d %H:%M:%S", &tm);
	fprintf(out, "%s.%03u%s", text, (unsigned)(ns.v % NS_PER_S / 1000000), utc ? "Z" : "");
}

static void event_name(const struct ctl_event *e, char *buf, size_t size)
{
	const char *name = e->kind.known ? nlproto_event_name(e->kind.v) : "?";

	if (name)
		snprintf(buf, size, "%s", name);
	else
		snprintf(buf, size, "event_%" PRIu64, e->kind.v);
}

void render_event_text(FILE *out, const struct ctl_event *e)
{
	char name[64], job[PROGRESS_MAX];

	event_name(e, name, sizeof(name));
	put_time(out, e->time, false);
	fprintf(out, "  %s  %-16s  ", e->device, name);
	if (e->job.known && !(e->text.known && e->text.s[0])) {
		progress_result(job, &e->job);
		put_printable(out, job);
	} else {
		put_printable(out, e->text.known ? e->text.s : "?");
	}
	fputc('\n', out);
}

static void put_job(FILE *out, const struct ctl_job *j)
{
	const char *state = j->state.known ? nlproto_job_state_name(j->state.v) : NULL;
	char name[PROGRESS_NAME_MAX];

	progress_name(name, j);
	fputs(", \"job\": {\"id\": ", out);
	json_num(out, j->id);
	fputs(", \"kind\": ", out);
	json_string(out, name);
	fputs(", \"state\": ", out);
	if (state)
		json_string(out, state);
	else
		fputs("null", out);
	fputs(", \"done\": ", out);
	json_num(out, j->done);
	fputs(", \"total\": ", out);
	json_num(out, j->total);
	fputs(", \"found\": ", out);
	json_num(out, j->found);
	fputs(", \"error\": ", out);
	json_num(out, j->error);
	fputc('}', out);
}

void render_event_json(FILE *out, const struct ctl_event *e)
{
	const char *state = e->state.known ? nlproto_state_text(e->state.v) : NULL;
	const char *store =
		e->store_state.known ? nlproto_store_state_name(e->store_state.v) : NULL;
	char name[64];

	event_name(e, name, sizeof(name));
	fputs("{\"time\": \"", out);
	put_time(out, e->time, true);
	fputs("\", \"device\": ", out);
	json_string(out, e->device);
	fputs(", \"seq\": ", out);
	json_num(out, e->seq);
	fputs(", \"event\": ", out);
	json_string(out, name);
	fputs(", \"count\": ", out);
	json_num(out, e->count);
	fputs(", \"text\": ", out);
	json_text(out, &e->text);
	if (e->key.known) {
		fputs(", \"key\": ", out);
		json_text(out, &e->key);
	}
	if (state) {
		fputs(", \"state\": ", out);
		json_string(out, state);
	}
	if (store) {
		fputs(", \"store_state\": ", out);
		json_string(out, store);
	}
	if (e->job.known)
		put_job(out, &e->job);
	fputs("}\n", out);
}

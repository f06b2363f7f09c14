// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/worker/endpoint.h"
#include "common/log.h"
#include "common/thread.h"
#include "common/util.h"
#include "daemon/stats/server.h"
#include "daemon/worker/device.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Longer than preparing a standby takes where there is a good deal to hold. */
#define STANDBY_NS (60 * 1000000000ull)

_Static_assert(CONTROL_KEY_MAX <= NLPROTO_NAME_MAX, "an option's name fits");
_Static_assert(CONFIG_TEXT_MAX <= NLPROTO_TEXT_MAX, "an option's value fits");
_Static_assert(CONFIG_ORIGIN_MAX <= NLPROTO_NOTE_MAX, "an option's origin fits");
_Static_assert(CONTROL_TEXT_MAX <= NLPROTO_LINE_MAX, "what a change did fits");
_Static_assert(CONTROL_REPORT_MAX <= STATS_REPORT_MAX, "what a reload did fits");
_Static_assert((int)ENGINE_STORE_OK == (int)NLPROTO_STORE_OK &&
		       (int)ENGINE_STORE_LOST == (int)NLPROTO_STORE_LOST,
	       "the same order");
_Static_assert(CONTROL_PARTLY == STATS_CHANGE_PARTLY, "the same outcome");

struct endpoint {
	/* set by start */
	struct endpoint_source src;
	struct stats_server *server;

	/* server's thread only */
	uint64_t standby_seen; /* when one was prepared, or could not be yet; now_ns() */

	pthread_mutex_t lock; /* held to copy */
	/* under the lock; written by the main thread, read by the server's */
	struct stats_option options[CONFIG_OPTION_COUNT];
};

/* --- what is shown; the server's thread --- */

static void give_counters(void *ctx, uint64_t values[COUNTER_COUNT])
{
	const struct endpoint_source *src = &((struct endpoint *)ctx)->src;

	engine_counters(src->engine, values);
	if (src->supervision)
		supervision_counters(src->supervision, values);
}

static void give_histograms(void *ctx, struct histogram values[HISTOGRAM_COUNT])
{
	engine_histograms(((struct endpoint *)ctx)->src.engine, values);
}

/* One that has just been used, or that its supervisor still prepares, is no reason to worry. */
static void show_supervision(struct endpoint *ep, struct stats_status *ret)
{
	uint64_t now = now_ns();

	supervision_status(ep->src.supervision, ret);
	if (!ret->supervisor)
		ret->health |= NLPROTO_HEALTH_NO_SUPERVISOR;
	if (ret->standby || !ret->supervisor)
		ep->standby_seen = now;
	if (now - ep->standby_seen > STANDBY_NS)
		ret->health |= NLPROTO_HEALTH_NO_STANDBY;
}

static void give_status(void *ctx, struct stats_status *ret)
{
	const struct endpoint_source *src = &((struct endpoint *)ctx)->src;

	snprintf(ret->path, sizeof(ret->path), DEVICE_LINK_DIR "/%s", src->config->device_name);
	snprintf(ret->transport, sizeof(ret->transport), "%s", src->transport);
	ret->pid = (uint32_t)getpid();
	ret->state = *src->state;
	if (!src->grants->locked)
		ret->health |= NLPROTO_HEALTH_MEMORY_UNLOCKED;
	if (!src->grants->oom_exempt)
		ret->health |= NLPROTO_HEALTH_OOM_EXPOSED;
	if (!thread_all_io_flushers())
		ret->health |= NLPROTO_HEALTH_NO_IO_FLUSHER;
	if (system_kernel_zswap())
		ret->health |= NLPROTO_HEALTH_KERNEL_ZSWAP;
	if (src->config->swap_enable && src->config->swap_discard == CONFIG_DISCARD_OFF)
		ret->health |= NLPROTO_HEALTH_NO_DISCARD;
	if (src->store_missing)
		ret->health |= NLPROTO_HEALTH_STORE_MISSING;
	if (src->supervision)
		show_supervision(ctx, ret);
}

static bool give_option(void *ctx, unsigned index, struct stats_option *ret)
{
	struct endpoint *ep = ctx;

	if (index >= CONFIG_OPTION_COUNT)
		return false;
	pthread_mutex_lock(&ep->lock);
	*ret = ep->options[index];
	pthread_mutex_unlock(&ep->lock);
	return true;
}

static const struct {
	enum engine_job_kind engine;
	enum nlproto_unit unit;
} job_kinds[] = {
	[NLPROTO_JOB_NONE] = {ENGINE_JOB_NONE, NLPROTO_UNIT_NONE},
	[NLPROTO_JOB_WRITEBACK] = {ENGINE_JOB_WRITEBACK, NLPROTO_UNIT_BYTES},
	[NLPROTO_JOB_COMPACT] = {ENGINE_JOB_COMPACT, NLPROTO_UNIT_BYTES},
	[NLPROTO_JOB_CHECK] = {ENGINE_JOB_CHECK, NLPROTO_UNIT_PAGES},
	[NLPROTO_JOB_SHRINK] = {ENGINE_JOB_SHRINK, NLPROTO_UNIT_BYTES},
};

static void show_job(const struct engine_job *j, struct stats_job *ret)
{
	if (!j->id)
		return;
	ret->id = j->id;
	for (unsigned kind = 0; kind < ARRAY_SIZE(job_kinds); kind++)
		if (job_kinds[kind].engine == j->kind)
			ret->kind = (enum nlproto_job_kind)kind;
	ret->unit = job_kinds[ret->kind].unit;
	ret->done = j->done;
	ret->total = j->total;
	ret->found = j->found;
	if (j->running)
		ret->state = NLPROTO_JOB_STATE_RUNNING;
	else if (j->result == 0)
		ret->state = NLPROTO_JOB_STATE_DONE;
	else if (j->result == -ECANCELED)
		ret->state = NLPROTO_JOB_STATE_CANCELLED;
	else
		ret->state = NLPROTO_JOB_STATE_FAILED;
	if (ret->state == NLPROTO_JOB_STATE_FAILED)
		ret->error = -j->result;
}

_Static_assert(STATS_JOBS == ENGINE_JOBS, "all jobs are shown");

static void give_job(void *ctx, struct stats_job ret[STATS_JOBS])
{
	struct engine_job jobs[ENGINE_JOBS];

	engine_jobs(((struct endpoint *)ctx)->src.engine, jobs);
	for (unsigned i = 0; i < ENGINE_JOBS; i++)
		show_job(&jobs[i], &ret[i]);
}

static int start_job(void *ctx, enum nlproto_job_kind kind, uint64_t bytes,
		     char text[static NLPROTO_LINE_MAX])
{
	struct endpoint *ep = ctx;
	struct engine_job now;
	int r;

	r = engine_job_start(ep->src.engine, job_kinds[kind].engine,
			     bytes == STATS_JOB_ALL ? ENGINE_JOB_ALL : bytes);
	if (r == -EOPNOTSUPP) {
		snprintf(text, NLPROTO_LINE_MAX, "there is no store to write to; set [store] path");
	} else if (r == -EIO) {
		snprintf(text, NLPROTO_LINE_MAX,
			 "the store is lost, nothing can be written to it; see the log");
	} else if (r == -EBUSY) {
		engine_job_status(ep->src.engine, &now);
		snprintf(text, NLPROTO_LINE_MAX,
			 "job %u is under way; wait for it to end, or cancel it", now.id);
	}
	return r;
}

static int cancel_job(void *ctx, char text[static NLPROTO_LINE_MAX])
{
	int r = engine_job_cancel(((struct endpoint *)ctx)->src.engine);

	if (r == -ESRCH)
		snprintf(text, NLPROTO_LINE_MAX, "no job is under way");
	else if (r == -EOPNOTSUPP)
		snprintf(text, NLPROTO_LINE_MAX,
			 "memory shrinks for as long as it is above memory.limit; to end that, set "
			 "memory.limit up again");
	return r;
}

static const struct stats_server_ops ops = {
	.counters = give_counters,
	.status = give_status,
	.histograms = give_histograms,
	.option = give_option,
	.job = give_job,
	.job_start = start_job,
	.job_cancel = cancel_job,
	.changes = true,
};

/* --- the main thread's side --- */

/* Of the sizes that the engine does not keep to the byte. */
static void show_in_force(struct endpoint *ep, int id, struct stats_option *o)
{
	uint64_t v[COUNTER_COUNT], bytes;

	if (id == CONFIG_OPTION_memory_reserve) {
		bytes = engine_memory_reserve(ep->src.engine);
	} else if (id == CONFIG_OPTION_memory_limit) {
		engine_counters(ep->src.engine, v);
		bytes = v[CTR_memory_limit_bytes];
	} else {
		return;
	}
	snprintf(o->in_force, sizeof(o->in_force), "%" PRIu64, bytes);
	if (!strcmp(o->in_force, o->value))
		o->in_force[0] = '\0';
}

void endpoint_refresh(struct endpoint *ep)
{
	struct control_value v;
	struct stats_option o;

	for (int id = 0; ep && id < CONFIG_OPTION_COUNT; id++) {
		control_get_id(ep->src.control, (enum config_option_id)id, &v);
		o = (struct stats_option){.live = v.live};
		strcpy(o.key, v.key);
		strcpy(o.value, v.value);
		strcpy(o.origin, v.origin);
		snprintf(o.def, sizeof(o.def), "%s", v.def);
		snprintf(o.range, sizeof(o.range), "%s", v.range);
		snprintf(o.text, sizeof(o.text), "%s", v.text);
		show_in_force(ep, id, &o);
		pthread_mutex_lock(&ep->lock);
		ep->options[id] = o;
		pthread_mutex_unlock(&ep->lock);
	}
}

void endpoint_start(struct endpoint **ret, const struct endpoint_source *src)
{
	struct endpoint *ep = calloc(1, sizeof(*ep));

	*ret = NULL;
	if (!ep) {
		log_err("stats: no memory; zswapctl will not reach this daemon");
		return;
	}
	ep->src = *src;
	ep->standby_seen = now_ns();
	pthread_mutex_init(&ep->lock, NULL);
	endpoint_refresh(ep);
	if (stats_server_new(&ep->server, src->config->device_name, &ops, ep) < 0) {
		pthread_mutex_destroy(&ep->lock);
		free(ep);
		return;
	}
	stats_server_start(ep->server);
	*ret = ep;
}

int endpoint_stop(struct endpoint *ep)
{
	int r;

	if (!ep)
		return 0;
	r = stats_server_stop(ep->server);
	stats_server_free(ep->server);
	/* A thread that is left behind may still call back, so that it keeps all of this. */
	if (r < 0)
		return r;
	pthread_mutex_destroy(&ep->lock);
	free(ep);
	return 0;
}

int endpoint_fd(const struct endpoint *ep)
{
	return ep ? stats_server_change_fd(ep->server) : -1;
}

static int upgrade(struct endpoint *ep, char report[static STATS_REPORT_MAX])
{
	if (!ep->src.upgrade)
		return -EOPNOTSUPP;
	return ep->src.upgrade(ep->src.ctx, report, STATS_REPORT_MAX);
}

void endpoint_work(struct endpoint *ep)
{
	char report[STATS_REPORT_MAX] = "";
	struct stats_change change;
	int r = 0;

	if (!ep || !stats_server_take_change(ep->server, &change))
		return;
	switch (change.kind) {
	case STATS_CHANGE_SET:
		r = control_set(ep->src.control, change.key, change.value, report);
		break;
	case STATS_CHANGE_RELOAD:
		r = control_reload(ep->src.control, report);
		break;
	case STATS_CHANGE_UPGRADE:
		r = upgrade(ep, report);
		break;
	}
	endpoint_refresh(ep);
	stats_server_finish_change(ep->server, r, report);
}

void endpoint_post(struct endpoint *ep, enum nlproto_event kind, const char *text)
{
	if (ep)
		stats_server_post(ep->server, kind, NULL, text);
}

void endpoint_changed(struct endpoint *ep, const char *key, const char *text)
{
	if (ep)
		stats_server_post(ep->server, NLPROTO_EVENT_CONFIG_CHANGED, key, text);
}

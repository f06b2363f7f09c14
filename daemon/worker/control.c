// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/worker/control.h"
#include "common/log.h"
#include "common/util.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

struct control {
	/* set by control_new() */
	struct config_source source;
	const struct control_ops *ops;
	void *ctx;

	pthread_mutex_t mutex;
	/* under the mutex: what runs.  Values that wait for the next start are not in it. */
	struct config config;
};

/* One change: what it is called, from what to what. */
struct change {
	enum config_option_id id;
	char key[CONTROL_KEY_MAX];
	char from[CONFIG_DESCRIBE_MAX], to[CONFIG_DESCRIBE_MAX];
	const char *origin; /* of the new value */
};

int control_new(struct control **ret, const struct config *config,
		const struct config_source *source, const struct control_ops *ops, void *ctx)
{
	struct control *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->source = *source;
	c->ops = ops;
	c->ctx = ctx;
	c->config = *config;
	pthread_mutex_init(&c->mutex, NULL);
	*ret = c;
	return 0;
}

void control_free(struct control *c)
{
	if (!c)
		return;
	pthread_mutex_destroy(&c->mutex);
	free(c);
}

static void name_option(enum config_option_id id, char key[static CONTROL_KEY_MAX])
{
	snprintf(key, CONTROL_KEY_MAX, "%s.%s", config_options[id].section, config_options[id].key);
}

/* A text that is cut if need be. */
__attribute__((format(printf, 2, 3))) static void say(char text[static CONTROL_TEXT_MAX],
						      const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, CONTROL_TEXT_MAX, fmt, ap);
	va_end(ap);
}

/* Its number, or -ENOENT: @text says which options there are. */
static int find_option(const char *key, char *text)
{
	const struct config_option *o = config_find(key);
	size_t n;

	if (o)
		return (int)(o - config_options);
	n = (size_t)snprintf(text, CONTROL_TEXT_MAX, "there is no option '%.64s'; there are:", key);
	for (int id = 0; id < CONFIG_OPTION_COUNT && n < CONTROL_TEXT_MAX; id++)
		n += (size_t)snprintf(text + n, CONTROL_TEXT_MAX - n, " %s.%s",
				      config_options[id].section, config_options[id].key);
	return -ENOENT;
}

void control_get_id(struct control *c, enum config_option_id id, struct control_value *ret)
{
	const struct config_option *o = &config_options[id];

	name_option(id, ret->key);
	config_range(o, ret->range);
	ret->live = o->live;
	ret->def = o->def;
	ret->text = o->text;
	pthread_mutex_lock(&c->mutex);
	config_value(&c->config, id, ret->value);
	strcpy(ret->origin, c->config.origin[id]);
	pthread_mutex_unlock(&c->mutex);
}

void control_config(struct control *c, struct config *ret)
{
	pthread_mutex_lock(&c->mutex);
	*ret = c->config;
	pthread_mutex_unlock(&c->mutex);
}

static void describe_change(struct change *ch, const struct config *from, const struct config *to)
{
	name_option(ch->id, ch->key);
	config_describe(from, ch->id, ch->from);
	config_describe(to, ch->id, ch->to);
	ch->origin = to->origin[ch->id];
}

/*
 * Makes what runs as @next, which differs in this one option; says in @text what was done or why
 * not.  Both are logged.
 */
static int apply(struct control *c, const struct change *ch, const struct config *next, char *text)
{
	char reason[CONFIG_REASON_MAX];
	int r;

	r = c->ops->apply(c->ctx, ch->id, next, reason);
	if (r < 0) {
		say(text, "%s: stays %s: %s", ch->key, ch->from, reason);
		log_err("%s", text);
		return r;
	}
	c->config = *next;
	say(text, "%s: %s -> %s (%s)", ch->key, ch->from, ch->to, ch->origin);
	log_info("%s", text);
	if (strcmp(ch->from, ch->to))
		c->ops->changed(c->ctx, ch->key, text);
	return 0;
}

static int set_locked(struct control *c, enum config_option_id id, const char *value, char *text)
{
	char reason[CONFIG_REASON_MAX], error[CONFIG_ERROR_MAX];
	struct config next = c->config;
	struct change ch = {.id = id};
	int r;

	r = config_set(&next, id, value, CONFIG_ORIGIN_RUN_TIME, reason);
	describe_change(&ch, &c->config, &next);
	if (r < 0) {
		say(text, "%s: %s", ch.key, reason);
		return r;
	}
	r = config_validate(&next, error);
	if (r < 0) {
		strcpy(text, error);
		return r;
	}
	return apply(c, &ch, &next, text);
}

int control_set(struct control *c, const char *key, const char *value,
		char text[static CONTROL_TEXT_MAX])
{
	int id = find_option(key, text), r;

	if (id < 0)
		return id;
	if (!config_options[id].live) {
		say(text,
		    "%s can't change while zswapd runs; write it to a configuration file and "
		    "restart zswapd",
		    key);
		return -EOPNOTSUPP;
	}
	pthread_mutex_lock(&c->mutex);
	r = set_locked(c, (enum config_option_id)id, value, text);
	pthread_mutex_unlock(&c->mutex);
	return r;
}

/* --- reload --- */

/* A line of the report, which drops what does not fit. */
static void report_line(char *report, const char *line)
{
	size_t n = strlen(report);

	snprintf(report + n, CONTROL_REPORT_MAX - n, "%s%s", n ? "\n" : "", line);
}

/* Whether the files have another value of option @id than runs; @ch tells. */
static bool differs(struct control *c, enum config_option_id id, const struct config *fresh,
		    struct change *ch)
{
	ch->id = id;
	describe_change(ch, &c->config, fresh);
	return strcmp(ch->from, ch->to);
}

static void note_restart(const struct change *ch, char *report)
{
	char text[CONTROL_TEXT_MAX];

	say(text, "%s: needs a restart to become %s (%s); stays %s", ch->key, ch->to, ch->origin,
	    ch->from);
	log_notice("%s", text);
	report_line(report, text);
}

/* What runs, but with option @id as the files have it.  -EINVAL: that contradicts itself. */
static int step(const struct control *c, enum config_option_id id, const struct config *fresh,
		struct config *ret_next, char error[static CONFIG_ERROR_MAX])
{
	char value[CONFIG_TEXT_MAX], reason[CONFIG_REASON_MAX];

	*ret_next = c->config;
	z_assert(config_set(ret_next, id, config_value(fresh, id, value), fresh->origin[id],
			    reason) == 0);
	return config_check(ret_next, error);
}

/*
 * Applies every option in @waits that can go now, and takes it out.  Returns how many were there;
 * *partly is set if one could not be applied.
 */
static unsigned apply_some(struct control *c, const struct config *fresh,
			   bool waits[static CONFIG_OPTION_COUNT], char *report, bool *partly)
{
	char text[CONTROL_TEXT_MAX], error[CONFIG_ERROR_MAX];
	struct config next;
	struct change ch;
	unsigned n = 0;

	for (int id = 0; id < CONFIG_OPTION_COUNT; id++) {
		if (!waits[id] || step(c, (enum config_option_id)id, fresh, &next, error) < 0)
			continue;
		waits[id] = false;
		n++;
		differs(c, (enum config_option_id)id, fresh, &ch);
		if (apply(c, &ch, &next, text) < 0)
			*partly = true;
		report_line(report, text);
	}
	return n;
}

static void refuse_rest(struct control *c, const struct config *fresh, const bool *waits,
			char *report, bool *partly)
{
	char text[CONTROL_TEXT_MAX], error[CONFIG_ERROR_MAX];
	struct config next;
	struct change ch;

	for (int id = 0; id < CONFIG_OPTION_COUNT; id++) {
		if (!waits[id])
			continue;
		*partly = true;
		step(c, (enum config_option_id)id, fresh, &next, error);
		differs(c, (enum config_option_id)id, fresh, &ch);
		say(text, "%s: stays %s: %s", ch.key, ch.from, error);
		log_err("%s", text);
		report_line(report, text);
	}
}

/*
 * From what runs to what the files say, one option at a time.  The files agree with themselves, but
 * a step between may not: a limit can be too low for a reserve that is about to be lowered, too. So
 * an option waits until what it contradicts has changed.  Bounds on one another (this one at most
 * half of that one) can always be reached so, in one order or the other.  What waits in the end
 * contradicts something that can't change now.
 */
static int reload_locked(struct control *c, char *report)
{
	bool waits[CONFIG_OPTION_COUNT] = {false}, partly = false;
	char error[CONFIG_ERROR_MAX];
	struct config fresh;
	struct change ch;
	int r;

	/* Shares are of the RAM there was at the start, else they would differ by a module loaded.
	 */
	r = config_read(&fresh, c->config.ram_bytes, &c->source, error);
	if (r < 0) {
		report_line(report, error);
		return r;
	}
	for (int id = 0; id < CONFIG_OPTION_COUNT; id++) {
		if (!differs(c, (enum config_option_id)id, &fresh, &ch))
			strcpy(c->config.origin[id], fresh.origin[id]);
		else if (config_options[id].live)
			waits[id] = true;
		else
			note_restart(&ch, report);
	}
	while (apply_some(c, &fresh, waits, report, &partly) > 0)
		;
	refuse_rest(c, &fresh, waits, report, &partly);
	if (!*report)
		report_line(report, "nothing has changed");
	return partly ? CONTROL_PARTLY : 0;
}

int control_reload(struct control *c, char report[static CONTROL_REPORT_MAX])
{
	char state[96];
	int r;

	*report = '\0';
	pthread_mutex_lock(&c->mutex);
	snprintf(state, sizeof(state), "RELOADING=1\nMONOTONIC_USEC=%" PRIu64, now_ns() / 1000);
	c->ops->notify(c->ctx, state);
	log_info("reload: reading the configuration again");
	r = reload_locked(c, report);
	if (r)
		log_err("reload: not all of it could be applied; correct the files and reload again");
	else
		log_info("reload: done");
	c->ops->notify(c->ctx, r ? "READY=1\nSTATUS=Serving swap; the last reload failed"
				 : "READY=1\nSTATUS=Serving swap");
	pthread_mutex_unlock(&c->mutex);
	return r;
}

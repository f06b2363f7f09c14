// SPDX-License-Identifier: GPL-2.0-or-later
#include "ctl/top_feed.h"
#include "common/util.h"
#include "ctl/client.h"
#include "ctl/find.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>

struct top_feed {
	/* set at start */
	const char *run_dir, *device;
	uint64_t interval_ns;
	int event_fd;
	pthread_t thread;

	/* the thread only */
	struct ctl_client *client;
	struct ctl_reply reply;
	struct top_sample asked;

	/* under lock */
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool stop, hurry, fresh;
	struct top_sample sample;
};

/* After a failure the port is looked up anew: a daemon that was restarted may have another one. */
static int ask(struct top_feed *f, enum nlproto_cmd cmd)
{
	int r = 0;

	if (!f->client)
		r = ctl_client_new(&f->client, ctl_find_port(f->run_dir, f->device), 0);
	if (r == 0)
		r = ctl_client_ask(f->client, cmd, f->device, &f->reply);
	if (r != 0) {
		ctl_client_free(f->client);
		f->client = NULL;
	}
	return r;
}

static void set_why(struct top_feed *f, int error)
{
	char *why = f->asked.why;
	size_t size = sizeof(f->asked.why);

	if (error == -ECONNREFUSED)
		snprintf(why, size, "nobody answers for device '%s'; trying again", f->device);
	else if (error == -ETIMEDOUT)
		snprintf(why, size, "zswapd (%s) does not answer; trying again", f->device);
	else if (f->reply.error_text[0])
		snprintf(why, size, "%s", f->reply.error_text);
	else
		snprintf(why, size, "%s", strerror(error < 0 ? -error : error));
}

static void ask_all(struct top_feed *f)
{
	int r = ask(f, NLPROTO_CMD_STATUS);

	memset(&f->asked, 0, sizeof(f->asked));
	if (r == 0) {
		f->asked.status = f->reply.status;
		strcpy(f->asked.device, f->reply.device);
		r = ask(f, NLPROTO_CMD_STATS);
	}
	f->asked.at_ns = now_ns();
	f->asked.answered = r == 0;
	if (r == 0)
		f->asked.stats = f->reply.stats;
	else
		set_why(f, r);
}

/* Under lock, until @until or until somebody is in a hurry. */
static void rest(struct top_feed *f, uint64_t until)
{
	struct timespec ts = {(time_t)(until / 1000000000), (long)(until % 1000000000)};

	while (!f->stop && !f->hurry &&
	       pthread_cond_timedwait(&f->wake, &f->lock, &ts) != ETIMEDOUT)
		;
	f->hurry = false;
}

/* At even distances, unless answering took longer or somebody did not want to wait. */
static uint64_t next_time(uint64_t last, uint64_t interval, uint64_t now)
{
	uint64_t next = last + interval;

	return next < now || next > now + interval ? now + interval : next;
}

static void *feed_main(void *arg)
{
	struct top_feed *f = arg;
	uint64_t next = now_ns(), one = 1;

	pthread_mutex_lock(&f->lock);
	while (!f->stop) {
		pthread_mutex_unlock(&f->lock);
		ask_all(f);
		pthread_mutex_lock(&f->lock);
		f->sample = f->asked;
		f->fresh = true;
		if (write(f->event_fd, &one, sizeof(one)) < 0) {
			/* only if it counts 2^64 already, which wakes as well */
		}
		next = next_time(next, f->interval_ns, now_ns());
		rest(f, next);
	}
	pthread_mutex_unlock(&f->lock);
	return NULL;
}

static void destroy(struct top_feed *f)
{
	ctl_client_free(f->client);
	close_fd(f->event_fd);
	pthread_cond_destroy(&f->wake);
	pthread_mutex_destroy(&f->lock);
	free(f);
}

int top_feed_start(struct top_feed **ret, const char *run_dir, const char *device,
		   uint64_t interval_ns)
{
	struct top_feed *f = calloc(1, sizeof(*f));
	pthread_condattr_t attr;
	int r;

	if (!f)
		return -ENOMEM;
	f->run_dir = run_dir;
	f->device = device;
	f->interval_ns = interval_ns;
	pthread_mutex_init(&f->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&f->wake, &attr);
	pthread_condattr_destroy(&attr);
	f->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r = f->event_fd < 0 ? errno : pthread_create(&f->thread, NULL, feed_main, f);
	if (r) {
		destroy(f);
		return -r;
	}
	*ret = f;
	return 0;
}

int top_feed_fd(const struct top_feed *f)
{
	return f->event_fd;
}

bool top_feed_take(struct top_feed *f, struct top_sample *ret)
{
	uint64_t count;
	bool fresh;

	pthread_mutex_lock(&f->lock);
	fresh = read(f->event_fd, &count, sizeof(count)) > 0 || f->fresh;
	if (fresh)
		*ret = f->sample;
	f->fresh = false;
	pthread_mutex_unlock(&f->lock);
	return fresh;
}

void top_feed_hurry(struct top_feed *f)
{
	pthread_mutex_lock(&f->lock);
	f->hurry = true;
	pthread_cond_signal(&f->wake);
	pthread_mutex_unlock(&f->lock);
}

void top_feed_stop(struct top_feed *f)
{
	struct timespec until;

	if (!f)
		return;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec++;
	pthread_mutex_lock(&f->lock);
	f->stop = true;
	pthread_cond_signal(&f->wake);
	pthread_mutex_unlock(&f->lock);
	if (pthread_timedjoin_np(f->thread, NULL, &until) == 0)
		destroy(f);
}

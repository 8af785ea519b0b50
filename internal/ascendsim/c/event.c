/* Events: marks in streams. */
#define _GNU_SOURCE
#include "acl.h"
#include "device.h"
#include "sim.h"
#include "stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct event {
	uint32_t flags;
	bool reusable;       /* made by the Ex form */
	long recorded, done; /* records enqueued, and passed by their streams */
	double passed;       /* ms, when done was counted last */
	int references;      /* of tasks, and one of its owner */
	struct event *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct event *events;

static void prepare(void)
{
	pthread_condattr_t clock;
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&changed, &clock);
}

static aclError create(aclrtEvent *out, uint32_t flags, bool reusable)
{
	pthread_once(&once, prepare);
	aclError err = sim_need_context("aclrtCreateEvent");
	if (err != 0)
		return err;
	if (out == NULL || flags == 0 || flags > 0x7f)
		return ascendsim_fail(RT_PARAM_INVALID, "aclrtCreateEvent: flags %#x", flags);
	struct event *e = calloc(1, sizeof *e);
	e->flags = flags;
	e->reusable = reusable;
	e->references = 1;
	pthread_mutex_lock(&lock);
	e->next = events;
	events = e;
	pthread_mutex_unlock(&lock);
	ascendsim_count("events", 1);
	*out = e;
	return 0;
}

API aclError aclrtCreateEvent(aclrtEvent *event) { return create(event, ACL_EVENT_SYNC | ACL_EVENT_TIME_LINE, false); }

API aclError aclrtCreateEventWithFlag(aclrtEvent *event, uint32_t flag) { return create(event, flag, false); }

API aclError aclrtCreateEventExWithFlag(aclrtEvent *event, uint32_t flag) { return create(event, flag, true); }

/* Finds a living event and keeps it; lock is held. */
static struct event *find(const char *call, aclrtEvent handle, int *err)
{
	*err = 0;
	for (struct event *e = events; e != NULL; e = e->next)
		if (e == handle)
			return e;
	*err = ascendsim_fail(RT_INVALID_HANDLE, "%s: %p is no event", call, handle);
	return NULL;
}

static void release(struct event *e) /* lock is held */
{
	if (--e->references == 0)
		free(e);
}

API aclError aclrtDestroyEvent(aclrtEvent event)
{
	int err = sim_need_context("aclrtDestroyEvent");
	if (err != 0)
		return err;
	pthread_mutex_lock(&lock);
	struct event *e = find("aclrtDestroyEvent", event, &err);
	if (e != NULL) {
		struct event **at = &events;
		while (*at != e)
			at = &(*at)->next;
		*at = e->next;
		release(e);
		ascendsim_count("events", -1);
	}
	pthread_mutex_unlock(&lock);
	return err;
}

/* A task about an event. */
struct mark {
	struct event *event;
	long target;
};

static void drop_mark(void *arg)
{
	struct mark *m = arg;
	pthread_mutex_lock(&lock);
	release(m->event);
	pthread_mutex_unlock(&lock);
	free(m);
}

static int pass(void *arg, struct stream *stream, char *message, size_t size)
{
	(void)stream, (void)message, (void)size;
	struct mark *m = arg;
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	pthread_mutex_lock(&lock);
	if (m->target > m->event->done)
		m->event->done = m->target;
	m->event->passed = t.tv_sec * 1e3 + t.tv_nsec / 1e6;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	return 0;
}

static int await(void *arg, struct stream *stream, char *message, size_t size)
{
	struct mark *m = arg;
	pthread_mutex_lock(&lock);
	while (m->event->done < m->target && !ascendsim_aborted(stream))
		sim_wait(&changed, &lock, ascendsim_now() + 10);
	bool done = m->event->done >= m->target;
	pthread_mutex_unlock(&lock);
	if (!done)
		snprintf(message, size, "the wait for an event was aborted");
	return done ? 0 : RT_FFTS_EXCEPTION;
}

/* Enqueues a task that keeps the event. */
static aclError enqueue(const char *call, aclrtEvent event, aclrtStream stream, bool record)
{
	int err;
	struct stream *s = sim_stream(call, stream, &err);
	if (s == NULL)
		return err;
	struct mark *m = calloc(1, sizeof *m);
	pthread_mutex_lock(&lock);
	m->event = find(call, event, &err);
	if (err == 0 && !record && !m->event->reusable && (m->event->flags & ACL_EVENT_SYNC) == 0)
		err = ascendsim_fail(RT_PARAM_INVALID, "%s: the event was made without the SYNC flag", call);
	if (err == 0) {
		m->event->references++;
		m->target = record ? ++m->event->recorded : m->event->recorded;
	}
	pthread_mutex_unlock(&lock);
	if (err != 0) {
		free(m);
		return err;
	}
	return ascendsim_enqueue(s, record ? pass : await, drop_mark, m);
}

API aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream) { return enqueue("aclrtRecordEvent", event, stream, true); }

API aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event) { return enqueue("aclrtStreamWaitEvent", event, stream, false); }

API aclError aclrtResetEvent(aclrtEvent event, aclrtStream stream)
{
	int err;
	if (sim_stream("aclrtResetEvent", stream, &err) == NULL)
		return err;
	pthread_mutex_lock(&lock);
	struct event *e = find("aclrtResetEvent", event, &err);
	if (e != NULL && e->reusable)
		err = ascendsim_fail(RT_PARAM_INVALID, "aclrtResetEvent: not for events of the Ex form");
	pthread_mutex_unlock(&lock);
	return err;
}

API aclError aclrtQueryEventStatus(aclrtEvent event, int32_t *status)
{
	int err = sim_need_context("aclrtQueryEventStatus");
	if (err != 0)
		return err;
	pthread_mutex_lock(&lock);
	struct event *e = find("aclrtQueryEventStatus", event, &err);
	if (e != NULL)
		*status = e->done >= e->recorded && (e->reusable || e->recorded > 0); /* 1: complete */
	pthread_mutex_unlock(&lock);
	return err;
}

API aclError aclrtSynchronizeEventWithTimeout(aclrtEvent event, int32_t ms)
{
	int err = sim_need_context("aclrtSynchronizeEvent");
	if (err != 0)
		return err;
	long long until = ms < 0 ? -1 : ascendsim_now() + ms;
	pthread_mutex_lock(&lock);
	struct event *e = find("aclrtSynchronizeEvent", event, &err);
	if (e != NULL) {
		long target = e->recorded;
		e->references++;
		while (err == 0 && e->done < target)
			if (!sim_wait(&changed, &lock, until) && e->done < target)
				err = ascendsim_fail(RT_EVENT_TIMEOUT, "aclrtSynchronizeEventWithTimeout: not passed after %d ms", ms);
		release(e);
	}
	pthread_mutex_unlock(&lock);
	return err;
}

API aclError aclrtSynchronizeEvent(aclrtEvent event) { return aclrtSynchronizeEventWithTimeout(event, -1); }

API aclError aclrtEventElapsedTime(float *ms, aclrtEvent start, aclrtEvent end)
{
	int err = sim_need_context("aclrtEventElapsedTime");
	if (err != 0)
		return err;
	pthread_mutex_lock(&lock);
	struct event *a = find("aclrtEventElapsedTime", start, &err);
	struct event *b = a == NULL ? NULL : find("aclrtEventElapsedTime", end, &err);
	if (b != NULL) {
		if ((a->flags & b->flags & ACL_EVENT_TIME_LINE) == 0 || a->done == 0 || b->done == 0 || a->done < a->recorded || b->done < b->recorded)
			err = ascendsim_fail(RT_PARAM_INVALID, "aclrtEventElapsedTime: both events have to be passed and made with TIME_LINE");
		else
			*ms = (float)(b->passed - a->passed);
	}
	pthread_mutex_unlock(&lock);
	return err;
}

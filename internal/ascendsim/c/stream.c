/* Streams: a thread each, which runs tasks in order. */
#define _GNU_SOURCE
#include "acl.h"
#include "device.h"
#include "sim.h"
#include "stream.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct stream *streams; /* under sim_lock */
static int stream_count;

struct task {
	task_run run;
	void (*drop)(void *);
	void *arg;
	struct task *next;
};

struct stream {
	struct context *context;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct task *first, *last;
	int pending; /* queued and running */
	bool ending, aborted, stop_on_failure;
	int failed; /* the first failure since the last report */
	char message[512];
	struct stream *next;
};

static void *work(void *arg)
{
	struct stream *s = arg;
	pthread_mutex_lock(&s->lock);
	for (;;) {
		while (s->first == NULL && !s->ending)
			pthread_cond_wait(&s->changed, &s->lock);
		struct task *t = s->first;
		if (t == NULL)
			break;
		s->first = t->next;
		bool skip = s->aborted || (s->failed != 0 && s->stop_on_failure);
		pthread_mutex_unlock(&s->lock);
		char message[512] = "";
		int code = skip ? 0 : t->run(t->arg, s, message, sizeof message);
		if (t->drop != NULL)
			t->drop(t->arg);
		free(t);
		pthread_mutex_lock(&s->lock);
		if (code != 0 && s->failed == 0) {
			s->failed = code;
			snprintf(s->message, sizeof s->message, "%s", message);
		}
		s->pending--;
		pthread_cond_broadcast(&s->changed);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

/* The stream of a handle, which may be NULL for the context's default one; NULL,
 * with the failure in *err, when there is none. */
struct stream *sim_stream(const char *call, void *handle, int *err)
{
	*err = sim_need_context(call);
	if (*err != 0)
		return NULL;
	struct context *context = sim_current();
	if (handle == NULL) {
		if (context->stream == NULL && (*err = aclrtCreateStream((aclrtStream *)&context->stream)) != 0)
			return NULL;
		return context->stream;
	}
	pthread_mutex_lock(&sim_lock);
	struct stream *s = streams;
	while (s != NULL && s != handle)
		s = s->next;
	pthread_mutex_unlock(&sim_lock);
	if (s == NULL)
		*err = ascendsim_fail(RT_INVALID_HANDLE, "%s: %p is no stream", call, handle);
	else if (s->context != context) {
		*err = ascendsim_fail(RT_STREAM_CONTEXT, "%s: the stream belongs to another context than this thread's", call);
		s = NULL;
	}
	return s;
}

int ascendsim_enqueue(struct stream *s, task_run run, void (*drop)(void *), void *arg)
{
	struct task *t = calloc(1, sizeof *t);
	t->run = run, t->drop = drop, t->arg = arg;
	pthread_mutex_lock(&s->lock);
	if (s->first == NULL)
		s->first = t;
	else
		s->last->next = t;
	s->last = t;
	s->pending++;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
	return 0;
}

static int held(void *arg, struct stream *s, char *message, size_t size)
{
	(void)message, (void)size;
	while (__atomic_load_n((int *)arg, __ATOMIC_SEQ_CST) != 0 && !ascendsim_aborted(s))
		poll(NULL, 0, 1);
	return 0;
}

/* The simulator's own, for tests: holds a stream where it is now until the number
 * is 0. */
API int ascendsim_hold(void *stream, int *number)
{
	int err;
	struct stream *s = sim_stream("ascendsim_hold", stream, &err);
	return s == NULL ? err : ascendsim_enqueue(s, held, NULL, number);
}

bool ascendsim_stream_is_here(struct stream *stream)
{
	int err;
	return sim_stream("stream", stream, &err) != NULL;
}

bool ascendsim_aborted(struct stream *s)
{
	pthread_mutex_lock(&s->lock);
	bool out = s->aborted;
	pthread_mutex_unlock(&s->lock);
	return out;
}

API aclError aclrtCreateStreamWithConfig(aclrtStream *stream, uint32_t priority, uint32_t flag)
{
	aclError err = sim_need_context("aclrtCreateStream");
	if (err != 0)
		return err;
	if (stream == NULL || priority > 7 || flag > 7)
		return ascendsim_fail(RT_PARAM_INVALID, "aclrtCreateStreamWithConfig: priority %u, flag %u", priority, flag);
	pthread_mutex_lock(&sim_lock);
	bool full = stream_count >= (ascendsim_is_910a() ? 2048 : 1984);
	stream_count += !full;
	pthread_mutex_unlock(&sim_lock);
	if (full)
		return ascendsim_fail(RT_NO_STREAM, "aclrtCreateStream: EL0009: all streams of the device are in use");
	struct stream *s = calloc(1, sizeof *s);
	s->context = sim_current();
	pthread_mutex_init(&s->lock, NULL);
	pthread_condattr_t clock;
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&s->changed, &clock);
	pthread_condattr_destroy(&clock);
	pthread_create(&s->thread, NULL, work, s);
	pthread_mutex_lock(&sim_lock);
	s->next = streams;
	streams = s;
	pthread_mutex_unlock(&sim_lock);
	ascendsim_count("streams", 1);
	*stream = s;
	return 0;
}

API aclError aclrtCreateStream(aclrtStream *stream) { return aclrtCreateStreamWithConfig(stream, 0, 0); }

static aclError destroy(const char *call, aclrtStream handle, bool force)
{
	int err;
	struct stream *s = handle == NULL ? NULL : sim_stream(call, handle, &err);
	if (handle == NULL)
		return ascendsim_fail(RT_PARAM_INVALID, "%s: null stream", call);
	if (s == NULL)
		return err;
	pthread_mutex_lock(&s->lock);
	s->aborted = s->aborted || force;
	s->ending = true;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->thread, NULL);
	pthread_mutex_lock(&sim_lock);
	struct stream **at = &streams;
	while (*at != s)
		at = &(*at)->next;
	*at = s->next;
	stream_count--;
	pthread_mutex_unlock(&sim_lock);
	ascendsim_count("streams", -1);
	pthread_cond_destroy(&s->changed);
	pthread_mutex_destroy(&s->lock);
	free(s);
	return 0;
}

API aclError aclrtDestroyStream(aclrtStream stream) { return destroy("aclrtDestroyStream", stream, false); }

API aclError aclrtDestroyStreamForce(aclrtStream stream) { return destroy("aclrtDestroyStreamForce", stream, true); }

API aclError aclrtStreamAbort(aclrtStream stream)
{
	int err;
	struct stream *s = sim_stream("aclrtStreamAbort", stream, &err);
	if (s == NULL)
		return err;
	pthread_mutex_lock(&s->lock);
	s->aborted = true;
	while (s->pending > 0)
		pthread_cond_wait(&s->changed, &s->lock);
	s->aborted = false;
	s->failed = 0;
	pthread_mutex_unlock(&s->lock);
	return 0;
}

API aclError aclrtSetStreamFailureMode(aclrtStream stream, uint64_t mode)
{
	int err;
	struct stream *s = sim_stream("aclrtSetStreamFailureMode", stream, &err);
	if (s == NULL)
		return err;
	if (mode > 1)
		return ascendsim_fail(RT_PARAM_INVALID, "aclrtSetStreamFailureMode: mode %llu", (unsigned long long)mode);
	pthread_mutex_lock(&s->lock);
	bool was = s->stop_on_failure;
	s->stop_on_failure = mode == 1;
	pthread_mutex_unlock(&s->lock);
	return was ? ascendsim_fail(RT_PARAM_INVALID, "aclrtSetStreamFailureMode: can be set once for a stream") : 0;
}

/* Waits on a condition until a time, -1 for ever; false when it is over. */
bool sim_wait(pthread_cond_t *changed, pthread_mutex_t *lock, long long until)
{
	if (until < 0)
		return pthread_cond_wait(changed, lock) == 0;
	struct timespec t = { .tv_sec = until / 1000, .tv_nsec = until % 1000 * 1000000 };
	return pthread_cond_timedwait(changed, lock, &t) != ETIMEDOUT;
}

API aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t ms)
{
	int err;
	struct stream *s = sim_stream("aclrtSynchronizeStream", stream, &err);
	if (s == NULL)
		return err;
	if (ms < -1)
		return ascendsim_fail(RT_PARAM_INVALID, "aclrtSynchronizeStreamWithTimeout: %d ms", ms);
	long long until = ms < 0 ? -1 : ascendsim_now() + ms;
	pthread_mutex_lock(&s->lock);
	while (s->pending > 0) {
		if (!sim_wait(&s->changed, &s->lock, until) && s->pending > 0) {
			pthread_mutex_unlock(&s->lock);
			return ascendsim_fail(RT_STREAM_TIMEOUT, "aclrtSynchronizeStreamWithTimeout: not done after %d ms", ms);
		}
	}
	int code = s->failed;
	if (code != 0)
		ascendsim_message("%s", s->message);
	if (!s->stop_on_failure)
		s->failed = 0;
	pthread_mutex_unlock(&s->lock);
	return code;
}

API aclError aclrtSynchronizeStream(aclrtStream stream) { return aclrtSynchronizeStreamWithTimeout(stream, -1); }

API aclError aclrtSynchronizeDeviceWithTimeout(int32_t ms)
{
	aclError err = sim_need_context("aclrtSynchronizeDevice");
	struct stream *all[64];
	int n = 0;
	pthread_mutex_lock(&sim_lock);
	for (struct stream *s = streams; err == 0 && s != NULL && n < 64; s = s->next)
		if (s->context == sim_current())
			all[n++] = s;
	pthread_mutex_unlock(&sim_lock);
	for (int i = 0; i < n && err == 0; i++)
		err = aclrtSynchronizeStreamWithTimeout(all[i], ms);
	return err;
}

API aclError aclrtSynchronizeDevice(void) { return aclrtSynchronizeDeviceWithTimeout(-1); }

API aclError aclrtStreamQuery(aclrtStream stream, int32_t *status)
{
	int err;
	struct stream *s = sim_stream("aclrtStreamQuery", stream, &err);
	if (s == NULL)
		return err;
	pthread_mutex_lock(&s->lock);
	*status = s->pending > 0;
	err = s->failed;
	if (err != 0)
		ascendsim_message("%s", s->message);
	pthread_mutex_unlock(&s->lock);
	return err;
}

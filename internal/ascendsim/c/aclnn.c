/* A few operators of the simulated operator library, in its two phases: the first
 * asks for workspace and gives an executor, the second queues it on a stream. An
 * executor is used once, by the second phase of its own operator. Tensors and
 * workspace have to live until the stream has passed the operator. */
#define _GNU_SOURCE
#include "aclnn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORKSPACE = 64 }; /* more than 0, so that a caller who forgets it is found */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct tensor *tensors;
static struct executor *executors; /* between their phases */

size_t nn_size(int type)
{
	switch (type) {
	case NN_FLOAT: case NN_INT32: return 4;
	case NN_FLOAT16: case NN_BF16: return 2;
	case NN_DOUBLE: return 8;
	}
	return 0;
}

API struct tensor *aclCreateTensor(const int64_t *dims, uint64_t n, int type, const int64_t *strides, int64_t offset, int format, const int64_t *storage, uint64_t storage_n, void *data)
{
	static uint64_t serial;
	if (n > MOST_DIMENSIONS || nn_size(type) == 0 || format != 2 || data == NULL || (type == NN_BF16 && ascendsim_is_910a()))
		return NULL;
	struct tensor *t = calloc(1, sizeof *t);
	t->n = n, t->type = type, t->offset = offset, t->data = data, t->room = 1;
	for (uint64_t i = 0; i < storage_n; i++)
		t->room *= storage[i];
	int64_t step = 1, last = offset;
	for (uint64_t i = n; i-- > 0;) {
		t->dims[i] = dims[i];
		t->strides[i] = strides == NULL ? step : strides[i];
		step *= dims[i];
		last += dims[i] > 0 ? (dims[i] - 1) * t->strides[i] : 0;
	}
	if (offset < 0 || last >= t->room) { /* the view is larger than what it is of */
		free(t);
		return NULL;
	}
	pthread_mutex_lock(&lock);
	t->serial = ++serial, t->next = tensors, tensors = t;
	pthread_mutex_unlock(&lock);
	ascendsim_count("tensors", 1);
	return t;
}

API aclnnStatus aclDestroyTensor(const struct tensor *t)
{
	if (t == NULL)
		return NN_NULL;
	pthread_mutex_lock(&lock);
	struct tensor **at = &tensors;
	while (*at != NULL && *at != t)
		at = &(*at)->next;
	struct tensor *found = *at;
	if (found != NULL)
		*at = found->next;
	pthread_mutex_unlock(&lock);
	if (found == NULL)
		return NN_INVALID;
	ascendsim_count("tensors", -1);
	free(found);
	return NN_OK;
}

/* Whether what t is a copy of has not been destroyed. */
bool nn_alive(const struct tensor *t)
{
	pthread_mutex_lock(&lock);
	struct tensor *at = tensors;
	while (at != NULL && at->serial != t->serial)
		at = at->next;
	pthread_mutex_unlock(&lock);
	return at != NULL;
}

API struct scalar *aclCreateScalar(void *value, int type)
{
	struct scalar *s = calloc(1, sizeof *s);
	if (type == NN_FLOAT)
		s->value = *(float *)value;
	else if (type == NN_DOUBLE)
		s->value = *(double *)value;
	else if (type == NN_INT32)
		s->value = *(int32_t *)value;
	ascendsim_count("scalars", 1);
	return s;
}

API aclnnStatus aclDestroyScalar(const struct scalar *s)
{
	if (s == NULL)
		return NN_NULL;
	ascendsim_count("scalars", -1);
	free((void *)s);
	return NN_OK;
}

API struct integers *aclCreateIntArray(const int64_t *values, uint64_t n)
{
	if (n > MOST_DIMENSIONS)
		return NULL;
	struct integers *a = calloc(1, sizeof *a);
	a->n = n;
	memcpy(a->values, values, n * sizeof *values);
	ascendsim_count("arrays", 1);
	return a;
}

API aclnnStatus aclDestroyIntArray(const struct integers *a)
{
	if (a == NULL)
		return NN_NULL;
	ascendsim_count("arrays", -1);
	free((void *)a);
	return NN_OK;
}

static aclnnStatus refuse(const char *name, const char *why)
{
	ascendsim_message("EZ1001: %s: %s", name, why);
	return NN_INVALID;
}

static aclnnStatus begin(const char *name, struct executor **to, uint64_t *workspace, int (*run)(struct executor *, char *, size_t), const struct tensor *a, const struct tensor *b, const struct tensor *out)
{
	if (to == NULL || workspace == NULL || a == NULL || out == NULL)
		return NN_NULL;
	if (ascendsim_device() < 0)
		return refuse(name, "107002: this thread has no context");
	if (!nn_alive(a) || !nn_alive(out) || (b != NULL && !nn_alive(b)))
		return refuse(name, "a tensor has been destroyed");
	struct executor *e = calloc(1, sizeof *e);
	e->name = name, e->run = run, e->in[0] = *a, e->out = *out, e->inputs = 1;
	if (b != NULL)
		e->in[1] = *b, e->inputs = 2;
	pthread_mutex_lock(&lock);
	e->next = executors, executors = e;
	pthread_mutex_unlock(&lock);
	*to = e;
	*workspace = WORKSPACE;
	ascendsim_count("executors", 1);
	return NN_OK;
}

static bool same_dims(const struct tensor *a, const struct tensor *b)
{
	return a->n == b->n && memcmp(a->dims, b->dims, a->n * sizeof *a->dims) == 0;
}

API aclnnStatus aclnnMatmulGetWorkspaceSize(const struct tensor *a, const struct tensor *b, struct tensor *out, int8_t cube, uint64_t *workspace, struct executor **executor)
{
	if (a == NULL || b == NULL || out == NULL)
		return NN_NULL;
	if (a->n != 2 || b->n != 2 || out->n != 2 || a->dims[1] != b->dims[0] || out->dims[0] != a->dims[0] || out->dims[1] != b->dims[1])
		return refuse("aclnnMatmul", "the shapes do not fit");
	if (a->type != b->type || a->type != out->type || cube < 0 || cube > 4)
		return refuse("aclnnMatmul", "the types differ, or cubeMathType is out of range");
	if (a->data == out->data || b->data == out->data)
		return refuse("aclnnMatmul", "the result lies on an operand");
	if (ascendsim_is_910a() && a->type == NN_FLOAT && cube == 0)
		return refuse("aclnnMatmul", "a 910 multiplies float32 with lower precision only");
	aclnnStatus status = begin("aclnnMatmul", executor, workspace, nn_multiply, a, b, out);
	if (status == NN_OK)
		(*executor)->halved = a->type == NN_FLOAT && (cube == 2 || (cube == 1 && ascendsim_is_910a()));
	return status;
}

API aclnnStatus aclnnAddGetWorkspaceSize(const struct tensor *a, const struct tensor *b, const struct scalar *alpha, struct tensor *out, uint64_t *workspace, struct executor **executor)
{
	if (a == NULL || b == NULL || alpha == NULL || out == NULL)
		return NN_NULL;
	if (!same_dims(a, b) || !same_dims(a, out) || a->type != b->type)
		return refuse("aclnnAdd", "the shapes or types do not fit");
	aclnnStatus status = begin("aclnnAdd", executor, workspace, nn_add, a, b, out);
	if (status == NN_OK)
		(*executor)->alpha = (float)alpha->value;
	return status;
}

API aclnnStatus aclnnCastGetWorkspaceSize(const struct tensor *a, int type, struct tensor *out, uint64_t *workspace, struct executor **executor)
{
	if (a == NULL || out == NULL)
		return NN_NULL;
	if (!same_dims(a, out) || out->type != type)
		return refuse("aclnnCast", "the shapes or types do not fit");
	return begin("aclnnCast", executor, workspace, nn_cast, a, NULL, out);
}

API aclnnStatus aclnnReduceSumGetWorkspaceSize(const struct tensor *a, const struct integers *dims, bool keep, int type, struct tensor *out, uint64_t *workspace, struct executor **executor)
{
	if (a == NULL || dims == NULL || out == NULL)
		return NN_NULL;
	if (out->type != type || out->n != (keep ? a->n : a->n - dims->n))
		return refuse("aclnnReduceSum", "the result's shape or type does not fit");
	bool reduced[MOST_DIMENSIONS] = { false };
	for (uint64_t i = 0; i < dims->n; i++) {
		if (dims->values[i] < 0 || dims->values[i] >= (int64_t)a->n || reduced[dims->values[i]])
			return refuse("aclnnReduceSum", "a dimension is out of range, or named twice");
		reduced[dims->values[i]] = true;
	}
	for (uint64_t i = 0, at = 0; i < a->n; i++) {
		if (reduced[i] && !keep)
			continue;
		if (out->dims[at++] != (reduced[i] ? 1 : a->dims[i]))
			return refuse("aclnnReduceSum", "the result's shape does not fit");
	}
	aclnnStatus status = begin("aclnnReduceSum", executor, workspace, nn_sum, a, NULL, out);
	if (status == NN_OK)
		memcpy((*executor)->reduced, reduced, sizeof reduced);
	return status;
}

/* Runs on the stream. Workspace is overwritten: nothing else may lie there. */
static int carry_out(void *arg, struct stream *stream, char *message, size_t size)
{
	(void)stream;
	struct executor *e = arg;
	for (int i = 0; i <= e->inputs; i++) {
		if (!nn_alive(i < e->inputs ? &e->in[i] : &e->out)) {
			snprintf(message, size, "EZ9999: %s: a tensor was destroyed before the stream had passed", e->name);
			return RT_AICORE_EXCEPTION;
		}
	}
	void *workspace = ascendsim_memory(e->workspace, WORKSPACE);
	if (workspace == NULL) {
		snprintf(message, size, "EZ9999: %s: the workspace was freed before the stream had passed", e->name);
		return RT_AICORE_EXCEPTION;
	}
	memset(workspace, 0x5a, WORKSPACE);
	return e->run(e, message, size);
}

static void end(void *arg)
{
	free(arg);
	ascendsim_count("executors", -1);
}

static aclnnStatus queue(const char *name, void *workspace, uint64_t size, struct executor *e, void *stream)
{
	if (e == NULL || stream == NULL)
		return NN_NULL;
	pthread_mutex_lock(&lock);
	struct executor **at = &executors;
	while (*at != NULL && *at != e)
		at = &(*at)->next;
	bool own = *at != NULL && strcmp((*at)->name, name) == 0;
	pthread_mutex_unlock(&lock);
	if (!own)
		return refuse(name, "the executor is another operator's, or was used before");
	if (size < WORKSPACE || ascendsim_memory(workspace, size) == NULL)
		return refuse(name, "the workspace is too small, or no device memory");
	if (!ascendsim_stream_is_here(stream))
		return NN_INVALID;
	pthread_mutex_lock(&lock);
	for (at = &executors; *at != e;)
		at = &(*at)->next;
	*at = e->next;
	pthread_mutex_unlock(&lock);
	e->workspace = workspace;
	return ascendsim_enqueue(stream, carry_out, end, e) == 0 ? NN_OK : NN_INVALID;
}

#define SECOND(name) \
	API aclnnStatus name(void *workspace, uint64_t size, struct executor *e, void *stream) { return queue(#name, workspace, size, e, stream); }

SECOND(aclnnMatmul)
SECOND(aclnnAdd)
SECOND(aclnnCast)
SECOND(aclnnReduceSum)

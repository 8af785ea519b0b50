/* A few operators of the simulated operator library, in its two phases: the first
 * asks for workspace and gives an executor, the second queues it on a stream. An
 * executor is used once. */
#define _GNU_SOURCE
#include "comm.h"

#include <stdlib.h>
#include <string.h>

typedef int32_t aclnnStatus;

enum { NN_OK = 0, NN_NULL = 161001, NN_INVALID = 161002 };
enum { NN_FLOAT = 0, NN_FLOAT16 = 1, NN_INT32 = 3, NN_DOUBLE = 11, NN_BF16 = 27 };
enum { MOST_DIMENSIONS = 8 };

/* A view of device memory; sizes and strides are in elements. */
struct tensor {
	int64_t dims[MOST_DIMENSIONS], strides[MOST_DIMENSIONS], offset, room;
	uint64_t n;
	int type;
	char *data;
};

struct executor {
	int (*run)(struct executor *e, char *message, size_t size);
	struct tensor in[2], out;
	float alpha;
	bool reduced[MOST_DIMENSIONS];
};

struct scalar { double value; };

struct integers { uint64_t n; int64_t values[MOST_DIMENSIONS]; };

static size_t size_of(int type)
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
	if (n > MOST_DIMENSIONS || size_of(type) == 0 || format != 2 || data == NULL || (type == NN_BF16 && ascendsim_is_910a()))
		return NULL;
	struct tensor *t = calloc(1, sizeof *t);
	t->n = n, t->type = type, t->offset = offset, t->data = data, t->room = 1;
	for (uint64_t i = 0; i < storage_n; i++)
		t->room *= storage[i];
	int64_t step = 1;
	for (uint64_t i = n; i-- > 0;) {
		t->dims[i] = dims[i];
		t->strides[i] = strides == NULL ? step : strides[i];
		step *= dims[i];
	}
	ascendsim_count("tensors", 1);
	return t;
}

API aclnnStatus aclDestroyTensor(const struct tensor *t)
{
	if (t == NULL)
		return NN_NULL;
	ascendsim_count("tensors", -1);
	free((void *)t);
	return NN_OK;
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

/* The address behind an element given by its indices. */
static char *element(const struct tensor *t, char *base, const int64_t *index)
{
	int64_t at = t->offset;
	for (uint64_t i = 0; i < t->n; i++)
		at += index[i] * t->strides[i];
	return base + at * (int64_t)size_of(t->type);
}

static double load(int type, const char *p)
{
	uint16_t h;
	memcpy(&h, p, 2);
	switch (type) {
	case NN_FLOAT: return *(const float *)p;
	case NN_DOUBLE: return *(const double *)p;
	case NN_INT32: return *(const int32_t *)p;
	case NN_FLOAT16: return sim_from_half(h);
	}
	return sim_from_bf16(h);
}

static void store(int type, char *p, double v)
{
	uint16_t h = type == NN_FLOAT16 ? sim_to_half((float)v) : sim_to_bf16((float)v);
	switch (type) {
	case NN_FLOAT: *(float *)p = (float)v; break;
	case NN_DOUBLE: *(double *)p = v; break;
	case NN_INT32: *(int32_t *)p = (int32_t)v; break;
	default: memcpy(p, &h, 2);
	}
}

/* The memory of a tensor's storage; a code when it is no device memory any more. */
static int memory_of(struct tensor *t, char **to, char *message, size_t size)
{
	*to = ascendsim_memory(t->data, (size_t)t->room * size_of(t->type));
	if (*to != NULL)
		return 0;
	strncpy(message, "EZ9999: a tensor's memory is no device memory", size - 1);
	return RT_AICORE_EXCEPTION;
}

/* Counts up indices over dims; false after the last. */
static bool advance(const struct tensor *t, int64_t *index)
{
	for (uint64_t i = t->n; i-- > 0;) {
		if (++index[i] < t->dims[i])
			return true;
		index[i] = 0;
	}
	return false;
}

static int multiply(struct executor *e, char *message, size_t size)
{
	char *a, *b, *c;
	int code = memory_of(&e->in[0], &a, message, size);
	code = code ? code : memory_of(&e->in[1], &b, message, size);
	code = code ? code : memory_of(&e->out, &c, message, size);
	for (int64_t i = 0; code == 0 && i < e->out.dims[0]; i++) {
		for (int64_t k = 0; k < e->out.dims[1]; k++) {
			double sum = 0;
			for (int64_t m = 0; m < e->in[0].dims[1]; m++)
				sum += load(e->in[0].type, element(&e->in[0], a, (int64_t[]){ i, m })) * load(e->in[1].type, element(&e->in[1], b, (int64_t[]){ m, k }));
			store(e->out.type, element(&e->out, c, (int64_t[]){ i, k }), sum);
		}
	}
	return code;
}

static int add(struct executor *e, char *message, size_t size)
{
	char *a, *b, *c;
	int64_t index[MOST_DIMENSIONS] = { 0 };
	int code = memory_of(&e->in[0], &a, message, size);
	code = code ? code : memory_of(&e->in[1], &b, message, size);
	code = code ? code : memory_of(&e->out, &c, message, size);
	if (code == 0)
		do {
			double x = load(e->in[0].type, element(&e->in[0], a, index)), y = load(e->in[1].type, element(&e->in[1], b, index));
			store(e->out.type, element(&e->out, c, index), x + e->alpha * y);
		} while (advance(&e->out, index));
	return code;
}

static int cast(struct executor *e, char *message, size_t size)
{
	char *a, *c;
	int64_t index[MOST_DIMENSIONS] = { 0 };
	int code = memory_of(&e->in[0], &a, message, size);
	code = code ? code : memory_of(&e->out, &c, message, size);
	if (code == 0)
		do
			store(e->out.type, element(&e->out, c, index), load(e->in[0].type, element(&e->in[0], a, index)));
		while (advance(&e->out, index));
	return code;
}

/* Adds over the reduced dimensions, which out does not have. */
static int sum(struct executor *e, char *message, size_t size)
{
	char *a, *c;
	int code = memory_of(&e->in[0], &a, message, size);
	code = code ? code : memory_of(&e->out, &c, message, size);
	if (code != 0)
		return code;
	int64_t n = 1, at[MOST_DIMENSIONS] = { 0 };
	for (uint64_t i = 0; i < e->out.n; i++)
		n *= e->out.dims[i];
	double *sums = calloc((size_t)n + 1, sizeof *sums);
	do {
		int64_t slot = 0;
		for (uint64_t i = 0; i < e->in[0].n; i++)
			if (!e->reduced[i])
				slot = slot * e->in[0].dims[i] + at[i];
		sums[slot] += load(e->in[0].type, element(&e->in[0], a, at));
	} while (advance(&e->in[0], at));
	memset(at, 0, sizeof at);
	for (int64_t i = 0; i < n; i++, advance(&e->out, at))
		store(e->out.type, element(&e->out, c, at), sums[i]);
	free(sums);
	return 0;
}

static aclnnStatus begin(struct executor **to, uint64_t *workspace, int (*run)(struct executor *, char *, size_t), const struct tensor *a, const struct tensor *b, const struct tensor *out)
{
	if (to == NULL || workspace == NULL || a == NULL || out == NULL)
		return NN_NULL;
	struct executor *e = calloc(1, sizeof *e);
	e->run = run, e->in[0] = *a, e->out = *out;
	if (b != NULL)
		e->in[1] = *b;
	*to = e;
	*workspace = 64; /* so that a caller who forgets it is found */
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
	if (a->n != 2 || b->n != 2 || out->n != 2 || a->dims[1] != b->dims[0] || out->dims[0] != a->dims[0] || out->dims[1] != b->dims[1] || cube < 0 || cube > 4)
		return NN_INVALID;
	if (ascendsim_is_910a() && a->type == NN_FLOAT && cube == 0)
		return NN_INVALID; /* 910 multiplies float32 only with lower precision */
	return begin(executor, workspace, multiply, a, b, out);
}

API aclnnStatus aclnnAddGetWorkspaceSize(const struct tensor *a, const struct tensor *b, const struct scalar *alpha, struct tensor *out, uint64_t *workspace, struct executor **executor)
{
	if (a == NULL || b == NULL || alpha == NULL || out == NULL)
		return NN_NULL;
	if (!same_dims(a, b) || !same_dims(a, out))
		return NN_INVALID;
	aclnnStatus status = begin(executor, workspace, add, a, b, out);
	if (status == NN_OK)
		(*executor)->alpha = (float)alpha->value;
	return status;
}

API aclnnStatus aclnnCastGetWorkspaceSize(const struct tensor *a, int type, struct tensor *out, uint64_t *workspace, struct executor **executor)
{
	if (a == NULL || out == NULL)
		return NN_NULL;
	if (!same_dims(a, out) || out->type != type)
		return NN_INVALID;
	return begin(executor, workspace, cast, a, NULL, out);
}

API aclnnStatus aclnnReduceSumGetWorkspaceSize(const struct tensor *a, const struct integers *dims, bool keep, int type, struct tensor *out, uint64_t *workspace, struct executor **executor)
{
	if (a == NULL || dims == NULL || out == NULL)
		return NN_NULL;
	if (out->type != type || out->n != (keep ? a->n : a->n - dims->n))
		return NN_INVALID;
	for (uint64_t i = 0; i < dims->n; i++)
		if (dims->values[i] < 0 || dims->values[i] >= (int64_t)a->n)
			return NN_INVALID;
	aclnnStatus status = begin(executor, workspace, sum, a, NULL, out);
	for (uint64_t i = 0; status == NN_OK && i < dims->n; i++)
		(*executor)->reduced[dims->values[i]] = true;
	return status;
}

static int carry_out(void *arg, struct stream *stream, char *message, size_t size)
{
	(void)stream;
	struct executor *e = arg;
	return e->run(e, message, size);
}

static void end(void *arg)
{
	free(arg);
	ascendsim_count("executors", -1);
}

static aclnnStatus queue(void *workspace, uint64_t size, struct executor *e, void *stream)
{
	if (e == NULL || stream == NULL)
		return NN_NULL;
	if (size < 64 || ascendsim_memory(workspace, size) == NULL || !ascendsim_stream_is_here(stream))
		return NN_INVALID;
	return ascendsim_enqueue(stream, carry_out, end, e) == 0 ? NN_OK : NN_INVALID;
}

#define SECOND(name) \
	API aclnnStatus name(void *workspace, uint64_t size, struct executor *e, void *stream) { return queue(workspace, size, e, stream); }

SECOND(aclnnMatmul)
SECOND(aclnnAdd)
SECOND(aclnnCast)
SECOND(aclnnReduceSum)

/* What the operators compute: sums in float64, each result rounded once. */
#include "aclnn.h"

#include <stdlib.h>
#include <string.h>

/* The address behind an element given by its indices. */
static char *element(const struct tensor *t, char *base, const int64_t *index)
{
	int64_t at = t->offset;
	for (uint64_t i = 0; i < t->n; i++)
		at += index[i] * t->strides[i];
	return base + at * (int64_t)nn_size(t->type);
}

static double load(int type, const char *p)
{
	uint16_t h;
	memcpy(&h, p, 2);
	switch (type) {
	case NN_FLOAT: return *(const float *)p;
	case NN_DOUBLE: return *(const double *)p;
	case NN_INT32: return *(const int32_t *)p;
	case NN_FLOAT16:
		if ((h & 0x7fff) > 0x7c00) { /* a NaN keeps its bits */
			uint32_t bits = (uint32_t)(h & 0x8000) << 16 | 0x7f800000 | (uint32_t)(h & 0x3ff) << 13;
			float v;
			memcpy(&v, &bits, 4);
			return v;
		}
		return sim_from_half(h);
	}
	return sim_from_bf16(h);
}

/* The upper bits of a float32 that is a NaN, as one of 16 bits with so many of a
 * fraction. */
static uint16_t nan_of(float v, int fraction)
{
	uint32_t bits;
	memcpy(&bits, &v, 4);
	uint32_t exponent = 0x7fff & ~((1u << fraction) - 1);
	return (uint16_t)(bits >> 16 & 0x8000) | (uint16_t)exponent | (uint16_t)((bits & 0x7fffff) >> (23 - fraction)) | (uint16_t)(1u << (fraction - 1));
}

/* v as a float32 from which rounding to 16 bits gives what rounding v would: the
 * bits that are cut off leave a trace in the last one. */
static float odd(double v)
{
	float f = (float)v;
	if ((double)f == v || f != f)
		return f;
	uint32_t bits;
	memcpy(&bits, &f, 4);
	double magnitude = v < 0 ? -v : v, rounded = f < 0 ? -(double)f : f;
	if (rounded > magnitude)
		bits--; /* towards zero */
	bits |= 1;
	memcpy(&f, &bits, 4);
	return f;
}

static void store(int type, char *p, double v)
{
	uint16_t h;
	switch (type) {
	case NN_FLOAT: *(float *)p = (float)v; return;
	case NN_DOUBLE: *(double *)p = v; return;
	case NN_INT32: *(int32_t *)p = (int32_t)v; return;
	case NN_FLOAT16: h = v != v ? nan_of((float)v, 10) : sim_to_half(odd(v)); break;
	default: h = v != v ? nan_of((float)v, 7) : sim_to_bf16(odd(v));
	}
	memcpy(p, &h, 2);
}

/* The memory of a tensor's storage; a code when it is no device memory any more. */
static int memory_of(struct tensor *t, char **to, char *message, size_t size)
{
	*to = ascendsim_memory(t->data, (size_t)t->room * nn_size(t->type));
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

/* A matrix as float64, row after row. */
static double *matrix(const struct tensor *t, char *base, bool halved)
{
	double *out = malloc((size_t)(t->dims[0] * t->dims[1] + 1) * sizeof *out);
	for (int64_t i = 0; i < t->dims[0]; i++) {
		for (int64_t k = 0; k < t->dims[1]; k++) {
			double v = load(t->type, element(t, base, (int64_t[]){ i, k }));
			out[i * t->dims[1] + k] = halved ? sim_from_half(sim_to_half((float)v)) : v;
		}
	}
	return out;
}

int nn_multiply(struct executor *e, char *message, size_t size)
{
	char *a, *b, *c;
	int code = memory_of(&e->in[0], &a, message, size);
	code = code ? code : memory_of(&e->in[1], &b, message, size);
	code = code ? code : memory_of(&e->out, &c, message, size);
	if (code != 0)
		return code;
	int64_t rows = e->out.dims[0], columns = e->out.dims[1], terms = e->in[0].dims[1];
	double *left = matrix(&e->in[0], a, e->halved), *right = matrix(&e->in[1], b, e->halved), *sums = malloc((size_t)(columns + 1) * sizeof *sums);
	for (int64_t i = 0; i < rows; i++) {
		memset(sums, 0, (size_t)columns * sizeof *sums);
		for (int64_t m = 0; m < terms; m++) {
			double x = left[i * terms + m], *y = right + m * columns;
			for (int64_t k = 0; k < columns; k++)
				sums[k] += x * y[k];
		}
		for (int64_t k = 0; k < columns; k++)
			store(e->out.type, element(&e->out, c, (int64_t[]){ i, k }), sums[k]);
	}
	free(left), free(right), free(sums);
	return 0;
}

int nn_add(struct executor *e, char *message, size_t size)
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

int nn_cast(struct executor *e, char *message, size_t size)
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

/* Adds over the reduced dimensions, which out does not have or of which it has 1. */
int nn_sum(struct executor *e, char *message, size_t size)
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

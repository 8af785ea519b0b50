/* Reductions: in the order of the ranks, 16-bit types in float32 and rounded once. */
#include "comm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

size_t ascendsim_type_size(HcclDataType type)
{
	switch (type) {
	case HCCL_INT8: case HCCL_UINT8: return 1;
	case HCCL_INT16: case HCCL_UINT16: case HCCL_FP16: case HCCL_BFP16: return 2;
	case HCCL_INT32: case HCCL_UINT32: case HCCL_FP32: return 4;
	case HCCL_INT64: case HCCL_UINT64: case HCCL_FP64: return 8;
	}
	return 0;
}

float sim_from_half(uint16_t h)
{
	int exponent = h >> 10 & 31, fraction = h & 1023;
	float v;
	if (exponent == 31)
		v = fraction ? NAN : INFINITY;
	else if (exponent == 0)
		v = ldexpf((float)fraction, -24);
	else
		v = ldexpf((float)(fraction + 1024), exponent - 25);
	return h & 0x8000 ? -v : v;
}

/* To nearest, ties to even. */
uint16_t sim_to_half(float v)
{
	uint16_t sign = signbit(v) ? 0x8000 : 0;
	if (isnan(v))
		return sign | 0x7e00;
	v = fabsf(v);
	if (v >= 65520)
		return sign | 0x7c00;
	int exponent;
	frexpf(v, &exponent);
	if (exponent < -13)
		exponent = -13; /* subnormal */
	float unit = ldexpf(1, exponent - 11);
	float rounded = rintf(v / unit) * unit;
	if (rounded == 0)
		return sign;
	frexpf(rounded, &exponent);
	if (exponent < -13)
		return sign | (uint16_t)ldexpf(rounded, 24);
	return sign | (uint16_t)((exponent + 14) << 10) | (uint16_t)(ldexpf(rounded, 11 - exponent) - 1024);
}

float sim_from_bf16(uint16_t h)
{
	uint32_t bits = (uint32_t)h << 16;
	float v;
	memcpy(&v, &bits, 4);
	return v;
}

uint16_t sim_to_bf16(float v)
{
	uint32_t bits;
	memcpy(&bits, &v, 4);
	if (isnan(v))
		return (uint16_t)(bits >> 16) | 64;
	return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

#define APPLY(a, b) (op == HCCL_SUM ? a + b : op == HCCL_PROD ? a * b : op == HCCL_MAX ? (a > b ? a : b) : (a < b ? a : b))

#define PLAIN(T) \
	for (uint64_t i = 0; i < count; i++) { \
		T v = ((const T *)in[0])[i]; \
		for (uint32_t r = 1; r < ranks; r++) { \
			T w = ((const T *)in[r])[i]; \
			v = (T)APPLY(v, w); \
		} \
		((T *)out)[i] = v; \
	}

#define HALF(FROM, TO) \
	for (uint64_t i = 0; i < count; i++) { \
		float v = FROM(((const uint16_t *)in[0])[i]); \
		for (uint32_t r = 1; r < ranks; r++) { \
			float w = FROM(((const uint16_t *)in[r])[i]); \
			v = APPLY(v, w); \
		} \
		((uint16_t *)out)[i] = TO(v); \
	}

void sim_reduce(HcclDataType type, HcclReduceOp op, void *out, const void **in, uint32_t ranks, uint64_t count)
{
	switch (type) {
	case HCCL_INT8: PLAIN(int8_t) break;
	case HCCL_INT16: PLAIN(int16_t) break;
	case HCCL_INT32: PLAIN(int32_t) break;
	case HCCL_INT64: PLAIN(int64_t) break;
	case HCCL_FP32: PLAIN(float) break;
	case HCCL_FP16: HALF(sim_from_half, sim_to_half) break;
	case HCCL_BFP16: HALF(sim_from_bf16, sim_to_bf16) break;
	}
}

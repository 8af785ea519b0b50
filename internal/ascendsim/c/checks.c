/* Data types by operation and chip, and addresses. */
#include "checks.h"

static HcclResult refuse(const char *call, const char *what, int value)
{
	ascendsim_message("%s: EI0003: %s %d is not supported by %s", call, what, value, ascendsim_is_910a() ? "Ascend910A" : "Ascend910B3");
	return HCCL_E_NOT_SUPPORT;
}

HcclResult sim_may_move(const char *call, HcclDataType type)
{
	if (type < HCCL_INT8 || type > HCCL_BFP16 || (type == HCCL_BFP16 && ascendsim_is_910a()))
		return refuse(call, "data type", type);
	return 0;
}

HcclResult sim_may_reduce(const char *call, HcclDataType type, HcclReduceOp op, bool parts)
{
	bool a = ascendsim_is_910a();
	if (op < HCCL_SUM || op > HCCL_MIN)
		return refuse(call, "reduction", op);
	switch (type) {
	case HCCL_INT8: case HCCL_INT32: case HCCL_FP16: case HCCL_FP32:
		break;
	case HCCL_INT64:
		if (parts)
			return refuse(call, "data type", type);
		break;
	case HCCL_INT16: case HCCL_BFP16:
		if (a)
			return refuse(call, "data type", type);
		if (op == HCCL_PROD)
			return refuse(call, "the product of data type", type);
		break;
	default:
		return refuse(call, "data type", type);
	}
	if (parts && (a || op == HCCL_PROD))
		return refuse(call, "reduction", op);
	return 0;
}

HcclResult sim_need_memory(const char *call, const char *what, const void *p, uint64_t count, HcclDataType type)
{
	if (p == NULL) {
		ascendsim_message("%s: EI0003: %s is a null pointer", call, what);
		return HCCL_E_PTR;
	}
	if (count > 0x7FFFFFFFFULL)
		return HCCL_E_PARA;
	size_t size = ascendsim_type_size(type);
	if ((uintptr_t)p % size != 0) {
		ascendsim_message("%s: EI0003: %s is not aligned to %zu bytes", call, what, size);
		return HCCL_E_PARA;
	}
	if (ascendsim_memory(p, count * size) == NULL) {
		ascendsim_message("%s: 107000: %s: %p with %llu elements is no device memory", call, what, p, (unsigned long long)count);
		return HCCL_E_RUNTIME;
	}
	return 0;
}

/* Operations whose parts have sizes of their own. */
#include "operation.h"

#include <stdlib.h>
#include <string.h>

#ifndef ASCENDSIM_OLDEST
static HcclResult absent(const char *call)
{
	ascendsim_message("%s: EI0003: not supported by Ascend910A", call);
	return HCCL_E_NOT_SUPPORT;
}
#endif

static uint64_t end_of(const uint64_t *counts, const uint64_t *displs, uint32_t n)
{
	uint64_t end = 0;
	for (uint32_t i = 0; i < n; i++)
		if (counts[i] > 0 && displs[i] + counts[i] > end)
			end = displs[i] + counts[i];
	return end;
}

static void give_parts(struct operation *o, const void *base, const uint64_t *counts, const uint64_t *displs, uint32_t n)
{
	size_t size = ascendsim_type_size(o->head.type);
	for (uint32_t i = 0; i < n; i++)
		sim_give(o, base, displs[i] * size, counts[i] * size);
}

#ifndef ASCENDSIM_OLDEST
API HcclResult HcclReduceScatterV(void *send, const void *counts, const void *displs, void *recv, uint64_t count, HcclDataType type, HcclReduceOp op, HcclComm comm, void *stream)
{
	static const char call[] = "HcclReduceScatterV";
	HcclResult err;
	struct comm *c = sim_begin(call, comm, stream, false, &err);
	if (c == NULL)
		return err;
	if (ascendsim_is_910a())
		return absent(call);
	if (counts == NULL || displs == NULL)
		return HCCL_E_PTR;
	uint64_t end = end_of(counts, displs, c->n);
	if ((err = sim_may_reduce(call, type, op, true)) != 0 || (end > 0 && (err = sim_need_memory(call, "sendBuf", send, end, type)) != 0) || (count > 0 && (err = sim_need_memory(call, "recvBuf", recv, count, type)) != 0))
		return err;
	if (((const uint64_t *)counts)[c->rank] != count)
		return HCCL_E_PARA;
	struct operation *o = sim_prepare(c, REDUCE_SCATTER_V, type, op, 0, count);
	o->head.n_counts = c->n;
	o->counts = calloc(c->n, sizeof *o->counts);
	memcpy(o->counts, counts, c->n * sizeof *o->counts);
	give_parts(o, send, counts, displs, c->n);
	sim_take(o, recv, 0, count * ascendsim_type_size(type));
	ascendsim_count("ReduceScatterV", 1); /* of calls, for tests */
	return sim_queue(o, stream);
}

API HcclResult HcclAllGatherV(void *send, uint64_t count, void *recv, const void *counts, const void *displs, HcclDataType type, HcclComm comm, void *stream)
{
	static const char call[] = "HcclAllGatherV";
	HcclResult err;
	struct comm *c = sim_begin(call, comm, stream, false, &err);
	if (c == NULL)
		return err;
	if (ascendsim_is_910a())
		return absent(call);
	if (counts == NULL || displs == NULL)
		return HCCL_E_PTR;
	const uint64_t *n = counts, *at = displs;
	uint64_t end = end_of(n, at, c->n);
	if ((err = sim_may_move(call, type)) != 0 || (count > 0 && (err = sim_need_memory(call, "sendBuf", send, count, type)) != 0) || (end > 0 && (err = sim_need_memory(call, "recvBuf", recv, end, type)) != 0))
		return err;
	if (n[c->rank] != count)
		return HCCL_E_PARA;
	struct operation *o = sim_prepare(c, ALL_GATHER_V, type, 0, 0, count);
	o->head.n_counts = c->n;
	o->counts = calloc(c->n, sizeof *o->counts);
	memcpy(o->counts, counts, c->n * sizeof *o->counts);
	size_t size = ascendsim_type_size(type);
	sim_give(o, send, 0, count * size);
	for (uint32_t i = 0; i < c->n; i++)
		sim_take(o, recv, at[i] * size, n[i] * size);
	ascendsim_count("AllGatherV", 1);
	return sim_queue(o, stream);
}

#endif

API HcclResult HcclAlltoAllV(const void *send, const void *sendCounts, const void *sendDispls, HcclDataType sendType, const void *recv, const void *recvCounts, const void *recvDispls, HcclDataType recvType, HcclComm comm, void *stream)
{
	static const char call[] = "HcclAlltoAllV";
	HcclResult err;
	struct comm *c = sim_begin(call, comm, stream, false, &err);
	if (c == NULL)
		return err;
	if (sendCounts == NULL || sendDispls == NULL || recvCounts == NULL || recvDispls == NULL)
		return HCCL_E_PTR;
	const uint64_t *n = recvCounts, *at = recvDispls;
	uint64_t in = end_of(sendCounts, sendDispls, c->n), out = end_of(n, at, c->n);
	if ((err = sim_may_move(call, sendType)) != 0 || (in > 0 && (err = sim_need_memory(call, "sendBuf", send, in, sendType)) != 0) || (out > 0 && (err = sim_need_memory(call, "recvBuf", recv, out, recvType)) != 0))
		return err;
	if (sendType != recvType || (send == recv && send != NULL))
		return HCCL_E_PARA;
	struct operation *o = sim_prepare(c, ALL_TO_ALL, sendType, 0, 0, 0);
	o->head.n_counts = c->n;
	o->counts = calloc(c->n, sizeof *o->counts);
	memcpy(o->counts, sendCounts, c->n * sizeof *o->counts);
	give_parts(o, send, sendCounts, sendDispls, c->n);
	size_t size = ascendsim_type_size(recvType);
	for (uint32_t i = 0; i < c->n; i++)
		sim_take(o, (void *)recv, at[i] * size, n[i] * size);
	return sim_queue(o, stream);
}

API HcclResult HcclAlltoAll(const void *send, uint64_t sendCount, HcclDataType sendType, const void *recv, uint64_t recvCount, HcclDataType recvType, HcclComm comm, void *stream)
{
	if (sendCount == 0 && recvCount == 0)
		return 0;
	HcclResult err;
	struct comm *c = sim_begin("HcclAlltoAll", comm, stream, false, &err);
	if (c == NULL)
		return err;
	if (sendCount != recvCount)
		return HCCL_E_PARA;
	uint64_t counts[SIM_RANKS], displs[SIM_RANKS];
	for (uint32_t i = 0; i < c->n; i++)
		counts[i] = sendCount, displs[i] = i * sendCount;
	return HcclAlltoAllV(send, counts, displs, sendType, recv, counts, displs, recvType, comm, stream);
}

#if ASCENDSIM_CANN >= 9
API HcclResult HcclAlltoAllVC(const void *send, const void *matrix, HcclDataType sendType, const void *recv, HcclDataType recvType, HcclComm comm, void *stream)
{
	HcclResult err;
	struct comm *c = sim_begin("HcclAlltoAllVC", comm, stream, false, &err);
	if (c == NULL)
		return err;
	if (ascendsim_is_910a())
		return absent("HcclAlltoAllVC");
	if (matrix == NULL)
		return HCCL_E_PTR;
	const uint64_t *m = matrix;
	uint64_t in[SIM_RANKS], inAt[SIM_RANKS], out[SIM_RANKS], outAt[SIM_RANKS], a = 0, b = 0;
	for (uint32_t i = 0; i < c->n; i++) {
		in[i] = m[c->rank * c->n + i], inAt[i] = a, a += in[i];
		out[i] = m[i * c->n + c->rank], outAt[i] = b, b += out[i];
	}
	return HcclAlltoAllV(send, in, inAt, sendType, recv, out, outAt, recvType, comm, stream);
}
#endif

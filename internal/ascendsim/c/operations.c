/* The collective operations whose parts are of one size: checked at once, queued
 * on the stream, done there. */
#include "operation.h"

#include <stdlib.h>

API HcclResult HcclAllReduce(void *send, void *recv, uint64_t count, HcclDataType type, HcclReduceOp op, HcclComm comm, void *stream)
{
	static const char call[] = "HcclAllReduce";
	HcclResult err;
	struct comm *c = sim_begin(call, comm, stream, count == 0, &err);
	if (c == NULL || (err = sim_may_reduce(call, type, op, false)) != 0 || (err = sim_need_memory(call, "sendBuf", send, count, type)) != 0 || (err = sim_need_memory(call, "recvBuf", recv, count, type)) != 0)
		return err;
	struct operation *o = sim_prepare(c, ALL_REDUCE, type, op, 0, count);
	sim_give(o, send, 0, count * ascendsim_type_size(type));
	sim_take(o, recv, 0, count * ascendsim_type_size(type));
	return sim_queue(o, stream);
}

API HcclResult HcclReduce(void *send, void *recv, uint64_t count, HcclDataType type, HcclReduceOp op, uint32_t root, HcclComm comm, void *stream)
{
	static const char call[] = "HcclReduce";
	HcclResult err;
	struct comm *c = sim_begin(call, comm, stream, count == 0, &err);
	if (c == NULL || (err = sim_may_reduce(call, type, op, false)) != 0 || (err = sim_need_memory(call, "sendBuf", send, count, type)) != 0)
		return err;
	if (root >= c->n)
		return HCCL_E_PARA;
	if (root == c->rank && (err = sim_need_memory(call, "recvBuf", recv, count, type)) != 0)
		return err;
	struct operation *o = sim_prepare(c, REDUCE, type, op, root, count);
	sim_give(o, send, 0, count * ascendsim_type_size(type));
	if (root == c->rank)
		sim_take(o, recv, 0, count * ascendsim_type_size(type));
	return sim_queue(o, stream);
}

API HcclResult HcclBroadcast(void *buf, uint64_t count, HcclDataType type, uint32_t root, HcclComm comm, void *stream)
{
	static const char call[] = "HcclBroadcast";
	HcclResult err;
	struct comm *c = sim_begin(call, comm, stream, count == 0, &err);
	if (c == NULL || (err = sim_may_move(call, type)) != 0 || (err = sim_need_memory(call, "buf", buf, count, type)) != 0)
		return err;
	if (root >= c->n)
		return HCCL_E_PARA;
	struct operation *o = sim_prepare(c, BROADCAST, type, 0, root, count);
	if (root == c->rank)
		sim_give(o, buf, 0, count * ascendsim_type_size(type));
	else
		sim_take(o, buf, 0, count * ascendsim_type_size(type));
	return sim_queue(o, stream);
}

API HcclResult HcclReduceScatter(void *send, void *recv, uint64_t count, HcclDataType type, HcclReduceOp op, HcclComm comm, void *stream)
{
	static const char call[] = "HcclReduceScatter";
	HcclResult err;
	struct comm *c = sim_begin(call, comm, stream, count == 0, &err);
	if (c == NULL || (err = sim_may_reduce(call, type, op, false)) != 0 || (err = sim_need_memory(call, "sendBuf", send, count * c->n, type)) != 0 || (err = sim_need_memory(call, "recvBuf", recv, count, type)) != 0)
		return err;
	struct operation *o = sim_prepare(c, REDUCE_SCATTER, type, op, 0, count);
	sim_give(o, send, 0, count * c->n * ascendsim_type_size(type));
	sim_take(o, recv, 0, count * ascendsim_type_size(type));
	return sim_queue(o, stream);
}

API HcclResult HcclAllGather(void *send, void *recv, uint64_t count, HcclDataType type, HcclComm comm, void *stream)
{
	static const char call[] = "HcclAllGather";
	HcclResult err;
	struct comm *c = sim_begin(call, comm, stream, count == 0, &err);
	if (c == NULL || (err = sim_may_move(call, type)) != 0 || (err = sim_need_memory(call, "sendBuf", send, count, type)) != 0 || (err = sim_need_memory(call, "recvBuf", recv, count * c->n, type)) != 0)
		return err;
	struct operation *o = sim_prepare(c, ALL_GATHER, type, 0, 0, count);
	sim_give(o, send, 0, count * ascendsim_type_size(type));
	sim_take(o, recv, 0, count * c->n * ascendsim_type_size(type));
	return sim_queue(o, stream);
}

API HcclResult HcclScatter(void *send, void *recv, uint64_t count, HcclDataType type, uint32_t root, HcclComm comm, void *stream)
{
	static const char call[] = "HcclScatter";
	HcclResult err;
	struct comm *c = sim_begin(call, comm, stream, count == 0, &err);
	if (c == NULL || (err = sim_may_move(call, type)) != 0 || (err = sim_need_memory(call, "recvBuf", recv, count, type)) != 0)
		return err;
	if (root >= c->n)
		return HCCL_E_PARA;
	if (root == c->rank && (err = sim_need_memory(call, "sendBuf", send, count * c->n, type)) != 0)
		return err;
	struct operation *o = sim_prepare(c, SCATTER, type, 0, root, count);
	if (root == c->rank)
		sim_give(o, send, 0, count * c->n * ascendsim_type_size(type));
	sim_take(o, recv, 0, count * ascendsim_type_size(type));
	ascendsim_count("Scatter", 1);
	return sim_queue(o, stream);
}

API HcclResult HcclBarrier(HcclComm comm, void *stream)
{
	HcclResult err;
	struct comm *c = sim_begin("HcclBarrier", comm, stream, false, &err);
	return c == NULL ? err : sim_queue(sim_prepare(c, BARRIER, 0, 0, 0, 0), stream);
}

/* Sends and receives, one batch. */
static HcclResult exchange(const char *call, const HcclSendRecvItem *items, uint32_t n, HcclComm comm, void *stream)
{
	HcclResult err;
	struct comm *c = sim_begin(call, comm, stream, false, &err);
	if (c == NULL)
		return err;
	if (items == NULL)
		return HCCL_E_PTR;
	if (n == 0 || n > 4096)
		return HCCL_E_PARA;
	for (uint32_t i = 0; i < n; i++) {
		if (items[i].remoteRank >= c->n || items[i].sendRecvType < 0 || items[i].sendRecvType > 1)
			return HCCL_E_PARA;
		if ((err = sim_may_move(call, items[i].dataType)) != 0 || (items[i].count > 0 && (err = sim_need_memory(call, "buf", items[i].buf, items[i].count, items[i].dataType)) != 0))
			return err;
	}
	struct operation *o = sim_prepare(c, POINT_TO_POINT, 0, 0, 0, 0);
	o->head.n_counts = 4 * n;
	o->counts = calloc(4 * n, sizeof *o->counts);
	for (uint32_t i = 0; i < n; i++) {
		struct item *x = (struct item *)o->counts + i;
		*x = (struct item){ .receive = items[i].sendRecvType == 1, .peer = items[i].remoteRank, .count = items[i].count, .type = (uint64_t)items[i].dataType };
		uint64_t size = items[i].count * ascendsim_type_size(items[i].dataType);
		if (x->receive)
			sim_take(o, items[i].buf, 0, size);
		else
			sim_give(o, items[i].buf, 0, size);
	}
	return sim_queue(o, stream);
}

API HcclResult HcclBatchSendRecv(HcclSendRecvItem *items, uint32_t n, HcclComm comm, void *stream) { return exchange("HcclBatchSendRecv", items, n, comm, stream); }

static HcclResult single(const char *call, int receive, void *buf, uint64_t count, HcclDataType type, uint32_t peer, HcclComm comm, void *stream)
{
	if (count == 0)
		return 0;
	HcclSendRecvItem item = { .sendRecvType = receive, .buf = buf, .count = count, .dataType = type, .remoteRank = peer };
	return exchange(call, &item, 1, comm, stream);
}

API HcclResult HcclSend(void *buf, uint64_t count, HcclDataType type, uint32_t peer, HcclComm comm, void *stream) { return single("HcclSend", 0, buf, count, type, peer, comm, stream); }

API HcclResult HcclRecv(void *buf, uint64_t count, HcclDataType type, uint32_t peer, HcclComm comm, void *stream) { return single("HcclRecv", 1, buf, count, type, peer, comm, stream); }

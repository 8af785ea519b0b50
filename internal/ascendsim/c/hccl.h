/* The simulated part of the collective library's C interface: names, types and
 * values as the vendor documents them. */
#ifndef ASCENDSIM_HCCL_H
#define ASCENDSIM_HCCL_H

#include <stdint.h>

typedef int HcclResult;
typedef int HcclDataType;
typedef int HcclReduceOp;
typedef void *HcclComm;
typedef struct { char internal[4108]; } HcclRootInfo;
typedef struct { int32_t sendRecvType; void *buf; uint64_t count; HcclDataType dataType; uint32_t remoteRank; } HcclSendRecvItem;
typedef union { int32_t value; } HcclConfigValue;

enum {
	HCCL_SUCCESS, HCCL_E_PARA, HCCL_E_PTR, HCCL_E_MEMORY, HCCL_E_INTERNAL, HCCL_E_NOT_SUPPORT, HCCL_E_NOT_FOUND, HCCL_E_UNAVAIL,
	HCCL_E_SYSCALL, HCCL_E_TIMEOUT, HCCL_E_OPEN_FILE_FAILURE, HCCL_E_TCP_CONNECT, HCCL_E_ROCE_CONNECT, HCCL_E_TCP_TRANSFER,
	HCCL_E_ROCE_TRANSFER, HCCL_E_RUNTIME, HCCL_E_DRV, HCCL_E_PROFILING, HCCL_E_CCE, HCCL_E_NETWORK, HCCL_E_AGAIN, HCCL_E_REMOTE,
	HCCL_E_SUSPENDING,
};

enum {
	HCCL_INT8, HCCL_INT16, HCCL_INT32, HCCL_FP16, HCCL_FP32, HCCL_INT64, HCCL_UINT64, HCCL_UINT8, HCCL_UINT16, HCCL_UINT32,
	HCCL_FP64, HCCL_BFP16,
};

enum { HCCL_SUM, HCCL_PROD, HCCL_MAX, HCCL_MIN };

HcclResult HcclGetRootInfo(HcclRootInfo *info);
HcclResult HcclCommInitRootInfo(uint32_t n, const HcclRootInfo *info, uint32_t rank, HcclComm *comm);
HcclResult HcclCommInitRootInfoConfig(uint32_t n, const HcclRootInfo *info, uint32_t rank, const void *config, HcclComm *comm);
HcclResult HcclCommInitClusterInfo(const char *table, uint32_t rank, HcclComm *comm);
HcclResult HcclCommInitClusterInfoConfig(const char *table, uint32_t rank, void *config, HcclComm *comm);
HcclResult HcclCommInitAll(uint32_t n, int32_t *devices, HcclComm *comms);
HcclResult HcclCreateSubCommConfig(HcclComm *comm, uint32_t n, uint32_t *ranks, uint64_t id, uint32_t rank, void *config, HcclComm *sub);
HcclResult HcclCommDestroy(HcclComm comm);
HcclResult HcclGetRankSize(HcclComm comm, uint32_t *size);
HcclResult HcclGetRankId(HcclComm comm, uint32_t *rank);
HcclResult HcclGetCommName(HcclComm comm, char *name);
HcclResult HcclGetCommAsyncError(HcclComm comm, HcclResult *error);
const char *HcclGetErrorString(HcclResult code);
HcclResult HcclSetConfig(int32_t config, HcclConfigValue value);
HcclResult HcclGetConfig(int32_t config, HcclConfigValue *value);
uint32_t HcclGetCommConfigCapability(void);
HcclResult HcclGroupStart(void);
HcclResult HcclGroupEnd(void);

HcclResult HcclAllReduce(void *send, void *recv, uint64_t count, HcclDataType type, HcclReduceOp op, HcclComm comm, void *stream);
HcclResult HcclBroadcast(void *buf, uint64_t count, HcclDataType type, uint32_t root, HcclComm comm, void *stream);
HcclResult HcclReduceScatter(void *send, void *recv, uint64_t count, HcclDataType type, HcclReduceOp op, HcclComm comm, void *stream);
HcclResult HcclReduceScatterV(void *send, const void *counts, const void *displs, void *recv, uint64_t count, HcclDataType type, HcclReduceOp op, HcclComm comm, void *stream);
HcclResult HcclAllGather(void *send, void *recv, uint64_t count, HcclDataType type, HcclComm comm, void *stream);
HcclResult HcclAllGatherV(void *send, uint64_t count, void *recv, const void *counts, const void *displs, HcclDataType type, HcclComm comm, void *stream);
HcclResult HcclReduce(void *send, void *recv, uint64_t count, HcclDataType type, HcclReduceOp op, uint32_t root, HcclComm comm, void *stream);
HcclResult HcclScatter(void *send, void *recv, uint64_t count, HcclDataType type, uint32_t root, HcclComm comm, void *stream);
HcclResult HcclAlltoAll(const void *send, uint64_t sendCount, HcclDataType sendType, const void *recv, uint64_t recvCount, HcclDataType recvType, HcclComm comm, void *stream);
HcclResult HcclAlltoAllV(const void *send, const void *sendCounts, const void *sendDispls, HcclDataType sendType, const void *recv, const void *recvCounts, const void *recvDispls, HcclDataType recvType, HcclComm comm, void *stream);
HcclResult HcclAlltoAllVC(const void *send, const void *matrix, HcclDataType sendType, const void *recv, HcclDataType recvType, HcclComm comm, void *stream);
HcclResult HcclSend(void *buf, uint64_t count, HcclDataType type, uint32_t peer, HcclComm comm, void *stream);
HcclResult HcclRecv(void *buf, uint64_t count, HcclDataType type, uint32_t peer, HcclComm comm, void *stream);
HcclResult HcclBatchSendRecv(HcclSendRecvItem *items, uint32_t n, HcclComm comm, void *stream);
HcclResult HcclBarrier(HcclComm comm, void *stream);

#endif

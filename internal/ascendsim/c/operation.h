/* A collective operation on its way, inside the simulated collective library. */
#ifndef ASCENDSIM_OPERATION_H
#define ASCENDSIM_OPERATION_H

#include "checks.h"

/* A range of device memory, in bytes. */
struct range { const void *base; uint64_t offset, size; };

/* A queued operation: what is gathered from memory and sent, and where the answer
 * goes. */
struct operation {
	struct comm *comm;
	struct request head;
	uint64_t *counts;
	struct range *send, *receive;
	uint32_t n_send, n_receive;
};

struct operation *sim_prepare(struct comm *c, int kind, HcclDataType type, HcclReduceOp op, uint32_t root, uint64_t count);
void sim_give(struct operation *o, const void *base, uint64_t offset, uint64_t size);
void sim_take(struct operation *o, const void *base, uint64_t offset, uint64_t size);
HcclResult sim_queue(struct operation *o, void *stream);
/* The checks that all operations share, in the library's order: NULL when there is
 * nothing to do or *err says why not. */
struct comm *sim_begin(const char *call, HcclComm comm, void *stream, bool empty, HcclResult *err);

#endif

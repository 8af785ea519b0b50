/* What an operation is allowed to ask for, inside the simulated collective library. */
#ifndef ASCENDSIM_CHECKS_H
#define ASCENDSIM_CHECKS_H

#include "comm.h"

HcclResult sim_may_reduce(const char *call, HcclDataType type, HcclReduceOp op, bool parts);
HcclResult sim_may_move(const char *call, HcclDataType type);
HcclResult sim_need_memory(const char *call, const char *what, const void *p, uint64_t count, HcclDataType type);

#endif

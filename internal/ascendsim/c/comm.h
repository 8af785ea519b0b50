/* Communicators and the messages that their ranks exchange with the hub, inside
 * the simulated collective library. */
#ifndef ASCENDSIM_COMM_H
#define ASCENDSIM_COMM_H

#include "hccl.h"
#include "sim.h"

#define SIM_RANKS 1024

enum kind { ALL_REDUCE, BROADCAST, REDUCE_SCATTER, REDUCE_SCATTER_V, ALL_GATHER, ALL_GATHER_V, REDUCE, SCATTER, ALL_TO_ALL, POINT_TO_POINT, BARRIER };

struct comm {
	uint32_t n, rank, world; /* world: this rank's number in the first communicator, for faults */
	int fd;                  /* to the hub */
	int device;
	int port;
	char address[64], name[128];
	bool sub;
	pthread_mutex_t lock; /* one operation at a time is with the hub */
	int busy;             /* operations queued; atomic */
	int async_error;
	int again; /* how often destroying is still refused */
	bool broken;
	struct comm *next;
};

/* What a rank asks of the hub: this, then counts, then bytes. */
struct request {
	uint32_t magic, kind;
	int32_t type, op;
	uint32_t root, n_counts;
	uint64_t count, bytes;
};

/* A send or receive as it stands in the counts of a POINT_TO_POINT request. */
struct item { uint64_t receive, peer, count, type; };

/* What the hub answers: this, the text, then bytes. */
struct reply { int32_t code; uint32_t text; uint64_t bytes; };

struct hello {
	uint32_t magic, n, rank, timeout_ms;
	char group[160];
};

#define SIM_MAGIC 0x5ca1ab1e

/* Exported by the library of communicators for the one of operations. */
API struct comm *ascendsim_comm(const char *call, HcclComm handle, HcclResult *err);
API int ascendsim_ask(struct comm *comm, struct stream *stream, struct request *request, const uint64_t *counts, const void *payload, void **answer, uint64_t *bytes, char *message, size_t size);
API size_t ascendsim_type_size(HcclDataType type);

void sim_hub_settle(void);
HcclResult sim_hub(const char *address, int first, int last, int *port);
HcclResult sim_hub_local(const char *name); /* on an abstract unix socket; success when another process has it */
int sim_dial(const char *address, int port, long long until);
bool sim_read(int fd, void *to, size_t n);
bool sim_write(int fd, const void *from, size_t n);
void sim_reduce(HcclDataType type, HcclReduceOp op, void *out, const void **in, uint32_t ranks, uint64_t count);
float sim_from_half(uint16_t h);
uint16_t sim_to_half(float v); /* to nearest, ties to even */
float sim_from_bf16(uint16_t h);
uint16_t sim_to_bf16(float v);
HcclResult sim_check_environment(void);
HcclResult sim_check_table(const char *path, uint32_t rank, uint32_t *ranks, char *identity, size_t size);
long sim_connect_timeout(void);
long sim_exec_timeout(void);

#endif

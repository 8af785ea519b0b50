/* Tensors and executors inside the simulated operator library. */
#ifndef ASCENDSIM_ACLNN_H
#define ASCENDSIM_ACLNN_H

#include "comm.h"

typedef int32_t aclnnStatus;

enum { NN_OK = 0, NN_NULL = 161001, NN_INVALID = 161002 };
enum { NN_FLOAT = 0, NN_FLOAT16 = 1, NN_INT32 = 3, NN_DOUBLE = 11, NN_BF16 = 27 };
enum { MOST_DIMENSIONS = 8 };

/* A view of device memory; sizes and strides are in elements. */
struct tensor {
	int64_t dims[MOST_DIMENSIONS], strides[MOST_DIMENSIONS], offset, room;
	uint64_t n, serial;
	int type;
	char *data;
	struct tensor *next;
};

/* One use of an operator: what the first phase found, for the second. */
struct executor {
	const char *name;
	int (*run)(struct executor *e, char *message, size_t size);
	struct tensor in[2], out;
	int inputs;
	float alpha;
	bool halved; /* a product whose float32 are rounded to 16 bits before */
	bool reduced[MOST_DIMENSIONS];
	void *workspace;
	struct executor *next;
};

struct scalar { double value; };

struct integers { uint64_t n; int64_t values[MOST_DIMENSIONS]; };

size_t nn_size(int type);
bool nn_alive(const struct tensor *t);

int nn_multiply(struct executor *e, char *message, size_t size);
int nn_add(struct executor *e, char *message, size_t size);
int nn_cast(struct executor *e, char *message, size_t size);
int nn_sum(struct executor *e, char *message, size_t size);

#endif

/* Proves the simulator by itself, in the order of calls of the vendor's hccl_test:
 * proof RANKS starts that many processes, each with a device, and compares every
 * operation with the answer that small whole numbers have. */
#define _GNU_SOURCE
#include "acl.h"
#include "hccl.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static uint32_t n, rank;
static HcclComm comm;
static aclrtStream stream;

static void must(int code, const char *what)
{
	if (code == 0)
		return;
	const char *text = aclGetRecentErrMsg();
	fprintf(stderr, "rank %u: %s: %d (%s)\n", rank, what, code, text == NULL ? "" : text);
	exit(1);
}

#define MUST(call) must(call, #call)

static void refused(int code, int want, const char *what)
{
	if (code == want) {
		aclGetRecentErrMsg();
		return;
	}
	fprintf(stderr, "rank %u: %s gave %d and not %d\n", rank, what, code, want);
	exit(1);
}

#define REFUSED(call, want) refused(call, want, #call)

static float *device(uint64_t count)
{
	void *p;
	MUST(aclrtMalloc(&p, count * sizeof(float), 0));
	return p;
}

static void put(float *to, const float *from, uint64_t count) { MUST(aclrtMemcpy(to, count * 4, from, count * 4, ACL_MEMCPY_HOST_TO_DEVICE)); }

/* Compares with what f says of each element. */
static void expect(const char *what, const float *from, uint64_t count, float (*f)(uint64_t i))
{
	float *got = malloc(count * 4 + 4);
	MUST(aclrtSynchronizeStream(stream));
	MUST(aclrtMemcpy(got, count * 4, from, count * 4, ACL_MEMCPY_DEVICE_TO_HOST));
	for (uint64_t i = 0; i < count; i++) {
		if (got[i] != f(i)) {
			fprintf(stderr, "rank %u: %s: element %llu is %g, not %g\n", rank, what, (unsigned long long)i, got[i], f(i));
			exit(1);
		}
	}
	free(got);
}

enum { PART = 5 };

static float value(uint32_t r, uint64_t i) { return (float)(100 * r + i); }

static float total(uint64_t i)
{
	float sum = 0;
	for (uint32_t r = 0; r < n; r++)
		sum += value(r, i);
	return sum;
}

static float own_part(uint64_t i) { return total(rank * PART + i); }

static float largest(uint64_t i) { return value(n - 1, i); }

static float last(uint64_t i) { return value(n - 1, i); }

static float gathered(uint64_t i) { return value((uint32_t)(i / PART), i % PART); }

static float scattered(uint64_t i) { return value(n - 1, rank * PART + i); }

static float swapped(uint64_t i) { return value((uint32_t)(i / PART), rank * PART + i % PART); }

static float from_before(uint64_t i) { return value((rank + n - 1) % n, i); }

static void operations(void)
{
	float *in = device(n * PART), *out = device(n * PART), host[1024];
	for (uint64_t i = 0; i < n * PART; i++)
		host[i] = value(rank, i);
	put(in, host, n * PART);
	MUST(HcclAllReduce(in, out, n * PART, HCCL_FP32, HCCL_SUM, comm, stream));
	expect("AllReduce", out, n * PART, total);
	MUST(HcclAllReduce(in, out, PART, HCCL_FP32, HCCL_MAX, comm, stream));
	expect("AllReduce max", out, PART, largest);
	MUST(HcclReduceScatter(in, out, PART, HCCL_FP32, HCCL_SUM, comm, stream));
	expect("ReduceScatter", out, PART, own_part);
	MUST(HcclAllGather(in, out, PART, HCCL_FP32, comm, stream));
	expect("AllGather", out, n * PART, gathered);
	MUST(HcclReduce(in, out, PART, HCCL_FP32, HCCL_SUM, n - 1, comm, stream));
	if (rank == n - 1)
		expect("Reduce", out, PART, total);
	MUST(HcclScatter(rank == n - 1 ? in : NULL, out, PART, HCCL_FP32, n - 1, comm, stream));
	expect("Scatter", out, PART, scattered);
	MUST(HcclAlltoAll(in, PART, HCCL_FP32, out, PART, HCCL_FP32, comm, stream));
	expect("AlltoAll", out, n * PART, swapped);
	HcclSendRecvItem items[] = { { 0, in, PART, HCCL_FP32, (rank + 1) % n }, { 1, out, PART, HCCL_FP32, (rank + n - 1) % n } };
	MUST(HcclBatchSendRecv(items, 2, comm, stream));
	expect("BatchSendRecv", out, PART, from_before);
	MUST(HcclBroadcast(in, PART, HCCL_FP32, n - 1, comm, stream));
	expect("Broadcast", in, PART, last);
	MUST(HcclBarrier(comm, stream));
	MUST(aclrtSynchronizeStream(stream));
	REFUSED(HcclAllReduce(host, out, 4, HCCL_FP32, HCCL_SUM, comm, stream), HCCL_E_RUNTIME);
	REFUSED(HcclAllReduce(in, out, 4, HCCL_UINT8, HCCL_SUM, comm, stream), HCCL_E_NOT_SUPPORT);
	REFUSED(HcclAllReduce(in, out, 4, HCCL_FP32, HCCL_SUM, comm, NULL), HCCL_E_PTR);
	REFUSED(HcclBroadcast(in, 4, HCCL_FP32, n, comm, stream), HCCL_E_PARA);
	REFUSED(HcclAllReduce((char *)in + 1, out, 4, HCCL_FP32, HCCL_SUM, comm, stream), HCCL_E_PARA);
	MUST(HcclAllReduce(NULL, NULL, 0, HCCL_FP32, HCCL_SUM, comm, stream));
	MUST(aclrtFree(in));
	MUST(aclrtFree(out));
}

/* All ranks but the last, when there are several. */
static void sub_communicator(void)
{
	uint32_t ranks[64], m = n > 1 ? n - 1 : 1;
	char config[300] = { 0 };
	uint64_t size = sizeof config;
	uint32_t magic = 0xF0F0F0F0, version = 5, none = 0xFFFFFFFF;
	memcpy(config, &size, 8), memcpy(config + 8, &magic, 4), memcpy(config + 12, &version, 4);
	memcpy(config + 24, &none, 4), memcpy(config + 28, &none, 4), memcpy(config + 292, &none, 4), memcpy(config + 296, &none, 4);
	for (uint32_t i = 0; i < m; i++)
		ranks[i] = m - 1 - i; /* turned round */
	HcclComm sub = NULL;
	if (rank >= m) {
		MUST(HcclCreateSubCommConfig(&comm, m, NULL, 0xFFFFFFFF, 0, config, &sub));
		return;
	}
	MUST(HcclCreateSubCommConfig(&comm, m, ranks, 7, m - 1 - rank, config, &sub));
	float *x = device(1), host = (float)rank, want = (float)(m * (m - 1)) / 2;
	put(x, &host, 1);
	MUST(HcclAllReduce(x, x, 1, HCCL_FP32, HCCL_SUM, sub, stream));
	MUST(aclrtSynchronizeStream(stream));
	MUST(aclrtMemcpy(&host, 4, x, 4, ACL_MEMCPY_DEVICE_TO_HOST));
	if (host != want)
		must(1, "the sum of a sub-communicator");
	HcclComm deeper;
	REFUSED(HcclCreateSubCommConfig(&sub, 1, ranks, 8, 0, config, &deeper), HCCL_E_NOT_SUPPORT);
	MUST(HcclCommDestroy(sub));
	MUST(aclrtFree(x));
}

static int one(int (*pipes)[2])
{
	float ms;
	aclrtEvent begin, end;
	HcclRootInfo root = { 0 };
	memset(&root, 0, sizeof root);
	void *p;
	REFUSED(aclrtMalloc(&p, 4, 0), 107002);
	MUST(aclInit(NULL));
	REFUSED(aclInit(NULL), 100002);
	MUST(aclrtSetDevice((int32_t)rank));
	MUST(aclrtCreateEvent(&begin));
	MUST(aclrtCreateEvent(&end));
	MUST(aclrtCreateStream(&stream));
	MUST(aclrtSetStreamFailureMode(stream, 1));
	if (rank == 0) {
		MUST(HcclGetRootInfo(&root));
		for (uint32_t i = 1; i < n; i++)
			if (write(pipes[i][1], &root, sizeof root) != sizeof root)
				return 1;
	} else {
		char *to = root.internal;
		for (size_t left = sizeof root; left > 0;) {
			ssize_t k = read(pipes[rank][0], to, left);
			if (k <= 0)
				return 1;
			to += k, left -= (size_t)k;
		}
	}
	MUST(HcclCommInitRootInfo(n, &root, rank, &comm));
	MUST(aclrtRecordEvent(begin, stream));
	for (int i = 0; i < 5; i++)
		operations();
	MUST(aclrtRecordEvent(end, stream));
	MUST(aclrtSynchronizeStream(stream));
	MUST(aclrtEventElapsedTime(&ms, begin, end));
	sub_communicator();
	MUST(HcclCommDestroy(comm));
	MUST(aclrtDestroyEvent(begin));
	MUST(aclrtDestroyEvent(end));
	MUST(aclrtDestroyStream(stream));
	MUST(aclrtResetDevice((int32_t)rank));
	MUST(aclFinalize());
	return 0;
}

int main(int argc, char **argv)
{
	n = argc > 1 ? (uint32_t)atoi(argv[1]) : 2;
	int pipes[64][2], bad = 0, status;
	if (n < 1 || n > 16)
		return 2;
	for (uint32_t i = 0; i < n; i++)
		if (pipe(pipes[i]) != 0)
			return 1;
	for (rank = 0; rank < n; rank++)
		if (fork() == 0)
			exit(one(pipes));
	for (uint32_t i = 0; i < n; i++) {
		wait(&status);
		bad |= status;
	}
	if (bad == 0)
		printf("%u ranks: all operations right\n", n);
	return bad != 0;
}

/* Carrying out an operation: gathered from memory, asked, put into memory. */
#include "operation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct operation *sim_prepare(struct comm *c, int kind, HcclDataType type, HcclReduceOp op, uint32_t root, uint64_t count)
{
	struct operation *o = calloc(1, sizeof *o);
	o->comm = c;
	o->head = (struct request){ .kind = (uint32_t)kind, .type = type, .op = op, .root = root, .count = count };
	return o;
}

static void add(struct range **list, uint32_t *n, const void *base, uint64_t offset, uint64_t size)
{
	*list = realloc(*list, (*n + 1) * sizeof **list);
	(*list)[(*n)++] = (struct range){ base, offset, size };
}

void sim_give(struct operation *o, const void *base, uint64_t offset, uint64_t size)
{
	add(&o->send, &o->n_send, base, offset, size);
	o->head.bytes += size;
}

void sim_take(struct operation *o, const void *base, uint64_t offset, uint64_t size) { add(&o->receive, &o->n_receive, base, offset, size); }

static void drop(void *arg)
{
	struct operation *o = arg;
	__atomic_fetch_sub(&o->comm->busy, 1, __ATOMIC_SEQ_CST);
	free(o->counts);
	free(o->send);
	free(o->receive);
	free(o);
}

static int gone(char *message, size_t size, const void *p)
{
	snprintf(message, size, "EI0012: memory at %p was freed while an operation used it", p);
	return RT_AICORE_EXCEPTION;
}

static int run(void *arg, struct stream *stream, char *message, size_t size)
{
	struct operation *o = arg;
	char *payload = malloc(o->head.bytes + 1), *p = payload;
	int code = 0;
	for (uint32_t i = 0; i < o->n_send && code == 0; i++) {
		struct range *r = &o->send[i];
		char *from = r->size == 0 ? payload : ascendsim_memory((const char *)r->base + r->offset, r->size);
		if (from == NULL)
			code = gone(message, size, r->base);
		else
			memcpy(p, from, r->size);
		p += r->size;
	}
	void *answer = NULL;
	uint64_t bytes = 0, at = 0;
	if (code == 0)
		code = ascendsim_ask(o->comm, stream, &o->head, o->counts, payload, &answer, &bytes, message, size);
	for (uint32_t i = 0; i < o->n_receive && code == 0 && bytes > 0; i++) {
		struct range *r = &o->receive[i];
		char *to = r->size == 0 ? payload : ascendsim_memory((const char *)r->base + r->offset, r->size);
		if (to == NULL)
			code = gone(message, size, r->base);
		else if (at + r->size > bytes) {
			snprintf(message, size, "EI0005: rank %u expects more than the others sent", o->comm->rank);
			code = RT_FFTS_TIMEOUT;
		} else
			memcpy(to, (char *)answer + at, r->size);
		at += r->size;
	}
	if (code == 0 && bytes > 0 && at != bytes) {
		snprintf(message, size, "EI0005: rank %u was sent %llu bytes and expects %llu", o->comm->rank, (unsigned long long)bytes, (unsigned long long)at);
		code = RT_FFTS_TIMEOUT;
	}
	free(answer);
	free(payload);
	return code;
}

HcclResult sim_queue(struct operation *o, void *stream)
{
	__atomic_fetch_add(&o->comm->busy, 1, __ATOMIC_SEQ_CST);
	return ascendsim_enqueue(stream, run, drop, o) == 0 ? 0 : HCCL_E_RUNTIME;
}

struct comm *sim_begin(const char *call, HcclComm comm, void *stream, bool empty, HcclResult *err)
{
	*err = 0;
	if (empty)
		return NULL;
	struct comm *c = ascendsim_comm(call, comm, err);
	if (c == NULL)
		return NULL;
	if (stream == NULL) {
		ascendsim_message("%s: EI0003: a null stream", call);
		*err = HCCL_E_PTR;
	} else if (!ascendsim_stream_is_here(stream)) {
		*err = HCCL_E_RUNTIME;
	}
	return *err == 0 ? c : NULL;
}

/* Copies between host and device, and filling. */
#define _GNU_SOURCE
#include "acl.h"
#include "device.h"
#include "memory.h"
#include "sim.h"
#include "stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct copy {
	void *to;
	const void *from;
	size_t size;
	int kind, value;
};

/* Where a side of a copy really is: NULL when it is not where the kind says. */
static void *place(const void *address, size_t size, bool device)
{
	if (device)
		return ascendsim_memory(address, size);
	return sim_host(address, size) ? (void *)address : NULL;
}

static bool to_device(int kind) { return kind == ACL_MEMCPY_HOST_TO_DEVICE || kind == ACL_MEMCPY_DEVICE_TO_DEVICE; }

static bool from_device(int kind) { return kind == ACL_MEMCPY_DEVICE_TO_HOST || kind == ACL_MEMCPY_DEVICE_TO_DEVICE; }

static int move(struct copy *c, char *message, size_t size)
{
	void *to = place(c->to, c->size, to_device(c->kind)), *from = place(c->from, c->size, from_device(c->kind));
	if (to == NULL || from == NULL) {
		snprintf(message, size, "EI0012: copy of %zu bytes, kind %d: the %s is not (or no longer) where the kind says", c->size, c->kind, to == NULL ? "destination" : "source");
		return RT_AICORE_EXCEPTION;
	}
	memmove(to, from, c->size);
	return 0;
}

static aclError check(const char *call, struct copy *c, size_t room)
{
	if (c->kind == ACL_MEMCPY_DEFAULT) {
		bool a = ascendsim_memory(c->from, c->size) != NULL, b = ascendsim_memory(c->to, c->size) != NULL;
		c->kind = a ? (b ? ACL_MEMCPY_DEVICE_TO_DEVICE : ACL_MEMCPY_DEVICE_TO_HOST) : (b ? ACL_MEMCPY_HOST_TO_DEVICE : ACL_MEMCPY_HOST_TO_HOST);
	}
	if (c->kind < 0 || c->kind > ACL_MEMCPY_DEFAULT || c->size > room || c->size == 0)
		return ascendsim_fail(RT_PARAM_INVALID, "%s: %zu bytes into room for %zu, kind %d", call, c->size, room, c->kind);
	if (place(c->to, c->size, to_device(c->kind)) == NULL)
		return ascendsim_fail(RT_PARAM_INVALID, "%s: the destination %p of %zu bytes is not where kind %d says", call, c->to, c->size, c->kind);
	if (place(c->from, c->size, from_device(c->kind)) == NULL)
		return ascendsim_fail(RT_PARAM_INVALID, "%s: the source %p of %zu bytes is not where kind %d says", call, c->from, c->size, c->kind);
	return 0;
}

API aclError aclrtMemcpy(void *to, size_t room, const void *from, size_t size, int32_t kind)
{
	aclError err = sim_need_context("aclrtMemcpy");
	struct copy c = { .to = to, .from = from, .size = size, .kind = kind };
	if (err != 0 || (err = check("aclrtMemcpy", &c, room)) != 0)
		return err;
	char message[256] = "";
	err = move(&c, message, sizeof message);
	return err == 0 ? 0 : ascendsim_fail(err, "%s", message);
}

static int run_copy(void *arg, struct stream *stream, char *message, size_t size)
{
	(void)stream;
	return move(arg, message, size);
}

API aclError aclrtMemcpyAsync(void *to, size_t room, const void *from, size_t size, int32_t kind, aclrtStream stream)
{
	int err;
	struct stream *s = sim_stream("aclrtMemcpyAsync", stream, &err);
	struct copy c = { .to = to, .from = from, .size = size, .kind = kind };
	if (s == NULL || (err = check("aclrtMemcpyAsync", &c, room)) != 0)
		return err;
	if (c.kind == ACL_MEMCPY_HOST_TO_HOST)
		return ascendsim_fail(RT_NOT_SUPPORTED, "aclrtMemcpyAsync: host to host is not supported");
	struct copy *kept = malloc(sizeof *kept);
	*kept = c;
	err = ascendsim_enqueue(s, run_copy, free, kept);
	/* Pageable memory makes the call block. */
	bool pinned = (to_device(c.kind) || sim_pinned(to, size)) && (from_device(c.kind) || sim_pinned(from, size));
	if (err == 0 && !pinned) {
		ascendsim_count("blocking copies", 1);
		err = aclrtSynchronizeStream(s);
	}
	return err;
}

static int run_set(void *arg, struct stream *stream, char *message, size_t size)
{
	(void)stream;
	struct copy *c = arg;
	void *to = ascendsim_memory(c->to, c->size);
	if (to == NULL) {
		snprintf(message, size, "aclrtMemsetAsync: %p is no device memory any more", c->to);
		return RT_AICORE_EXCEPTION;
	}
	memset(to, c->value, c->size);
	return 0;
}

API aclError aclrtMemset(void *memory, size_t room, int32_t value, size_t size)
{
	aclError err = sim_need_context("aclrtMemset");
	if (err != 0)
		return err;
	void *to = ascendsim_memory(memory, size);
	if (to == NULL && sim_host(memory, size))
		to = memory;
	if (to == NULL || size > room)
		return ascendsim_fail(RT_PARAM_INVALID, "aclrtMemset: %zu bytes at %p, room for %zu", size, memory, room);
	memset(to, value, size);
	return 0;
}

API aclError aclrtMemsetAsync(void *memory, size_t room, int32_t value, size_t size, aclrtStream stream)
{
	int err;
	struct stream *s = sim_stream("aclrtMemsetAsync", stream, &err);
	if (s == NULL)
		return err;
	if (ascendsim_memory(memory, size) == NULL || size > room)
		return ascendsim_fail(RT_PARAM_INVALID, "aclrtMemsetAsync: %zu bytes at %p, room for %zu", size, memory, room);
	struct copy *kept = calloc(1, sizeof *kept);
	kept->to = memory, kept->size = size, kept->value = value;
	return ascendsim_enqueue(s, run_set, free, kept);
}

/* An operation's way to the hub and back, on its stream's thread. And a process
 * with a communicator for each of several devices. */
#define _GNU_SOURCE
#include "acl.h"
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Reads when there is something to read; false when the time is over, the stream
 * aborted, or the root's process gone, which real cards do not notice either. */
static bool patient_read(int fd, void *to, size_t n, struct stream *stream, long long until)
{
	char *p = to;
	while (n > 0) {
		struct pollfd f = { .fd = fd, .events = POLLIN };
		if (ascendsim_aborted(stream) || ascendsim_now() >= until)
			return false;
		if (poll(&f, 1, 10) <= 0)
			continue;
		ssize_t k = read(fd, p, n);
		if (k <= 0) {
			if (k < 0 && errno == EINTR)
				continue;
			poll(NULL, 0, 10);
			continue;
		}
		p += k, n -= (size_t)k;
	}
	return true;
}

/* The same for what is sent: the root's process may be stopped. */
static bool patient_write(int fd, const void *from, size_t n, struct stream *stream, long long until)
{
	const char *p = from;
	while (n > 0) {
		if (ascendsim_aborted(stream) || ascendsim_now() >= until)
			return false;
		ssize_t k = send(fd, p, n, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (k < 0 && errno != EINTR && errno != EAGAIN)
			return false;
		if (k < 0) {
			struct pollfd f = { .fd = fd, .events = POLLOUT };
			poll(&f, 1, 10);
			continue;
		}
		p += k, n -= (size_t)k;
	}
	return true;
}

int ascendsim_ask(struct comm *c, struct stream *stream, struct request *request, const uint64_t *counts, const void *payload, void **answer, uint64_t *bytes, char *message, size_t size)
{
	static const char late[] = "EI0002: the wait for the other ranks timed out: rank %u of %s waited %ld ms (HCCL_EXEC_TIMEOUT) for an operation that not all ranks called";
	*answer = NULL;
	pthread_mutex_lock(&c->lock);
	int code = c->broken ? RT_FFTS_TIMEOUT : sim_fault(c, stream, message, size);
	if (code != 0) {
		pthread_mutex_unlock(&c->lock);
		return code;
	}
	request->magic = SIM_MAGIC;
	long long until = ascendsim_now() + sim_exec_timeout();
	struct reply r = { 0 };
	if (patient_write(c->fd, request, sizeof *request, stream, until) && patient_write(c->fd, counts, request->n_counts * sizeof *counts, stream, until))
		patient_write(c->fd, payload, request->bytes, stream, until); /* else nothing comes back */
	bool ok = patient_read(c->fd, &r, sizeof r, stream, until);
	if (ok && r.text > 0) {
		char text[512] = "";
		ok = r.text < sizeof text && patient_read(c->fd, text, r.text, stream, until);
		snprintf(message, size, "%s", text);
	}
	if (ok) {
		*answer = malloc(r.bytes + 1);
		*bytes = r.bytes;
		ok = patient_read(c->fd, *answer, r.bytes, stream, until);
	}
	if (!ok) {
		c->broken = true; /* what comes late belongs to nobody */
		snprintf(message, size, late, c->rank, c->name, sim_exec_timeout());
		r.code = RT_FFTS_TIMEOUT;
	}
	pthread_mutex_unlock(&c->lock);
	return r.code;
}

struct one { uint32_t n, rank; int device; const HcclRootInfo *info; HcclComm *comm; HcclResult err; };

static void *enter_one(void *arg)
{
	struct one *o = arg;
	o->err = aclrtSetDevice(o->device) != 0 ? HCCL_E_RUNTIME : HcclCommInitRootInfo(o->n, o->info, o->rank, o->comm);
	return NULL;
}

API HcclResult HcclCommInitAll(uint32_t n, int32_t *devices, HcclComm *comms)
{
	if (devices == NULL || comms == NULL)
		return HCCL_E_PTR;
	if (n == 0 || n > 16)
		return HCCL_E_PARA;
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < i; k++)
			if (devices[i] == devices[k])
				return HCCL_E_PARA;
	HcclRootInfo info = { { 0 } };
	HcclResult err = aclrtSetDevice(devices[0]) != 0 ? HCCL_E_RUNTIME : HcclGetRootInfo(&info);
	struct one all[16];
	pthread_t threads[16];
	for (uint32_t i = 0; i < n && err == 0; i++) {
		all[i] = (struct one){ .n = n, .rank = i, .device = devices[i], .info = &info, .comm = &comms[i] };
		pthread_create(&threads[i], NULL, enter_one, &all[i]);
	}
	for (uint32_t i = 0, ok = err == 0; i < n && ok; i++) {
		pthread_join(threads[i], NULL);
		err = err == 0 ? all[i].err : err;
	}
	return err;
}

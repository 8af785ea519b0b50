/* Communicators: making, asking and ending them. */
#define _GNU_SOURCE
#include "comm.h"
#include "config.h"

#include <arpa/inet.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct comm *comms;

/* What the root's information holds; the rest of its 4108 bytes stays as it is. */
struct root { char ip[64]; uint32_t port; int32_t deploy; char identifier[128]; uint32_t rank; };

/* The simulator's mark in the last bytes, so that a root's information of which only
 * the beginning was passed on is found. */
enum { ROOT_END = 4104 };

static const uint32_t root_mark = 0x454e4421;

/* Whether all that the root does not write is zero, as it has to be before. */
static bool is_zeroed(const HcclRootInfo *info)
{
	for (size_t i = sizeof(struct root); i < ROOT_END; i++)
		if (info->internal[i] != 0)
			return false;
	return true;
}

static HcclResult need_device(const char *call)
{
	if (ascendsim_device() >= 0)
		return 0;
	ascendsim_message("%s: 107002: this thread has no device: call aclrtSetDevice on it", call);
	return HCCL_E_RUNTIME;
}

API HcclResult HcclGetRootInfo(HcclRootInfo *info)
{
	if (info == NULL)
		return HCCL_E_PTR;
	HcclResult err = need_device("HcclGetRootInfo");
	if (err == 0 && !is_zeroed(info)) {
		ascendsim_message("EI0003: HcclGetRootInfo: the buffer was not zeroed");
		err = HCCL_E_PARA;
	}
	if (err == 0)
		err = sim_check_environment();
	if (err != 0)
		return err;
	const char *ip = getenv("HCCL_IF_IP"), *base = getenv("HCCL_IF_BASE_PORT"), *range = getenv("HCCL_HOST_SOCKET_PORT_RANGE");
	int first = base == NULL ? 60000 : atoi(base), last = first + 31, port;
	if (range != NULL && strcmp(range, "auto") == 0)
		first = last = 0;
	else if (range != NULL && sscanf(range, "%d-%d", &first, &last) < 2)
		last = first;
	if (ip == NULL)
		ip = "127.0.0.1";
	if ((err = sim_hub(ip, first, last, &port)) != 0)
		return err;
	struct root r = { .port = (uint32_t)port };
	snprintf(r.ip, sizeof r.ip, "%s", ip);
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	snprintf(r.identifier, sizeof r.identifier, "%s%%sim0_%d_%d_%lld%09ld", ip, port, ascendsim_device(), (long long)t.tv_sec, t.tv_nsec);
	memcpy(info->internal, &r, sizeof r);
	memcpy(info->internal + ROOT_END, &root_mark, sizeof root_mark);
	return 0;
}

/* Connects a communicator to its hub and waits for the others. */
static HcclResult enter(struct comm *c, const char *group)
{
	struct hello h = { .magic = SIM_MAGIC, .n = c->n, .rank = c->rank, .timeout_ms = (uint32_t)sim_connect_timeout() };
	struct reply r;
	sim_fault_join(ascendsim_device());
	snprintf(h.group, sizeof h.group, "%s", group);
	c->fd = sim_dial(c->address, c->port, ascendsim_now() + sim_connect_timeout());
	if (c->fd < 0 || !sim_write(c->fd, &h, sizeof h) || !sim_read(c->fd, &r, sizeof r)) {
		ascendsim_message("EI0015: rank %u cannot reach the root at %s", c->rank, c->address);
		r.code = HCCL_E_TIMEOUT;
	} else if (r.code == HCCL_E_TIMEOUT) {
		ascendsim_message("EI0006: rank %u waited %ld ms for the others to connect", c->rank, sim_connect_timeout());
	} else if (r.code != 0) {
		ascendsim_message("EI0003: rank %u of %u is taken, or the ranks disagree about how many they are", c->rank, c->n);
	}
	if (r.code != 0) {
		if (c->fd >= 0)
			close(c->fd);
		free(c);
		return r.code;
	}
	c->device = ascendsim_device();
	c->again = sim_fault_again(c->world);
	snprintf(c->name, sizeof c->name, "%.127s", group);
	pthread_mutex_init(&c->lock, NULL);
	pthread_mutex_lock(&lock);
	c->next = comms;
	comms = c;
	pthread_mutex_unlock(&lock);
	ascendsim_count("communicators", 1);
	return 0;
}

API HcclResult HcclCommInitRootInfoConfig(uint32_t n, const HcclRootInfo *info, uint32_t rank, const void *config, HcclComm *comm)
{
	HcclResult err = need_device("HcclCommInitRootInfo");
	if (err == 0 && (info == NULL || comm == NULL))
		err = HCCL_E_PTR;
	if (err == 0 && (n == 0 || n > SIM_RANKS || rank >= n))
		err = HCCL_E_PARA;
	struct settings settings = { 0 };
	if (err == 0 && config != NULL)
		err = sim_read_config(config, &settings);
	if (err == 0)
		err = sim_check_environment();
	if (err != 0)
		return err;
	struct root r;
	memcpy(&r, info->internal, sizeof r);
	struct in_addr unused;
	if (memchr(r.ip, 0, sizeof r.ip) == NULL || memchr(r.identifier, 0, sizeof r.identifier) == NULL || inet_pton(AF_INET, r.ip, &unused) != 1 || r.port == 0 ||
	    !is_zeroed(info) || memcmp(info->internal + ROOT_END, &root_mark, sizeof root_mark) != 0) {
		ascendsim_message("EI0015: the root information is none: all 4108 bytes have to be sent");
		return HCCL_E_PARA;
	}
	struct comm *c = calloc(1, sizeof *c);
	c->n = n, c->rank = c->world = rank, c->port = (int)r.port;
	snprintf(c->address, sizeof c->address, "%s", r.ip);
	if ((err = enter(c, r.identifier)) != 0)
		return err;
	if (settings.name[0] != 0)
		snprintf(c->name, sizeof c->name, "%s", settings.name);
	*comm = c;
	return 0;
}

API HcclResult HcclCommInitRootInfo(uint32_t n, const HcclRootInfo *info, uint32_t rank, HcclComm *comm)
{
	return HcclCommInitRootInfoConfig(n, info, rank, NULL, comm);
}

API HcclResult HcclCommInitClusterInfoConfig(const char *table, uint32_t rank, void *config, HcclComm *comm)
{
	HcclResult err = need_device("HcclCommInitClusterInfo");
	if (err == 0 && comm == NULL)
		err = HCCL_E_PTR;
	struct settings settings = { 0 };
	if (err == 0 && config != NULL)
		err = sim_read_config(config, &settings);
	if (err == 0)
		err = sim_check_environment();
	uint32_t n = 0;
	char identity[64];
	if (err == 0)
		err = sim_check_table(table, rank, &n, identity, sizeof identity);
	if (err == 0 && rank == 0)
		err = sim_hub_local(identity);
	if (err != 0)
		return err;
	struct comm *c = calloc(1, sizeof *c);
	c->n = n, c->rank = c->world = rank;
	snprintf(c->address, sizeof c->address, "%s", identity);
	if ((err = enter(c, identity)) == 0)
		*comm = c;
	return err;
}

API HcclResult HcclCommInitClusterInfo(const char *table, uint32_t rank, HcclComm *comm)
{
	return HcclCommInitClusterInfoConfig(table, rank, NULL, comm);
}

#ifndef ASCENDSIM_OLDEST
API HcclResult HcclCreateSubCommConfig(HcclComm *comm, uint32_t n, uint32_t *ranks, uint64_t id, uint32_t rank, void *config, HcclComm *sub)
{
	if (comm == NULL || sub == NULL)
		return HCCL_E_PTR;
	HcclResult err;
	struct comm *parent = ascendsim_comm("HcclCreateSubCommConfig", *comm, &err);
	if (parent == NULL)
		return err;
	if (ranks == NULL && id == 0xFFFFFFFF) { /* this rank is not in it */
		*sub = NULL;
		return 0;
	}
	if (parent->sub) {
		ascendsim_message("EI0003: a sub-communicator comes from the root communicator only");
		return HCCL_E_NOT_SUPPORT;
	}
	if (ranks == NULL || config == NULL)
		return HCCL_E_PTR;
	const char *refuses = getenv("ASCENDSIM_NO_SUBS");
	if (refuses != NULL && *refuses == '1')
		return HCCL_E_NOT_SUPPORT;
	if (id == 0xFFFFFFFF || n == 0 || n > parent->n || rank >= n || ranks[rank] != parent->rank)
		return HCCL_E_PARA;
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t k = 0; k <= i; k++)
			if (ranks[i] >= parent->n || (k < i && ranks[k] == ranks[i]))
				return HCCL_E_PARA;
	struct settings settings;
	if ((err = sim_read_config(config, &settings)) != 0)
		return err;
	struct comm *c = calloc(1, sizeof *c);
	c->n = n, c->rank = rank, c->world = parent->world, c->port = parent->port, c->sub = true;
	snprintf(c->address, sizeof c->address, "%s", parent->address);
	char group[160];
	snprintf(group, sizeof group, "%.127s/%llu", parent->name, (unsigned long long)id);
	if ((err = enter(c, group)) == 0)
		*sub = c;
	ascendsim_count("splits", 1); /* ever, for tests */
	return err;
}
#endif

struct comm *ascendsim_comm(const char *call, HcclComm handle, HcclResult *err)
{
	*err = handle == NULL ? HCCL_E_PTR : need_device(call);
	if (*err != 0)
		return NULL;
	pthread_mutex_lock(&lock);
	struct comm *c = comms;
	while (c != NULL && c != handle)
		c = c->next;
	pthread_mutex_unlock(&lock);
	if (c == NULL || c->device != ascendsim_device()) {
		ascendsim_message("%s: EI0003: no such communicator on device %d of this thread", call, ascendsim_device());
		*err = HCCL_E_PARA;
		return NULL;
	}
	return c;
}

API HcclResult HcclCommDestroy(HcclComm comm)
{
	HcclResult err;
	if (comm == NULL)
		return 0;
	struct comm *c = ascendsim_comm("HcclCommDestroy", comm, &err);
	if (c == NULL)
		return err;
	if (__atomic_load_n(&c->busy, __ATOMIC_SEQ_CST) > 0 || c->again-- > 0) {
		ascendsim_message("HcclCommDestroy: operations of %s are under way", c->name);
		return HCCL_E_AGAIN;
	}
	pthread_mutex_lock(&lock);
	struct comm **at = &comms;
	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	pthread_mutex_unlock(&lock);
	sim_hub_settle();
	close(c->fd);
	pthread_mutex_destroy(&c->lock);
	free(c);
	ascendsim_count("communicators", -1);
	return 0;
}

API HcclResult HcclGetRankSize(HcclComm comm, uint32_t *size)
{
	HcclResult err;
	struct comm *c = ascendsim_comm("HcclGetRankSize", comm, &err);
	if (c != NULL)
		*size = c->n;
	return err;
}

API HcclResult HcclGetRankId(HcclComm comm, uint32_t *rank)
{
	HcclResult err;
	struct comm *c = ascendsim_comm("HcclGetRankId", comm, &err);
	if (c != NULL)
		*rank = c->rank;
	return err;
}

API HcclResult HcclGetCommName(HcclComm comm, char *name)
{
	HcclResult err;
	struct comm *c = ascendsim_comm("HcclGetCommName", comm, &err);
	if (c != NULL)
		memcpy(name, c->name, sizeof c->name);
	return err;
}

API HcclResult HcclGetCommAsyncError(HcclComm comm, HcclResult *error)
{
	HcclResult err;
	struct comm *c = ascendsim_comm("HcclGetCommAsyncError", comm, &err);
	if (c != NULL)
		*error = __atomic_load_n(&c->async_error, __ATOMIC_SEQ_CST);
	return err;
}

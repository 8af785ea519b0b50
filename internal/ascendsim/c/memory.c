/* Device memory. An address that a program gets has no access rights for the host:
 * touching it is a segmentation fault. The simulator sees the same pages at another
 * address. Pinned host memory is ordinary memory that is remembered. */
#define _GNU_SOURCE
#include "acl.h"
#include "device.h"
#include "memory.h"
#include "sim.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct allocation {
	char *address; /* what the program knows */
	char *view;    /* what the simulator uses; address itself for pinned memory */
	size_t size, mapped;
	int device; /* -1: pinned host memory */
	struct allocation *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct allocation *allocations;
static size_t used;

static const size_t total_memory = (size_t)32 << 30;

static struct allocation *holding(const void *address, size_t bytes)
{
	const char *p = address;
	for (struct allocation *a = allocations; a != NULL; a = a->next)
		if (p >= a->address && p < a->address + a->size + (a->size == 0) && bytes <= a->size - (size_t)(p - a->address))
			return a;
	return NULL;
}

/* touches reports whether any device memory overlaps the range. */
static bool touches(const void *address, size_t bytes)
{
	const char *p = address;
	for (struct allocation *a = allocations; a != NULL; a = a->next)
		if (a->device >= 0 && p < a->address + a->mapped && a->address < p + bytes)
			return true;
	return false;
}

void *ascendsim_memory(const void *address, size_t bytes)
{
	pthread_mutex_lock(&lock);
	struct allocation *a = holding(address, bytes);
	void *out = a != NULL && a->device >= 0 ? a->view + ((const char *)address - a->address) : NULL;
	pthread_mutex_unlock(&lock);
	return out;
}

bool sim_pinned(const void *address, size_t bytes)
{
	pthread_mutex_lock(&lock);
	struct allocation *a = holding(address, bytes);
	bool out = a != NULL && a->device < 0;
	pthread_mutex_unlock(&lock);
	return out;
}

bool sim_host(const void *address, size_t bytes)
{
	pthread_mutex_lock(&lock);
	bool out = address != NULL && !touches(address, bytes);
	pthread_mutex_unlock(&lock);
	return out;
}

static void keep(struct allocation *a)
{
	pthread_mutex_lock(&lock);
	a->next = allocations;
	allocations = a;
	used += a->device >= 0 ? a->size : 0;
	pthread_mutex_unlock(&lock);
	ascendsim_count(a->device >= 0 ? "device memory" : "pinned memory", 1);
}

static struct allocation *take(const void *address, bool device)
{
	pthread_mutex_lock(&lock);
	struct allocation *found = NULL;
	for (struct allocation **a = &allocations; *a != NULL; a = &(*a)->next) {
		if ((*a)->address == address && ((*a)->device >= 0) == device) {
			found = *a;
			*a = found->next;
			used -= device ? found->size : 0;
			break;
		}
	}
	pthread_mutex_unlock(&lock);
	if (found != NULL)
		ascendsim_count(device ? "device memory" : "pinned memory", -1);
	return found;
}

API aclError aclrtMalloc(void **memory, size_t size, int32_t policy)
{
	aclError err = sim_need_context("aclrtMalloc");
	if (err != 0)
		return err;
	if (memory == NULL || size == 0 || policy < 0 || policy > 0x1fff)
		return ascendsim_fail(RT_PARAM_INVALID, "aclrtMalloc: size %zu, policy %d", size, policy);
	if (used + size > total_memory)
		return ascendsim_fail(RT_MEMORY, "aclrtMalloc: EL0004: %zu bytes of device memory are not to be had", size);
	struct allocation *a = calloc(1, sizeof *a);
	long page = sysconf(_SC_PAGESIZE);
	a->size = size;
	a->mapped = (size + (size_t)page - 1) / (size_t)page * (size_t)page;
	a->device = sim_current()->device;
	int fd = memfd_create("ascendsim", 0);
	if (fd < 0 || ftruncate(fd, (off_t)a->mapped) != 0) {
		free(a);
		return ascendsim_fail(RT_MEMORY, "aclrtMalloc: no memory file");
	}
	a->address = mmap(NULL, a->mapped, PROT_NONE, MAP_SHARED, fd, 0);
	a->view = mmap(NULL, a->mapped, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (a->address == MAP_FAILED || a->view == MAP_FAILED) {
		free(a);
		return ascendsim_fail(RT_MEMORY, "aclrtMalloc: no memory");
	}
	memset(a->view, 0xa5, size < 65536 ? size : 65536); /* the content is undefined */
	keep(a);
	*memory = a->address;
	return 0;
}

API aclError aclrtFree(void *memory)
{
	aclError err = sim_need_context("aclrtFree");
	if (err != 0)
		return err;
	struct allocation *a = memory == NULL ? NULL : take(memory, true);
	if (a == NULL)
		return ascendsim_fail(RT_PARAM_INVALID, "aclrtFree: %p is no device memory", memory);
	munmap(a->address, a->mapped);
	munmap(a->view, a->mapped);
	free(a);
	return 0;
}

API aclError aclrtMallocHost(void **memory, size_t size)
{
	aclError err = sim_need_context("aclrtMallocHost");
	if (err != 0)
		return err;
	if (memory == NULL || size == 0)
		return ascendsim_fail(RT_PARAM_INVALID, "aclrtMallocHost: size %zu", size);
	struct allocation *a = calloc(1, sizeof *a);
	a->size = a->mapped = size;
	a->device = -1;
	if (posix_memalign((void **)&a->address, 4096, size) != 0) {
		free(a);
		return ascendsim_fail(RT_MEMORY, "aclrtMallocHost: no memory");
	}
	a->view = a->address;
	keep(a);
	*memory = a->address;
	return 0;
}

API aclError aclrtFreeHost(void *memory)
{
	aclError err = sim_need_context("aclrtFreeHost");
	if (err != 0)
		return err;
	struct allocation *a = memory == NULL ? NULL : take(memory, false);
	if (a == NULL)
		return ascendsim_fail(RT_PARAM_INVALID, "aclrtFreeHost: %p is no pinned memory", memory);
	free(a->address);
	free(a);
	return 0;
}

API aclError aclrtGetMemInfo(int32_t attribute, size_t *available, size_t *total)
{
	aclError err = sim_need_context("aclrtGetMemInfo");
	if (err != 0)
		return err;
	if (attribute < 0 || attribute > 5)
		return ascendsim_fail(RT_PARAM_INVALID, "aclrtGetMemInfo: attribute %d", attribute);
	*total = total_memory;
	*available = total_memory - used;
	return 0;
}

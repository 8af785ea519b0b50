/* Devices, contexts and threads of the simulated runtime, and what a thread's
 * last failure was. */
#define _GNU_SOURCE
#include "device.h"
#include "acl.h"
#include "sim.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

pthread_mutex_t sim_lock = PTHREAD_MUTEX_INITIALIZER;

static struct device devices[SIM_DEVICES];
static struct context *contexts;
static int initialised;

static __thread struct context *current;
static __thread char message[1024];  /* not yet read */
static __thread char read_message[1024];

/* Living things by name. */
static struct { char name[16]; int count; } counts[16];

void ascendsim_count(const char *what, int change)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	pthread_mutex_lock(&lock);
	for (int i = 0; i < 16; i++) {
		if (counts[i].name[0] == 0)
			snprintf(counts[i].name, sizeof counts[i].name, "%s", what);
		if (strcmp(counts[i].name, what) == 0) {
			counts[i].count += change;
			break;
		}
	}
	pthread_mutex_unlock(&lock);
}

/* The simulator's own question, for tests: how many of these are alive. */
API int ascendsim_alive(const char *what)
{
	for (int i = 0; i < 16; i++)
		if (strcmp(counts[i].name, what) == 0)
			return counts[i].count;
	return 0;
}

void ascendsim_message(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vsnprintf(message, sizeof message, format, args);
	va_end(args);
}

int ascendsim_fail(int code, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vsnprintf(message, sizeof message, format, args);
	va_end(args);
	return code;
}

long long ascendsim_now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (long long)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

bool ascendsim_is_910a(void)
{
	const char *chip = getenv("ASCENDSIM_CHIP");
	return chip != NULL && strcmp(chip, "910A") == 0;
}

int ascendsim_device(void) { return current == NULL ? -1 : current->device; }

struct context *sim_current(void) { return current; }

static int device_count(void)
{
	const char *text = getenv("ASCENDSIM_DEVICES");
	int n = (int)ascendsim_ms(text, 8);
	return n < SIM_DEVICES ? n : SIM_DEVICES;
}

/* Whether a list such as "1,3" names a device. */
static bool lists(const char *name, int device)
{
	const char *text = getenv(name);
	while (text != NULL && *text != 0) {
		char *end;
		long n = strtol(text, &end, 10);
		if (end == text)
			return false;
		if (n == device)
			return true;
		text = *end == ',' ? end + 1 : end;
	}
	return false;
}

API aclError aclInit(const char *config)
{
	(void)config;
	pthread_mutex_lock(&sim_lock);
	int was = initialised;
	initialised = 1;
	pthread_mutex_unlock(&sim_lock);
	return was ? ascendsim_fail(ACL_REPEAT_INITIALISE, "aclInit: called before") : 0;
}

API aclError aclFinalize(void)
{
	pthread_mutex_lock(&sim_lock);
	int was = initialised;
	initialised = 0;
	pthread_mutex_unlock(&sim_lock);
	return was ? 0 : ascendsim_fail(ACL_REPEAT_FINALISE, "aclFinalize: not initialised");
}

/* Gives the calling thread's last text and forgets it. */
API const char *aclGetRecentErrMsg(void)
{
	if (message[0] == 0)
		return NULL;
	memcpy(read_message, message, sizeof message);
	message[0] = 0;
	return read_message;
}

API const char *aclrtGetSocName(void)
{
	return ascendsim_is_910a() ? "Ascend910A" : "Ascend910B3";
}

API aclError aclrtGetDeviceCount(uint32_t *count)
{
	if (count == NULL)
		return ascendsim_fail(RT_PARAM_INVALID, "aclrtGetDeviceCount: null pointer");
	*count = (uint32_t)device_count();
	return 0;
}

static struct context *new_context(int device, bool is_default)
{
	struct context *c = calloc(1, sizeof *c);
	c->device = device;
	c->is_default = is_default;
	c->next = contexts;
	contexts = c;
	ascendsim_count("contexts", 1);
	return c;
}

static bool context_lives(struct context *c)
{
	for (struct context *x = contexts; x != NULL; x = x->next)
		if (x == c)
			return true;
	return false;
}

static void drop_context(struct context *c)
{
	for (struct context **x = &contexts; *x != NULL; x = &(*x)->next) {
		if (*x == c) {
			*x = c->next;
			free(c);
			ascendsim_count("contexts", -1);
			return;
		}
	}
}

static aclError usable(const char *call, int32_t device)
{
	if (!initialised)
		return ascendsim_fail(ACL_UNINITIALISED, "%s: aclInit was not called", call);
	if (device < 0 || device >= device_count())
		return ascendsim_fail(RT_INVALID_DEVICE, "%s: EE1001: device %d does not exist, there are %d", call, device, device_count());
	if (lists("ASCENDSIM_BUSY", device))
		return ascendsim_fail(RT_DEVICE_SETUP, "%s: EL0003: device %d is used by another process", call, device);
	if (lists("ASCENDSIM_UNHEALTHY", device))
		return ascendsim_fail(RT_DEVICE_SETUP, "%s: EL0005: device %d is not healthy", call, device);
	return 0;
}

API aclError aclrtSetDevice(int32_t device)
{
	pthread_mutex_lock(&sim_lock);
	aclError err = usable("aclrtSetDevice", device);
	if (err == 0) {
		struct device *d = &devices[device];
		d->references++;
		if (d->primary == NULL)
			d->primary = new_context(device, true);
		current = d->primary;
	}
	pthread_mutex_unlock(&sim_lock);
	return err;
}

static aclError reset(const char *call, int32_t device, bool force)
{
	pthread_mutex_lock(&sim_lock);
	aclError err = 0;
	if (device < 0 || device >= SIM_DEVICES || devices[device].references == 0) {
		err = ascendsim_fail(RT_INVALID_DEVICE, "%s: device %d is not set", call, device);
	} else {
		struct device *d = &devices[device];
		d->references = force ? 0 : d->references - 1;
		if (d->references == 0) {
			if (current == d->primary)
				current = NULL;
			drop_context(d->primary);
			d->primary = NULL;
		}
	}
	pthread_mutex_unlock(&sim_lock);
	return err;
}

API aclError aclrtResetDevice(int32_t device) { return reset("aclrtResetDevice", device, false); }

API aclError aclrtResetDeviceForce(int32_t device) { return reset("aclrtResetDeviceForce", device, true); }

/* A context may have ended while it was some thread's. */
aclError sim_need_context(const char *call)
{
	pthread_mutex_lock(&sim_lock);
	bool lives = current != NULL && context_lives(current);
	pthread_mutex_unlock(&sim_lock);
	if (lives)
		return 0;
	current = NULL;
	return ascendsim_fail(RT_CONTEXT_NULL, "%s: EE1001: this thread has no context: call aclrtSetDevice or aclrtSetCurrentContext on it", call);
}

API aclError aclrtGetDevice(int32_t *device)
{
	aclError err = sim_need_context("aclrtGetDevice");
	if (err == 0)
		*device = current->device;
	return err;
}

API aclError aclrtGetRunMode(int32_t *mode)
{
	*mode = 1;
	return 0;
}

API aclError aclrtCreateContext(aclrtContext *context, int32_t device)
{
	pthread_mutex_lock(&sim_lock);
	aclError err = usable("aclrtCreateContext", device);
	if (err == 0) {
		current = new_context(device, false);
		*context = current;
	}
	pthread_mutex_unlock(&sim_lock);
	return err;
}

API aclError aclrtDestroyContext(aclrtContext context)
{
	pthread_mutex_lock(&sim_lock);
	aclError err = 0;
	if (!context_lives(context))
		err = ascendsim_fail(RT_INVALID_HANDLE, "aclrtDestroyContext: no such context");
	else if (((struct context *)context)->is_default)
		err = ascendsim_fail(RT_PARAM_INVALID, "aclrtDestroyContext: a device's default context ends with aclrtResetDevice");
	else {
		if (current == context)
			current = NULL;
		drop_context(context);
	}
	pthread_mutex_unlock(&sim_lock);
	return err;
}

API aclError aclrtSetCurrentContext(aclrtContext context)
{
	pthread_mutex_lock(&sim_lock);
	bool lives = context_lives(context);
	if (lives)
		current = context;
	pthread_mutex_unlock(&sim_lock);
	return lives ? 0 : ascendsim_fail(RT_INVALID_HANDLE, "aclrtSetCurrentContext: no such context");
}

API aclError aclrtGetCurrentContext(aclrtContext *context)
{
	aclError err = sim_need_context("aclrtGetCurrentContext");
	if (err == 0)
		*context = current;
	return err;
}

API aclError aclrtDeviceCanAccessPeer(int32_t *can, int32_t device, int32_t peer)
{
	*can = device != peer && device < device_count() && peer < device_count();
	return 0;
}

API aclError aclrtDeviceEnablePeerAccess(int32_t peer, uint32_t flags)
{
	aclError err = sim_need_context("aclrtDeviceEnablePeerAccess");
	if (err == 0 && (flags != 0 || peer < 0 || peer >= device_count()))
		err = ascendsim_fail(RT_PARAM_INVALID, "aclrtDeviceEnablePeerAccess: peer %d, flags %u", peer, flags);
	return err;
}

API aclError aclrtSetOpWaitTimeout(uint32_t seconds) { return sim_need_context("aclrtSetOpWaitTimeout") + 0 * (int)seconds; }

API aclError aclrtSetOpExecuteTimeOut(uint32_t seconds) { return sim_need_context("aclrtSetOpExecuteTimeOut") + 0 * (int)seconds; }

API aclError aclrtGetVersion(int32_t *major, int32_t *minor, int32_t *patch)
{
	*major = 1, *minor = 13, *patch = 0;
	return 0;
}

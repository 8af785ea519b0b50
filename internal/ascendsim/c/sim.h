/* What the parts of the simulated Ascend software share. Nothing here is an
 * interface of the vendor's; those are in acl.h and hccl.h. */
#ifndef ASCENDSIM_SIM_H
#define ASCENDSIM_SIM_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define API __attribute__((visibility("default")))

/* Return codes of the runtime that the simulator gives. */
enum {
	ACL_INVALID_PARAM = 100000,
	ACL_UNINITIALISED = 100001,
	ACL_REPEAT_INITIALISE = 100002,
	ACL_REPEAT_FINALISE = 100037,
	RT_PARAM_INVALID = 107000,
	RT_INVALID_DEVICE = 107001,
	RT_CONTEXT_NULL = 107002,
	RT_STREAM_CONTEXT = 107003,
	RT_INVALID_HANDLE = 107017,
	RT_NOT_SUPPORTED = 207000,
	RT_MEMORY = 207001,
	RT_NO_STREAM = 207008,
	RT_AICORE_EXCEPTION = 507015,
	RT_DEVICE_SETUP = 507033,
	RT_STREAM_TIMEOUT = 507046,
	RT_EVENT_TIMEOUT = 507047,
	RT_FFTS_TIMEOUT = 507048,
	RT_FFTS_EXCEPTION = 507049,
};

struct stream;

/* A task runs on its stream's thread. It returns 0 or a code, with a text in
 * message. It ends early, with any code, when ascendsim_aborted says so. */
typedef int (*task_run)(void *arg, struct stream *stream, char *message, size_t size);

/* Exported by the runtime library for the other libraries. drop frees arg, also
 * when the task never runs. */
API int ascendsim_enqueue(struct stream *stream, task_run run, void (*drop)(void *), void *arg);
API bool ascendsim_stream_is_here(struct stream *stream);
API bool ascendsim_aborted(struct stream *stream);
API int ascendsim_device(void);        /* of the calling thread, or -1 */
API void ascendsim_message(const char *format, ...) __attribute__((format(printf, 1, 2)));
API int ascendsim_fail(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The memory behind a device address range, or NULL when it is not wholly in one
 * living allocation. */
API void *ascendsim_memory(const void *address, size_t bytes);
API bool ascendsim_is_910a(void);
/* Counts of living things, by name, for leak checks. */
API void ascendsim_count(const char *what, int change);

/* A setting of the simulator in milliseconds, or fallback. */
static inline long ascendsim_ms(const char *text, long fallback)
{
	long n = 0;
	if (text == NULL || *text == 0)
		return fallback;
	for (; *text >= '0' && *text <= '9'; text++)
		n = n * 10 + (*text - '0');
	return n;
}

API long long ascendsim_now(void); /* milliseconds of a clock that only goes forward */

#endif

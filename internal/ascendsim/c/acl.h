/* The simulated part of the runtime's C interface: names, types and values as the
 * vendor documents them. */
#ifndef ASCENDSIM_ACL_H
#define ASCENDSIM_ACL_H

#include <stddef.h>
#include <stdint.h>

typedef int aclError;
typedef void *aclrtContext;
typedef void *aclrtStream;
typedef void *aclrtEvent;

enum { ACL_MEMCPY_HOST_TO_HOST, ACL_MEMCPY_HOST_TO_DEVICE, ACL_MEMCPY_DEVICE_TO_HOST, ACL_MEMCPY_DEVICE_TO_DEVICE, ACL_MEMCPY_DEFAULT };
enum { ACL_EVENT_SYNC = 0x1, ACL_EVENT_CAPTURE_STREAM_PROGRESS = 0x2, ACL_EVENT_TIME_LINE = 0x8, ACL_EVENT_EXTERNAL = 0x20, ACL_EVENT_IPC = 0x40 };

aclError aclInit(const char *config);
aclError aclFinalize(void);
const char *aclGetRecentErrMsg(void);
const char *aclrtGetSocName(void);
aclError aclrtGetDeviceCount(uint32_t *count);
aclError aclrtSetDevice(int32_t device);
aclError aclrtResetDevice(int32_t device);
aclError aclrtResetDeviceForce(int32_t device);
aclError aclrtGetDevice(int32_t *device);
aclError aclrtGetRunMode(int32_t *mode);
aclError aclrtSynchronizeDevice(void);
aclError aclrtSynchronizeDeviceWithTimeout(int32_t ms);
aclError aclrtCreateContext(aclrtContext *context, int32_t device);
aclError aclrtDestroyContext(aclrtContext context);
aclError aclrtSetCurrentContext(aclrtContext context);
aclError aclrtGetCurrentContext(aclrtContext *context);
aclError aclrtCreateStream(aclrtStream *stream);
aclError aclrtCreateStreamWithConfig(aclrtStream *stream, uint32_t priority, uint32_t flag);
aclError aclrtDestroyStream(aclrtStream stream);
aclError aclrtDestroyStreamForce(aclrtStream stream);
aclError aclrtSetStreamFailureMode(aclrtStream stream, uint64_t mode);
aclError aclrtSynchronizeStream(aclrtStream stream);
aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t ms);
aclError aclrtStreamQuery(aclrtStream stream, int32_t *status);
aclError aclrtStreamAbort(aclrtStream stream);
aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event);
aclError aclrtCreateEvent(aclrtEvent *event);
aclError aclrtCreateEventWithFlag(aclrtEvent *event, uint32_t flag);
aclError aclrtCreateEventExWithFlag(aclrtEvent *event, uint32_t flag);
aclError aclrtDestroyEvent(aclrtEvent event);
aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream);
aclError aclrtResetEvent(aclrtEvent event, aclrtStream stream);
aclError aclrtQueryEventStatus(aclrtEvent event, int32_t *status);
aclError aclrtSynchronizeEvent(aclrtEvent event);
aclError aclrtSynchronizeEventWithTimeout(aclrtEvent event, int32_t ms);
aclError aclrtEventElapsedTime(float *ms, aclrtEvent start, aclrtEvent end);
aclError aclrtMalloc(void **memory, size_t size, int32_t policy);
aclError aclrtFree(void *memory);
aclError aclrtMallocHost(void **memory, size_t size);
aclError aclrtFreeHost(void *memory);
aclError aclrtMemcpy(void *to, size_t room, const void *from, size_t size, int32_t kind);
aclError aclrtMemcpyAsync(void *to, size_t room, const void *from, size_t size, int32_t kind, aclrtStream stream);
aclError aclrtMemset(void *memory, size_t room, int32_t value, size_t size);
aclError aclrtMemsetAsync(void *memory, size_t room, int32_t value, size_t size, aclrtStream stream);
aclError aclrtGetMemInfo(int32_t attribute, size_t *available, size_t *total);
aclError aclrtSetOpWaitTimeout(uint32_t seconds);
aclError aclrtSetOpExecuteTimeOut(uint32_t seconds);
aclError aclrtDeviceCanAccessPeer(int32_t *can, int32_t device, int32_t peer);
aclError aclrtDeviceEnablePeerAccess(int32_t peer, uint32_t flags);
aclError aclrtGetVersion(int32_t *major, int32_t *minor, int32_t *patch);

#endif

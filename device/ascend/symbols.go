//go:build ascend && linux && (amd64 || arm64)

package ascend

import (
	"fmt"
	"reflect"

	"github.com/ebitengine/purego"
)

// symbols are the addresses of the runtime's functions, by their names.
type symbols struct {
	aclInit, aclFinalize, aclGetRecentErrMsg, aclrtGetSocName, aclrtGetDeviceCount,
	aclrtSetDevice, aclrtResetDevice,
	aclrtCreateContext, aclrtDestroyContext, aclrtSetCurrentContext,
	aclrtCreateStream, aclrtDestroyStream, aclrtDestroyStreamForce, aclrtSetStreamFailureMode,
	aclrtSynchronizeStreamWithTimeout, aclrtStreamAbort, aclrtStreamWaitEvent, aclrtStreamQuery,
	aclrtCreateEventExWithFlag, aclrtDestroyEvent, aclrtRecordEvent, aclrtQueryEventStatus,
	aclrtSynchronizeEventWithTimeout, aclrtEventElapsedTime,
	aclrtMalloc, aclrtFree, aclrtMallocHost, aclrtFreeHost,
	aclrtMemcpy, aclrtMemcpyAsync, aclrtGetMemInfo,
	aclrtSetOpWaitTimeout uintptr
}

// find looks all of them up.
func (s *symbols) find(handle uintptr) error {
	v := reflect.ValueOf(s).Elem()
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		at, err := purego.Dlsym(handle, name)
		if err != nil {
			return fmt.Errorf("it has no %s: %w", name, err)
		}
		*(*uintptr)(v.Field(i).Addr().UnsafePointer()) = at
	}
	return nil
}

//go:build ascend && linux && (amd64 || arm64)

package hccl

import (
	"errors"
	"reflect"

	"github.com/gradfusion/gradfusion/device/ascend"
)

// library is HCCL, loaded: its functions' addresses by name. In CANN 9 those for
// communicators are in libhcomm.
type library struct {
	HcclGetRootInfo, HcclCommInitRootInfoConfig, HcclCommInitClusterInfoConfig, HcclCommDestroy,
	HcclGetCommAsyncError, HcclGetErrorString,
	HcclAllReduce, HcclBroadcast, HcclReduceScatter, HcclAllGather, HcclReduce,
	HcclAlltoAll, HcclAlltoAllV, HcclBatchSendRecv, HcclBarrier uintptr

	newer      newer
	capability uint32
}

// newer is what not every release has, 0 where it is missing: each has a
// substitute.
type newer struct {
	HcclReduceScatterV, HcclAllGatherV, HcclScatter, HcclCreateSubCommConfig uintptr
}

func load(l *ascend.Library) (*library, error) {
	h, err := l.LoadOther("libhccl.so", "libhcomm.so")
	if err != nil {
		return nil, err
	}
	y := &library{}
	for v, i := reflect.ValueOf(y).Elem(), 0; i < v.NumField(); i++ {
		if v.Field(i).Kind() != reflect.Uintptr {
			continue
		}
		at, err := h.Need(v.Type().Field(i).Name)
		if err != nil {
			return nil, err
		}
		*(*uintptr)(v.Field(i).Addr().UnsafePointer()) = at
	}
	for v, i := reflect.ValueOf(&y.newer).Elem(), 0; i < v.NumField(); i++ {
		*(*uintptr)(v.Field(i).Addr().UnsafePointer()) = h.Symbol(v.Type().Field(i).Name)
	}
	if at := h.Symbol("HcclGetCommConfigCapability"); at != 0 {
		y.capability = uint32(ascend.Call(at))
	}
	return y, nil
}

// failed makes an error of a code of HCCL, on the thread that saw it.
func (j *job) failed(op, comm string, code int32) error {
	if code == 0 {
		return nil
	}
	result := ascend.CallText(j.library.HcclGetErrorString, uintptr(uint32(code)))
	if result == "" {
		result = resultText(code)
	}
	return j.describe(&Error{Op: op, Code: code, Result: result, Text: oneLine(j.device.Library().RecentText()), Comm: comm})
}

func (j *job) describe(e *Error) error {
	e.Rank, e.Log, e.Hint = j.config.Rank, logDir(j.config.Getenv), hint(e.Text)
	return e
}

// ran makes an error of the runtime's into one with the hint for it.
func (j *job) ran(err error, comm string) error {
	var call *ascend.CallError
	if !errors.As(err, &call) {
		return err
	}
	return j.describe(&Error{Op: call.Call, Code: call.Code, Result: ascend.CodeName(call.Code), Text: oneLine(call.Text), Comm: comm})
}

// remote makes an error of what HcclGetCommAsyncError found.
func (j *job) remote(comm string, code int32) error {
	e := &Error{Op: "HcclGetCommAsyncError", Code: code, Result: resultText(code), Comm: comm}
	err := j.describe(e)
	if code == resultRemote {
		e.Hint = "EI0013: " + hintOf("EI0013")
	}
	return err
}

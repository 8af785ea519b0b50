//go:build ascend && linux && (amd64 || arm64)

package aclnn

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/ascend"
)

// Values of aclDataType and aclFormat, and cubeMathType of products.
const (
	float    = 0
	half     = 1
	double   = 11
	bfloat   = 27
	formatND = 2
	keepType = 0
)

// numberOf is a type's number; HCCL's are others.
func numberOf(t device.Type) uintptr {
	switch t {
	case device.F16:
		return half
	case device.BF16:
		return bfloat
	case device.F64:
		return double
	}
	return float
}

// tensor is a description of memory that an operator gets. What it was made of is
// kept as long as it.
type tensor struct {
	handle        uintptr
	dims, strides [4]int64
	storage       int64
}

// view describes the first elements of a room. Strides are in elements.
func (d *Device) view(t device.Type, r *room, elements int, dims, strides []int64) (uintptr, error) {
	if d.used == len(d.tensors) {
		d.tensors = append(d.tensors, &tensor{})
	}
	x := d.tensors[d.used]
	d.used++
	copy(x.dims[:], dims)
	copy(x.strides[:], strides)
	x.storage = int64(elements)
	x.handle = ascend.CallPointer(d.library.aclCreateTensor, uintptr(unsafe.Pointer(&x.dims)), uintptr(len(dims)), numberOf(t),
		uintptr(unsafe.Pointer(&x.strides)), 0, formatND, uintptr(unsafe.Pointer(&x.storage)), 1, r.memory.At)
	if x.handle == 0 {
		return 0, fmt.Errorf("aclCreateTensor gave nothing for %v %v", dims, t)
	}
	return x.handle, nil
}

// vector describes a room that holds as many elements.
func (d *Device) vector(t device.Type, r *room, elements int) (uintptr, error) {
	return d.view(t, r, elements, []int64{int64(elements)}, []int64{1})
}

// start queues an operator, given what its first phase returned and left in
// d.planned. An executor that is not started is lost, which only a failure does.
func (d *Device) start(name string, second uintptr, code int32) error {
	if err := d.accelerator.Library().Check(name+"GetWorkspaceSize", code); err != nil {
		return err
	}
	size := d.planned.workspace
	if have := uint64(d.workspace.Size); have < size {
		var err error
		if have > 0 { // an operator of the same kernel may still use it
			err = d.accelerator.SyncStream(d.stream, d.timeout)
		}
		if err == nil {
			err = d.accelerator.Grow(&d.workspace, int(size))
		}
		if err != nil {
			return err
		}
	}
	at := d.workspace.At
	if size == 0 {
		at = 0
	}
	return d.accelerator.Library().Check(name, ascend.Call(second, at, uintptr(size), d.planned.executor, uintptr(d.stream)))
}

// compute runs a kernel on the thread and waits for the stream. After a failure
// it panics, now and for good.
func (d *Device) compute(kernel string, run func() error) {
	if d.failed == nil {
		d.failed = d.thread.Do(func() error {
			err := run()
			if err == nil {
				err = d.accelerator.SyncStream(d.stream, d.timeout)
			}
			if err != nil {
				// They may have failed too; what counts is that nothing runs on.
				_ = d.accelerator.AbortStream(d.stream)
				_ = d.accelerator.SyncStream(d.stream, d.timeout)
			}
			return errors.Join(err, d.forget())
		})
	}
	if d.failed != nil {
		panic(&device.FailureError{Kernel: kernel, Err: d.failed})
	}
}

// forget destroys the kernel's tensors, which the stream has passed.
func (d *Device) forget() error {
	var first error
	for _, x := range d.tensors[:d.used] {
		if x.handle == 0 {
			continue
		}
		code := ascend.Call(d.library.aclDestroyTensor, x.handle)
		if err := d.accelerator.Library().Check("aclDestroyTensor", code); first == nil {
			first = err
		}
		x.handle = 0
	}
	d.used = 0
	return first
}

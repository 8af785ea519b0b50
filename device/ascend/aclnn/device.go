//go:build ascend && linux && (amd64 || arm64)

package aclnn

import (
	"errors"
	"fmt"
	"sync"
	"time"
	"unsafe"

	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/ascend"
)

// Device is a host's device with some kernels on an Ascend device.
type Device struct {
	device.Device
	accelerator *ascend.Device
	library     *library
	timeout     time.Duration
	widened     *device.Widened // over this device's kernels, for 16 bits

	mu     sync.Mutex // one kernel at a time
	thread *ascend.Thread
	failed error // why there is none any more

	// Of the thread.
	stream           ascend.Stream
	rooms            [roomCount]room
	workspace        ascend.Memory
	tensors          []*tensor
	used             int // of tensors, by the present kernel
	one              uintptr
	first, firstLast uintptr // arrays of dimensions: 0, and 0 and 2
	planned          struct {
		workspace uint64
		executor  uintptr
	}
}

var (
	_ device.Device  = (*Device)(nil)
	_ device.Kernels = (*kernels)(nil)
)

// New finds the operators and makes a stream for them. It fails on a 910 of the
// first generation, which multiplies float32 as float16 only.
func New(c Config) (*Device, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	l := c.Device.Library()
	if chip := l.Chip(); ascend.FirstGeneration(chip) {
		return nil, fmt.Errorf("%s has no product of float32 matrices, only of ones rounded to float16; a 910B or later has", chip)
	}
	y, err := load(l)
	if err != nil {
		return nil, err
	}
	d := &Device{Device: c.Host, accelerator: c.Device, library: y, timeout: c.Timeout}
	if d.timeout == 0 {
		d.timeout = time.Minute
	}
	d.widened = device.NewWidened(d.Kernels(), d.Alloc)
	if d.thread, err = c.Device.NewThread(); err != nil {
		return nil, err
	}
	if err = d.thread.Do(d.begin); err != nil {
		err = errors.Join(err, d.thread.Do(d.release))
		d.thread.Close()
		return nil, err
	}
	return d, nil
}

// begin makes what lasts.
func (d *Device) begin() (err error) {
	if d.stream, err = d.accelerator.NewStream(); err != nil {
		return err
	}
	one, dimensions := float32(1), [...]int64{0, 2}
	d.one = ascend.CallPointer(d.library.aclCreateScalar, uintptr(unsafe.Pointer(&one)), float)
	d.first = ascend.CallPointer(d.library.aclCreateIntArray, uintptr(unsafe.Pointer(&dimensions)), 1)
	d.firstLast = ascend.CallPointer(d.library.aclCreateIntArray, uintptr(unsafe.Pointer(&dimensions)), 2)
	if d.one == 0 || d.first == 0 || d.firstLast == 0 {
		return errors.New("aclCreateScalar or aclCreateIntArray gave nothing")
	}
	return nil
}

// release frees what the Device has on the accelerator.
func (d *Device) release() error {
	var errs []error
	for at, destroy := range map[uintptr]uintptr{
		d.one: d.library.aclDestroyScalar, d.first: d.library.aclDestroyIntArray, d.firstLast: d.library.aclDestroyIntArray,
	} {
		if at != 0 {
			ascend.Call(destroy, at)
		}
	}
	if d.stream != 0 {
		errs = append(errs, d.accelerator.DestroyStream(d.stream, d.failed != nil))
	}
	for i := range d.rooms {
		errs = append(errs, d.accelerator.FreeHost(d.rooms[i].host), d.accelerator.Free(d.rooms[i].memory))
	}
	return errors.Join(append(errs, d.accelerator.Free(d.workspace))...)
}

// Name returns the chip's name and the host device's, such as
// "aclnn(Ascend910B3)+cpu(avx2)".
func (d *Device) Name() string {
	return "aclnn(" + d.accelerator.Library().Chip() + ")+" + d.Device.Name()
}

// Kernels returns the arithmetic.
func (d *Device) Kernels() device.Kernels { return &kernels{Kernels: d.Device.Kernels(), owner: d} }

// Sync waits for everything enqueued so far: kernels on the accelerator are, when
// they return.
func (d *Device) Sync() error {
	d.mu.Lock()
	failed := d.failed
	d.mu.Unlock()
	return errors.Join(failed, d.Device.Sync())
}

// Close frees what this device has on the accelerator, and closes the host's.
func (d *Device) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	err := d.thread.Do(d.release)
	if errors.Is(err, ascend.ErrClosed) {
		return nil // closed before
	}
	d.thread.Close()
	return errors.Join(err, d.Device.Close())
}

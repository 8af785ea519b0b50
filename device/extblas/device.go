package extblas

import (
	"fmt"
	"slices"
	"sync"
	"unsafe"

	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/cpu"
)

// Config says which library multiplies, and how all else is computed.
type Config struct {
	// Library is "openblas" or "onednn".
	Library string
	// Path is the library's file. When empty, the system's loader looks for the
	// usual names.
	Path string
	// CPU is the device for everything that is no product of matrices; its
	// Threads are the library's too. OpenBLAS has one number of threads for the
	// whole process: that of the last device made.
	CPU cpu.Config
}

// Libraries returns the names that Config.Library may have.
func Libraries() []string { return []string{"openblas", "onednn"} }

// Device is a cpu.Device with another matrix product.
type Device struct {
	*cpu.Device
	library library
	widened *device.Widened // over this device's kernels, for its own products

	mu   sync.Mutex
	free []*scratch
}

var (
	_ device.Device  = (*Device)(nil)
	_ device.Kernels = (*kernels)(nil)
)

// library is a loaded matrix product. It stays loaded until the process ends:
// its threads cannot be unloaded.
type library struct {
	name     string
	multiply func(p product)
}

// product is C = op(A) op(B), or with accumulate C += op(A) op(B), of row-major
// matrices: op(A) is m x k, op(B) is k x n, and ld is the floats from one row to
// the next as stored. No dimension is 0.
type product struct {
	transA, transB bool
	m, n, k        int
	a, b, c        unsafe.Pointer
	lda, ldb, ldc  int
	accumulate     bool
}

// New finds and loads the library and starts the device. It fails when this
// binary was built without the tag extblas, or when no library is found; the
// error says what was tried.
func New(c Config) (*Device, error) {
	if !slices.Contains(Libraries(), c.Library) {
		return nil, fmt.Errorf("unknown library %q (known: openblas, onednn)", c.Library)
	}
	if c.CPU.Threads < 0 {
		return nil, fmt.Errorf("%s: %d threads", c.Library, c.CPU.Threads)
	}
	l, err := load(c.Library, c.Path, max(1, c.CPU.Threads))
	if err != nil {
		return nil, err
	}
	return wrap(c.CPU, l)
}

func wrap(c cpu.Config, l library) (*Device, error) {
	inner, err := cpu.New(c)
	if err != nil {
		return nil, err
	}
	d := &Device{Device: inner, library: l}
	d.widened = device.NewWidened(d.Kernels(), d.Alloc)
	return d, nil
}

// Name returns the library's name and the cpu device's, such as
// "openblas+cpu(avx2)".
func (d *Device) Name() string { return d.library.name + "+" + d.Device.Name() }

// Kernels returns the arithmetic. It panics with a *device.ShapeError on
// arguments that do not fit.
func (d *Device) Kernels() device.Kernels { return &kernels{Kernels: d.Device.Kernels(), owner: d} }

// kernels are the cpu device's, with other products.
type kernels struct {
	device.Kernels
	owner *Device
}

// scratch is what one convolution needs beside its arguments.
type scratch struct{ image, columns, planes, blocked memory }

// memory grows to the largest size asked for and stays.
type memory struct{ buf device.Buf }

// floats returns n float32 of undefined content.
func (m *memory) floats(n int) device.Buf {
	if m.buf.Len < n {
		b, err := device.HostAlloc(device.F32, n)
		if err != nil {
			panic(err) // sizes come from shapes whose tensors exist
		}
		m.buf = b
	}
	return m.buf.Slice(0, n)
}

// take returns scratch that no other call uses; give it back after.
func (d *Device) take() *scratch {
	d.mu.Lock()
	defer d.mu.Unlock()
	if n := len(d.free); n > 0 {
		s := d.free[n-1]
		d.free = d.free[:n-1]
		return s
	}
	return &scratch{}
}

func (d *Device) give(s *scratch) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.free = append(d.free, s)
}

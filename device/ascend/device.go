//go:build ascend && linux && (amd64 || arm64)

package ascend

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"github.com/gradfusion/gradfusion/device"
)

// Device is one opened device. Its methods are safe for concurrent use.
type Device struct {
	library *Library
	index   int
	context uintptr
	main    *Thread

	// Joining has an element, put there by whoever creates a communicator: the
	// libraries allow one creation at a time for a device.
	Joining chan struct{}

	mu        sync.Mutex
	pinned    []Pinned
	memory    []Memory // of Alloc
	closed    bool
	abandoned bool
}

// Open takes a device, by its index among those that this process sees, and makes
// a context on it. Its thread owns the context.
func (l *Library) Open(index int) (*Device, error) {
	n, err := l.Devices()
	switch {
	case err != nil:
		return nil, fmt.Errorf("device %d: %w", index, err)
	case n == 0:
		return nil, fmt.Errorf("device %d: this process sees no Ascend device; npu-smi info lists those of the host, ASCEND_RT_VISIBLE_DEVICES those of a process", index)
	case index < 0 || index >= n:
		return nil, fmt.Errorf("device %d is missing: this process sees devices 0 to %d", index, n-1)
	}
	d := &Device{library: l, index: index, Joining: make(chan struct{}, 1)}
	d.main = d.thread()
	err = d.main.Do(func() error {
		if err := l.Check("aclrtSetDevice", Call(l.symbols.aclrtSetDevice, uintptr(uint32(index)))); err != nil {
			return err
		}
		err := l.Check("aclrtCreateContext", Call(l.symbols.aclrtCreateContext, uintptr(unsafe.Pointer(&d.context)), uintptr(uint32(index))))
		if err != nil {
			Call(l.symbols.aclrtResetDevice, uintptr(uint32(index)))
		}
		return err
	})
	if err != nil {
		d.main.Close()
		return nil, fmt.Errorf("device %d cannot be taken: it is busy with another process or not healthy (npu-smi info shows both): %w", index, err)
	}
	return d, nil
}

// Library returns what the device was opened on.
func (d *Device) Library() *Library { return d.library }

// Index returns the device's index.
func (d *Device) Index() int { return d.index }

// Thread returns the thread that owns the context. It is for what does not block.
func (d *Device) Thread() *Thread { return d.main }

// MemoryInfo returns the free and all bytes of the device's memory.
func (d *Device) MemoryInfo() (free, total uint64, err error) {
	err = d.main.Do(func() error {
		return d.library.Check("aclrtGetMemInfo", Call(d.library.symbols.aclrtGetMemInfo, memoryHBM, uintptr(unsafe.Pointer(&free)), uintptr(unsafe.Pointer(&total))))
	})
	return free, total, err
}

// AllocPinned returns zeroed host memory that the device copies from and to while
// the host goes on. It lives until the device closes.
func (d *Device) AllocPinned(t device.Type, n int) (device.Buf, error) {
	if n == 0 {
		return device.Buf{Type: t}, nil
	}
	var p Pinned
	err := d.main.Do(func() (err error) {
		p, err = d.MallocHost(n * t.Size())
		return err
	})
	if err != nil {
		return device.Buf{}, err
	}
	clear(p.Bytes)
	d.mu.Lock()
	d.pinned = append(d.pinned, p)
	d.mu.Unlock()
	return device.FromBytes(t, p.Bytes[:n*t.Size()]), nil
}

// IsPinned reports whether memory is of AllocPinned.
func (d *Device) IsPinned(b []byte) bool {
	if len(b) == 0 {
		return false
	}
	at := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range d.pinned {
		if at >= p.at && at+uintptr(len(b)) <= p.at+uintptr(len(p.Bytes)) {
			return true
		}
	}
	return false
}

// Abandon leaves the device as it is until the process ends: a thread of it does not
// come back from the library, which may touch whatever it was given. Close, and the
// Library's, then only seem to.
func (d *Device) Abandon() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.abandoned = true
	d.library.abandoned.Store(true)
}

// Close frees memory, the context and the device. Streams, events and
// other threads of it are gone before.
func (d *Device) Close() error {
	d.mu.Lock()
	pinned, memory, closed, abandoned := d.pinned, d.memory, d.closed, d.abandoned
	d.pinned, d.memory, d.closed = nil, nil, true
	d.mu.Unlock()
	if closed {
		return nil
	}
	if abandoned {
		d.main.Close()
		return nil
	}
	err := d.main.Do(func() error {
		var errs []error
		for _, p := range pinned {
			errs = append(errs, d.FreeHost(p))
		}
		for _, m := range memory {
			errs = append(errs, d.Free(m))
		}
		l := d.library
		errs = append(errs,
			l.Check("aclrtDestroyContext", Call(l.symbols.aclrtDestroyContext, d.context)),
			l.Check("aclrtResetDevice", Call(l.symbols.aclrtResetDevice, uintptr(uint32(d.index)))))
		return errors.Join(errs...)
	})
	d.main.Close()
	return err
}

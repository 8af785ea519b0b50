//go:build ascend && linux && (amd64 || arm64)

package ascend

import (
	"fmt"
	"slices"
	"unsafe"

	"github.com/gradfusion/gradfusion/device"
)

// Alloc returns memory of the device, of undefined content, as a Buf whose Handle is
// its address: the host cannot read it. It lives until Release, or until the device
// closes.
func (d *Device) Alloc(t device.Type, n int) (device.Buf, error) {
	if n == 0 {
		return device.Buf{Type: t}, nil
	}
	var m Memory
	err := d.main.Do(func() (err error) {
		m, err = d.Malloc(n * t.Size())
		return err
	})
	if err != nil {
		return device.Buf{}, err
	}
	d.mu.Lock()
	d.memory = append(d.memory, m)
	d.mu.Unlock()
	return device.Buf{Type: t, Len: n, Handle: m.At}, nil
}

// Release gives back what Alloc returned, of which no stream may have work.
func (d *Device) Release(b device.Buf) error {
	if b.Len == 0 {
		return nil
	}
	d.mu.Lock()
	at := slices.IndexFunc(d.memory, func(m Memory) bool { return m.At == b.Handle })
	if at < 0 {
		d.mu.Unlock()
		return fmt.Errorf("device %d: a buffer that is none of Alloc, or was released", d.index)
	}
	m := d.memory[at]
	d.memory = slices.Delete(d.memory, at, at+1)
	d.mu.Unlock()
	return d.main.Do(func() error { return d.Free(m) })
}

// Owns reports whether a Buf is memory of Alloc, or a part of it.
func (d *Device) Owns(b device.Buf) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return b.Handle != 0 && slices.ContainsFunc(d.memory, func(m Memory) bool {
		return b.Handle >= m.At && b.Handle+uintptr(b.Size()) <= m.At+uintptr(m.Size)
	})
}

// Move copies a buffer to another one of its size and waits for that. At least one of
// them is the device's.
func (d *Device) Move(to, from device.Buf) error {
	n := from.Size()
	switch {
	case to.Size() != n:
		return fmt.Errorf("device %d: a copy of %d bytes to %d", d.index, n, to.Size())
	case n == 0:
		return nil
	}
	kind := DeviceToDevice
	switch a, b := d.Owns(to), d.Owns(from); {
	case a && !b:
		kind = HostToDevice
	case b && !a:
		kind = DeviceToHost
	case !a:
		return fmt.Errorf("device %d: a copy between buffers that are both none of its", d.index)
	}
	return d.main.Do(func() error { return d.Copy(place(to), place(from), n, kind) })
}

// place is where a buffer lies.
func place(b device.Buf) uintptr {
	if b.Handle != 0 {
		return b.Handle
	}
	return uintptr(unsafe.Pointer(unsafe.SliceData(b.Bytes())))
}

//go:build ascend && linux && (amd64 || arm64)

package ascend

import (
	"fmt"
	"unsafe"
)

// The methods of this file run on a Thread of the device.

// Memory is memory of the device, which the host cannot touch.
type Memory struct {
	At   uintptr
	Size int
}

// Pinned is memory of the host that asynchronous copies read and write.
type Pinned struct {
	Bytes []byte
	at    uintptr
}

// At is its address.
func (p Pinned) At() uintptr { return p.at }

// Malloc returns memory of the device of undefined content, at least size bytes,
// aligned to 64.
func (d *Device) Malloc(size int) (Memory, error) {
	if size <= 0 {
		return Memory{}, fmt.Errorf("device memory of %d bytes", size)
	}
	m := Memory{Size: size}
	if err := d.library.Check("aclrtMalloc", Call(d.library.symbols.aclrtMalloc, uintptr(unsafe.Pointer(&m.At)), uintptr(size), mallocHugeFirst)); err != nil {
		return Memory{}, err
	}
	return m, nil
}

// Free gives memory back. No stream may have work with it.
func (d *Device) Free(m Memory) error {
	if m.At == 0 {
		return nil
	}
	return d.library.Check("aclrtFree", Call(d.library.symbols.aclrtFree, m.At))
}

// MallocHost returns pinned memory of undefined content.
func (d *Device) MallocHost(size int) (Pinned, error) {
	if size <= 0 {
		return Pinned{}, fmt.Errorf("pinned memory of %d bytes", size)
	}
	var p Pinned
	if err := d.library.Check("aclrtMallocHost", Call(d.library.symbols.aclrtMallocHost, uintptr(unsafe.Pointer(&p.at)), uintptr(size))); err != nil {
		return Pinned{}, err
	}
	p.Bytes = unsafe.Slice((*byte)(pointer(p.at)), size)
	return p, nil
}

// FreeHost gives pinned memory back. No stream may have work with it.
func (d *Device) FreeHost(p Pinned) error {
	if p.at == 0 {
		return nil
	}
	return d.library.Check("aclrtFreeHost", Call(d.library.symbols.aclrtFreeHost, p.at))
}

// leastGrown is what Grow and GrowHost have at least: operations want addresses also
// where they move nothing.
const leastGrown = 4096

// grown is the size of memory in the place of some that is too small, or 0.
func grown(have, need int) int {
	if need = max(need, leastGrown); have >= need {
		return 0
	}
	return max(need, have*3/2)
}

// Grow has memory of the device, or none, hold at least so many bytes, and some if
// that is 0. Where it was smaller its content is lost; no stream may have work with it.
func (d *Device) Grow(m *Memory, need int) error {
	n := grown(m.Size, need)
	if n == 0 {
		return nil
	}
	err := d.Free(*m)
	if *m = (Memory{}); err == nil {
		*m, err = d.Malloc(n)
	}
	return err
}

// GrowHost is Grow of pinned memory.
func (d *Device) GrowHost(p *Pinned, need int) error {
	n := grown(len(p.Bytes), need)
	if n == 0 {
		return nil
	}
	err := d.FreeHost(*p)
	if *p = (Pinned{}); err == nil {
		*p, err = d.MallocHost(n)
	}
	return err
}

// Copy copies n bytes and waits for that.
func (d *Device) Copy(to, from uintptr, n int, kind CopyKind) error {
	return d.library.Check("aclrtMemcpy", Call(d.library.symbols.aclrtMemcpy, to, uintptr(n), from, uintptr(n), uintptr(uint32(kind))))
}

// CopyAsync copies n bytes in a stream. Host memory has to be pinned.
func (d *Device) CopyAsync(to, from uintptr, n int, kind CopyKind, s Stream) error {
	return d.library.Check("aclrtMemcpyAsync", Call(d.library.symbols.aclrtMemcpyAsync, to, uintptr(n), from, uintptr(n), uintptr(uint32(kind)), uintptr(s)))
}

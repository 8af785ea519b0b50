package device

import (
	"fmt"
	"math"
	"unsafe"
)

// HostAlloc returns zeroed memory of the Go heap, aligned to Align, on huge
// pages where it spans some and the system has them. It is the Alloc of devices
// that compute on the host.
func HostAlloc(t Type, n int) (Buf, error) {
	if n < 0 || n > (math.MaxInt-Align)/t.Size() {
		return Buf{}, fmt.Errorf("cannot allocate %d x %s", n, t)
	}
	if n == 0 {
		return Buf{Type: t}, nil
	}
	size := n * t.Size()
	b := make([]byte, size+Align)
	if size >= 2*hugePage {
		adviseInside(b)
	}
	skip := -int(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) & (Align - 1)
	return FromBytes(t, b[skip:skip+size:skip+size]), nil
}

// adviseInside asks for huge pages for those that b covers as a whole: a first
// touch then costs one fault for each of them, and not 512.
func adviseInside(b []byte) { advise(inside(b)) }

// inside is the huge pages that b covers as a whole.
func inside(b []byte) []byte {
	skip := -int(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) & (hugePage - 1)
	return b[skip : skip+(len(b)-skip)/hugePage*hugePage]
}

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
	if n < 0 || n > (math.MaxInt-2*hugePage)/t.Size() {
		return Buf{}, fmt.Errorf("cannot allocate %d x %s", n, t)
	}
	if n == 0 {
		return Buf{Type: t}, nil
	}
	size := n * t.Size()
	if size >= hugePage {
		return FromBytes(t, allocHuge(size)), nil
	}
	b := make([]byte, size+Align)
	skip := -int(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) & (Align - 1)
	return FromBytes(t, b[skip:skip+size:skip+size]), nil
}

// allocHuge is memory that starts on a huge page, of which the last one is such too
// if much of it is used: a first touch costs one fault for each of them, and not
// 512. What lies before and behind is never touched.
func allocHuge(size int) []byte {
	most := (size + hugePage - 1) / hugePage * hugePage
	b := make([]byte, most+hugePage)
	skip := -int(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) & (hugePage - 1)
	whole := size / hugePage * hugePage
	if size-whole >= hugePage/4 {
		whole = most
	}
	advise(b[skip : skip+whole])
	return b[skip : skip+size : skip+size]
}

// inside is the huge pages that b covers as a whole.
func inside(b []byte) []byte {
	skip := -int(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) & (hugePage - 1)
	return b[skip : skip+(len(b)-skip)/hugePage*hugePage]
}

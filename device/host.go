package device

import (
	"fmt"
	"math"
	"unsafe"
)

// HostAlloc returns zeroed memory of the Go heap, aligned to Align. It is the
// Alloc of devices that compute on the host.
func HostAlloc(t Type, n int) (Buf, error) {
	if n < 0 || n > (math.MaxInt-Align)/t.Size() {
		return Buf{}, fmt.Errorf("cannot allocate %d x %s", n, t)
	}
	if n == 0 {
		return Buf{Type: t}, nil
	}
	size := n * t.Size()
	b := make([]byte, size+Align)
	skip := -int(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) & (Align - 1)
	return FromBytes(t, b[skip:skip+size:skip+size]), nil
}

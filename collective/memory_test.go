package collective

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/device"
)

// TestHeap: what is taken is zero, aligned and nobody else's, in one run where it fits.
func TestHeap(t *testing.T) {
	var h heap
	all := map[*byte]bool{}
	end := uintptr(0)
	for i, n := range []int{0, 1, 700, 2 << 20, 2<<20 + 4, heapChunk / 2, heapChunk, 3 * heapChunk, 5 << 20, 2 << 20} {
		b := h.take(n)
		require.Len(t, b, n)
		require.Equal(t, n, cap(b))
		for _, v := range b {
			if v != 0 {
				t.Fatalf("allocation %d is not zero", i)
			}
		}
		if n == 0 {
			continue
		}
		for k := range b {
			b[k] = 1
		}
		first := unsafe.SliceData(b)
		require.Zero(t, uintptr(unsafe.Pointer(first))%device.Align)
		require.False(t, all[first])
		all[first] = true
		if at := uintptr(unsafe.Pointer(first)); i > 2 && i < 5 {
			require.Less(t, at-end, uintptr(device.Align), "allocation %d is apart from the one before", i)
		}
		end = uintptr(unsafe.Pointer(first)) + uintptr(n)
	}
}

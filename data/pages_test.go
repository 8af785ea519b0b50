package data

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// Memory is as long as was asked for, and zero; much of it starts on a huge page.
func TestRoom(t *testing.T) {
	for _, n := range []int{0, 1, 1000, hugePage/2 - 1, hugePage / 2, 3*hugePage/2 + 5} {
		floats := room[float32](n)
		require.Len(t, floats, n)
		require.Equal(t, n, cap(floats))
		for _, v := range floats {
			if v != 0 {
				t.Fatal("not zero")
			}
		}
		if n >= hugePage/2 {
			require.Zero(t, uintptr(unsafe.Pointer(&floats[0]))%hugePage)
			floats[n-1] = 1
		}
	}
	pixels := room[byte](2*hugePage + 1)
	require.Zero(t, uintptr(unsafe.Pointer(&pixels[0]))%hugePage)
	require.Len(t, pixels, 2*hugePage+1)
}

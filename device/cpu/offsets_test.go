package cpu

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// TestTileOffsets holds the offsets that the assembly names: gen/tile.go,
// gen/tile512.go and neon_tile_arm64.s.
func TestTileOffsets(t *testing.T) {
	var u tile
	for i, offset := range []uintptr{
		unsafe.Offsetof(u.a), unsafe.Offsetof(u.b), unsafe.Offsetof(u.c), unsafe.Offsetof(u.rows), unsafe.Offsetof(u.steps),
		unsafe.Offsetof(u.bias), unsafe.Offsetof(u.mask), unsafe.Offsetof(u.blocks), unsafe.Offsetof(u.singles),
		unsafe.Offsetof(u.size), unsafe.Offsetof(u.groups), unsafe.Offsetof(u.small), unsafe.Offsetof(u.flags),
		unsafe.Offsetof(u.strideB), unsafe.Offsetof(u.strideC),
	} {
		require.Equal(t, uintptr(8*i), offset, "field %d", i)
	}
	require.EqualValues(t, 16, unsafe.Sizeof(row{}))
	require.EqualValues(t, 8, unsafe.Offsetof(row{}.c))
}

// TestNumberOffsets holds the positions that the assembly names: gen/update.go,
// gen/norm.go, neon_update_arm64.s and neon_norm_arm64.s.
func TestNumberOffsets(t *testing.T) {
	var s sgdNumbers
	for i, offset := range []uintptr{
		unsafe.Offsetof(s.scale), unsafe.Offsetof(s.decay), unsafe.Offsetof(s.rate), unsafe.Offsetof(s.momentum), unsafe.Offsetof(s.keep),
	} {
		require.Equal(t, uintptr(4*i), offset, "field %d of sgdNumbers", i)
	}
	var a adamNumbers
	for i, offset := range []uintptr{
		unsafe.Offsetof(a.scale), unsafe.Offsetof(a.decay), unsafe.Offsetof(a.shrink), unsafe.Offsetof(a.beta1), unsafe.Offsetof(a.rest1),
		unsafe.Offsetof(a.beta2), unsafe.Offsetof(a.rest2), unsafe.Offsetof(a.root), unsafe.Offsetof(a.epsilon), unsafe.Offsetof(a.rate),
	} {
		require.Equal(t, uintptr(4*i), offset, "field %d of adamNumbers", i)
	}
	var n normNumbers
	for i, offset := range []uintptr{
		unsafe.Offsetof(n.mean), unsafe.Offsetof(n.factor), unsafe.Offsetof(n.shift), unsafe.Offsetof(n.offset), unsafe.Offsetof(n.slope),
	} {
		require.Equal(t, uintptr(64*i), offset, "field %d of normNumbers", i)
	}
	require.EqualValues(t, 64, unsafe.Offsetof(planeMoments{}.first))
	require.EqualValues(t, 128, unsafe.Offsetof(planeMoments{}.second))
	require.EqualValues(t, 64, unsafe.Offsetof(planeSums{}.product))
}

// TestWindowOffsets holds the offsets that gen/windows.go names.
func TestWindowOffsets(t *testing.T) {
	var r windowRun
	require.Equal(t, []uintptr{0, 24, 48, 72, 96, 104, 112, 116}, []uintptr{
		unsafe.Offsetof(r.small), unsafe.Offsetof(r.arg), unsafe.Offsetof(r.large), unsafe.Offsetof(r.taps), unsafe.Offsetof(r.pixels),
		unsafe.Offsetof(r.stride), unsafe.Offsetof(r.step), unsafe.Offsetof(r.divisor),
	})
	require.EqualValues(t, 16, unsafe.Sizeof(windowTap{}))
	require.EqualValues(t, 8, unsafe.Offsetof(windowTap{}.number))
}

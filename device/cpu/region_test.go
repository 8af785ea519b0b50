package cpu

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/device"
)

// What arenas took from a device is gone with it, and an arena that closes
// before leaves nothing to it.
func TestCloseUnmapsRegions(t *testing.T) {
	d, err := New(Config{Threads: 2})
	require.NoError(t, err)
	kept, err := d.Alloc(device.F32, 1000)
	require.NoError(t, err)
	early, late := device.NewArena(d), device.NewArena(d)
	early.Get(device.F32, 1<<20)
	require.Positive(t, d.regions.Mapped())
	early.Close()
	require.Zero(t, d.regions.Mapped())
	late.Get(device.F32, 100)
	late.Get(device.F32, 1<<20)
	require.NoError(t, d.Close())
	require.Zero(t, d.regions.Mapped())
	require.Zero(t, kept.F32()[999], "buffers of Alloc stay")
}

// Scratch of all purposes and threads lies in one room, in which what one of them
// has outgrown is used again. It goes with the device; kernels called later have
// another.
func TestScratchSharesARoom(t *testing.T) {
	d, err := New(Config{Threads: 2, Kernels: "portable"})
	require.NoError(t, err)
	var one, other scratch
	one.from(&d.scratch)
	other.from(&d.scratch)
	const n = ownScratch
	fill := func(x []float32, v float32) *float32 {
		for i := range x {
			x[i] = v
		}
		return &x[0]
	}
	first, neighbour := fill(one.image.floats(n), 1), other.left.floats(n)
	fill(neighbour, 2)
	fill(one.image.floats(n/2), 3)
	require.Same(t, first, fill(one.image.floats(n), 3), "what is large enough stays")
	require.NotSame(t, first, fill(one.image.floats(2*n), 4))
	require.Same(t, first, fill(other.plane.floats(n), 5))
	require.NotSame(t, first, fill(one.wide.floats(16), 6), "what is small has no room there")
	for _, v := range neighbour {
		require.Equal(t, float32(2), v)
	}

	m := device.MatMul{M: 300, N: 300, K: 300, TransA: true}
	a, c := ramp(m.M*m.K), ramp(m.M*m.N)
	product := func() float32 {
		d.Kernels().MatMul(m, device.FromF32(c), device.FromF32(a), device.FromF32(a), device.Buf{})
		return c[len(c)-1]
	}
	want := product()
	for range 2 {
		require.NoError(t, d.Close())
		require.Zero(t, d.regions.Mapped())
		require.Equal(t, want, product())
	}
	require.NoError(t, d.Close())
}

func ramp(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(i % 7)
	}
	return x
}

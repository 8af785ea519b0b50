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

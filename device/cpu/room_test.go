package cpu

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/device"
)

// TestRoomGrows: a region would have sufficed for all of the call, with as much
// again ahead, but where that is much, a region is for what is missing.
func TestRoomGrows(t *testing.T) {
	region := func(bytes int) device.Buf { return device.Buf{Type: device.U8, Len: bytes} }
	for name, c := range map[string]struct {
		room   room
		size   int
		next   int
		enough int
	}{
		"first":                  {room{}, 100, leastRoom, 100},
		"first, large":           {room{}, 5 << 20, 5 << 20, 5 << 20},
		"small":                  {room{region: region(5 << 20), used: 4 << 20}, 3 << 20, 10 << 20, 7 << 20},
		"small, several":         {room{region: region(5 << 20), used: 4 << 20, small: []device.Buf{region(9 << 20)}}, 3 << 20, 16 << 20, 16 << 20},
		"up to a gigabyte":       {room{region: region(512 << 20), used: 512 << 20}, 100, 1 << 30, 512<<20 + 100},
		"beyond":                 {room{region: region(600 << 20), used: 600 << 20}, 100, 100, 600<<20 + 100},
		"a gigabyte":             {room{region: region(1 << 30), used: 1 << 30}, 1 << 30, 1 << 30, 2 << 30},
		"the next call":          {room{enough: 3 << 30}, 100, 3 << 30, 3 << 30},
		"the next call is large": {room{enough: 3 << 30}, 4 << 30, 4 << 30, 4 << 30},
	} {
		require.Equal(t, c.next, c.room.next(c.size), name)
		require.Equal(t, c.enough, c.room.enough, name)
	}
}

// TestRoomAfterSeveralRegions: the next call has one for everything, of that size.
func TestRoomAfterSeveralRegions(t *testing.T) {
	var regions device.HostRegions
	defer regions.Close()
	r := room{regions: &regions}
	first, second := r.floats(1<<20), r.floats(3<<20)
	first[0], second[0] = 1, 2
	require.Equal(t, float32(1), first[0])
	r.enough = r.region.Len + 1 // as if the second piece had a region of its own
	r.leave()
	require.Zero(t, regions.Mapped())
	require.True(t, r.region.IsZero())
	r.floats(1)
	require.GreaterOrEqual(t, r.region.Len, r.enough)
	r.leave()
	require.False(t, r.region.IsZero())
}

package collective_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/device"
)

func TestHalvesKeepTheirValue(t *testing.T) {
	for _, typ := range []device.Type{device.F16, device.BF16} {
		for h := range 1 << 16 {
			x := collective.Widen(typ, uint16(h))
			if x != x {
				if back := collective.Widen(typ, collective.Narrow(typ, x)); back == back {
					t.Fatalf("%v %#x is NaN and became %v", typ, h, back)
				}
				continue
			}
			if back := collective.Narrow(typ, x); back != uint16(h) {
				t.Fatalf("%v %#x became %#x", typ, h, back)
			}
		}
	}
	require.Equal(t, float32(65504), collective.Widen(device.F16, 0x7bff))
	require.Equal(t, float32(math.Ldexp(1, -24)), collective.Widen(device.F16, 1))
	require.Equal(t, uint16(0x7c00), collective.Narrow(device.F16, 65520))
	require.Equal(t, uint16(0x7bff), collective.Narrow(device.F16, math.Nextafter32(65520, 0)))
}

// TestHalvesRoundToNearest compares with a search among the neighbours.
func TestHalvesRoundToNearest(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, typ := range []device.Type{device.F16, device.BF16} {
		for range 50_000 {
			x := float32(rng.NormFloat64() * math.Exp2(float64(rng.IntN(44)-28)))
			h := collective.Narrow(typ, x)
			distance := func(h uint16) float64 { return math.Abs(float64(collective.Widen(typ, h)) - float64(x)) }
			if typ == device.F16 && math.Abs(float64(x)) > 65504 {
				continue // the table above has the edge
			}
			for _, other := range []uint16{h - 1, h + 1} {
				if math.IsNaN(distance(other)) || (other^h)&0x8000 != 0 {
					continue
				}
				require.True(t, distance(h) < distance(other) || distance(h) == distance(other) && h&1 == 0, "%v %v became %#x", typ, x, h)
			}
		}
	}
}

// TestFoldRoundsOnce: 256 + 1 + 1 in bf16, whose spacing is 2 there, is 258;
// rounding each addition would leave 256.
func TestFoldRoundsOnce(t *testing.T) {
	part := func(x float32) device.Buf {
		b := device.FromBytes(device.BF16, make([]byte, 2))
		b.U16()[0] = collective.Narrow(device.BF16, x)
		return b
	}
	got := part(0)
	collective.Plain.Fold(got, []device.Buf{part(256), part(1), part(1)})
	require.Equal(t, float32(258), collective.Widen(device.BF16, got.U16()[0]))
}

func TestMeanOfIntegersRoundsTowardsZero(t *testing.T) {
	b := device.FromI32([]int32{7, -7, 6, 0})
	collective.Divide(b, 4)
	require.Equal(t, []int32{1, -1, 1, 0}, b.I32())
	bytes := device.FromBytes(device.I8, make([]byte, 1))
	bytes.I8()[0] = -120
	collective.Divide(bytes, 200) // more than an int8 holds
	require.Equal(t, []int8{0}, bytes.I8())
}

func FuzzHeader(f *testing.F) {
	f.Add(make([]byte, 64))
	f.Add([]byte{1, 0, 1, 2})
	b := make([]byte, 64)
	b[0], b[1] = 1, 3
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		text, ok := collective.DecodeHeader(b)
		if ok {
			require.NotEmpty(t, text)
		}
	})
}

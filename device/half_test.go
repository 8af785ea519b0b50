package device

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// exact returns a half's value from its definition, by scaling.
func exact(h uint16, fractionBits, bias int) float64 {
	sign := 1.0
	if h&0x8000 != 0 {
		sign = -1
	}
	exponent := int(h&0x7fff) >> fractionBits
	fraction := float64(int(h) & (1<<fractionBits - 1))
	one := float64(int(1) << fractionBits)
	switch {
	case exponent == 2*bias+1 && fraction != 0:
		return math.NaN()
	case exponent == 2*bias+1:
		return sign * math.Inf(1)
	case exponent == 0:
		return sign * math.Ldexp(fraction/one, 1-bias)
	}
	return sign * math.Ldexp(1+fraction/one, exponent-bias)
}

type format struct {
	name           string
	fraction, bias int
	widen          func(uint16) float32
	narrow         func(float32) uint16
	narrow64       func(float64) uint16
}

func formats() []format {
	return []format{
		{"f16", 10, 15, F16ToF32, F32ToF16, F64ToF16},
		{"bf16", 7, 127, BF16ToF32, F32ToBF16, F64ToBF16},
	}
}

func TestHalfAllValuesRoundTrip(t *testing.T) {
	for _, f := range formats() {
		for i := range 1 << 16 {
			h := uint16(i)
			want := exact(h, f.fraction, f.bias)
			got := f.widen(h)
			if want != want {
				require.True(t, got != got, "%s %#x", f.name, h)
				back := f.narrow(got)
				require.True(t, exact(back, f.fraction, f.bias) != exact(back, f.fraction, f.bias), "%s %#x", f.name, h)
				continue
			}
			require.Equal(t, math.Float64bits(want), math.Float64bits(float64(got)), "%s %#x", f.name, h)
			require.Equal(t, h, f.narrow(got), "%s %#x", f.name, h)
			require.Equal(t, h, f.narrow64(want), "%s %#x", f.name, h)
		}
	}
}

// TestHalfRoundsToNearestEven visits the neighbourhood of every midpoint
// between two finite halves: just below, the tie itself, just above.
func TestHalfRoundsToNearestEven(t *testing.T) {
	for _, f := range formats() {
		last := uint16(1<<15 - 1<<f.fraction - 1) // the largest finite half
		for h := uint16(0); h <= last; h++ {
			low := exact(h, f.fraction, f.bias)
			// The step above the largest is that below it.
			high := exact(h+1, f.fraction, f.bias)
			if h == last {
				high = 2*low - exact(h-1, f.fraction, f.bias)
			}
			middle := low + (high-low)/2
			even := h + h&1
			for _, sign := range []float64{1, -1} {
				bit := uint16(0)
				if sign < 0 {
					bit = 0x8000
				}
				require.Equal(t, even|bit, f.narrow64(sign*middle), "%s tie above %#x", f.name, h)
				require.Equal(t, h|bit, f.narrow64(sign*math.Nextafter(middle, 0)), "%s below the tie above %#x", f.name, h)
				require.Equal(t, h+1|bit, f.narrow64(sign*math.Nextafter(middle, math.Inf(1))), "%s above the tie above %#x", f.name, h)
				single := float32(middle)
				require.Equal(t, middle, float64(single))
				require.Equal(t, even|bit, f.narrow(float32(sign)*single), "%s tie above %#x", f.name, h)
				below := math.Nextafter32(single, 0)
				above := math.Nextafter32(single, float32(math.Inf(1)))
				require.Equal(t, h|bit, f.narrow(float32(sign)*below), "%s below the tie above %#x", f.name, h)
				require.Equal(t, h+1|bit, f.narrow(float32(sign)*above), "%s above the tie above %#x", f.name, h)
			}
		}
	}
}

func TestHalfSpecials(t *testing.T) {
	inf := math.Inf(1)
	for _, f := range formats() {
		infinity := uint16(1<<15 - 1<<f.fraction)
		require.Equal(t, infinity, f.narrow(float32(inf)))
		require.Equal(t, infinity|0x8000, f.narrow64(-inf))
		require.Equal(t, infinity, f.narrow64(math.MaxFloat64))
		require.Equal(t, uint16(0x8000), f.narrow(float32(math.Copysign(0, -1))))
		require.Equal(t, uint16(0), f.narrow64(math.SmallestNonzeroFloat64))
		for _, payload := range []uint32{0x7f800001, 0x7fffffff, 0xff800001, 0x7fc00000} {
			h := f.narrow(math.Float32frombits(payload))
			require.Equal(t, uint16(payload>>16&0x8000), h&0x8000)
			require.Greater(t, h&0x7fff, infinity, "%s: NaN %#x became %#x", f.name, payload, h)
		}
	}
}

// TestRoundToOddKeepsOneRounding compares with arbitrary precision.
func TestRoundToOddKeepsOneRounding(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 1))
	for range 200000 {
		d := math.Ldexp(random.Float64()*2-1, random.IntN(40)-20)
		want, _ := new(big.Float).SetPrec(8).SetMode(big.ToNearestEven).SetFloat64(d).Float64()
		require.Equal(t, want, float64(BF16ToF32(F64ToBF16(d))), "seed %d value %v", seed, d)
		if math.Abs(d) < 1.0/(1<<14) || math.Abs(d) > 60000 {
			continue // subnormal or overflowing in F16: the midpoint test has them
		}
		want, _ = new(big.Float).SetPrec(11).SetMode(big.ToNearestEven).SetFloat64(d).Float64()
		require.Equal(t, want, float64(F16ToF32(F64ToF16(d))), "seed %d value %v", seed, d)
	}
}

package wire

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func lengths() []int { return []int{0, 1, 2, 15, 16, 31, 33, 127, 128, 129, 255, 256, 257, 1000, 5000} }

func formats(t *testing.T) map[string]func() Format {
	all := map[string]func() Format{}
	for _, name := range Names()[1:] {
		all[name] = func() Format {
			f, err := New(Config{Name: name})
			require.NoError(t, err)
			require.Contains(t, f.Name(), name)
			return f
		}
	}
	return all
}

// gradient is random numbers of very different magnitudes.
func gradient(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64() * math.Exp(3*r.NormFloat64()))
	}
	return x
}

// What is decoded and what is kept are what was encoded: exactly for top-k, and
// up to one rounding of the difference else. Decode and DecodeAdd agree, the
// bytes follow from the seed, and nothing is written beyond them.
func TestEncodedAndKept(t *testing.T) {
	for name, fresh := range formats(t) {
		r := rand.New(rand.NewPCG(1, 2))
		for _, n := range lengths() {
			f, x := fresh(), gradient(r, n)
			size := f.EncodedLen(n)
			b := make([]byte, size+7)
			for i := range b {
				b[i] = 0xa5
			}
			f.Encode(b[:size:size], x, 99)
			require.Equal(t, []byte{0xa5, 0xa5, 0xa5, 0xa5, 0xa5, 0xa5, 0xa5}, b[size:])

			kept, again := append([]float32(nil), x...), make([]byte, size)
			f.EncodeKeeping(again, kept, 99)
			require.Equal(t, b[:size], again, "%s of %d", name, n)

			y, sum := make([]float32, n), make([]float32, n)
			for i := range y {
				y[i], sum[i] = 7, 1
			}
			f.Decode(y, again)
			f.DecodeAdd(sum, again)
			for i := range x {
				require.Equal(t, x[i]-y[i], kept[i], "%s of %d: element %d, %v decodes to %v", name, n, i, x[i], y[i])
				require.Equal(t, 1+y[i], sum[i], "%s of %d", name, n)
			}
		}
	}
}

// A value that is not finite arrives as one and is not kept.
func TestNotFinite(t *testing.T) {
	for name, fresh := range formats(t) {
		for _, bad := range []float64{math.Inf(1), math.Inf(-1), math.NaN()} {
			for _, at := range []int{3, 300, 999} {
				f, x := fresh(), gradient(rand.New(rand.NewPCG(3, 4)), 1000)
				x[at] = float32(bad)
				for i := at; i < min(at+100, len(x)); i++ { // more of them than top-k sends
					x[i] = float32(bad)
				}
				b := make([]byte, f.EncodedLen(len(x)))
				f.EncodeKeeping(b, x, 5)
				for i, v := range x {
					require.False(t, math.IsNaN(float64(v)) || math.IsInf(float64(v), 0), "%s keeps %v at %d", name, v, i)
				}
				f.Decode(x, b)
				require.True(t, math.IsNaN(float64(x[at])) || math.IsInf(float64(x[at]), 0), "%s: %v arrives as %v", name, bad, x[at])
			}
		}
	}
}

// The overflow of binary16 is seen as infinity.
func TestHalfOverflow(t *testing.T) {
	f := NewHalf(false)
	for _, n := range []int{1, 40} {
		x, b := make([]float32, n), make([]byte, 2*n)
		for i := range x {
			x[i] = 65520
		}
		f.Encode(b, x, 0)
		f.Decode(x, b)
		for _, v := range x {
			require.True(t, math.IsInf(float64(v), 1))
		}
	}
}

// Every 16-bit pattern survives, and rounding is to nearest even.
func TestHalvesExactly(t *testing.T) {
	for _, bfloat := range []bool{false, true} {
		f := NewHalf(bfloat)
		b, x := make([]byte, 1<<17), make([]float32, 1<<16)
		for i := range 1 << 16 {
			b[2*i], b[2*i+1] = byte(i), byte(i>>8)
		}
		f.Decode(x, b)
		again := make([]byte, len(b))
		f.Encode(again, x, 0)
		for i, v := range x {
			if v == v {
				require.Equal(t, [2]byte{b[2*i], b[2*i+1]}, [2]byte{again[2*i], again[2*i+1]}, "%x", i)
			}
			require.Equal(t, f.value(b, i) == f.value(b, i), v == v)
		}
	}
	require.Equal(t, uint16(0x3c00), narrowF16(1+1.0/2048), "a tie goes to even")
	require.Equal(t, uint16(0x3c02), narrowF16(1+3.0/2048))
	require.Equal(t, uint16(0x3f80), narrowBF16(1+1.0/256))
}

// Stochastic rounding is right in the mean: over many seeds the decoded values
// average to the encoded ones. A rounding's deviation is at most half a level, so
// the mean of n has one of at most 1/(2 sqrt n) levels; six of those are allowed.
func TestBlocksAreUnbiased(t *testing.T) {
	const n, seeds = 256, 4000
	for _, bits := range []int{8, 4} {
		f := NewBlocks(bits)
		x := make([]float32, n)
		r := rand.New(rand.NewPCG(5, 6))
		for i := range x {
			x[i] = 2*r.Float32() - 1
		}
		x[0], x[128] = 1, 1 // each block's scale
		sum, y, b := make([]float64, n), make([]float32, n), make([]byte, f.EncodedLen(n))
		for seed := range uint64(seeds) {
			f.Encode(b, x, seed)
			f.Decode(y, b)
			for i, v := range y {
				sum[i] += float64(v)
				require.LessOrEqual(t, math.Abs(float64(v-x[i])), 1.001/float64(f.levels))
			}
		}
		for i := range x {
			require.InDelta(t, x[i], sum[i]/seeds, 6/(2*math.Sqrt(seeds)*float64(f.levels)), "%d bits, element %d", bits, i)
		}
	}
}

// Integers up to the number of levels are exact, zero stays zero.
func TestBlocksKeepIntegers(t *testing.T) {
	for _, bits := range []int{8, 4} {
		f := NewBlocks(bits)
		levels := int(f.levels)
		x := make([]float32, 2*levels+1)
		for i := range x {
			x[i] = float32(i - levels)
		}
		b, y := make([]byte, f.EncodedLen(len(x))), make([]float32, len(x))
		f.Encode(b, x, 1)
		f.Decode(y, b)
		require.Equal(t, x, y)
		clear(x)
		f.Encode(b, x, 1)
		f.Decode(y, b)
		require.Equal(t, x, y)
	}
	require.Panics(t, func() { NewBlocks(5) })
}

func TestSizes(t *testing.T) {
	for name, want := range map[string]int{"f16": 131072, "bf16": 131072, "int8": 65536 + 1024, "int4": 32768 + 2048, "topk": 656 * 6} {
		f, err := New(Config{Name: name})
		require.NoError(t, err)
		require.Equal(t, want, f.EncodedLen(1<<16), name)
	}
	f, err := New(Config{})
	require.NoError(t, err)
	require.Nil(t, f)
	_, err = New(Config{Name: "int5"})
	require.ErrorContains(t, err, "int5")
}

func TestSeedsDiffer(t *testing.T) {
	seen := map[uint64]bool{}
	for step := range uint64(50) {
		for rank := range uint64(50) {
			s := Seed(1, step, rank)
			require.False(t, seen[s])
			seen[s] = true
		}
	}
	require.Equal(t, Seed(1, 2), Seed(1, 2))
	require.NotEqual(t, Seed(1, 2), Seed(2, 1))
}

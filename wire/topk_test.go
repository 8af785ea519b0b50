package wire

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// naiveTop sorts all places by magnitude, the first of equals before the others.
func naiveTop(x []float32, k int) []int {
	places := make([]int, len(x))
	for i := range places {
		places[i] = i
	}
	slices.SortStableFunc(places, func(a, b int) int {
		return cmp.Compare(math.Abs(float64(x[b])), math.Abs(float64(x[a])))
	})
	top := places[:k]
	slices.Sort(top)
	return top
}

// The selection is the naive one, whatever was selected from before.
func TestTopKSelectsTheLargest(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for _, fraction := range []float64{0.001, 0.01, 0.25, 1, 7} {
		f := NewTopK(fraction)
		for _, n := range []int{1, 2, 10, 1000, 1 << 16, 1<<16 + 1, 150_000, 40} {
			for _, kind := range []string{"gradient", "equal", "zero", "integers", "tiny"} {
				x := gradient(r, n)
				for i := range x {
					switch kind {
					case "equal":
						x[i] = 1 - 2*float32(i%2)
					case "zero":
						x[i] = 0
					case "integers":
						x[i] = float32(r.IntN(5) - 2)
					case "tiny":
						x[i] *= 1e-40
					}
				}
				b := make([]byte, f.EncodedLen(n))
				f.Encode(b, x, 0)
				var got, want []int
				all := slices.Repeat([]float32{1}, n)
				f.ClearSent(b, all)
				for i, v := range all {
					if v == 0 {
						got = append(got, i)
					}
				}
				for lo := 0; lo < n; lo += topRun {
					hi := min(lo+topRun, n)
					for _, place := range naiveTop(x[lo:hi], f.count(hi-lo)) {
						want = append(want, lo+place)
					}
				}
				require.Equal(t, want, got, "%v of %d, %s", fraction, n, kind)
			}
		}
	}
}

func TestTopKAllocatesNothing(t *testing.T) {
	f, x := NewTopK(0), gradient(rand.New(rand.NewPCG(9, 10)), 1<<16)
	b := make([]byte, f.EncodedLen(len(x)))
	f.Encode(b, x, 0)
	require.Zero(t, testing.AllocsPerRun(10, func() { f.Encode(b, x, 0) }))
}

// Bytes of a peer that lost its mind decode to something.
func FuzzDecode(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, uint8(1))
	f.Fuzz(func(t *testing.T, b []byte, kind uint8) {
		names := Names()[1:]
		format, err := New(Config{Name: names[int(kind)%len(names)]})
		require.NoError(t, err)
		n := 0
		for format.EncodedLen(n+1) <= len(b) && n < 1000 {
			n++
		}
		format.Decode(make([]float32, n), b[:format.EncodedLen(n)])
	})
}

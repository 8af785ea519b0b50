package collective_test

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/wire"
)

// rounded is x as a format of 16 bits has it.
func rounded(f wire.Format, x float32) float32 {
	var out [1]float32
	b := make([]byte, f.EncodedLen(1))
	f.Encode(b, []float32{x}, 0)
	f.Decode(out[:], b)
	return out[0]
}

// TestCodedTwin: every element is what one of the ranks makes of it as its owner, the
// own value and the others' rounded ones in their order, rounded once; it has the same
// bits whether a second goroutine sends, whatever is packed.
func TestCodedTwin(t *testing.T) {
	const length = 150_001
	for _, hosts := range [][][]int{alone(2), alone(3)} {
		for _, bfloat := range []bool{false, true} {
			n := len(hosts)
			format := wire.NewHalf(bfloat)
			values := make([][]float32, n)
			for r := range values {
				random := rand.New(rand.NewPCG(uint64(r), 7))
				values[r] = make([]float32, length)
				for i := range values[r] {
					values[r][i] = float32(random.NormFloat64())
				}
			}
			var first []float32
			for _, config := range []collective.GroupConfig{{}, {Links: slow}, {Links: slow, Packed: collective.PackAcrossHosts}} {
				for _, got := range codedSums(t, hosts, config, func() wire.Format { return wire.NewHalf(bfloat) }, values) {
					if first == nil {
						first = got
					}
					require.Equal(t, first, got, "%+v", config)
				}
			}
			for i, v := range first {
				ok := false
				for owner := range n {
					sum := values[owner][i]
					for r := range n {
						if r != owner {
							sum += rounded(format, values[r][i])
						}
					}
					ok = ok || math.Float32bits(rounded(format, sum)) == math.Float32bits(v)
				}
				require.True(t, ok, "%d ranks, %s, element %d is %v", n, format.Name(), i, v)
			}
		}
	}
}

// TestCodedLengths: ranks that send pieces ahead of the sums do not wait for each other,
// of whatever length pieces would be.
func TestCodedLengths(t *testing.T) {
	const length = 1_120_690
	zeros := [][]float32{make([]float32, length), make([]float32, length)}
	for _, got := range codedSums(t, alone(2), collective.GroupConfig{}, func() wire.Format { return wire.NewTopK(.35) }, zeros) {
		require.Equal(t, zeros[0], got)
	}
}

func codedSums(t *testing.T, hosts [][]int, config collective.GroupConfig, format func() wire.Format, values [][]float32) [][]float32 {
	out := make([][]float32, len(values))
	var all errgroup.Group
	for r, g := range pacedGroups(t, hosts, config) {
		all.Go(func() error {
			out[r] = append([]float32(nil), values[r]...)
			call := collective.Call{Kind: plan.AllReduce, In: device.FromF32(out[r]), Codec: &wire.Codec{Format: format()}}
			return collective.Run(context.Background(), g, call)
		})
	}
	require.NoError(t, all.Wait())
	return out
}

package optim

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/nn"
)

// TestPartsAreTheWhole: an update in pieces, in any order, is the update, and does
// not look at gradients of other segments.
func TestPartsAreTheWhole(t *testing.T) {
	for _, dev := range devices(t) {
		for _, name := range Names() {
			run := func(pieces [][2]int) (out []float32) {
				var params []*nn.Param
				var segments []Segment
				for i, n := range []int{300, 128, 77, 1000} {
					p := param(t, string(rune('a'+i)), n, true)
					start, _ := draws(n, 0)
					copy(p.Value.F32(), start)
					params = append(params, p)
					segments = append(segments, Segment{Param: p, Hi: n})
				}
				o, err := New(Config{Name: name, WeightDecay: 0.01})
				require.NoError(t, err)
				if _, ok := o.(Partial); !ok {
					require.Contains(t, []string{"lars", "lamb"}, name)
					return nil
				}
				require.NoError(t, o.Init(dev, segments))
				for step := 1; step <= 3; step++ {
					for _, piece := range pieces {
						for i := range segments {
							segments[i].Grad = device.Buf{}
						}
						for i := piece[0]; i < piece[1]; i++ {
							_, gradients := draws(segments[i].Hi, step)
							segments[i].Grad = device.FromF32(gradients[step-1])
						}
						require.NoError(t, o.(Partial).UpdateSome(step, segments, piece[0], piece[1], 0.1, 0.5))
					}
				}
				for _, p := range params {
					out = append(out, p.Value.F32()...)
				}
				return out
			}
			want := run([][2]int{{0, 4}})
			require.Equal(t, want, run([][2]int{{3, 4}, {0, 1}, {1, 1}, {1, 3}}), name)
		}
	}
}

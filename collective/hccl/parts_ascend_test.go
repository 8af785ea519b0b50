//go:build ascend

package hccl_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/commtest"
	"github.com/gradfusion/gradfusion/collective/hccl"
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/internal/ascendsim"
)

// uneven gathers, scatters and reduces parts of several sizes, and scatters parts
// of one.
func uneven(ctx context.Context, c collective.Comm) error {
	bounds, equal := []int{0, 1, 3, 3}, []int{0, 2, 4, 6}
	lo, hi := bounds[c.Rank()], bounds[c.Rank()+1]
	whole, in := make([]float32, 3), []float32{1, 2, 3}
	run := func(k plan.Kind, in, out []float32, bounds []int) error {
		return collective.Run(ctx, c, collective.Call{Kind: k, In: device.FromF32(in), Out: device.FromF32(out), InBounds: bounds})
	}
	if err := run(plan.AllGather, in[lo:hi], whole, bounds); err != nil || whole[2] != 3 || whole[0] != 1 {
		return fmt.Errorf("all-gather: %v, %w", whole, err)
	}
	own := make([]float32, hi-lo)
	err := run(plan.ReduceScatter, in, own, bounds)
	for i, x := range own {
		if x != float32(3*(lo+i+1)) {
			return fmt.Errorf("reduce-scatter: %v", own)
		}
	}
	if err != nil {
		return err
	}
	two := make([]float32, 2)
	if err := run(plan.Scatter, []float32{0, 1, 2, 3, 4, 5}, two, equal); err != nil || two[1] != float32(2*c.Rank()+1) {
		return fmt.Errorf("scatter: %v, %w", two, err)
	}
	return nil
}

// TestNativeParts: parts of several sizes go as they are where the release and the
// chip can, and hosts have as many devices each; else they are padded.
func TestNativeParts(t *testing.T) {
	for _, tt := range []struct {
		hosts  [][]int
		native int32 // for 3 ranks
	}{{nil, 3}, {[][]int{{0, 1}, {2}}, 0}} {
		t.Run(fmt.Sprint(tt.hosts), func(t *testing.T) {
			if os.Getenv("ASCEND_TEST_PADDED") != "" {
				tt.native = 0
			}
			w := start(t, 3, func(c *hccl.Config) { c.Hosts = tt.hosts })
			before := [3]int32{alive(w.library, "AllGatherV"), alive(w.library, "ReduceScatterV"), alive(w.library, "Scatter")}
			for _, err := range w.each(uneven) {
				require.NoError(t, err)
			}
			require.Equal(t, before[0]+tt.native, alive(w.library, "AllGatherV"))
			require.Equal(t, before[1]+tt.native, alive(w.library, "ReduceScatterV"))
			require.Equal(t, before[2]+3, alive(w.library, "Scatter"))
		})
	}
}

func TestPaddedParts(t *testing.T) {
	libraries, err := ascendsim.Build(t.TempDir(), ascendsim.Old, "")
	require.NoError(t, err)
	for _, tt := range []struct{ libraries, env string }{{libraries, "ASCENDSIM_CHIP=910B"}, {"", "ASCENDSIM_CHIP=910A"}} {
		out, err := ascendsim.Again(t, tt.libraries, "^TestNativeParts$", "ASCEND_TEST_PADDED=1", tt.env)
		require.NoError(t, err, "%s", out)
	}
}

// TestEncodedAcrossHosts: only what goes from host to host is encoded, on hosts of
// equal and unequal numbers of ranks, in any order, and with one rank each.
func TestEncodedAcrossHosts(t *testing.T) {
	for _, hosts := range [][][]int{{{0, 1, 2}}, {{0, 2}, {1, 3}}, {{0, 1, 2}, {3, 4}}, {{0, 3}, {1}, {2, 4}}, {{0}, {1}}} {
		n := 0
		for _, h := range hosts {
			n += len(h)
		}
		t.Run(fmt.Sprint(hosts), func(t *testing.T) {
			w := start(t, n, func(c *hccl.Config) { c.Hosts = hosts })
			for _, err := range w.each(func(ctx context.Context, c collective.Comm) error { return commtest.Encoded(ctx, c, true) }) {
				require.NoError(t, err)
			}
		})
	}
}

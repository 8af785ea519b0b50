package trainer

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/parallel"
	"github.com/gradfusion/gradfusion/trainer/config"
)

// Whatever disturbs a measurement, a block is not believed to take many times
// what others of its size do.
func TestTimesThatStandOutAreBroughtBack(t *testing.T) {
	forward := func(c *parallel.BlockCost) *float64 { return &c.Forward }
	times := func(values ...float64) (out []parallel.BlockCost) {
		for _, v := range values {
			out = append(out, parallel.BlockCost{Forward: v})
		}
		return out
	}
	counted := times(1, 1, 1, 1, 2, 0.5)
	costs := times(10, 12, 90, 9, 21, 0.5)
	within(costs, counted, forward)
	require.Equal(t, times(10, 12, 10.5*mostDoubt, 9, 21, 0.5*10.5/mostDoubt), costs)
	within(nil, nil, forward)
	costs = times(3)
	within(costs, times(0), forward)
	require.Equal(t, times(3), costs, "nothing to compare with")
}

// Cuts that are given need no measurement, but a dry run shows times all the same,
// whether the configuration has parallel.dry_run or a program calls DryRun.
func TestTimesAreMeasuredWhereTheyAreShown(t *testing.T) {
	s := prepared(t, "model.name=mlp", "model.hidden=[16]", "train.micro_batch=4")
	s.cfg.Parallel.Cuts = config.Names{"1"}
	counted, err := s.countCosts()
	require.NoError(t, err)
	for measure, want := range map[bool]string{true: "measured on this host", false: "counted, not measured"} {
		times, from, err := s.blockTimes(slices.Clone(counted), measure)
		require.NoError(t, err)
		require.Equal(t, want, from)
		require.Equal(t, measure, times[0].Forward != counted[0].Forward)
	}
}

// The counted costs of a model add up to what is known of it.
func TestCountedCosts(t *testing.T) {
	s := prepared(t, "model.name=mlp", "model.hidden=[16]", "train.micro_batch=4")
	costs, err := s.countCosts()
	require.NoError(t, err)
	require.Len(t, costs, 2)
	const in, hidden, out, n = 64, 16, 10, 4
	require.Equal(t, "fc1", costs[0].Name)
	require.Equal(t, 4*(in*hidden+hidden), costs[0].Parameters)
	require.Equal(t, 4*(hidden*out+out), costs[1].Parameters)
	require.Equal(t, 4*hidden*n, costs[0].Output)
	require.Equal(t, 4*out*n, costs[1].Output)
	require.Equal(t, 4*hidden*n, costs[0].Activations)
	require.InDelta(t, perProduct*n*in*hidden+perElement*(n*in+3*n*hidden+in*hidden), costs[0].Forward, 1e-9,
		"products and elements of the layer, and of ReLU, which reads and writes")
	require.InDelta(t, 2*costs[0].Forward, costs[0].Backward, 1e-12)
}

package parallel

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/amp"
	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/optim"
)

// TestShardedPipeline: columns of a pipeline shard each stage's optimizer, tied
// parameters and clipping included, to the bits of one process.
func TestShardedPipeline(t *testing.T) {
	for _, model := range slices.Sorted(maps.Keys(smallModels())) {
		base := smallModels()[model](7)
		base.micro, base.fusion = 2, FusionConfig{Deterministic: true, ClipNorm: 0.5, ThresholdMB: 0.001, Targets: base.fusion.Targets}
		one, err := base.run(t.Context())
		require.NoError(t, err)
		for _, grid := range []struct {
			name           string
			ranks, columns int
		}{{"1f1b", 2, 2}, {"gpipe", 2, 3}, {"interleaved", 2, 2}} {
			p := base
			p.name, p.ranks, p.columns, p.virtual, p.fusion.Shard = grid.name, grid.ranks, grid.columns, 2, true
			t.Run(fmt.Sprintf("%s/%s/%d x %d", model, grid.name, grid.ranks, grid.columns), func(t *testing.T) {
				got, err := p.run(t.Context())
				require.NoError(t, err)
				requireSame(t, one, got)
			})
		}
	}
}

// TestShardedWire: what a wire rounds does not depend on who updates.
func TestShardedWire(t *testing.T) {
	for _, format := range []string{"f16", "bf16", "int8"} {
		tr := trial{model: mlpConfig, micro: 4, steps: 3, data: newSamples(18, 1, 4)}
		tr.fusion = FusionConfig{ThresholdMB: 0.001, ClipNorm: 0.5, Wire: Compression{Format: format}}
		for _, ranks := range []int{2, 3} {
			tr.shardedIsSame(t, func() []collective.Transport { return inprocRanks(ranks) }, fmt.Sprintf("%s, %d ranks", format, ranks))
		}
	}
}

// shardedIsSame runs the trial with each rank updating all and with each updating a
// part, on ranks of two worlds, and requires the same bits.
func (tr trial) shardedIsSame(t *testing.T, world func() []collective.Transport, what string) {
	t.Helper()
	wantFirst, wantLast := tr.over(t, world())
	tr.fusion.Shard = true
	first, last := tr.over(t, world())
	require.Equal(t, wantFirst, first, what)
	require.Equal(t, wantLast, last, what)
}

// TestShardedTables: sparse gradients have the bits of one rank, whoever updates
// which rows.
func TestShardedTables(t *testing.T) {
	for name, c := range tableTrials {
		for _, o := range []optim.Config{{Name: "adam"}, {Name: "lamb"}, {Name: "adam", Lazy: true}} {
			l := c.lookups
			l.sparse, l.optim = true, o
			l.fusion = FusionConfig{Deterministic: true, ClipNorm: 0.05, ThresholdMB: 0.0005}
			want := l.everywhere(t, 1)
			l.fusion.Shard = true
			for _, ranks := range []int{2, 3} {
				require.Equal(t, want.hash, l.everywhere(t, ranks).hash, "%s, %+v, %d ranks", name, o, ranks)
			}
		}
	}
}

// TestShardedPrecision: with 16-bit copies, or masters, every rank reads what the
// owner has written.
func TestShardedPrecision(t *testing.T) {
	for _, level := range []amp.Level{amp.O2, amp.O3} {
		s := scaled{model: mlpConfig, optimizer: "adamw", level: amp.Config{Level: level}, clip: 1, exact: true, data: newSamples(9, 1, 4), steps: 3}
		want := s.everywhere(t, 1)
		s.shard = true
		for _, ranks := range []int{2, 3} {
			require.Equal(t, want, s.everywhere(t, ranks), "%v, %d ranks", level, ranks)
		}
	}
}

// TestShardedNorms: the global norm counts every part once, whatever the grid.
func TestShardedNorms(t *testing.T) {
	var want float64
	for _, grid := range [][2]int{{1, 1}, {1, 3}, {2, 2}} {
		p := smallModels()["mlp"](8)
		p.micro, p.ranks, p.columns, p.name = 2, grid[0], grid[1], "1f1b"
		p.fusion = FusionConfig{Deterministic: true, ClipNorm: 1e-3, Shard: true}
		got, err := p.run(t.Context())
		require.NoError(t, err)
		if want == 0 {
			want = got.outcomes[0].GradNorm
			require.Positive(t, want)
		}
		for i, o := range got.outcomes {
			if i < grid[0]*grid[1] {
				require.Equal(t, want, o.GradNorm, "%v", grid)
			}
		}
	}
}

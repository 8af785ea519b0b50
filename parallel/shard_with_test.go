package parallel

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/gradfusion/gradfusion/amp"
	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/collective/shm"
	"github.com/gradfusion/gradfusion/collective/store"
	"github.com/gradfusion/gradfusion/device"
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
			wantFirst, wantLast := tr.everywhere(t, ranks)
			sharded := tr
			sharded.fusion.Shard = true
			first, last := sharded.everywhere(t, ranks)
			require.Equal(t, wantFirst, first, "%s, %d ranks", format, ranks)
			require.Equal(t, wantLast, last, "%s, %d ranks", format, ranks)
		}
	}
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

// mapped makes transports of ranks that share memory.
func mapped(t *testing.T, n int) []collective.Transport {
	if runtime.GOOS != "linux" {
		t.Skip("no memory to share")
	}
	server, err := store.Listen(t.Context(), "127.0.0.1:0", "token")
	require.NoError(t, err)
	t.Cleanup(func() { server.Close() })
	out := make([]collective.Transport, n)
	var joining errgroup.Group
	for r := range n {
		joining.Go(func() error {
			client, err := store.Dial(t.Context(), server.Addr().String(), "token")
			if err == nil {
				out[r], err = shm.Join(t.Context(), shm.Config{Rank: r, Size: n, Store: client, Token: "token"})
				err = errors.Join(err, client.Close())
			}
			return err
		})
	}
	require.NoError(t, joining.Wait())
	return out
}

// TestShardedFetch: ranks that read each other's parts of the parameters compute
// what ranks compute that update all of them.
func TestShardedFetch(t *testing.T) {
	for name, fusion := range map[string]FusionConfig{
		"plain": {}, "deterministic": {Deterministic: true}, "clipped": {ClipNorm: 0.5, NoOverlap: true}, "masters": {Masters: device.BF16}, "wire": {Wire: Compression{Format: "int8"}},
	} {
		fusion.ThresholdMB, fusion.CheckEvery = 0.001, 2
		tr := trial{model: mlpConfig, micro: 4, steps: 4, data: newSamples(18, 1, 4), fusion: fusion, memory: true}
		for _, ranks := range []int{2, 3, 5} {
			wantFirst, wantLast := tr.everywhere(t, ranks)
			sharded := tr
			sharded.fusion.Shard = true
			first, last := sharded.everywhere(t, ranks)
			require.Equal(t, wantFirst, first, "%s, %d ranks", name, ranks)
			require.Equal(t, wantLast, last, "%s, %d ranks", name, ranks)
		}
	}
}

// late is a device that copies when it is let.
type late struct {
	device.Device
	until chan struct{}
}

func (l late) Kernels() device.Kernels { return lateCopy{l.Device.Kernels(), l.until} }

type lateCopy struct {
	device.Kernels
	until chan struct{}
}

func (l lateCopy) Copy(dst, src device.Buf) {
	<-l.until
	l.Kernels.Copy(dst, src)
}

// TestCloseWaitsForReaders: a rank that closes after its last step does not keep
// another from reading its part of the parameters.
func TestCloseWaitsForReaders(t *testing.T) {
	closing := make(chan struct{})
	require.NoError(t, over(t.Context(), mapped(t, 2), func(ctx context.Context, c collective.Comm) error {
		g, m, err := sharding(ctx, c, FusionConfig{Shard: true})
		if err != nil {
			return err
		}
		if err := manual(4, true)(ctx, c, g, m, newSamples(18, 1, 4)); err != nil {
			return err
		}
		if c.Rank() == 1 {
			for _, s := range g.stages {
				s.reducer.cfg.Device = late{s.reducer.cfg.Device, closing}
			}
		}
		if err := g.Step(0.01); err != nil {
			return err
		}
		if c.Rank() == 0 {
			close(closing)
		} else if err := g.Complete(ctx); err != nil {
			return err
		}
		if err := g.Close(); err != nil {
			return err
		}
		return collective.Barrier(ctx, c)
	}))
}

package parallel

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/naive"
	"github.com/gradfusion/gradfusion/models"
	"github.com/gradfusion/gradfusion/nn"
	"github.com/gradfusion/gradfusion/optim"
)

// TestShardedIsUnsharded: with any optimizer, clipping, threshold and number of
// ranks, those that have a part of nothing included, the bits are those of one
// rank.
func TestShardedIsUnsharded(t *testing.T) {
	for _, name := range optim.Names() {
		for _, clip := range []float64{0, 0.1} {
			tr := trial{model: mlpConfig, micro: 4, steps: 3, data: newSamples(18, 1, 4), optim: optim.Config{Name: name, WeightDecay: 0.01}}
			tr.fusion = FusionConfig{Deterministic: true, ClipNorm: clip}
			wantFirst, wantLast := tr.everywhere(t, 1)
			tr.fusion.Shard, tr.fusion.CheckEvery = true, 2
			for ranks := 1; ranks <= 5; ranks++ {
				for _, threshold := range []float64{0.0005, 1000} {
					tr.fusion.ThresholdMB, tr.fusion.NoOverlap = threshold, ranks == 3
					first, last := tr.everywhere(t, ranks)
					require.Equal(t, wantFirst, first, "%s, clip %g, %d ranks, %g MB", name, clip, ranks, threshold)
					require.Equal(t, wantLast, last, "%s, clip %g, %d ranks, %g MB", name, clip, ranks, threshold)
				}
			}
		}
	}
}

// TestShardedRing: without the canonical tree the ranks agree as well, also when
// some have no micro-batch. Two ranks add two numbers in the only order there is.
func TestShardedRing(t *testing.T) {
	tr := trial{model: resnetConfig, micro: 2, steps: 3, data: newSamples(9, 3, 8), optim: optim.Config{Name: "lamb"}}
	tr.fusion = FusionConfig{ThresholdMB: 0.001, ClipNorm: 1}
	wantFirst, wantLast := tr.everywhere(t, 2)
	tr.fusion.Shard = true
	first, last := tr.everywhere(t, 2)
	require.Equal(t, wantFirst, first)
	require.Equal(t, wantLast, last)
	for _, ranks := range []int{3, 4, 5, 7} {
		tr.everywhere(t, ranks)
	}
}

// sharding is a fusion over the mlp with AdamW on one rank.
func sharding(ctx context.Context, c collective.Comm, cfg FusionConfig) (*GradFusion, *models.Model, error) {
	dev := naive.New()
	m, err := models.New(mlpConfig)
	if err != nil {
		return nil, nil, err
	}
	if err := nn.Materialize(dev, m.Blocks, 1); err != nil {
		return nil, nil, err
	}
	opt, err := optim.New(optim.Config{Name: "adamw", WeightDecay: 0.01})
	if err != nil {
		return nil, nil, err
	}
	cfg.Device = dev
	g, err := NewGradFusion(ctx, []Stage{{Blocks: m.Blocks, Comm: c}}, opt, cfg)
	return g, m, err
}

// trainSteps runs the manual loop.
func trainSteps(ctx context.Context, c collective.Comm, g *GradFusion, m *models.Model, n int) error {
	for range n {
		if err := manual(4, true)(ctx, c, g, m, newSamples(18, 1, 4)); err != nil {
			return err
		}
		if err := g.Step(0.01); err != nil {
			return err
		}
	}
	return g.Complete(ctx)
}

// saved is what a checkpoint holds.
type saved map[string][]float32

func keep(into saved, tensors []Named) {
	for _, n := range tensors {
		into[n.Name] = append([]float32(nil), n.Buf.F32()...)
	}
}

// TestShardedStateIsResumed: what some ranks save, any other number goes on with,
// sharded or not, to the same bits.
func TestShardedStateIsResumed(t *testing.T) {
	run := func(ranks int, shard bool, steps int, from saved, done int) saved {
		out := saved{}
		require.NoError(t, world(t.Context(), ranks, func(ctx context.Context, c collective.Comm) error {
			g, m, err := sharding(ctx, c, FusionConfig{Deterministic: true, Shard: shard, ThresholdMB: 0.001})
			if err != nil {
				return err
			}
			defer g.Close()
			if from != nil {
				for _, p := range m.Params() {
					copy(p.Value.F32(), from[p.Name])
				}
				err := g.Restore(done, func(param, name string, to device.Buf) error {
					if copy(to.F32(), from[StateName(param, name)]) != to.Len {
						return fmt.Errorf("no %d elements of %s", to.Len, StateName(param, name))
					}
					return nil
				})
				if err != nil {
					return err
				}
			}
			if err := trainSteps(ctx, c, g, m, steps); err != nil {
				return err
			}
			state, err := g.OptimizerState()
			if c.Rank() == 0 {
				keep(out, append(state, Params(m.Params())...))
			}
			return err
		}))
		return out
	}
	want := run(1, false, 4, nil, 0)
	half := run(3, true, 2, nil, 0)
	require.Equal(t, run(1, false, 2, nil, 0), half)
	for _, c := range []struct {
		ranks int
		shard bool
	}{{1, true}, {2, true}, {5, true}, {3, false}} {
		require.Equal(t, want, run(c.ranks, c.shard, 2, half, 2), "%+v", c)
	}
}

// TestShardedMemory: two ranks hold half of the state each.
func TestShardedMemory(t *testing.T) {
	bytes := make([]int, 2)
	whole := 0
	require.NoError(t, world(t.Context(), 2, func(ctx context.Context, c collective.Comm) error {
		g, m, err := sharding(ctx, c, FusionConfig{Shard: true})
		if err != nil {
			return err
		}
		defer g.Close()
		if err := trainSteps(ctx, c, g, m, 1); err != nil {
			return err
		}
		bytes[c.Rank()] = g.OptimizerBytes()
		if c.Rank() == 0 {
			whole = 2 * 4 * m.ParamCount()
		}
		return nil
	}))
	require.Equal(t, whole, bytes[0]+bytes[1])
	require.InDelta(t, bytes[0], bytes[1], 2*2*4*device.NormBlock*2) // a block of mean and variance in each of two buckets
}

// brokenComm fails every all-gather of parameters.
type brokenComm struct {
	collective.Comm
	err error
}

func (b brokenComm) Start(ctx context.Context, c collective.Call) *collective.Work {
	if len(c.Label) > 10 && c.Label[:10] == "parameters" {
		w, complete := collective.NewWork()
		complete(b.err)
		return w
	}
	return b.Comm.Start(ctx, c)
}

// TestLostParametersAreAnError: what kept parameters from arriving is the error of
// the forward pass, which names the parameter, and of Complete.
func TestLostParametersAreAnError(t *testing.T) {
	lost := errors.New("lost")
	require.NoError(t, world(t.Context(), 2, func(ctx context.Context, c collective.Comm) error {
		g, m, err := sharding(ctx, brokenComm{c, lost}, FusionConfig{Shard: true})
		if err != nil {
			return err
		}
		defer g.Close()
		if err := trainSteps(ctx, c, g, m, 1); !errors.Is(err, lost) {
			return fmt.Errorf("Complete gave %w", err)
		}
		forward := func() (err error) {
			defer nn.Catch(&err)
			for mb := range g.Micros(18, 4) {
				tape := nn.NewTape(naive.New())
				b := newSamples(18, 1, 4).batch(mb)
				nn.Forward(tape, m.Blocks, tape.Input(b.Input, b.Shape, false))
			}
			return nil
		}
		var use *nn.UseError
		if err := forward(); !errors.As(err, &use) || !errors.Is(err, lost) {
			return fmt.Errorf("the forward pass gave %w", err)
		}
		return nil
	}))
}

// scarce is a Comm that gives memory so often only.
type scarce struct {
	collective.Comm
	left *int
}

func (s scarce) Alloc(ctx context.Context, t device.Type, n int) (device.Buf, error) {
	if *s.left--; *s.left < 0 {
		return device.Buf{}, errors.New("no more memory")
	}
	return s.Comm.Alloc(ctx, t, n)
}

// TestBucketsWithoutMemory: a step that finds memory for some of the buckets only
// fails with that error.
func TestBucketsWithoutMemory(t *testing.T) {
	for given := range 4 {
		tr := trial{model: mlpConfig, micro: 4, steps: 1, data: newSamples(18, 1, 4), fusion: FusionConfig{ThresholdMB: 0.001, Shard: true}}
		err := world(t.Context(), 2, func(ctx context.Context, c collective.Comm) error {
			left := given
			_, _, err := tr.run(ctx, scarce{c, &left}, naive.New())
			return err
		})
		require.ErrorContains(t, err, "no more memory")
	}
}

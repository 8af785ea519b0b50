package parallel

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/device/naive"
	"github.com/gradfusion/gradfusion/nn"
	"github.com/gradfusion/gradfusion/optim"
)

// A block that is computed again in the backward pass uses parameters whose bucket
// may be on its way already, when one of them is frozen. Its sum is the present
// step's, which counts targets of its own.
func TestDeferredBlocksComputedAgain(t *testing.T) {
	for _, first := range []int{128, 140, 150} { // bytes of a bucket
		for frozen := range 2 {
			cfg := FusionConfig{FirstMB: 0.00001, ThresholdMB: float64(first*4) / (1 << 20)}
			now, later := cfg, cfg
			later.Defer = true
			require.Equal(t, computedAgain(t, now, frozen), computedAgain(t, later, frozen), "buckets of %d, parameter %d frozen", first, frozen)
		}
	}
}

// computedAgain trains two ranks, one parameter of which freezes on the way, and
// returns rank 0's parameters.
func computedAgain(t *testing.T, cfg FusionConfig, frozen int) (all []float32) {
	loss := func(t *nn.Tape, out []*nn.Var, b Batch) *nn.Var {
		return t.CrossEntropy(out[0], b.Target, nn.CrossEntropyConfig{Ignore: -1, HasIgnore: true})
	}
	train := func(ctx context.Context, c collective.Comm) (err error) {
		dev := naive.New()
		blocks := []nn.Block{nn.NewSeq("a", nn.Flatten{}, linear("a", 4, 5), nn.Tanh{}), nn.NewSeq("b", linear("b", 5, 6), nn.Tanh{}), nn.NewSeq("c", linear("c", 6, 10))}
		if err := nn.Materialize(dev, blocks, 1); err != nil {
			return err
		}
		params := nn.Params(blocks)
		opt, err := optim.New(optim.Config{Name: "sgd"})
		if err != nil {
			return err
		}
		cfg := cfg
		cfg.Device = dev
		g, err := NewGradFusion(ctx, []Stage{{Blocks: blocks, Comm: c}}, opt, cfg)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, g.Close()) }()
		step := 0
		e := NewExecutor(ExecutorConfig{Fusion: g, Device: dev, Loss: loss, Recompute: true, Feed: func(_ context.Context, m Micro) (Batch, error) {
			s := newSamples(8, 1, 2)
			s.y = slices.Clone(s.y)
			for i := range step % 5 {
				s.y[i] = -1
			}
			return s.batch(m), nil
		}})
		for step = range 12 {
			params[frozen].Frozen = step >= 5
			if err := errors.Join(e.Step(ctx, 8, 2), g.Step(0.05)); err != nil {
				return err
			}
		}
		if err := g.Complete(ctx); err != nil || c.Rank() != 0 {
			return err
		}
		for _, p := range params {
			all = append(all, p.Value.F32()...)
		}
		return nil
	}
	require.NoError(t, world(t.Context(), 2, train))
	return all
}

// What is kept belongs to the last step's sums, for which who asks waits.
func TestKeptOfDeferredSums(t *testing.T) {
	for _, format := range []string{"int8", "topk"} {
		digest := func(late bool) (hash string) {
			tr := lossyTrial(format, 6)
			tr.fusion.Defer = late
			require.NoError(t, world(t.Context(), 2, func(ctx context.Context, c collective.Comm) error {
				g, run, err := tr.start(ctx, c)
				if err != nil {
					return err
				}
				defer g.Close()
				if err := run(6); err != nil {
					return err
				}
				d, err := g.KeptDigests(ctx)
				if c.Rank() == 0 {
					hash = Hash([]Named{d})
				}
				return err
			}))
			return hash
		}
		require.Equal(t, digest(false), digest(true), format)
	}
}

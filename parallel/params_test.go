package parallel

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/device/naive"
	"github.com/gradfusion/gradfusion/nn"
	"github.com/gradfusion/gradfusion/optim"
)

// spare is a layer whose parameter only every second micro-batch uses, or none.
type spare struct {
	*nn.Linear
	every int // 0: never used
}

func (l spare) Forward(t *nn.Tape, x *nn.Var) *nn.Var {
	if l.every > 0 && t.Pass.Micro%l.every == 0 {
		return l.Linear.Forward(t, x)
	}
	return x
}

// stepsOf trains blocks made by build for two steps on n ranks and returns what
// rank 0 ends with: its parameters by name.
func stepsOf(t *testing.T, n int, cfg FusionConfig, build func() []nn.Block) (map[string][]float32, error) {
	t.Helper()
	out := map[string][]float32{}
	set := newSamples(8, 1, 4)
	set.shape = nn.Plain(8, 16)
	err := world(t.Context(), n, func(ctx context.Context, c collective.Comm) error {
		dev, blocks := naive.New(), build()
		if err := nn.Materialize(dev, blocks, 1); err != nil {
			return err
		}
		opt, err := optim.New(optim.Config{Name: "momentum"})
		if err != nil {
			return err
		}
		cfg := cfg
		cfg.Device, cfg.CheckEvery = dev, 1
		g, err := NewGradFusion(ctx, []Stage{{Blocks: blocks, Comm: c}}, opt, cfg)
		if err != nil {
			return err
		}
		defer g.Close()
		e := NewExecutor(ExecutorConfig{Fusion: g, Device: dev, Loss: crossEntropy,
			Feed: func(_ context.Context, m Micro) (Batch, error) { return set.batch(m), nil }})
		for range 2 {
			if err := e.Step(ctx, 8, 2); err != nil {
				return err
			}
			if err := g.Step(0.1); err != nil {
				return err
			}
		}
		if c.Rank() == 0 {
			for _, p := range nn.Params(blocks) {
				out[p.Name] = slices.Clone(p.Value.F32())
			}
		}
		return nil
	})
	return out, err
}

func linear(name string, in, out int) *nn.Linear {
	return nn.NewLinear(name, in, out, nn.LinearConfig{})
}

// TestSharedLayer uses one layer three times: its gradient is the sum over its
// uses, in the order of use, on any number of ranks.
func TestSharedLayer(t *testing.T) {
	build := func() []nn.Block {
		shared := linear("shared", 16, 16)
		return []nn.Block{nn.NewSeq("a", shared, nn.Tanh{}), nn.NewSeq("b", shared, nn.Tanh{}, shared), nn.NewSeq("head", linear("fc", 16, 10))}
	}
	cfg := FusionConfig{Deterministic: true, ThresholdMB: 0.0005}
	want, err := stepsOf(t, 1, cfg, build)
	require.NoError(t, err)
	for _, ranks := range []int{2, 3, 5} {
		got, err := stepsOf(t, ranks, cfg, build)
		require.NoError(t, err)
		require.Equal(t, want, got, "%d ranks", ranks)
	}
	ring, err := stepsOf(t, 3, FusionConfig{}, build)
	require.NoError(t, err)
	requireClose(t, want, ring)
}

func TestFrozenParameters(t *testing.T) {
	before := make([]float32, 256)
	linear("first", 16, 16).Params()[0].Init.Fill(before, 1, "first.weight")
	got, err := stepsOf(t, 2, FusionConfig{}, func() []nn.Block {
		first := linear("first", 16, 16)
		first.Params()[0].Frozen = true
		return []nn.Block{nn.NewSeq("a", first), nn.NewSeq("b", linear("fc", 16, 10))}
	})
	require.NoError(t, err)
	require.Equal(t, before, got["first.weight"])
	require.NotEqual(t, make([]float32, 16), got["first.bias"])
}

func TestUnusedParameters(t *testing.T) {
	build := func(every int) func() []nn.Block {
		return func() []nn.Block {
			return []nn.Block{nn.NewSeq("a", linear("first", 16, 16), spare{linear("spare", 16, 16), every}), nn.NewSeq("b", linear("fc", 16, 10))}
		}
	}
	for _, deterministic := range []bool{false, true} {
		for _, every := range []int{0, 2} {
			cfg := FusionConfig{Deterministic: deterministic}
			_, err := stepsOf(t, 2, cfg, build(every))
			require.ErrorIs(t, err, errUnused)
			require.ErrorContains(t, err, "spare.weight")
			require.ErrorContains(t, err, "find_unused")

			cfg.FindUnused = true
			want, err := stepsOf(t, 1, cfg, build(every))
			require.NoError(t, err)
			for _, ranks := range []int{2, 3} {
				got, err := stepsOf(t, ranks, cfg, build(every))
				require.NoError(t, err)
				requireClose(t, want, got)
				if deterministic {
					require.Equal(t, want, got)
				}
			}
		}
	}
}

// TestDriftIsNamed changes a parameter on one rank behind GradFusion's back.
func TestDriftIsNamed(t *testing.T) {
	err := world(t.Context(), 2, func(ctx context.Context, c collective.Comm) error {
		dev := naive.New()
		blocks := []nn.Block{nn.NewSeq("a", linear("first", 16, 8)), nn.NewSeq("b", linear("fc", 8, 10))}
		if err := nn.Materialize(dev, blocks, 1); err != nil {
			return err
		}
		opt, _ := optim.New(optim.Config{})
		g, err := NewGradFusion(ctx, []Stage{{Blocks: blocks, Comm: c}}, opt, FusionConfig{Device: dev, CheckEvery: 1})
		if err != nil {
			return err
		}
		defer g.Close()
		set := newSamples(4, 1, 4)
		e := NewExecutor(ExecutorConfig{Fusion: g, Device: dev, Loss: crossEntropy,
			Feed: func(_ context.Context, m Micro) (Batch, error) {
				b := set.batch(m)
				b.Shape = nn.Plain(m.Samples, 16)
				return b, nil
			}})
		if err := e.Step(ctx, 4, 2); err != nil {
			return err
		}
		if c.Rank() == 1 {
			nn.Params(blocks)[3].Value.F32()[2] += 1
		}
		return g.Step(0.1)
	})
	require.ErrorIs(t, err, ErrDiffer)
	require.ErrorContains(t, err, "fc.bias on rank 1")
}

package parallel

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/device/naive"
	"github.com/gradfusion/gradfusion/nn"
	"github.com/gradfusion/gradfusion/optim"
)

// thaw is a training of three layers, some of which freeze sets before each step.
type thaw struct {
	cfg    FusionConfig
	start  func(params []*nn.Param) // before the GradFusion is made
	freeze func(rank, step int, params []*nn.Param)
	steps  int
	late   bool // only the last step's parameters are looked at
}

// run returns the parameters after each step.
func (th thaw) run(ctx context.Context, c collective.Comm) (after [][]float32, err error) {
	dev, set := naive.New(), newSamples(8, 1, 2)
	blocks := []nn.Block{nn.NewSeq("all", nn.Flatten{}, linear("a", 4, 5), nn.Tanh{}, linear("b", 5, 6), nn.Tanh{}, linear("c", 6, 10))}
	if err := nn.Materialize(dev, blocks, 1); err != nil {
		return nil, err
	}
	params := nn.Params(blocks)
	if th.start != nil {
		th.start(params)
	}
	opt, _ := optim.New(optim.Config{Name: "adamw", WeightDecay: 0.1})
	cfg := th.cfg
	cfg.Device = dev
	g, err := NewGradFusion(ctx, []Stage{{Blocks: blocks, Comm: c}}, opt, cfg)
	if err != nil {
		return nil, err
	}
	defer g.Close()
	e := NewExecutor(ExecutorConfig{Fusion: g, Device: dev, Loss: crossEntropy,
		Feed: func(_ context.Context, m Micro) (Batch, error) { return set.batch(m), nil }})
	for step := range th.steps {
		if th.freeze != nil {
			th.freeze(c.Rank(), step, params)
		}
		if err := e.Step(ctx, 8, 2); err != nil {
			return after, err
		}
		if err := g.Step(0.05); err != nil {
			return after, err
		}
		if th.late && step < th.steps-1 {
			continue
		}
		if err := g.Complete(ctx); err != nil {
			return after, err
		}
		var all []float32
		for _, p := range params {
			all = append(all, p.Value.F32()...)
		}
		after = append(after, all)
	}
	return after, nil
}

func (th thaw) onRanks(t *testing.T, n int) ([][][]float32, []error) {
	t.Helper()
	out, errs := make([][][]float32, n), make([]error, n)
	require.NoError(t, world(t.Context(), n, func(ctx context.Context, c collective.Comm) error {
		out[c.Rank()], errs[c.Rank()] = th.run(ctx, c)
		return nil
	}))
	return out, errs
}

// The first layer is frozen for three steps and then trained again; the second for
// one. A bucket holds one parameter, or all.
func TestParametersFrozenForSomeSteps(t *testing.T) {
	freeze := func(_, step int, params []*nn.Param) {
		params[0].Frozen = step >= 1 && step < 4
		params[1].Frozen = params[0].Frozen
		params[2].Frozen = step == 2
	}
	for _, c := range []FusionConfig{{}, {Deterministic: true}, {Shard: true}, {Wire: Compression{Format: "int8"}}} {
		for _, threshold := range []float64{1e-6, 100} {
			t.Run(fmt.Sprintf("%+v %g", c, threshold), func(t *testing.T) {
				c.ThresholdMB, c.FirstMB, c.ClipNorm = threshold, threshold, 0.5
				th := thaw{cfg: c, freeze: freeze, steps: 6}
				one, errs := th.onRanks(t, 1)
				require.NoError(t, errs[0])
				for _, n := range []int{1, 2, 3, 5} {
					got, errs := th.onRanks(t, n)
					for r := range n {
						require.NoError(t, errs[r])
						require.Equal(t, got[0], got[r], "rank %d of %d", r, n)
					}
					if c.Deterministic {
						require.Equal(t, one[0], got[0], "%d ranks", n)
					}
					first := func(step int) []float32 { return got[0][step][:4*5+5] }
					second := func(step int) []float32 { return got[0][step][4*5+5 : 4*5+5+5*6] }
					require.Equal(t, first(0), first(3), "frozen in the second to fourth step")
					require.NotEqual(t, first(3), first(4))
					require.Equal(t, second(1), second(2))
					require.NotEqual(t, second(2), second(3))
				}
			})
		}
	}
}

// What is frozen on one rank only is an error of all.
func TestFrozenOnOneRankIsAnErrorOfAll(t *testing.T) {
	th := thaw{steps: 3, freeze: func(rank, step int, params []*nn.Param) { params[2].Frozen = step == 1 && rank == 1 }}
	for _, th.cfg = range []FusionConfig{{}, {Deterministic: true}, {ThresholdMB: 1e-6, FirstMB: 1e-6}} {
		_, errs := th.onRanks(t, 3)
		for _, err := range errs {
			require.ErrorIs(t, err, ErrDiffer)
			require.EqualError(t, err, "step 2: the ranks differ: rank 0 has frozen nothing, rank 1 b.weight")
		}
	}
}

// What was frozen from the start has no place in a bucket.
func TestWhatWasFrozenAtTheStartStaysSo(t *testing.T) {
	th := thaw{steps: 3, start: func(p []*nn.Param) { p[0].Frozen = true },
		freeze: func(_, step int, p []*nn.Param) { p[0].Frozen = step < 2 }}
	out, errs := th.onRanks(t, 2)
	for rank, err := range errs {
		require.ErrorContains(t, err, "step 3, rank 0: a.weight was frozen when the GradFusion was made")
		require.Len(t, out[rank], 2)
		require.Equal(t, out[rank][0][:20], out[rank][1][:20])
	}
}

// A loss that leaves out targets has the gradient of the mean over the others,
// however they are dealt.
func TestGradientsAreTheMeanOverWhatCounts(t *testing.T) {
	set := newSamples(12, 1, 2)
	full := newSamples(12, 1, 2)
	var counted samples
	counted.shape = set.shape
	for i := range set.y {
		if i == 0 || i == 7 || i > 8 {
			set.y[i] = -1
			continue
		}
		counted.y = append(counted.y, full.y[i])
		counted.x = append(counted.x, full.x[i*4:(i+1)*4]...)
	}
	counted.shape.Dims[0] = len(counted.y)
	loss := func(t *nn.Tape, out []*nn.Var, b Batch) *nn.Var {
		return t.CrossEntropy(out[0], b.Target, nn.CrossEntropyConfig{Ignore: -1, HasIgnore: true})
	}
	run := func(s samples, ranks, micro int, cfg FusionConfig) map[string][]float32 {
		grads := map[string][]float32{}
		require.NoError(t, world(t.Context(), ranks, func(ctx context.Context, c collective.Comm) error {
			cfg := cfg
			cfg.Device = naive.New()
			blocks := []nn.Block{nn.NewSeq("all", nn.Flatten{}, linear("a", 4, 5), nn.Tanh{}, linear("b", 5, 10))}
			if err := nn.Materialize(cfg.Device, blocks, 1); err != nil {
				return err
			}
			opt, _ := optim.New(optim.Config{Name: "sgd"})
			g, err := NewGradFusion(ctx, []Stage{{Blocks: blocks, Comm: c}}, opt, cfg)
			if err != nil {
				return err
			}
			defer g.Close()
			e := NewExecutor(ExecutorConfig{Fusion: g, Device: cfg.Device, Loss: loss,
				Feed: func(_ context.Context, m Micro) (Batch, error) { return s.batch(m), nil }})
			if err := e.Step(ctx, len(s.y), micro); err != nil {
				return err
			}
			list, err := g.Gradients(ctx)
			if c.Rank() == 0 {
				for _, n := range list {
					grads[n.Name] = slices.Clone(n.Buf.F32())
				}
			}
			return err
		}))
		return grads
	}
	want := run(counted, 1, 12, FusionConfig{})
	for _, c := range []struct{ ranks, micro int }{{1, 12}, {1, 5}, {2, 6}, {3, 3}, {4, 2}} {
		for _, deterministic := range []bool{false, true} {
			requireClose(t, want, run(set, c.ranks, c.micro, FusionConfig{Deterministic: deterministic}))
		}
	}
	none := set
	none.y = slices.Repeat([]int32{-1}, 12)
	for name, g := range run(none, 2, 3, FusionConfig{}) {
		require.Equal(t, make([]float32, len(g)), g, name)
	}
}

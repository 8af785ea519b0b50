package parallel

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/naive"
	"github.com/gradfusion/gradfusion/nn"
	"github.com/gradfusion/gradfusion/optim"
)

// lookups is a training of two tables, one of them looked up twice in a pass, and
// a classifier over their vectors.
type lookups struct {
	sparse        bool
	count, width  int
	samples, kind int // tokens are drawn from the first kind of each table
	micro, steps  int
	fusion        FusionConfig
	optim         optim.Config
}

// pairBlock adds a vector of one table to two of the other.
type pairBlock struct{ once, twice *nn.Embedding }

func (b pairBlock) Name() string        { return "pair" }
func (b pairBlock) State() []nn.State   { return nil }
func (b pairBlock) Params() []*nn.Param { return append(b.once.Params(), b.twice.Params()...) }
func (b pairBlock) Forward(t *nn.Tape, in []*nn.Var) []*nn.Var {
	ids := nn.Only("pair", in)
	x := t.Add("pair", b.once.Forward(t, ids), b.twice.Forward(t, ids))
	return t.List(t.Add("pair", x, b.twice.Forward(t, ids)))
}

func (l lookups) blocks() []nn.Block {
	pair := pairBlock{nn.NewEmbedding("once", l.count, l.width), nn.NewEmbedding("twice", l.count, l.width)}
	pair.once.Weight.Sparse, pair.twice.Weight.Sparse = l.sparse, l.sparse
	return []nn.Block{pair, nn.NewSeq("head", linear("fc", l.width, 10))}
}

func (l lookups) batch(step int, m Micro) Batch {
	r := rand.New(rand.NewPCG(uint64(step), 1))
	ids, y := make([]int32, m.Total), make([]int32, m.Total)
	for i := range ids {
		ids[i], y[i] = int32(r.IntN(l.kind)*(l.count/l.kind)), int32(r.IntN(10))
	}
	return Batch{Input: device.FromI32(ids[m.Lo:m.Hi]), Shape: nn.Plain(m.Samples), Target: device.FromI32(y[m.Lo:m.Hi])}
}

// learned is what a training leaves.
type learned struct {
	hash   string
	params map[string][]float32
	norm   float64
	sparse int // sums for which rows travelled
}

func (l lookups) run(ctx context.Context, c collective.Comm, dev device.Device) (out learned, err error) {
	blocks := l.blocks()
	if err := nn.Materialize(dev, blocks, 1); err != nil {
		return out, err
	}
	opt, err := optim.New(l.optim)
	if err != nil {
		return out, err
	}
	cfg := l.fusion
	cfg.Device, cfg.CheckEvery = dev, 1
	g, err := NewGradFusion(ctx, []Stage{{Blocks: blocks, Comm: c}}, opt, cfg)
	if err != nil {
		return out, err
	}
	defer g.Close()
	e := NewExecutor(ExecutorConfig{Fusion: g, Device: dev, Loss: crossEntropy,
		Feed: func(_ context.Context, m Micro) (Batch, error) { return l.batch(g.Completed(), m), nil }})
	for range l.steps {
		if err := e.Step(ctx, l.samples, l.micro); err != nil {
			return out, err
		}
		if err := g.Step(0.1); err != nil {
			return out, err
		}
	}
	out.norm, out.params = g.Outcome().GradNorm, map[string][]float32{}
	for _, b := range g.stages[0].reducer.buckets {
		if b.table != nil {
			out.sparse += b.table.sparse
		}
	}
	for _, p := range nn.Params(blocks) {
		out.params[p.Name] = slices.Clone(p.Value.F32())
	}
	out.hash = Hash(Params(nn.Params(blocks)))
	return out, nil
}

// everywhere requires one result of all ranks.
func (l lookups) everywhere(t *testing.T, n int) learned {
	t.Helper()
	all := make([]learned, n)
	require.NoError(t, world(t.Context(), n, func(ctx context.Context, c collective.Comm) (err error) {
		all[c.Rank()], err = l.run(ctx, c, naive.New())
		return err
	}))
	for r := range all {
		require.Equal(t, all[0].hash, all[r].hash, "rank %d", r)
		require.Equal(t, all[0].sparse, all[r].sparse, "rank %d", r)
	}
	return all[0]
}

var tableTrials = map[string]struct {
	lookups
	travels bool // rows, and not the whole table
}{
	"few rows":    {lookups{count: 200, width: 5, samples: 14, kind: 10, micro: 3, steps: 4}, true},
	"all rows":    {lookups{count: 4, width: 5, samples: 14, kind: 4, micro: 3, steps: 3}, false},
	"empty runs":  {lookups{count: 200, width: 5, samples: 4, kind: 20, micro: 2, steps: 3}, true},
	"one element": {lookups{count: 50, width: 1, samples: 9, kind: 5, micro: 2, steps: 3}, true},
}

// Deterministic sums of sparse gradients have the bits of dense ones, for any
// number of ranks, whether rows travel or the whole table, with clipping.
func TestSparseGradientsAreDenseToTheBit(t *testing.T) {
	for name, c := range tableTrials {
		for _, optimizer := range []string{"sgd", "momentum", "adam", "lamb"} {
			t.Run(name+" "+optimizer, func(t *testing.T) {
				l := c.lookups
				l.optim.Name, l.fusion = optimizer, FusionConfig{Deterministic: true, ClipNorm: 0.05, ThresholdMB: 0.0005}
				l.sparse = true
				want := l.everywhere(t, 1)
				for _, ranks := range []int{2, 3, 5} {
					got := l.everywhere(t, ranks)
					require.Equal(t, want.hash, got.hash, "%d ranks", ranks)
					require.Equal(t, want.norm, got.norm, "%d ranks", ranks)
				}
				l.sparse = false
				dense := l.everywhere(t, 2)
				require.Equal(t, dense.params["once.weight"], want.params["once.weight"])
				require.Equal(t, dense.norm, want.norm)
			})
		}
	}
}

// Without deterministic mode ranks agree, the sum is the dense one up to
// rounding, and rows travel where they are fewer.
func TestSparseGradientsOfRanksAgree(t *testing.T) {
	for name, c := range tableTrials {
		for _, shard := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " sharded ", shard), func(t *testing.T) {
				l := c.lookups
				l.optim, l.fusion = optim.Config{Name: "momentum"}, FusionConfig{ClipNorm: 0.05, Shard: shard}
				want := l.everywhere(t, 1)
				l.sparse = true
				for _, ranks := range []int{1, 2, 3, 5} {
					got := l.everywhere(t, ranks)
					requireNear(t, want.params, got.params, 1e-6)
					if ranks > 1 && c.travels {
						require.Equal(t, 2*l.steps, got.sparse)
					} else if ranks > 3 {
						require.Zero(t, got.sparse)
					}
				}
			})
		}
	}
}

// Rows that travel as 16-bit floats are rounded once: within 2^-11 of each
// rank's share for f16, 2^-8 for bf16, of gradients near the norm.
func TestSparseGradientsOverSixteenBits(t *testing.T) {
	for format, bound := range map[string]float64{"f16": 1e-3, "bf16": 8e-3} {
		for name, c := range tableTrials {
			l := c.lookups
			l.sparse, l.steps, l.optim = true, 1, optim.Config{Name: "sgd"}
			want := l.everywhere(t, 1).params
			l.fusion.Wire.Format = format
			for _, ranks := range []int{2, 3, 5} {
				got := l.everywhere(t, ranks)
				requireNear(t, want, got.params, bound)
				require.NotEqual(t, want["once.weight"], got.params["once.weight"], "%s, %s", name, format)
			}
		}
	}
}

// A lazy optimizer visits the same rows however the sum came about.
func TestLazyUpdatesDoNotDependOnHowRowsTravel(t *testing.T) {
	for name, c := range tableTrials {
		l := c.lookups
		l.sparse, l.optim, l.fusion = true, optim.Config{Name: "adam", Lazy: true, WeightDecay: 0.01}, FusionConfig{Deterministic: true}
		want := l.everywhere(t, 1)
		for _, ranks := range []int{2, 4} {
			require.Equal(t, want.hash, l.everywhere(t, ranks).hash, "%s, %d ranks", name, ranks)
		}
	}
}

// Sparse gradients of what has no rows, or of a table in pieces, are refused.
func TestSparseGradientsAreRefusedByName(t *testing.T) {
	for want, change := range map[string]func(p *nn.Param, s *Stage){
		"table.weight has a sparse gradient, which only a table of two dimensions can have, and its shape is [12]": func(p *nn.Param, s *Stage) { p.Shape = []int{12} },
		"table.weight has a sparse gradient and is tied to other stages":                                           func(p *nn.Param, s *Stage) { s.Tied = map[string]collective.Comm{p.Name: s.Comm} },
		"table.weight has a sparse gradient and is cut over partners":                                              func(p *nn.Param, s *Stage) { p.Part = &nn.Part{} },
	} {
		require.NoError(t, world(t.Context(), 1, func(ctx context.Context, c collective.Comm) error {
			table, dev := nn.NewEmbedding("table", 4, 3), naive.New()
			table.Weight.Sparse = true
			s := Stage{Blocks: []nn.Block{nn.NewSeq("table", table)}, Comm: c}
			if err := nn.Materialize(dev, s.Blocks, 1); err != nil {
				return err
			}
			change(table.Weight, &s)
			opt, _ := optim.New(optim.Config{})
			_, err := NewGradFusion(ctx, []Stage{s}, opt, FusionConfig{Device: dev})
			require.ErrorContains(t, err, want)
			return nil
		}))
	}
}

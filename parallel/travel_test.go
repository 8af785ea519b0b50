package parallel

import (
	"context"
	"errors"
	"math"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/nn"
	"github.com/gradfusion/gradfusion/parallel/schedule"
)

// Recomputed blocks, and sends and receives in pairs, change no bit.
func TestPipelineVariantsEqualOneProcess(t *testing.T) {
	for model, make := range smallModels() {
		base := make(9)
		base.micro, base.fusion = 2, FusionConfig{Deterministic: true, Targets: base.fusion.Targets}
		one, err := base.run(t.Context())
		require.NoError(t, err)
		for _, p := range []pipelined{
			{name: "1f1b", ranks: 3, recomp: true},
			{name: "zb-v", ranks: 2, recomp: true},
			{name: "zb-h1", ranks: 3, paired: true},
			{name: "interleaved", ranks: 2, paired: true},
		} {
			got := base
			got.name, got.ranks, got.recomp, got.paired, got.virtual = p.name, p.ranks, p.recomp, p.paired, 2
			state, err := got.run(t.Context())
			require.NoError(t, err, "%s %s", model, p.name)
			requireSame(t, one, state)
		}
	}
}

// Without a canonical order ranks agree, and the first step's gradients are
// within the rounding of a different order of additions.
func TestPipelineWithoutCanonicalOrder(t *testing.T) {
	base := smallModels()["gpt"](16)
	base.micro, base.steps = 2, 1
	one, err := base.run(t.Context())
	require.NoError(t, err)
	for _, columns := range []int{1, 2} {
		p := base
		p.name, p.ranks, p.columns = "1f1b", 2, columns
		got, err := p.run(t.Context())
		require.NoError(t, err)
		requireClose(t, values(one), values(got))
	}
}

func values(s *state) map[string][]float32 {
	out := map[string][]float32{}
	for name, t := range s.tensors {
		if t.Buf.Type == device.F32 {
			out[name] = t.Buf.F32()
		}
	}
	return out
}

// A 16-bit wire rounds what travels to 11 or 8 bits, of which a loss near
// log(11) shows little.
func TestPipelineWires(t *testing.T) {
	base := smallModels()["gpt"](16)
	base.micro, base.steps = 2, 1
	one, err := base.run(t.Context())
	require.NoError(t, err)
	for wire, bound := range map[device.Type]float64{device.F32: 1e-6, device.F16: 1e-4, device.BF16: 1e-3} {
		p := base
		p.name, p.ranks, p.columns, p.wire, p.virtual = "interleaved", 2, 2, wire, 2
		got, err := p.run(t.Context())
		require.NoError(t, err)
		for _, o := range got.outcomes {
			require.InDelta(t, one.outcomes[0].Loss, o.Loss, bound*one.outcomes[0].Loss, "%v", wire)
		}
		require.Equal(t, wire == device.F32, math.Abs(got.outcomes[0].Loss-one.outcomes[0].Loss) < 1e-7, "%v on the wire", wire)
	}
}

// An evaluation gives the scores of one process, in the order of micro-batches,
// on the rank with the last stage.
func TestPipelineEvaluates(t *testing.T) {
	for model, make := range smallModels() {
		base := make(9)
		base.micro, base.steps, base.fusion.Deterministic = 2, 1, true
		var mu sync.Mutex
		scores := func(p pipelined) (out []float64) {
			p.evaluate = func(m Micro, s nn.Score) {
				mu.Lock()
				defer mu.Unlock()
				out = append(out, float64(m.Index), s.Sum(), float64(s.Correct()), float64(s.Count))
			}
			_, err := p.run(t.Context())
			require.NoError(t, err)
			return out
		}
		want := scores(base)
		require.Len(t, want, 5*4)
		for _, name := range schedule.Names() {
			p := base
			p.name, p.ranks, p.virtual = name, 2, 2
			require.Equal(t, want, scores(p), "%s %s", model, name)
		}
	}
}

// tupleBlock takes and gives a value, a shortcut around two blocks, and marks
// that no gradient flows into.
type tupleBlock struct {
	*nn.Linear
	name string
}

func (b tupleBlock) Name() string { return b.name }

func (b tupleBlock) Forward(t *nn.Tape, in []*nn.Var) []*nn.Var {
	if len(in) == 1 { // the first block
		marks := make([]int32, in[0].Shape.Rows())
		return t.List(b.Linear.Forward(t, in[0]), in[0], t.Input(device.FromI32(marks), nn.Plain(len(marks)), false))
	}
	y := b.Linear.Forward(t, in[0])
	return t.List(t.Add(b.name, y, in[1]), in[0], in[2])
}

type tupleHead struct{ tupleBlock }

func (b tupleHead) Forward(t *nn.Tape, in []*nn.Var) []*nn.Var {
	return t.List(b.Linear.Forward(t, t.Add(b.name, in[0], in[1])))
}

// A block may hand several values on: shortcuts that reach over stages, and
// values without a gradient.
func TestTuplesTravel(t *testing.T) {
	set := newSamples(7, 1, 4)
	set.shape = nn.Plain(7, 16)
	base := pipelined{name: "gpipe", ranks: 1, columns: 1, samples: 7, micro: 2, steps: 2, batch: set.batch, loss: crossEntropy,
		fusion: FusionConfig{Deterministic: true},
		build: func() (out []nn.Block, err error) {
			for _, name := range []string{"a", "b", "c"} {
				out = append(out, tupleBlock{linear(name, 16, 16), name})
			}
			return append(out, tupleHead{tupleBlock{linear("head", 16, 10), "head"}}), nil
		}}
	one, err := base.run(t.Context())
	require.NoError(t, err)
	for _, name := range []string{"1f1b", "zb-h1", "zb-v"} {
		p := base
		p.name, p.ranks, p.virtual = name, 2, 2
		got, err := p.run(t.Context())
		require.NoError(t, err)
		requireSame(t, one, got)
	}
}

// A schedule that is not for the stages that a rank holds is refused.
func TestForeignScheduleIsRefused(t *testing.T) {
	p := smallModels()["mlp"](8)
	p.name, p.ranks, p.micro = "1f1b", 2, 2
	errs := make([]error, 2)
	err := world(t.Context(), 2, func(ctx context.Context, c collective.Comm) error {
		m, err := NewMesh(ctx, c, MeshConfig{Pipeline: 2})
		if err != nil {
			return err
		}
		stages, err := p.stagesOf(ctx, m, p.device(), []int{0, 1})
		if err != nil {
			return err
		}
		g, err := NewGradFusion(ctx, stages, nil, FusionConfig{Device: p.device(), World: c})
		if err != nil {
			return err
		}
		config := ExecutorConfig{Fusion: g, Device: p.device(), Loss: p.loss, Pipe: m.Column,
			Schedule: func(micros int) (schedule.Schedule, error) { return schedule.New("interleaved", 2, 2, micros) }}
		errs[c.Rank()] = NewExecutor(config).Step(ctx, 8, 2)
		config.Schedule = nil
		require.ErrorContains(t, NewExecutor(config).Step(ctx, 8, 2), "needs ExecutorConfig.Pipe and ExecutorConfig.Schedule")
		return errors.Join(g.Close(), m.Close())
	})
	require.NoError(t, err)
	require.EqualError(t, errs[1], "parallel: the schedule runs stages [1 3] on rank 1 of the pipeline, which holds [1]")
}

// What shapes a stage gives may depend on the number of samples only.
func TestShapesThatVaryAreRefused(t *testing.T) {
	p := smallModels()["mlp"](8)
	p.name, p.ranks, p.micro, p.steps = "1f1b", 2, 2, 1
	p.build = func() ([]nn.Block, error) {
		return []nn.Block{nn.NewSeq("shape", changing{}), nn.NewSeq("head", nn.Flatten{}, linear("fc", 9, 10))}, nil
	}
	errs := make([]error, 2) // rank 1 may be the first to end, because rank 0 has left
	require.NoError(t, world(t.Context(), 2, func(ctx context.Context, c collective.Comm) error {
		errs[c.Rank()] = p.rank(ctx, c, &state{tensors: map[string]Named{}})
		return nil
	}))
	require.ErrorContains(t, errs[0], "shapes may depend on the number of samples only")
	require.ErrorContains(t, errs[1], "peer 0")
}

// A stage without parameters is cut once, like the others, whatever run of
// micro-batches a column has.
func TestStageWithoutParameters(t *testing.T) {
	p := smallModels()["mlp"](5) // three micro-batches: two and one
	p.micro, p.steps, p.fusion.Deterministic = 2, 2, true
	p.build = func() ([]nn.Block, error) {
		return []nn.Block{nn.NewSeq("flat", nn.Flatten{}), nn.NewSeq("head", linear("fc", 9, 10))}, nil
	}
	one, err := p.run(t.Context())
	require.NoError(t, err)
	p.name, p.ranks, p.columns = "1f1b", 2, 2
	got, err := p.run(t.Context())
	require.NoError(t, err)
	requireSame(t, one, got)
}

type changing struct{ nn.Flatten }

func (changing) Forward(t *nn.Tape, x *nn.Var) *nn.Var {
	if t.Pass.Micro == 1 {
		return t.Flatten("shape", x)
	}
	return x
}

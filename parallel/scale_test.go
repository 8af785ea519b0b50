package parallel

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/amp"
	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/naive"
	"github.com/gradfusion/gradfusion/models"
	"github.com/gradfusion/gradfusion/nn"
	"github.com/gradfusion/gradfusion/optim"
)

// scaled is a training in mixed precision. Samples may be replaced in a step.
type scaled struct {
	model     models.Config
	optimizer string
	level     amp.Config
	fixed     float64 // a loss scale without a level
	clip      float64
	exact     bool // deterministic
	shard     bool
	late      bool // deferred
	data      samples
	steps     int
	spoil     func(step int, m Micro, b Batch)
	after     func(c collective.Comm, g *GradFusion, m *models.Model)
}

func (s scaled) run(ctx context.Context, c collective.Comm) (string, error) {
	dev := naive.New()
	m, err := models.New(s.model)
	if err != nil {
		return "", err
	}
	if err := nn.Materialize(dev, m.Blocks, 1); err != nil {
		return "", err
	}
	opt, err := optim.New(optim.Config{Name: s.optimizer})
	if err != nil {
		return "", err
	}
	cfg := FusionConfig{Device: dev, ThresholdMB: 0.001, Deterministic: s.exact, Shard: s.shard, Defer: s.late, ClipNorm: s.clip, Scaler: s.level.Scaler(), Masters: s.level.Masters()}
	if s.fixed != 0 {
		cfg.Scaler = amp.NewScaler(amp.ScalerConfig{Fixed: s.fixed})
	}
	g, err := NewGradFusion(ctx, []Stage{{Blocks: m.Blocks, Comm: c}}, opt, cfg)
	if err != nil {
		return "", err
	}
	defer g.Close()
	e := NewExecutor(ExecutorConfig{Fusion: g, Device: dev, Loss: crossEntropy, Precision: s.level.Precision(),
		Feed: func(_ context.Context, m Micro) (Batch, error) {
			b := s.data.batch(m)
			if s.spoil != nil {
				b.Input = device.FromF32(append([]float32(nil), b.Input.F32()...))
				s.spoil(g.Completed()+1, m, b)
			}
			return b, nil
		}})
	for range s.steps {
		if err := e.Step(ctx, len(s.data.y), 2); err != nil {
			return "", err
		}
		if err := g.Step(0.05); err != nil {
			return "", err
		}
		if s.after != nil {
			s.after(c, g, m)
		}
	}
	state, err := g.OptimizerState()
	return Hash(append(append(state, Params(m.Params())...), States(nn.States(m.Blocks))...)), err
}

func (s scaled) everywhere(t *testing.T, ranks int) string {
	t.Helper()
	hashes := make([]string, ranks)
	require.NoError(t, world(t.Context(), ranks, func(ctx context.Context, c collective.Comm) (err error) {
		hashes[c.Rank()], err = s.run(ctx, c)
		return err
	}))
	for r := range hashes {
		require.Equal(t, hashes[0], hashes[r], "rank %d", r)
	}
	return hashes[0]
}

// A loss scale that is a power of two changes no bit of a float32 training.
func TestScaleLeavesNoTrace(t *testing.T) {
	for _, clip := range []float64{0, 0.1} {
		for ranks := 1; ranks <= 3; ranks++ {
			s := scaled{model: resnetConfig, optimizer: "adam", clip: clip, exact: ranks == 3, data: newSamples(8, 3, 8), steps: 2}
			want := s.everywhere(t, ranks)
			s.fixed = 1 << 12
			require.Equal(t, want, s.everywhere(t, ranks), "%d ranks, clipping at %g", ranks, clip)
		}
	}
}

// In deterministic mode the layout decides nothing at any level.
func TestDeterministicPrecision(t *testing.T) {
	for _, level := range []amp.Config{{Level: amp.O1}, {Level: amp.O2}, {Level: amp.O2, BF16: true, RoundNorms: true}, {Level: amp.O3}} {
		s := scaled{model: resnetConfig, optimizer: "momentum", level: level, exact: true, clip: 1, data: newSamples(9, 3, 8), steps: 2}
		want := s.everywhere(t, 1)
		for _, ranks := range []int{2, 3} {
			require.Equal(t, want, s.everywhere(t, ranks), "%+v on %d ranks", level, ranks)
		}
	}
}

// A NaN in one micro-batch of one rank makes all ranks skip the step.
func TestOverflowOnOneRank(t *testing.T) {
	for _, exact := range []bool{false, true} {
		const ranks, bad = 3, 2
		before := make([]string, ranks)
		s := scaled{model: resnetConfig, optimizer: "adam", level: amp.Config{Level: amp.O2}, exact: exact, data: newSamples(12, 3, 8), steps: 3}
		s.spoil = func(step int, m Micro, b Batch) {
			if step == bad && m.Index == m.Count-1 {
				b.Input.F32()[5] = float32(math.NaN())
			}
		}
		s.after = func(c collective.Comm, g *GradFusion, m *models.Model) {
			now := Hash(append(Params(m.Params()), States(nn.States(m.Blocks))...))
			o := g.Outcome()
			switch step := g.Completed(); step {
			case bad:
				require.True(t, o.Skipped)
				require.Equal(t, before[c.Rank()], now, "what a skipped step leaves")
				report := g.Overflow()
				require.Equal(t, Overflow{Step: bad, Rank: ranks - 1, Param: report.Param, Layer: report.Layer, Bucket: report.Bucket, Scale: 65536, Next: 32768}, report)
				require.Contains(t, report.Bucket, "bucket 0", "the first bucket is the one whose gradients come first")
				require.Contains(t, report.Bucket, report.Param)
				require.Contains(t, report.Param, report.Layer+".")
			default:
				require.False(t, o.Skipped)
				require.NotEqual(t, before[c.Rank()], now)
				require.Equal(t, map[int]float64{1: 65536, 3: 32768}[step], o.LossScale)
			}
			before[c.Rank()] = now
		}
		s.everywhere(t, ranks)
	}
}

// The optimizer does not count a skipped step: Adam's first update is the first.
func TestSkippedStepsDoNotCount(t *testing.T) {
	s := scaled{model: mlpConfig, optimizer: "adam", level: amp.Config{Level: amp.O2}, exact: true, data: newSamples(8, 1, 4), steps: 1}
	s.level.LossScale = 256
	want := s.everywhere(t, 1)
	s.steps = 3
	s.spoil = func(step int, m Micro, b Batch) {
		if step < 3 {
			b.Input.F32()[0] = float32(math.Inf(1))
		}
	}
	require.Equal(t, want, s.everywhere(t, 2), "two ranks only differ in which is spoilt")
}

// What overflowed in a step that failed is no reason to skip the next one.
func TestFailedStepLeavesNoOverflow(t *testing.T) {
	require.NoError(t, world(t.Context(), 1, func(ctx context.Context, c collective.Comm) error {
		rank, err := newLocalRank(ctx, c, mlpConfig, FusionConfig{Scaler: amp.NewScaler(amp.ScalerConfig{Fixed: 8})})
		if err != nil {
			return err
		}
		defer rank.g.Close()
		set, spoilt := newSamples(8, 1, 4), newSamples(8, 1, 4)
		spoilt.x[5] = float32(math.Inf(1))
		err = rank.g.NoSync(func() error { return manual(2, false)(ctx, c, rank.g, rank.model, spoilt) })
		require.ErrorIs(t, err, ErrNotSynchronised)
		err = manual(2, true)(ctx, c, rank.g, rank.model, set)
		require.False(t, rank.g.Outcome().Skipped, "%+v", rank.g.Overflow())
		return err
	}))
}

func TestOverflowForGood(t *testing.T) {
	for _, level := range []amp.Config{{Level: amp.O2, LossScale: 1e30}, {Level: amp.O1, LossScale: 1e36}} {
		var reports []Overflow
		s := scaled{model: mlpConfig, optimizer: "sgd", level: level, data: newSamples(4, 1, 4), steps: 100}
		s.after = func(_ collective.Comm, g *GradFusion, _ *models.Model) { reports = append(reports, g.Overflow()) }
		err := world(t.Context(), 1, func(ctx context.Context, c collective.Comm) error {
			_, err := s.run(ctx, c)
			return err
		})
		require.ErrorIs(t, err, amp.ErrOverflow)
		require.EqualError(t, err, fmt.Sprintf("step 25: the gradients overflow whatever the loss scale: 25 steps in a row at a loss scale of %g", level.LossScale))
		require.Len(t, reports, 24)
		require.Equal(t, 24, reports[23].Stuck)
		require.NotEmpty(t, reports[0].Param)
	}
}

// O3 leaves numbers of 16 bits, from the start.
func TestNoMasters(t *testing.T) {
	s := scaled{model: resnetConfig, optimizer: "momentum", level: amp.Config{Level: amp.O3, BF16: true}, data: newSamples(4, 3, 8), steps: 2}
	s.after = func(_ collective.Comm, g *GradFusion, m *models.Model) {
		for _, p := range m.Params() {
			for _, v := range p.Value.F32() {
				require.Equal(t, v, device.BF16ToF32(device.F32ToBF16(v)), p.Name)
			}
		}
	}
	s.everywhere(t, 2)
}

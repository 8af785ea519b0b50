package parallel

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/device/naive"
	"github.com/gradfusion/gradfusion/models"
	"github.com/gradfusion/gradfusion/nn"
	"github.com/gradfusion/gradfusion/optim"
)

func TestMain(m *testing.M) {
	if description := os.Getenv(processVariable); description != "" {
		if err := runProcess(description); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// TestDeterministicWorld is the promise: equal bits for any number of ranks and
// any threshold, last partial micro-batch and empty runs included.
func TestDeterministicWorld(t *testing.T) {
	for name, base := range map[string]trial{
		"mlp":    {model: mlpConfig, micro: 3, steps: 3, data: newSamples(20, 1, 4)},
		"resnet": {model: resnetConfig, micro: 2, steps: 2, data: newSamples(9, 3, 8)},
	} {
		base.fusion.Deterministic = true
		t.Run(name, func(t *testing.T) {
			wantFirst, wantLast := base.everywhere(t, 1)
			for _, ranks := range []int{1, 2, 3, 4, 5, 7, 9} {
				for _, threshold := range []float64{0.0005, 0.01, 1000} {
					tr := base
					tr.fusion.ThresholdMB, tr.fusion.FirstMB, tr.fusion.ClipNorm = threshold, threshold/2, 0
					first, last := tr.everywhere(t, ranks)
					require.Equal(t, wantFirst, first, "%d ranks, %g MB", ranks, threshold)
					require.Equal(t, wantLast, last, "%d ranks, %g MB", ranks, threshold)
				}
			}
		})
	}
}

func TestDeterministicWorldWithClipping(t *testing.T) {
	tr := trial{model: mlpConfig, micro: 4, steps: 3, data: newSamples(18, 1, 4), fusion: FusionConfig{Deterministic: true, ClipNorm: 0.1}}
	_, want := tr.everywhere(t, 1)
	for _, ranks := range []int{2, 3, 5} {
		_, got := tr.everywhere(t, ranks)
		require.Equal(t, want, got, "%d ranks", ranks)
	}
	tr.fusion.ClipNorm = 0
	_, unclipped := tr.everywhere(t, 1)
	require.NotEqual(t, want, unclipped)
}

// TestRanksAgree runs the ring: the ranks of one job hold equal bits, also with
// runs of unequal length, and without overlap.
func TestRanksAgree(t *testing.T) {
	for _, overlap := range []bool{true, false} {
		tr := trial{model: resnetConfig, micro: 2, steps: 2, data: newSamples(9, 3, 8), fusion: FusionConfig{NoOverlap: !overlap, CheckEvery: 1}}
		for _, ranks := range []int{1, 2, 3, 7} {
			tr.everywhere(t, ranks)
		}
	}
}

// gradients runs one step of a model on n ranks and returns the summed gradients.
func gradients(t *testing.T, model models.Config, n int, drive func(ctx context.Context, c collective.Comm, g *GradFusion, m *models.Model, s samples) error) map[string][]float32 {
	t.Helper()
	out := map[string][]float32{}
	data := newSamples(12, model.Channels, model.Height)
	require.NoError(t, world(t.Context(), n, func(ctx context.Context, c collective.Comm) error {
		dev := naive.New()
		m, err := models.New(model)
		if err != nil {
			return err
		}
		if err := nn.Materialize(dev, m.Blocks, 1); err != nil {
			return err
		}
		opt, _ := optim.New(optim.Config{Name: "sgd"})
		g, err := NewGradFusion(ctx, []Stage{{Blocks: m.Blocks, Comm: c}}, opt, FusionConfig{Device: dev, FirstMB: 0.001})
		if err != nil {
			return err
		}
		defer g.Close()
		if err := drive(ctx, c, g, m, data); err != nil {
			return err
		}
		if c.Rank() == 0 {
			gradients, err := g.Gradients(ctx)
			if err != nil {
				return err
			}
			for _, n := range gradients {
				out[n.Name] = append([]float32(nil), n.Buf.F32()...)
			}
		}
		return nil
	}))
	return out
}

// manual is the low road: the loop that a program writes itself.
func manual(micro int, noSync bool) func(context.Context, collective.Comm, *GradFusion, *models.Model, samples) error {
	return func(ctx context.Context, _ collective.Comm, g *GradFusion, m *models.Model, s samples) error {
		tape := nn.NewTape(naive.New())
		for mb := range g.Micros(len(s.y), micro) {
			one := func() (err error) {
				defer nn.Catch(&err)
				b := s.batch(mb)
				tape.Begin(nn.Pass{Training: true, Micro: mb.Index})
				return g.Backward(tape, crossEntropy(tape, nn.Forward(tape, m.Blocks, tape.Input(b.Input, b.Shape, false)), b), mb)
			}
			var err error
			if mb.Last || !noSync {
				err = one()
			} else {
				err = g.NoSync(one)
			}
			if err != nil {
				return err
			}
		}
		return g.Wait(ctx)
	}
}

// requireClose compares within 1e-6 of each tensor's rms, which is the rounding
// of a few hundred additions in float32.
func requireClose(t *testing.T, want, got map[string][]float32) {
	t.Helper()
	for name, w := range want {
		var diff, norm float64
		for i := range w {
			d := float64(got[name][i] - w[i])
			diff += d * d
			norm += float64(w[i]) * float64(w[i])
		}
		require.Less(t, diff, norm*1e-12, name)
	}
}

// TestAccumulationEqualsOneBatch compares step-1 gradients of all layouts.
func TestAccumulationEqualsOneBatch(t *testing.T) {
	want := gradients(t, mlpConfig, 1, manual(12, false))
	for _, c := range []struct{ ranks, micro int }{{1, 1}, {1, 5}, {2, 6}, {2, 4}, {3, 5}, {4, 2}, {5, 12}} {
		for _, noSync := range []bool{true, false} {
			t.Run(fmt.Sprintf("%d ranks, micro %d, no_sync %t", c.ranks, c.micro, noSync), func(t *testing.T) {
				requireClose(t, want, gradients(t, mlpConfig, c.ranks, manual(c.micro, noSync)))
			})
		}
	}
}

// TestRanksDoNotChangeGradients holds for networks with BatchNorm too, whose
// group is the micro-batch.
func TestRanksDoNotChangeGradients(t *testing.T) {
	for _, model := range []models.Config{mlpConfig, resnetConfig} {
		want := gradients(t, model, 1, manual(2, true))
		for _, ranks := range []int{2, 3, 4, 6} {
			requireClose(t, want, gradients(t, model, ranks, manual(2, true)))
		}
	}
}

func TestStepOfNoSamples(t *testing.T) {
	gradients(t, mlpConfig, 2, func(ctx context.Context, c collective.Comm, g *GradFusion, m *models.Model, s samples) error {
		if err := g.Wait(ctx); !errors.Is(err, ErrNoSamples) {
			return fmt.Errorf("Wait before Micros gave %v", err)
		}
		for range g.Micros(0, 4) {
			return errors.New("a micro-batch of no samples")
		}
		if err := g.Wait(ctx); !errors.Is(err, ErrNoSamples) {
			return fmt.Errorf("Wait gave %v", err)
		}
		return manual(2, true)(ctx, c, g, m, s)
	})
}

func TestForgottenSynchronisation(t *testing.T) {
	gradients(t, mlpConfig, 2, func(ctx context.Context, c collective.Comm, g *GradFusion, m *models.Model, s samples) error {
		err := g.NoSync(func() error { return manual(2, false)(ctx, c, g, m, s) })
		if !errors.Is(err, ErrNotSynchronised) {
			return fmt.Errorf("Wait gave %v", err)
		}
		if err := g.Step(1); !errors.Is(err, ErrNotSynchronised) {
			return fmt.Errorf("Step gave %v", err)
		}
		return manual(2, true)(ctx, c, g, m, s)
	})
}

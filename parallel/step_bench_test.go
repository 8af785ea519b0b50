package parallel

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/device/cpu"
	"github.com/gradfusion/gradfusion/models"
	"github.com/gradfusion/gradfusion/nn"
	"github.com/gradfusion/gradfusion/observe"
	"github.com/gradfusion/gradfusion/optim"
)

// stepper returns a function that runs one training step of resnet20 on this
// rank, with events recorded, as the command runs it.
func stepper(ctx context.Context, comm collective.Comm, side int) (step func() error, closer func() error, err error) {
	dev, err := cpu.New(cpu.Config{Threads: 1})
	if err != nil {
		return nil, nil, err
	}
	m, err := models.New(models.Config{Name: "resnet20", Channels: 1, Height: side, Width: side, Classes: 10})
	if err != nil {
		return nil, nil, err
	}
	if err := nn.Materialize(dev, m.Blocks, 1); err != nil {
		return nil, nil, err
	}
	opt, err := optim.New(optim.Config{Name: "nesterov", WeightDecay: 5e-4})
	if err != nil {
		return nil, nil, err
	}
	events := observe.NewRecorder(1 << 12)
	g, err := NewGradFusion(ctx, []Stage{{Blocks: m.Blocks, Comm: comm}}, opt, FusionConfig{Device: dev, Events: events})
	if err != nil {
		return nil, nil, err
	}
	set := newSamples(16, 1, side)
	e := NewExecutor(ExecutorConfig{Fusion: g, Device: dev, Loss: crossEntropy, Events: events,
		Feed: func(_ context.Context, m Micro) (Batch, error) { return set.batch(m), nil }})
	step = func() error {
		if err := e.Step(ctx, len(set.y), 4); err != nil {
			return err
		}
		return g.Step(0.01)
	}
	return step, func() error { g.Close(); return dev.Close() }, nil
}

// BenchmarkStep shows what a steady training step of resnet20 allocates.
func BenchmarkStep(b *testing.B) {
	for _, ranks := range []int{1, 2} {
		b.Run(fmt.Sprintf("ranks=%d", ranks), func(b *testing.B) {
			b.ReportAllocs()
			count := b.N
			require.NoError(b, world(b.Context(), ranks, func(ctx context.Context, c collective.Comm) error {
				step, closer, err := stepper(ctx, c, 28)
				if err != nil {
					return err
				}
				defer closer()
				for range 5 {
					if err := step(); err != nil {
						return err
					}
				}
				if c.Rank() == 0 {
					b.ResetTimer()
				}
				for range count {
					if err := step(); err != nil {
						return err
					}
				}
				return nil
			}))
		})
	}
}

// TestSteadyStepAllocates holds the bound of the benchmark on a smaller image:
// the number of objects does not depend on the size.
func TestSteadyStepAllocates(t *testing.T) {
	require.NoError(t, world(t.Context(), 1, func(ctx context.Context, c collective.Comm) error {
		step, closer, err := stepper(ctx, c, 8)
		if err != nil {
			return err
		}
		defer closer()
		for range 5 {
			if err := step(); err != nil {
				return err
			}
		}
		objects := testing.AllocsPerRun(5, func() { err = step() })
		require.NoError(t, err)
		require.Less(t, objects, 100.0)
		t.Logf("%.0f objects a step", objects)
		return nil
	}))
}

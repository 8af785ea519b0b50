package parallel

import (
	"context"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gradfusion/gradfusion/amp"
	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/cpu"
	"github.com/gradfusion/gradfusion/models"
	"github.com/gradfusion/gradfusion/nn"
	"github.com/gradfusion/gradfusion/optim"
)

// BenchmarkPrecision shows what a step at O2 takes beside one at O0: the least
// processor time of each, taken in turn in one process, and the bytes of activations.
func BenchmarkPrecision(b *testing.B) {
	for _, c := range []struct {
		name  string
		model models.Config
		batch int
	}{
		{"mlp", models.Config{Name: "mlp", Channels: 1, Height: 28, Width: 28, Classes: 10}, 64},
		{"resnet20", models.Config{Name: "resnet20", Channels: 1, Height: 28, Width: 28, Classes: 10}, 32},
		{"resnet18", models.Config{Name: "resnet18", Stem: "small", Channels: 3, Height: 32, Width: 32, Classes: 10}, 32},
		{"resnet50", models.Config{Name: "resnet50", Channels: 3, Height: 224, Width: 224, Classes: 1000}, 8},
		{"gpt", models.Config{Name: "gpt", Layers: 6, Heads: 6, Features: 384, Context: 256, Vocabulary: 256}, 8},
	} {
		b.Run(c.name, func(b *testing.B) {
			require.NoError(b, world(b.Context(), 1, func(ctx context.Context, comm collective.Comm) error {
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
				var steps []func() (time.Duration, int)
				for _, level := range []amp.Level{amp.O0, amp.O2} {
					steps = append(steps, levelled(b, ctx, comm, c.model, c.batch, amp.Config{Level: level}))
				}
				best, held := []time.Duration{math.MaxInt64, math.MaxInt64}, []int{0, 0}
				for range max(b.N, 3) {
					for i, step := range steps {
						took, bytes := step()
						best[i], held[i] = min(best[i], took), bytes
					}
				}
				b.ReportMetric(float64(best[0].Microseconds())/1000, "O0-ms")
				b.ReportMetric(float64(best[1])/float64(best[0]), "time-ratio")
				b.ReportMetric(float64(held[1])/float64(held[0]), "activations-ratio")
				return nil
			}))
		})
	}
}

// levelled returns a training step that tells its time and what its passes hold.
func levelled(b *testing.B, ctx context.Context, comm collective.Comm, model models.Config, batch int, level amp.Config) func() (time.Duration, int) {
	dev, err := cpu.New(cpu.Config{Threads: 1})
	require.NoError(b, err)
	m, err := models.New(model)
	require.NoError(b, err)
	require.NoError(b, nn.Materialize(dev, m.Blocks, 1))
	opt, err := optim.New(optim.Config{Name: "momentum"})
	require.NoError(b, err)
	g, err := NewGradFusion(ctx, []Stage{{Blocks: m.Blocks, Comm: comm}}, opt, FusionConfig{Device: dev, Scaler: level.Scaler(), Targets: max(model.Context, 1)})
	require.NoError(b, err)
	b.Cleanup(func() { g.Close(); dev.Close() })
	r := rand.New(rand.NewPCG(1, 1))
	shape := nn.Plain(batch, model.Channels, model.Height, model.Width)
	targets := make([]int32, batch*max(model.Context, 1))
	for i := range targets {
		targets[i] = int32(r.IntN(max(model.Classes, model.Vocabulary)))
	}
	var input device.Buf
	if model.Context > 0 {
		shape, input = nn.Plain(batch, model.Context), device.FromI32(targets)
	} else {
		x := make([]float32, shape.Len())
		for i := range x {
			x[i] = float32(r.NormFloat64())
		}
		input = device.FromF32(x)
	}
	e := NewExecutor(ExecutorConfig{Fusion: g, Device: dev, Loss: crossEntropy, Precision: level.Precision(),
		Feed: func(context.Context, Micro) (Batch, error) {
			return Batch{Input: input, Shape: shape, Target: device.FromI32(targets)}, nil
		}})
	return func() (time.Duration, int) {
		start := threadTime(b)
		require.NoError(b, e.Step(ctx, batch, batch))
		require.NoError(b, g.Step(1e-4))
		return threadTime(b) - start, e.Activations()
	}
}

// threadTime is how long this thread has computed, whatever else the machine
// did. All of a step happens on it.
func threadTime(b *testing.B) time.Duration {
	var t unix.Timespec
	require.NoError(b, unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t))
	return time.Duration(t.Nano())
}
